//! One call of every read of the schema, with arguments that exist in the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::access::Caller;
use crate::area::{self, Call};
use crate::params::Params;
use crate::schema::{Operation, Schema, truthy};
use crate::state::Cluster;

/// A read and what to call it with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleRead {
    /// `GET /nodes/{node}/qemu/{vmid}/config`
    pub operation: String,
    /// Arguments by name, those of the path included.
    pub arguments: BTreeMap<String, String>,
}

/// One call of every read.
pub(crate) fn reads(schema: &Schema, cluster: &Cluster) -> Vec<SampleRead> {
    schema
        .operations
        .iter()
        .filter(|operation| operation.verb == "GET")
        .map(|operation| SampleRead { operation: operation.name.clone(), arguments: arguments(operation, cluster) })
        .collect()
}

fn arguments(operation: &Operation, cluster: &Cluster) -> BTreeMap<String, String> {
    let required = operation
        .parameters
        .iter()
        .filter(|(_, schema)| !schema.get("optional").is_some_and(truthy))
        .map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = required.chain(operation.path_parameters()).collect();
    names.into_iter().map(|name| (name.to_owned(), argument(operation, name, cluster))).collect()
}

fn argument(operation: &Operation, name: &str, cluster: &Cluster) -> String {
    let path = operation.path.as_str();
    let listed = |list: &str| {
        let entries = cluster.sections.entries(list);
        entries.and_then(|entries| entries.keys().next_back()).cloned()
    };
    let known = match name {
        "node" | "node_id" => "pve1",
        "vmid" if path.starts_with("/nodes/{node}/lxc") => "102",
        "vmid" if path.ends_with("/pending") || path.ends_with("/cloudinit") => "101",
        "vmid" => "100",
        "snapname" if path.starts_with("/nodes/{node}/lxc") => "clean",
        "snapname" => "before-upgrade",
        "storage" if path.ends_with("/prunebackups") => "nas",
        "storage" if path == "/storage/{storage}" => "nas-old",
        "storage" => "local",
        "volume" if path.contains("/content/") => "local:iso/virtio-win-0.1.285.iso",
        "volume" => "nas:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst",
        "timeframe" => "hour",
        "ds" => "cpu",
        "feature" => "snapshot",
        "userid" if path.contains("/token/") => "pvegate@pve",
        "userid" => "jane@pve",
        "tokenid" => "full",
        "groupid" => "admins",
        "roleid" => "PVEAuditor",
        "realm" => "sso",
        "poolid" => "ci",
        "pos" => "0",
        "name" if path.contains("/firewall/aliases") => {
            if path.starts_with("/cluster") {
                "office"
            } else {
                "db"
            }
        }
        "name" if path.contains("/firewall/ipset") => {
            if path.starts_with("/cluster") {
                "management"
            } else {
                "trusted"
            }
        }
        "cidr" if path.starts_with("/cluster") => "198.51.100.7",
        "cidr" => "192.0.2.0/25",
        "group" if path.starts_with("/cluster/ha") => "main",
        "group" => "web",
        "iface" => "vmbr0",
        "service" if path.contains("/services/") => "pveproxy",
        "vnet" => "vnet1",
        "subnet" => "zone1-198.51.100.0-24",
        "zone" => "zone1",
        "ipam" => "netbox",
        "fabric" | "fabric_id" => "fab1",
        "route-map-id" => "rm1",
        "order" | "url_seq" => "10",
        "id" if path.contains("/replication/") => "100-0",
        "id" if path.starts_with("/cluster/acme/plugins") => "dns1",
        "name" if path.starts_with("/cluster/notifications/endpoints/webhook") => "chat",
        "schedule" => "daily",
        "disk" => "/dev/sda",
        "file" | "filepath" => "/etc/hostname",
        "pid" | "osdid" => "1",
        "port" => "5900",
        "upid" => {
            return cluster
                .tasks
                .all
                .iter()
                .find(|task| task.kind == "download")
                .map_or_else(String::new, |task| task.upid.clone());
        }
        "config-keys" => "global:fsid",
        "pci-id-or-mapping" => "0000:01:00.0",
        "server" | "portal" => "nas.lab.test",
        "url" => "https://mirror.lab.test/image.iso",
        "reference" => "docker.io/library/alpine",
        "vg" => "pve",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    // The id of an entry: the last one of the list that the path hangs below.
    if let Some(id) = path
        .strip_suffix(&format!("/{{{name}}}"))
        .and_then(listed)
        .or_else(|| path.split_once(&format!("/{{{name}}}/")).and_then(|(list, _)| listed(list)))
    {
        return id;
    }
    let schema = operation.parameters.get(name);
    let first = schema.and_then(|schema| schema.get("enum")?.as_array()?.first()?.as_str()).unwrap_or("lab");
    first.to_owned()
}

/// Where secrets stand in the answers to the sample reads.
pub(crate) fn secret_fields(schema: &Schema, cluster: &Cluster) -> Vec<String> {
    let caller = Caller { user: "pvegate@pve".to_owned(), token: "full".to_owned() };
    let mut found = BTreeSet::new();
    for sample in more_reads(schema, cluster) {
        let Some(operation) = schema.operation(&sample.operation) else { continue };
        if crate::access::allowed(cluster, &caller, operation, &params(&sample)).is_err() {
            continue;
        }
        let params = params(&sample);
        let call = Call { operation, params: &params, caller: &caller, here: &cluster.local };
        match area::read(schema, cluster, &call) {
            Ok(reply) => walk("data", &reply.data, cluster, &sample.operation, &mut found),
            Err(refusal) if cluster.secrets.within(&refusal.message) => {
                found.insert(format!("{}: message", sample.operation));
            }
            Err(_) => {}
        }
    }
    found.into_iter().collect()
}

/// The sample reads, and further ones that show secrets elsewhere.
fn more_reads(schema: &Schema, cluster: &Cluster) -> Vec<SampleRead> {
    let mut all = reads(schema, cluster);
    let mut add = |operation: &str, changes: &[(&str, &str)]| {
        let Some(base) = all.iter().find(|sample| sample.operation == operation) else { return };
        let mut sample = base.clone();
        for (name, value) in changes {
            sample.arguments.insert((*name).to_owned(), (*value).to_owned());
        }
        all.push(sample);
    };
    add("GET /nodes/{node}/storage/{storage}/content", &[("storage", "nas-old")]);
    add("GET /nodes/{node}/qemu/{vmid}/config", &[("vmid", "101")]);
    add("GET /nodes/{node}/qemu/{vmid}/config", &[("snapshot", "before-upgrade")]);
    add("GET /access/domains/{realm}", &[("realm", "corp")]);
    add("GET /access/users", &[("full", "1")]);
    all
}

fn params(sample: &SampleRead) -> Params {
    let arguments = sample.arguments.iter();
    arguments.map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect()
}

fn walk(at: &str, value: &Value, cluster: &Cluster, operation: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(&format!("{at}.{name}"), value, cluster, operation, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                walk(&format!("{at}[]"), item, cluster, operation, found);
            }
        }
        Value::String(text) if cluster.secrets.within(text) => {
            found.insert(format!("{operation}: {at}"));
        }
        _ => {}
    }
}
