//! Firewall configuration of the cluster, the nodes, some guests, a VNet and a security group.

use serde_json::{Value, json};

use crate::state::Cluster;
use crate::state::firewall::{Firewall, IpSet};
use crate::state::guest::object;

pub(super) fn seed(cluster: &mut Cluster) {
    let alias = |name: &str, address: &str| (name.to_owned(), (address.to_owned(), String::new()));
    let set = |name: &str, comment: &str, entries: Value| {
        let entries = entries.as_array().cloned().unwrap_or_default();
        (name.to_owned(), IpSet { comment: comment.to_owned(), entries: entries.into_iter().map(object).collect() })
    };
    let rules = |rules: Value| {
        let rules = rules.as_array().cloned().unwrap_or_default();
        rules.into_iter().map(object).collect::<Vec<_>>()
    };
    let log = vec![
        "0 5 - 30/Nov/2026:10:00:00 +0100 policy DROP: IN=vmbr0 SRC=203.0.113.9 DST=192.0.2.11 PROTO=TCP DPT=23"
            .to_owned(),
    ];
    let nodes: Vec<String> = cluster.nodes.iter().map(|node| node.name.clone()).collect();
    let guests = [100, 102].into_iter().filter(|vmid| cluster.guests.contains_key(vmid)).collect::<Vec<u32>>();
    let mut add = |scope: &str, firewall: Firewall| {
        cluster.firewalls.insert(scope.to_owned(), firewall);
    };
    add(
        "cluster",
        Firewall {
            options: object(
                json!({"enable": 1, "policy_in": "DROP", "policy_out": "ACCEPT", "log_ratelimit": "enable=1,rate=1/second,burst=5"}),
            ),
            rules: rules(json!([
                {"type": "in", "action": "ACCEPT", "macro": "SSH", "source": "+management", "enable": 1, "comment": "administration"},
                {"type": "group", "action": "web", "enable": 1},
                {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "8006", "source": "dc/office", "enable": 0},
            ])),
            aliases: [alias("office", "198.51.100.0/24"), alias("backup-host", "192.0.2.200")].into(),
            ipsets: [set(
                "management",
                "Where administrators sit",
                json!([{"cidr": "198.51.100.0/28"}, {"cidr": "198.51.100.7", "nomatch": 1, "comment": "not this one"}]),
            )]
            .into(),
            log: log.clone(),
            ..Firewall::default()
        },
    );
    add(
        "group/web",
        Firewall {
            comment: "HTTP and HTTPS".to_owned(),
            rules: rules(
                json!([{"type": "in", "action": "ACCEPT", "macro": "HTTPS", "enable": 1}, {"type": "in", "action": "ACCEPT", "macro": "HTTP", "enable": 1}]),
            ),
            ..Firewall::default()
        },
    );
    for node in nodes {
        add(
            &format!("node/{node}"),
            Firewall {
                options: object(json!({"enable": 1, "nosmurfs": 1})),
                rules: rules(json!([{"type": "in", "action": "ACCEPT", "proto": "icmp", "enable": 1}])),
                log: log.clone(),
                ..Firewall::default()
            },
        );
    }
    for vmid in guests {
        add(
            &format!("guest/{vmid}"),
            Firewall {
                options: object(json!({"enable": 1, "policy_in": "DROP", "dhcp": 1, "macfilter": 1})),
                rules: rules(
                    json!([{"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22", "source": "+trusted", "enable": 1}, {"type": "in", "action": "DROP", "enable": 1, "log": "info"}]),
                ),
                aliases: [alias("db", "192.0.2.55")].into(),
                ipsets: [set("trusted", "", json!([{"cidr": "192.0.2.0/25"}]))].into(),
                log: log.clone(),
                ..Firewall::default()
            },
        );
    }
    add(
        "vnet/vnet1",
        Firewall {
            options: object(json!({"enable": 0, "policy_forward": "ACCEPT"})),
            rules: rules(json!([{"type": "forward", "action": "ACCEPT", "enable": 1}])),
            ..Firewall::default()
        },
    );
}
