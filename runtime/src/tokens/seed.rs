//! Decides what an entry of rust-proxmoxmcp's token files grants: what it granted there, and nothing that came later.
//!
//! There a `grant` narrows guests and nothing else, `*` for tools is that server's own reads, and seven names are no
//! tools but allow to plan one operation each.

use std::collections::BTreeSet;

use pvegate_generated::terms::Tier;
use pvegate_generated::tools::TOOLS;
use serde_json::Value;

use crate::config::{Problems, Table};
use crate::grant::{Caps, Grant, Guests, Networks, Scope, Tiers};
use crate::untrusted::shown;

/// What `*` means there.
const READS: &[&str] = &[
    "get_cluster_status",
    "get_nodes",
    "get_node_status",
    "get_node_updates",
    "get_vms",
    "get_containers",
    "get_vm_config",
    "get_container_config",
    "get_container_ip",
    "get_guest_status",
    "list_snapshots",
    "get_storage",
    "list_backups",
    "list_isos",
    "list_templates",
    "list_tasks",
    "get_task_status",
    "get_proxmox_change_set",
    "get_cluster_firewall_rules",
    "get_cluster_firewall_options",
    "list_firewall_security_groups",
    "get_firewall_security_group_rules",
    "list_firewall_ipsets",
    "get_firewall_ipset_entries",
    "list_firewall_aliases",
    "get_node_firewall_rules",
    "get_node_firewall_options",
    "get_guest_firewall_rules",
    "get_guest_firewall_options",
    "list_guest_firewall_aliases",
    "list_guest_firewall_ipsets",
    "get_guest_firewall_ipset_entries",
];

/// Names that permit planning one operation.
const PLANS: &[&str] = &[
    "delete_vm",
    "delete_container",
    "delete_snapshot",
    "delete_backup",
    "delete_iso",
    "restore_backup",
    "rollback_snapshot",
];

/// Further names of its tools and scopes, in its newer versions too. Where this server has no tool of the name, it does
/// nothing.
const OTHERS: &[&str] = &[
    "plan_proxmox_destroy",
    "approve_proxmox_change_set",
    "apply_proxmox_change_set",
    "start_vm",
    "stop_vm",
    "shutdown_vm",
    "reset_vm",
    "start_container",
    "stop_container",
    "restart_container",
    "create_vm",
    "create_container",
    "clone_vm",
    "download_iso",
    "resize_disk",
    "create_snapshot",
    "create_backup",
    "update_container_resources",
    "stop_task",
    "migrate_vm",
    "migrate_container",
    "update_vm_config",
    "restore_backup_new_vmid",
    "plan_restore_new_vmid",
    "apply_restore_new_vmid",
    "list_ha_rules",
    "get_ha_rule",
    "get_ha_rule_change_set",
    "plan_ha_rule_change",
    "approve_ha_rule_change",
    "apply_ha_rule_change",
    "create_ha_rule",
    "update_ha_rule",
    "delete_ha_rule",
    "get_firewall_change_set",
    "plan_firewall_change",
    "approve_firewall_change",
    "apply_firewall_change",
    "create_firewall_rule",
    "update_firewall_rule",
    "delete_firewall_rule",
    "create_firewall_group",
    "delete_firewall_group",
    "create_firewall_group_rule",
    "update_firewall_group_rule",
    "delete_firewall_group_rule",
    "create_firewall_ipset",
    "delete_firewall_ipset",
    "create_firewall_ipset_entry",
    "update_firewall_ipset_entry",
    "delete_firewall_ipset_entry",
    "create_firewall_alias",
    "update_firewall_alias",
    "delete_firewall_alias",
    "update_firewall_options",
];

/// How a `grant` may be written.
const FORM: &str = "has to be a list of selectors, like [\"vmid:600-699\", \"tag:ci\", \"pool:lab\"], or an object with some of `guests` (such selectors), `vmids` ([600, \"610-619\"]), `vmid_ranges` ([\"600-699\"] or [[600, 699]]), `tags` and `pools` (names)";

