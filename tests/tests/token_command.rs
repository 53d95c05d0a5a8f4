//! `pvegate token` and SIGHUP, with the built program: what an operator does with tokens while the server runs.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::client::Client;
use tests::program;
use tests::site::Site;

fn token(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program::built("pvegate"));
    command.arg("token").args(arguments).arg("--tokens").arg(folder.join("tokens.json"));
    command.stdin(Stdio::null()).output().unwrap()
}

/// What it wrote on standard output, after it succeeded.
fn done(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// What it said, after it failed and changed nothing.
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let before = std::fs::read(folder.join("tokens.json")).ok();
    let output = token(folder, arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert_eq!(std::fs::read(folder.join("tokens.json")).ok(), before, "{arguments:?} changed the file");
    String::from_utf8(output.stderr).unwrap()
}

const ADD: [&str; 8] = ["add", "reader", "--owner", "ada", "--tools", "gateway,list_tasks", "--clusters", "lab"];

#[test]
fn a_token_from_its_making_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let secret = done(token(folder, &ADD));
    assert!(secret.starts_with("pvegate_") && secret.len() > 40 && !secret.contains(char::is_whitespace));
    let file = folder.join("tokens.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&secret) && text.contains("sha256:"), "the file holds the digest alone");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing is left beside it");

    done(token(folder, &["add", "ada", "--person", "ada", "--tools", "*", "--clusters", "*", "--expires", "90d"]));
    let list = done(token(folder, &["list"]));
    assert!(
        list.contains("reader  agent of ada  gateway, list_tasks  lab  -  read  no end") && list.lines().count() == 2,
        "{list}"
    );
    let show = done(token(folder, &["show", "ada"]));
    assert!(show.contains("who: ada") && show.contains("until: 20"), "{show}");

    let hash = |name: &str| {
        let file: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let tokens = file["tokens"].as_array().unwrap().clone();
        tokens.into_iter().find(|token| token["name"] == name).unwrap_or_default()
    };
    let before = hash("reader")["hash"].clone();
    // Narrower needs no question; wider is not done where nobody can answer.
    done(token(folder, &["set-scopes", "reader", "--tools", "gateway"]));
    assert_eq!(hash("reader")["hash"], before, "scopes never change the secret");
    let said = refused(folder, &["set-scopes", "reader", "--clusters", "*"]);
    assert!(said.contains("clusters * instead of lab") && said.contains("--yes"), "{said}");
    done(token(folder, &["set-scopes", "reader", "--clusters", "*", "--yes"]));
    assert_eq!(hash("reader")["clusters"], json!(["*"]));
    let said = refused(folder, &["set-scopes", "ada", "--expires", "never"]);
    assert!(said.contains("until ever"), "{said}");

    let other = done(token(folder, &["rotate", "reader"]));
    assert!(other != secret && hash("reader")["hash"] != before);
    assert_eq!((&hash("reader")["tools"], &hash("ada")["name"]), (&json!(["gateway"]), &json!("ada")));
    done(token(folder, &["revoke", "reader"]));
    assert!(!done(token(folder, &["list"])).contains("reader"));
}

