//! Operations that change something: each low one against tokens that lack one thing, a guest that is protected and a
//! server that is frozen; each destructive one against the token that has everything. Nothing of it is written.

use std::collections::{BTreeMap, BTreeSet};

use lab::{Arrange, Front, FrontOptions, Lab, Options};
use pvegate::store::{SqliteStore, Store as _};
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Offered, Operation, Place, Tool};
use pvegate_generated::terms::{Role, Tier};
use pvegate_generated::tools::TOOLS;
use serde_json::{Map, Value, json};
use tests::call::{Call, by_vmid};
use tests::client::Client;
use tests::site::{CLUSTER, Site, low_token, quick};
use tests::token::Token;

use super::{Lack, Named, named};
use crate::low::each;

/// To a token that only reads, no tool that changes anything is there.
const HIDDEN: &str = "rpc -32602";

const LACKS: [Lack; 6] = [Lack::Cluster, Lack::Guests, Lack::Nodes, Lack::Storages, Lack::Pools, Lack::Networks];

/// A token with every tool and these tiers, that lacks this.
fn token(lack: Lack, tiers: &Value) -> Token {
    let toolsets: BTreeSet<&str> = TOOLS.iter().flat_map(Tool::toolsets).collect();
    let mut keys = lack.keys();
    keys["tools"] = json!(toolsets);
    keys["tiers"] = tiers.clone();
    Token::new(&format!("without-{lack:?}-{}", tiers.as_array().unwrap().len()).to_lowercase(), &keys)
}

/// A lab whose operator may do everything, and clients that each lack one thing.
struct Row {
    site: Site,
    clients: BTreeMap<Lack, Client>,
    reader: Client,
}

impl Row {
    async fn start(options: Options, other: &Lab) -> Self {
        let (secret, entry) = low_token("operator");
        let tiers = json!(["read", "low"]);
        let lacking: Vec<(Lack, Token)> = LACKS.into_iter().map(|lack| (lack, token(lack, &tiers))).collect();
        let reader = token(Lack::Nothing, &json!(["read"]));
        let mut more_tokens: Vec<Value> = lacking.iter().map(|(_, token)| token.entry.clone()).collect();
        more_tokens.extend([entry, reader.entry]);
        let url_allow = vec!["internal:images.lab.test".to_owned()];
        let lab = Lab::start(options).await.unwrap();
        let options = FrontOptions { more_tokens, url_allow, ..FrontOptions::default() };
        let front = Front::start(&[(CLUSTER, &lab), ("else", other)], options).await.unwrap();
        let client = Client::new(&front.url(), &secret);
        let clients = lacking.iter().map(|(lack, token)| (*lack, client.with_token(&token.secret))).collect();
        let reader = client.with_token(&reader.secret);
        Self { site: Site { lab, front, client }, clients, reader }
    }

    /// The call is refused with this code, and nothing is written.
    async fn refused(&self, client: &Client, call: &Call, code: &str, why: &str) {
        let what = format!("{} {:?}, {why}", call.operation.name, call.arguments);
        self.site.lab.clear_journal();
        match run(client, call).await {
            Err(refused) => {
                assert_eq!(refused.code, code, "{what}: {refused:?}");
                assert!(code != HIDDEN || refused.message.contains("there is no tool"), "{what}: {refused:?}");
            }
            Ok(answer) => panic!("{what}: {answer:#}"),
        }
        let writes = self.site.writes();
        assert!(writes.is_empty(), "{what}: {writes:#?}");
    }
}

async fn run(client: &Client, call: &Call) -> Result<Value, tests::client::Refused> {
    let asked = json!({"cluster": CLUSTER, "operation": call.operation.name, "arguments": call.arguments});
    client.tool("run_operation", asked).await
}

/// The code with which a call is refused; none where it names nothing of what is lacking.
fn expected(call: &Call, lack: Lack) -> Option<&'static str> {
    let roles: BTreeSet<Role> = call.arguments.keys().filter_map(|name| parameter(call.operation, name)).collect();
    let names = named(call);
    let is_named = match lack {
        Lack::Cluster => return Some("no_such_cluster"),
        Lack::Networks => return roles.contains(&Role::Nic).then_some("needs_a_plan"),
        Lack::Guests => {
            names.contains(&Named::Guest) || names.contains(&Named::Anything) || roles.contains(&Role::GuestNew)
        }
        Lack::Nodes => names.contains(&Named::Node),
        // A copy takes the storages of its source, and a disk that grows the storage on which it is.
        Lack::Storages => {
            let by_disk = ["/clone", "/resize"].iter().any(|end| call.operation.path.ends_with(end));
            names.contains(&Named::Storage) || roles.contains(&Role::Disk) || by_disk
        }
        Lack::Pools => names.contains(&Named::Pool),
        Lack::Nothing | Lack::AllButGuests => false,
    };
    is_named.then_some("not_found")
}