/// What an entry grants whose clusters were read already.
pub(super) fn grant(table: &mut Table, name: &str, clusters: Option<Scope>, problems: &mut Problems) -> Option<Grant> {
    let tools = tools(table, name, problems);
    let narrowed = table.take("grant");
    if narrowed.is_some() && clusters.as_ref().is_some_and(Scope::is_all) {
        problems.at(
            table.place("grant"),
            "stands beside `*` for clusters, but numbers, tags and pools mean something in one cluster; name the clusters",
        );
    }
    let guests = match narrowed.map(|value| guests(table, value, problems)) {
        None => Some(Guests::All),
        Some(Ok(guests)) => Some(guests),
        Some(Err(message)) => {
            problems.at(table.place("grant"), message);
            None
        }
    };
    let (tools, tiers, plans) = tools?;
    Some(Grant {
        tools,
        clusters: clusters?,
        guests: guests?,
        nodes: Scope::All,
        storages: Scope::All,
        pools: Scope::All,
        networks: Networks::All,
        tiers,
        caps: Caps::default(),
        plans,
    })
}

/// The tools, the tier that they need, and what may be planned.
fn tools(table: &mut Table, token: &str, problems: &mut Problems) -> Option<(Scope, Tiers, BTreeSet<String>)> {
    let given = super::entry::scope(table, "tools", problems)?;
    let named: Vec<&str> = if given.is_all() { READS.to_vec() } else { given.names().collect() };
    let (mut tools, mut tiers, mut plans) = (BTreeSet::new(), Tiers::default(), BTreeSet::new());
    for name in named {
        if PLANS.contains(&name) {
            plans.insert(name.to_owned());
        } else if let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) {
            tiers.low |= tool.tier == Tier::Low;
            tools.insert(name.to_owned());
        } else if !READS.contains(&name) && !OTHERS.contains(&name) {
            let message = format!("`{}`: neither a tool of this server nor one of rust-proxmoxmcp's", shown(name, 80));
            problems.at(table.place("tools"), message);
        } else if !given.is_all() {
            tracing::warn!(token = %shown(token, 80), tool = name, "this version has no such tool, so the name does nothing");
        }
    }
    Some((if tools.is_empty() { Scope::None } else { Scope::Names(tools) }, tiers, plans))
}

/// The guests of a `grant`: at least one selector, since one without would narrow to nothing by mistake.
fn guests(table: &Table, value: Value, problems: &mut Problems) -> Result<Guests, String> {
    let selectors = match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Value::Object(_) => {
            let mut inner = Table::new(table.place("grant"), value, problems).ok_or(FORM)?;
            let selectors = ["guests", "vmids", "vmid_ranges", "tags", "pools"].into_iter().try_fold(
                Vec::new(),
                |mut selectors, key| {
                    let items = match inner.take(key) {
                        None => Vec::new(),
                        Some(Value::Array(items)) => items,
                        Some(_) => return None,
                    };
                    for item in items {
                        selectors.push(selector(key, &item)?);
                    }
                    Some(selectors)
                },
            );
            selectors.filter(|_| inner.into_entries().is_empty())
        }
        _ => None,
    };
    let selectors = selectors.filter(|selectors: &Vec<String>| !selectors.is_empty()).ok_or(FORM)?;
    Guests::from_texts(&selectors).map_err(|message| format!("{message}; it {FORM}"))
}

/// One item under a key of the object, as we write it.
fn selector(key: &str, item: &Value) -> Option<String> {
    let ends = |item: &Value| item.as_u64().map(|number| number.to_string());
    match (key, item) {
        ("guests", Value::String(text)) => Some(text.clone()),
        ("tags", Value::String(text)) => Some(format!("tag:{text}")),
        ("pools", Value::String(text)) => Some(format!("pool:{text}")),
        ("vmids" | "vmid_ranges", Value::String(text)) => Some(format!("vmid:{text}")),
        ("vmids", Value::Number(_)) => Some(format!("vmid:{}", ends(item)?)),
        ("vmid_ranges", Value::Array(pair)) => match pair.as_slice() {
            [first, last] => Some(format!("vmid:{}-{}", ends(first)?, ends(last)?)),
            _ => None,
        },
        _ => None,
    }
}