#[test]
fn every_kind_of_grant_is_given_shown_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let kinds = [
        ("guests", "vmid:600-699,tag:ci"),
        ("nodes", "pve1"),
        ("storages", "local"),
        ("pools", "lab"),
        ("networks", "vmbr0,vmbr1:20-29"),
        ("tiers", "read,low"),
        ("max-memory-mib", "4096"),
        ("max-disk-gib", "100"),
        ("max-guests", "5"),
        ("max-snapshots", "3"),
    ];
    let flags: Vec<String> = kinds.iter().map(|(kind, value)| format!("--{kind}={value}")).collect();
    let mut add: Vec<&str> = ADD.to_vec();
    add.extend(flags.iter().map(String::as_str));
    done(token(folder, &add));
    let shown = |kind: &str| {
        let show = done(token(folder, &["show", "reader"]));
        let key = format!("{}: ", kind.replace('-', "_"));
        show.lines().find_map(|line| line.strip_prefix(&key).map(|value| value.replace(", ", ",")))
    };
    for (kind, value) in kinds {
        assert_eq!(shown(kind).as_deref(), Some(value), "{kind}");
    }
    // Wider in each kind: nobody at a terminal, so nothing happens; with --yes it does, and the rest stays.
    for (kind, more) in [
        ("tools", "gateway,list_tasks,list_guests"),
        ("guests", "vmid:600-700,tag:ci"),
        ("guests", "*"),
        ("nodes", "pve1,pve2"),
        ("storages", "*"),
        ("pools", "lab,other"),
        ("networks", "vmbr0,vmbr1:20-30"),
        ("tiers", "low,destructive"),
        ("max-memory-mib", "4097"),
        ("max-disk-gib", "unlimited"),
        ("max-guests", "6"),
        ("max-snapshots", "unlimited"),
    ] {
        let flag = format!("--{kind}={more}");
        let said = refused(folder, &["set-scopes", "reader", &flag]);
        assert!(said.contains(&format!("{} ", kind.replace('-', "_"))) && said.contains("instead of"), "{said}");
        done(token(folder, &["set-scopes", "reader", &flag, "--yes"]));
    }
    assert_eq!((shown("guests").as_deref(), shown("max-guests").as_deref()), (Some("*"), Some("6")));
    assert_eq!((shown("max-disk-gib"), shown("tiers").as_deref()), (None, Some("read,low,destructive")));
    // Narrower needs no question.
    for (kind, less) in
        [("guests", "vmid:650"), ("nodes", "-"), ("tiers", "read"), ("networks", "vmbr1:25"), ("max-disk-gib", "7")]
    {
        done(token(folder, &["set-scopes", "reader", &format!("--{kind}={less}")]));
        assert_eq!(shown(kind).as_deref(), Some(less), "{kind}");
    }
    assert!(refused(folder, &["set-scopes", "reader", "--everywhere"]).contains("guests * instead of vmid:650"));
    done(token(folder, &["set-scopes", "reader", "--everywhere", "--yes"]));
    for kind in ["guests", "nodes", "storages", "pools"] {
        assert_eq!(shown(kind).as_deref(), Some("*"), "{kind}");
    }
    for (flag, said) in [
        ("--guests=600", "--guests: `600` selects no guests"),
        ("--networks=vmbr0:0", "--networks: "),
        ("--tiers=high", "--tiers: "),
        ("--nodes=*,pve1", "--nodes: `*` stands for all"),
        ("--max-guests=many", "unlimited"),
        ("--tools=no_such_tool", "no tool or toolset"),
    ] {
        assert!(refused(folder, &["set-scopes", "reader", flag, "--yes"]).contains(said), "{flag}");
    }
    // `*` holds what reads, so a tool that changes something is more than it.
    done(token(folder, &["set-scopes", "reader", "--tools=*", "--yes"]));
    assert!(refused(folder, &["set-scopes", "reader", "--tools=stop_vm"]).contains("tools stop_vm instead of *"));
}

