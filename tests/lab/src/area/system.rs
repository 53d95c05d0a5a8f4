//! A node's logs, packages and capabilities, and the texts of its report.

use serde_json::{Value, json};

use super::{Call, Outcome};
use crate::answer::Reply;
use crate::state::Cluster;

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let rest = call.path().strip_prefix("/nodes/{node}")?;
    let data = match rest {
        "/syslog" => {
            let (start, limit) = (call.count("start").unwrap_or(0), call.count("limit").unwrap_or(50));
            return Some(Ok(Reply::lines(&journal(cluster), start, limit)));
        }
        "/journal" => {
            let mut lines = journal(cluster);
            if let Some(last) = call.count("lastentries") {
                lines.drain(..lines.len().saturating_sub(last));
            }
            // The first and the last line are cursors, not entries.
            lines.insert(0, "s=lab;i=1".to_owned());
            lines.push("s=lab;i=9".to_owned());
            return Some(Ok(Reply { packed: true, ..Reply::from(json!(lines)) }));
        }
        "/report" => json!(report(cluster)),
        "/apt/update" => json!([
            package("pve-manager", "9.2.12", "9.2.11"),
            package("openssl", "3.5.4-1~deb13u2", "3.5.4-1~deb13u1")
        ]),
        "/apt/versions" => versions(),
        "/apt/changelog" => json!(format!("{} (1.0) lab; urgency=medium\n\n  * nothing changed\n", call.text("name"))),
        "/apt/repositories" => repositories(),
        "/capabilities/qemu/cpu" => {
            json!([{"name": "x86-64-v2-AES", "vendor": "default", "custom": 0}, {"name": "host", "vendor": "default", "custom": 0}, {"name": "custom-lab-cpu", "vendor": "default", "custom": 1}])
        }
        "/capabilities/qemu/machines" => {
            json!([{"id": "pc-q35-10.1", "type": "q35", "version": "10.1"}, {"id": "pc-i440fx-10.1", "type": "i440fx", "version": "10.1"}])
        }
        "/capabilities/qemu/migration" => json!({"has-dbus-vmstate": 1}),
        "/hardware/pci" => {
            json!([{"id": "0000:01:00.0", "class": "0x030000", "vendor": "0x10de", "device": "0x2684", "vendor_name": "Lab Graphics", "device_name": "Card", "iommugroup": 14, "subsystem_vendor": "0x10de", "subsystem_device": "0x0001"}])
        }
        "/hardware/usb" => {
            json!([{"busnum": 1, "devnum": 4, "class": 0, "level": 1, "port": 2, "vendid": "0529", "prodid": "0001", "manufacturer": "Lab", "product": "Dongle", "speed": "12", "usbpath": "1.2"}])
        }
        _ => return None,
    };
    Some(Ok(data.into()))
}

/// The system journal, where commands are logged with everything that was on their command line.
fn journal(cluster: &Cluster) -> Vec<String> {
    let secrets = &cluster.secrets;
    vec![
        "Nov 30 10:00:01 pve1 CRON[1201]: (root) CMD (run-parts /etc/cron.hourly)".to_owned(),
        format!(
            "Nov 30 10:00:07 pve1 pvestatd[1100]: mount error: mount -t cifs //nas.lab.test/old /mnt/pve/nas-old -o username=backup,password={}",
            secrets.of("journal-mount-password")
        ),
        format!("Nov 30 10:00:09 pve1 curl[1300]: GET {}status", secrets.url("journal-url", "metrics.lab.test")),
        "Nov 30 10:01:00 pve1 pvedaemon[1050]: <root@pam> successful auth for user 'root@pam'".to_owned(),
        format!(
            "Nov 30 10:01:02 pve1 app[1400]: Authorization: PVEAPIToken=root@pam!x={}",
            secrets.of("journal-token")
        ),
    ]
}

/// What support asks for: settings as they stand in their files, passwords of mounts included.
fn report(cluster: &Cluster) -> String {
    let mut lines = [
        "",
        "==== general system info ====",
        "",
        "# hostname",
        "pve1",
        "",
        "==== info about storage ====",
        "",
        "# cat /etc/pve/storage.cfg",
    ]
    .map(str::to_owned)
    .to_vec();
    for (name, storage) in &cluster.storages {
        lines.push(format!("{}: {name}", storage.text("type")));
        for (key, value) in storage.config.iter().filter(|(key, _)| *key != "type") {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("\t{key} {value}"));
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

fn package(name: &str, version: &str, old: &str) -> Value {
    json!({"Package": name, "Title": name, "Description": format!("{name} of the lab"), "Version": version, "OldVersion": old, "Origin": "Proxmox", "Section": "admin", "Priority": "optional", "Arch": "amd64"})
}

fn versions() -> Value {
    let rows = [
        ("proxmox-ve", "9.2.0"),
        ("pve-manager", "9.2.11"),
        ("qemu-server", "9.2.6"),
        ("pve-container", "6.1.10"),
        ("libpve-storage-perl", "9.1.7"),
    ];
    let rows = rows.iter().map(|(name, version)| {
        let mut row = crate::state::guest::object(package(name, version, version));
        row.insert("CurrentState".to_owned(), json!("Installed"));
        if *name == "pve-manager" {
            row.insert("ManagerVersion".to_owned(), json!("9.2.11/1a2b3c4d"));
        }
        if *name == "proxmox-ve" {
            row.insert("RunningKernel".to_owned(), json!("6.17.4-1-pve"));
        }
        Value::Object(row)
    });
    Value::Array(rows.collect())
}

pub(super) fn repositories() -> Value {
    json!({
        "digest": crate::state::digest(&json!("repositories")),
        "errors": [],
        "infos": [{"path": "/etc/apt/sources.list.d/debian.sources", "index": "0", "kind": "origin", "message": "Debian"}],
        "files": [{"path": "/etc/apt/sources.list.d/debian.sources", "file-type": "sources", "digest": [1, 2, 3], "repositories": [{"Enabled": true, "FileType": "sources", "Types": ["deb"], "URIs": ["http://mirror.lab.test/debian"], "Suites": ["trixie"], "Components": ["main"]}]}],
        "standard-repos": [{"handle": "enterprise", "name": "Enterprise", "status": 1}, {"handle": "no-subscription", "name": "No-Subscription"}],
    })
}
