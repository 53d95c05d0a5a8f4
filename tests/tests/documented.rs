//! The commands that the documentation shows are run as they stand there, but for the folders.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use lab::Lab;
use serde_json::json;
use tests::program::{self, root};
use tests::server::Files;
use tests::site::quick;

/// The lines of a document's code that begin with `pvegate`, without that word.
fn commands(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(document)).unwrap();
    let (mut inside, mut found) = (false, Vec::new());
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if inside && let Some(command) = line.trim().strip_prefix("pvegate ") {
            found.push(command.to_owned());
        }
    }
    found
}

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(program::built("pvegate"));
    command.current_dir(folder).args(line.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(folder: &Path, line: &str) -> Output {
    let output = command(folder, line).output().unwrap();
    assert!(output.status.success(), "pvegate {line}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn tokens_as_the_page_about_authorization_makes_them() {
    let folder = tempfile::tempdir().unwrap();
    let commands = commands("authorization.md");
    assert!(commands.len() >= 5, "{commands:?}");
    for line in &commands {
        run(folder.path(), line);
    }
    let file = std::fs::read_to_string(folder.path().join("tokens.json")).unwrap();
    assert!(!file.contains("ci-bot"), "the last one takes it away: {file}");
}

#[tokio::test]
async fn a_server_as_the_page_about_migrating_starts_it() {
    let lab = Lab::start(quick()).await.unwrap();
    let files = Files::new(&lab, &json!({"tools": ["gateway"], "clusters": ["*"]}));
    let folder = files.path("");
    let waivers = json!({"version": 1, "waivers": [{
        "cluster": "lab", "vmid": 107, "until": "2099-01-01T00:00:00Z", "reason": "decommission", "ops": ["destroy_guest"],
    }]});
    std::fs::write(folder.join("waivers.json"), waivers.to_string()).unwrap();
    std::fs::set_permissions(folder.join("waivers.json"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let commands = commands("migrating-from-rust-proxmoxmcp.md");
    assert_eq!(commands.len(), 1, "{commands:?}");
    for line in commands {
        // The folders of the page are none of this machine, and neither is its port.
        let here = format!("{}/", folder.display());
        let line = ["/etc/proxmoxmcp/", "/var/lib/proxmoxmcp/", "/var/lib/pvegate/"]
            .iter()
            .fold(line, |line, there| line.replace(there, &here));
        let mut child =
            command(&folder, &format!("{line} --listen 127.0.0.1:0")).stderr(Stdio::piped()).spawn().unwrap();
        let serves = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .any(|said| said.contains("serves MCP at"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(serves, "pvegate {line}");
        assert!(folder.join("pvegate.db").exists());
    }
}
