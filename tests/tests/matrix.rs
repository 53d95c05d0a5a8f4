//! Each operation of the catalog against tokens that lack one thing: what may not be done is refused in the right words,
//! and nothing about it reaches the cluster. The rows are generated, so a new operation cannot be forgotten.

mod low;
mod reads;

use std::collections::{BTreeMap, BTreeSet};

use lab::{Front, FrontOptions, Lab};
use pvegate::values::{Upid, VolumeId};
use pvegate_generated::model::{Place, Rows};
use pvegate_generated::terms::Role;
use serde_json::{Value, json};
use tests::call::{Call, by_vmid};
use tests::client::Client;
use tests::journal;
use tests::site::{CLUSTER, all_opt_in, quick};
use tests::token::Token;

/// What a token does not have, while it has everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Nothing,
    Cluster,
    Guests,
    Nodes,
    Storages,
    Pools,
    Networks,
    /// Everything but the guests that the calls name.
    AllButGuests,
}

const LACKS: [Lack; 8] = [
    Lack::Nothing,
    Lack::Cluster,
    Lack::Guests,
    Lack::Nodes,
    Lack::Storages,
    Lack::Pools,
    Lack::Networks,
    Lack::AllButGuests,
];

impl Lack {
    /// The keys of its token.
    fn keys(self) -> Value {
        let mut keys = json!({
            "clusters": [CLUSTER],
            "guests": ["*"],
            "nodes": ["*"],
            "storages": ["*"],
            "pools": ["*"],
            "networks": ["*"],
        });
        let object = keys.as_object_mut().unwrap();
        let mut none = |key: &str| drop(object.remove(key).unwrap());
        match self {
            Self::Nothing => {}
            Self::Cluster => keys["clusters"] = json!(["else"]),
            Self::Guests => none("guests"),
            Self::Nodes => none("nodes"),
            Self::Storages => none("storages"),
            Self::Pools => none("pools"),
            Self::Networks => none("networks"),
            Self::AllButGuests => {
                for key in ["nodes", "storages", "pools", "networks"] {
                    none(key);
                }
                keys["guests"] = json!(["vmid:100-139"]);
            }
        }
        keys
    }
}

/// A lab, a second cluster, a server in front of both, and a client for each lack.
struct Cells {
    lab: Lab,
    clients: BTreeMap<Lack, Client>,
    _else: Lab,
    _front: Front,
}

impl Cells {
    async fn start() -> Self {
        let (lab, other) = (Lab::start(quick()).await.unwrap(), Lab::start(quick()).await.unwrap());
        let tokens: Vec<(Lack, Token)> =
            LACKS.iter().map(|lack| (*lack, Token::new(&format!("{lack:?}").to_lowercase(), &lack.keys()))).collect();
        let more_tokens = tokens.iter().map(|(_, token)| token.entry.clone()).collect();
        let options = FrontOptions { more_tokens, opt_in: all_opt_in(), ..FrontOptions::default() };
        let front = Front::start(&[(CLUSTER, &lab), ("else", &other)], options).await.unwrap();
        let clients = tokens.iter().map(|(lack, token)| (*lack, Client::new(&front.url(), &token.secret))).collect();
        Self { lab, clients, _else: other, _front: front }
    }

    fn client(&self, lack: Lack) -> &Client {
        &self.clients[&lack]
    }

    /// Fails if a caller caused any request since the journal was cleared.
    fn nothing_sent(&self, what: &str) {
        let sent: Vec<_> = self.lab.journal().into_iter().filter(|entry| !journal::is_internal(entry)).collect();
        assert!(sent.is_empty(), "{what}: nothing may be sent, but this was: {sent:?}");
    }
}

/// One kind of thing that the arguments of a call name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    /// A guest, also by a volume or a task of one.
    Guest,
    Node,
    Storage,
    Pool,
    Network,
    /// A task of which the id does not tell the guest.
    Anything,
}

/// What the arguments of a call name, told from their roles alone.
fn named(call: &Call) -> BTreeSet<Named> {
    let mut names = BTreeSet::new();
    let task = call.operation.params.iter().any(|parameter| parameter.role == Role::Task);
    for (name, value) in &call.arguments {
        let Some(parameter) = call.operation.parameter(name) else { continue };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match parameter.role {
            Role::GuestTarget | Role::GuestSource | Role::GuestList | Role::GuestRef => _ = names.insert(Named::Guest),
            // The samples name a task with its own node.
            Role::Node if parameter.place == Place::Path && (task || by_vmid(call.operation)) => {}
            Role::Node | Role::NodeList => _ = names.insert(Named::Node),
            Role::Storage | Role::StorageList => _ = names.insert(Named::Storage),
            Role::Pool => _ = names.insert(Named::Pool),
            Role::Network => _ = names.insert(Named::Network),
            Role::Volume => {
                names.insert(Named::Storage);
                names.extend(VolumeId::parse(&text).unwrap().owner().map(|_| Named::Guest));
            }
            Role::Task => {
                let subject = Upid::parse(&text).unwrap().subject().parse::<u32>();
                names.insert(if subject.is_ok() { Named::Guest } else { Named::Anything });
            }
            _ => {}
        }
    }
    names
}

/// Whether nothing that a read has to name, nor a column of its rows, tells whose the answer is.
fn is_nobodys(call: &Call) -> bool {
    let bound = call.operation.params.iter().any(|parameter| {
        let named = [
            Role::GuestTarget,
            Role::GuestSource,
            Role::GuestRef,
            Role::Node,
            Role::Storage,
            Role::Pool,
            Role::Network,
            Role::Volume,
            Role::Task,
        ];
        parameter.required && named.contains(&parameter.role)
    });
    match call.operation.rows {
        Rows::All => true,
        Rows::NotAList => !bound,
        Rows::Bound | Rows::Columns(_) => false,
    }
}
