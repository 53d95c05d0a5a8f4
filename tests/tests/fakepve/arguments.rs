//! One call of every read that is offered, with arguments that exist in the fake's state.

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Kind, Offered, Operation, Parameter, Place};
use pvegate_generated::terms::Tier;
use serde_json::Value;
use tests::call::{self, Call};

/// Every read with what it needs. `task` is one that the fake has done.
pub fn offered_reads(task: &str) -> Vec<Call> {
    let offered = OPERATIONS
        .iter()
        .filter(|operation| operation.tier == Tier::Read && !matches!(operation.offered, Offered::Never(_)));
    let calls = offered.map(|operation| {
        let needed = operation
            .params
            .iter()
            .filter(|parameter| parameter.required || parameter.place == Place::Path)
            .filter(|parameter| !(parameter.name == "node" && call::by_vmid(operation)));
        let arguments =
            needed.map(|parameter| (parameter.name.to_owned(), Value::from(argument(operation, parameter, task))));
        Call { operation, arguments: arguments.collect() }
    });
    calls.collect()
}

fn argument<'a>(operation: &Operation, parameter: &'a Parameter, task: &'a str) -> &'a str {
    let below = |start: &str| operation.path.starts_with(start);
    let (lxc, of_cluster) = (below("/nodes/{node}/lxc"), below("/cluster"));
    match parameter.name {
        "node" | "node_id" => "pve1",
        "vmid" if lxc => "200",
        "vmid" => "100",
        "snapname" if lxc => "clean",
        "snapname" => "before-upgrade",
        "storage" => "nas",
        "volume" => "nas:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst",
        "upid" => task,
        "poolid" => "shop",
        "group" => "web",
        "pos" => "0",
        "name" if operation.path.contains("/aliases") => {
            if of_cluster {
                "office"
            } else {
                "db"
            }
        }
        "name" if operation.path.contains("/ipset") => {
            if of_cluster {
                "management"
            } else {
                "trusted"
            }
        }
        "cidr" => {
            if of_cluster {
                "198.51.100.7"
            } else {
                "192.0.2.0/25"
            }
        }
        "userid" => "root@pam",
        "tokenid" => "pvegate",
        "realm" => "pam",
        "roleid" => "PVEAuditor",
        "iface" => "vmbr0",
        "service" if operation.path.contains("/services/") => "pveproxy",
        "schedule" => "daily",
        "disk" => "/dev/sda",
        "file" | "filepath" => "/etc/hostname",
        "subnet" => "zone1-198.51.100.0-24",
        "config-keys" => "global:fsid",
        "sid" => "vm:100",
        "id" if operation.path.contains("/replication/") => "100-0",
        "pci-id-or-mapping" => "0000:01:00.0",
        "server" | "portal" => "nas.example.test",
        "url" => "https://mirror.example.test/image.iso",
        "reference" => "docker.io/library/alpine",
        "order" | "url_seq" => "10",
        _ => match parameter.kind {
            Kind::Choice(words) => words.first().copied().unwrap_or_default(),
            Kind::Integer(..) | Kind::Number(..) => "1",
            _ => "example",
        },
    }
}