/// The role of an argument, also of one that is numbered.
fn parameter(operation: &Operation, name: &str) -> Option<Role> {
    let plain = name.trim_end_matches(|last: char| last.is_ascii_digit());
    let found = operation.params.iter().find(|one| one.name == name || one.name == format!("{plain}[n]"));
    found.map(|parameter| parameter.role)
}

#[tokio::test]
async fn each_low_operation_without_each_grant() {
    let other = Lab::start(quick()).await.unwrap();
    let mut cells = BTreeMap::<String, usize>::new();
    let mut count = |column: String| *cells.entry(column).or_default() += 1;
    for operation in OPERATIONS.iter().copied().filter(|operation| operation.tier == Tier::Low) {
        let row = Row::start(each::options(operation), &other).await;
        each::arrange(&row.site, operation);
        let Value::Object(arguments) = each::sample(&row.site, operation).await else { panic!("{}", operation.name) };
        let mut call = Call { operation, arguments };
        row.refused(&row.reader, &call, HIDDEN, "with reads only").await;
        count("tier".to_owned());
        if operation.low_args.contains(&"pool") {
            call = call.with("pool", "build");
        }
        for (lack, client) in &row.clients {
            if let Some(code) = expected(&call, *lack) {
                row.refused(client, &call, code, &format!("without {lack:?}")).await;
                count(format!("{lack:?}"));
            }
        }
        call.arguments.remove("pool");
        let store = SqliteStore::operate(&row.site.lab.directory().join("pvegate.db")).await.unwrap();
        store.freeze("ada", "a fire in the room", None).await.unwrap();
        row.refused(&row.site.client, &call, "frozen", "while frozen").await;
        store.unfreeze("ada").await.unwrap();
        count("frozen".to_owned());
        if let Some(vmid) = call.arguments.get("vmid").and_then(Value::as_u64).filter(|_| operation.interrupts) {
            let kind = if operation.path.contains("/lxc/") { "lxc" } else { "qemu" };
            let name = if kind == "lxc" { "hostname" } else { "name" };
            let config = json!({name: "kept", "memory": "512", "protection": 1});
            row.site.lab.arrange(Arrange::Guest { vmid: u32::try_from(vmid).unwrap(), kind: kind.to_owned(), config });
            row.refused(&row.site.client, &call, "protected", "of a protected guest").await;
            count("protected".to_owned());
        }
    }
    let total: usize = cells.values().sum();
    assert!(total > 150, "{cells:?}");
    for (column, least) in [
        ("tier", 30),
        ("frozen", 30),
        ("protected", 9),
        ("Cluster", 30),
        ("Guests", 25),
        ("Nodes", 4),
        ("Storages", 8),
        ("Pools", 4),
        ("Networks", 2),
    ] {
        assert!(cells.get(column).is_some_and(|count| *count >= least), "{column}: {cells:?}");
    }
}

/// What stands in the path, with things that exist.
fn in_path(operation: &Operation) -> Map<String, Value> {
    let value = |name: &str, role: Role| match (role, name) {
        (Role::GuestTarget | Role::GuestSource, _) => json!(if operation.path.contains("/lxc") { 114 } else { 118 }),
        (Role::Node, _) => json!("pve1"),
        (Role::Storage, _) => json!("local"),
        (Role::Pool, _) => json!("ci"),
        (Role::Snapshot, _) => json!("clean"),
        (Role::Volume, _) => json!("local:iso/virtio-win-0.1.285.iso"),
        _ => json!("one"),
    };
    let path = operation.params.iter().filter(|one| one.place == Place::Path);
    let given = path.filter(|one| !(one.role == Role::Node && by_vmid(operation)));
    given.map(|one| (one.name.to_owned(), value(one.name, one.role))).collect()
}

#[tokio::test]
async fn no_destructive_operation_acts_at_once() {
    let other = Lab::start(quick()).await.unwrap();
    let row = Row::start(quick(), &other).await;
    let mut cells = 0;
    for operation in OPERATIONS.iter().copied().filter(|operation| operation.tier == Tier::Destructive) {
        for arguments in [in_path(operation), Map::new()] {
            let call = Call { operation, arguments };
            let code = if operation.offered == Offered::Yes { "needs_a_plan" } else { "not_offered" };
            row.refused(&row.site.client, &call, code, "with everything").await;
            cells += 1;
            if operation.offered == Offered::Yes {
                row.refused(&row.reader, &call, HIDDEN, "with reads only").await;
                cells += 1;
            }
        }
    }
    assert!(cells > 600, "{cells}");
}