#[test]
fn an_entry_of_the_seeds_is_rotated_as_it_is_and_gets_our_keys_with_other_scopes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let file = folder.join("tokens.json");
    let hash = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
    let entry = json!({"name": "older", "hash": hash, "devices": ["pve3"], "tools": ["get_vms", "stop_vm", "delete_vm"], "grant": ["vmid:600-699"]});
    std::fs::write(&file, json!({"version": 1, "tokens": [entry]}).to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let read = || {
        let file: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        file["tokens"][0].clone()
    };
    let show = done(token(folder, &["show", "older"]));
    assert!(
        show.contains("guests: vmid:600-699") && show.contains("plans: delete_vm") && show.contains("tiers: read, low"),
        "{show}"
    );
    done(token(folder, &["rotate", "older"]));
    done(token(folder, &["set-scopes", "older", "--expires", "90d"]));
    let rotated = read();
    assert!(rotated["hash"].as_str().unwrap().starts_with("sha256:"), "{rotated}");
    assert_eq!((&rotated["devices"], &rotated["grant"]), (&json!(["pve3"]), &json!(["vmid:600-699"])));

    done(token(folder, &["set-scopes", "older", "--guests", "vmid:650"]));
    let ours = read();
    assert_eq!((&ours["hash"], ours.get("devices"), ours.get("grant")), (&rotated["hash"], None, None));
    assert_eq!((&ours["clusters"], &ours["guests"]), (&json!(["pve3"]), &json!(["vmid:650"])));
    assert_eq!(
        (&ours["tools"], &ours["tiers"], &ours["nodes"]),
        (&json!(["get_vms", "stop_vm"]), &json!(["read", "low"]), &json!(["*"]))
    );
}

#[test]
fn what_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(refused(folder, &["show", "nobody"]).contains("no token `nobody`"));
    let with = |at: usize, value: &'static str| {
        let mut arguments = ADD;
        arguments[at] = value;
        arguments
    };
    assert!(refused(folder, &with(1, "a b")).contains("letters, digits"));
    assert!(refused(folder, &with(5, "no_such_tool")).contains("no tool or toolset `no_such_tool`"));
    assert!(refused(folder, &["add", "x", "--tools", "*", "--clusters", "*"]).contains("--owner"));
    done(token(folder, &ADD));
    assert!(refused(folder, &ADD).contains("the same name"));
    assert!(refused(folder, &["revoke", "nobody"]).contains("no token `nobody`"));
    assert!(refused(folder, &["set-scopes", "reader"]).contains("nothing to change"));
    assert!(refused(folder, &["set-scopes", "reader", "--expires", "soon"]).contains("90d"));
    assert!(refused(folder, &["set-scopes", "reader", "--expires", "2001-01-01T00:00:00Z"]).contains("over already"));
    let file = folder.join("tokens.json");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(folder, &["rotate", "reader"]).contains("chmod 600"));
    let link = folder.join("link.json");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let output =
        Command::new(program::built("pvegate")).args(["token", "list", "--tokens"]).arg(&link).output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("symbolic link"));
}

struct Server {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Server {
    fn start(clusters: &Path, tokens: &Path) -> Self {
        let mut child = Command::new(program::built("pvegate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--clusters"])
            .arg(clusters)
            .arg("--tokens")
            .arg(tokens)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// Waits for a line that contains this text.
    fn says(&self, text: &str) -> String {
        let start = Instant::now();
        while let Some(left) = Duration::from_secs(20).checked_sub(start.elapsed()) {
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        panic!("the server never said `{text}`");
    }

    fn hang_up(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::HUP).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_server_reads_its_files_again() {
    let site = Site::start().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let first = done(token(folder, &ADD));
    let server = Server::start(site.front.clusters_file(), &folder.join("tokens.json"));
    let url = server.says("serves MCP at").split_whitespace().last().unwrap().to_owned();
    let works = async |secret: &str| Client::new(&url, secret).raw("tools/list", json!({})).await.0 == 200;
    assert!(works(&first).await);

    let second = done(token(folder, &["rotate", "reader"]));
    assert!(works(&first).await && !works(&second).await, "until SIGHUP nothing changes");
    server.hang_up();
    server.says("reads its files again");
    assert!(!works(&first).await && works(&second).await);

    // A file that is not in order changes nothing, and is said.
    std::fs::write(folder.join("tokens.json"), "{").unwrap();
    server.hang_up();
    let said = server.says("keeps what it knew");
    assert!(said.contains("tokens.json"), "{said}");
    assert!(works(&second).await);
}
