//! Entries with an id: one table says where each kind lives, and the list and the single entry follow from it.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Call, Outcome};
use crate::answer::Refusal;
use crate::state::{Cluster, digest, hex};

/// How one kind of entry is listed, found and guarded.
#[derive(Clone, Copy)]
struct Kind {
    list: &'static str,
    /// The parameter of the single entry's path.
    parameter: &'static str,
    /// The column that holds the id in rows.
    column: &'static str,
    /// What PVE says of an entry that is not there; `{}` stands for its id.
    missing: (u16, &'static str),
    /// Rows need one of these at this path; `{}` stands for the id.
    row: Option<(&'static str, &'static [&'static str])>,
    /// Columns that a list leaves out.
    hidden: &'static [&'static str],
    /// Where the digest of the whole file is shown.
    digest: Shown,
}

/// Where a digest is shown.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Everywhere,
    InEntry,
    Nowhere,
}

const SDN: &[&str] = &["SDN.Audit", "SDN.Allocate"];
const MAPPING: &[&str] = &["Mapping.Audit", "Mapping.Use", "Mapping.Modify"];

const fn kind(list: &'static str, parameter: &'static str, missing: (u16, &'static str)) -> Kind {
    Kind { list, parameter, column: parameter, missing, row: None, hidden: &[], digest: Shown::Everywhere }
}

const fn guarded(kind: Kind, path: &'static str, privileges: &'static [&'static str]) -> Kind {
    Kind { row: Some((path, privileges)), ..kind }
}

const fn digested(kind: Kind, digest: Shown) -> Kind {
    Kind { digest, ..kind }
}

const KINDS: &[Kind] = &[
    digested(kind("/cluster/backup", "id", (400, "No such job '{}'")), Shown::Nowhere),
    digested(kind("/cluster/jobs/realm-sync", "id", (500, "no such realm-sync job '{}'")), Shown::Nowhere),
    kind("/cluster/ha/resources", "sid", (500, "no such resource '{}'")),
    kind("/cluster/ha/groups", "group", (500, "no such ha group '{}'")),
    kind("/cluster/ha/rules", "rule", (500, "no such ha rule '{}'")),
    guarded(kind("/cluster/sdn/zones", "zone", (500, "sdn '{}' does not exist")), "/sdn/zones/{}", SDN),
    guarded(
        kind("/cluster/sdn/controllers", "controller", (500, "sdn '{}' does not exist")),
        "/sdn/controllers/{}",
        SDN,
    ),
    guarded(kind("/cluster/sdn/dns", "dns", (500, "sdn '{}' does not exist")), "/sdn/dns/{}", SDN),
    guarded(kind("/cluster/sdn/ipams", "ipam", (500, "sdn '{}' does not exist")), "/sdn/ipams/{}", SDN),
    guarded(kind("/cluster/sdn/fabrics/fabric", "id", (404, "fabric '{}' does not exist")), "/sdn/fabrics/{}", SDN),
    guarded(
        kind("/cluster/sdn/prefix-lists", "id", (404, "prefix list '{}' does not exist")),
        "/sdn/prefix-lists/{}",
        SDN,
    ),
    guarded(kind("/cluster/mapping/pci", "id", (500, "mapping '{}' not found")), "/mapping/pci/{}", MAPPING),
    guarded(kind("/cluster/mapping/usb", "id", (500, "mapping '{}' not found")), "/mapping/usb/{}", MAPPING),
    guarded(kind("/cluster/mapping/dir", "id", (500, "mapping '{}' not found")), "/mapping/dir/{}", MAPPING),
    guarded(
        kind("/cluster/qemu/custom-cpu-models", "cputype", (500, "custom cpu model '{}' does not exist")),
        "/mapping/cpu/{}",
        MAPPING,
    ),
    digested(
        kind("/cluster/notifications/endpoints/sendmail", "name", (404, "endpoint '{}' not found")),
        Shown::InEntry,
    ),
    digested(kind("/cluster/notifications/endpoints/smtp", "name", (404, "endpoint '{}' not found")), Shown::InEntry),
    digested(kind("/cluster/notifications/endpoints/gotify", "name", (404, "endpoint '{}' not found")), Shown::InEntry),
    digested(
        kind("/cluster/notifications/endpoints/webhook", "name", (404, "endpoint '{}' not found")),
        Shown::InEntry,
    ),
    digested(kind("/cluster/notifications/matchers", "name", (404, "matcher '{}' not found")), Shown::InEntry),
    Kind { column: "plugin", ..kind("/cluster/acme/plugins", "id", (500, "ACME plugin '{}' not defined")) },
    Kind {
        hidden: &["account", "directory", "location", "tos"],
        ..kind("/cluster/acme/account", "name", (500, "ACME account config file '{}' does not exist"))
    },
    kind("/cluster/metrics/server", "id", (500, "status server entry '{}' does not exist")),
    Kind {
        hidden: &["client-key", "client-id", "issuer-url", "password", "bind_dn", "base_dn", "server1", "user_attr"],
        ..kind("/access/domains", "realm", (500, "domain '{}' does not exist"))
    },
];

pub(super) fn read(cluster: &Cluster, call: &Call<'_>) -> Option<Outcome> {
    let path = call.path();
    KINDS.iter().find_map(|kind| {
        if path == kind.list {
            return Some(Ok(Value::Array(rows(cluster, call, kind)).into()));
        }
        let single = path.strip_prefix(kind.list)?.strip_prefix("/{")?.strip_suffix('}')?;
        (single == kind.parameter).then(|| entry(cluster, call, kind))
    })
}

/// The digest of the file that a kind of entries is kept in. Notifications have a longer one.
pub(super) fn digest_of(cluster: &Cluster, list: &str) -> String {
    let entries = cluster.sections.entries(list).filter(|entries| !entries.is_empty());
    if list.starts_with("/cluster/notifications/") {
        return hex(&Sha256::digest(json!(entries).to_string().as_bytes()));
    }
    digest(&json!(entries))
}

/// Rows of a list that the caller may see.
fn rows(cluster: &Cluster, call: &Call<'_>, kind: &Kind) -> Vec<Value> {
    let Some(entries) = cluster.sections.entries(kind.list) else { return Vec::new() };
    let digest = digest_of(cluster, kind.list);
    entries
        .iter()
        .filter(|(id, entry)| {
            let seen = kind.row.is_none_or(|(path, privileges)| call.may(cluster, &path.replace("{}", id), privileges));
            let typed = call
                .given("type")
                .is_none_or(|wanted| entry.get("type").and_then(Value::as_str).is_none_or(|kind| kind == wanted));
            seen && typed
        })
        .map(|(id, entry)| {
            let mut row = entry.clone();
            row.retain(|key, _| !kind.hidden.contains(&key.as_str()));
            row.insert(kind.column.to_owned(), json!(id));
            if kind.digest == Shown::Everywhere {
                row.insert("digest".to_owned(), json!(digest));
            }
            if let Some(next) = super::job::next_run(kind.list, entry) {
                row.insert("next-run".to_owned(), json!(next));
            }
            Value::Object(row)
        })
        .collect()
}

fn entry(cluster: &Cluster, call: &Call<'_>, kind: &Kind) -> Outcome {
    let id = call.text(kind.parameter);
    let mut entry = find(cluster, kind, id)?.clone();
    // Mappings and metric servers are shown without what the path says already.
    let bare = kind.list.starts_with("/cluster/mapping/") || kind.list == "/cluster/metrics/server";
    if !bare {
        entry.insert(kind.column.to_owned(), json!(id));
    }
    if kind.list == "/cluster/metrics/server" {
        return Ok(Value::Object(entry).into());
    }
    if kind.digest != Shown::Nowhere {
        entry.insert("digest".to_owned(), json!(digest_of(cluster, kind.list)));
    }
    Ok(Value::Object(entry).into())
}

fn find<'a>(cluster: &'a Cluster, kind: &Kind, id: &str) -> Result<&'a Map<String, Value>, Refusal> {
    cluster.sections.get(kind.list, id).ok_or_else(|| {
        let (status, message) = kind.missing;
        let message = message.replace("{}", id);
        if status == 400 { Refusal::parameter(kind.parameter, message) } else { Refusal::new(status, message) }
    })
}
