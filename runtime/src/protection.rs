//! Decides whether a guest is protected, by which rules, and whether anything lifts that. What cannot be read or told
//! protects too.

use std::fmt;
use std::time::SystemTime;

use pvegate_generated::internal;
use pvegate_generated::model::{Operation, Runs};
use pvegate_generated::tools::TOOLS;
use serde_json::Value as Json;

use crate::mcp::Refusal;
use crate::server::State;
use crate::snapshot::{GuestRow, Protection};
use crate::tokens::Principal;
use crate::untrusted::shown;
use crate::values::{Vmid, scalar, tags};

/// Why a guest is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The cluster file lists its number.
    Listed,
    /// It has a tag that the cluster file lists.
    Tag(String),
    /// PVE's own protection is on.
    Flag,
    /// It is a template.
    Template,
    /// Its configuration does not tell.
    Unclear(String),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listed => f.write_str("the operator lists it in `protected_vmids`"),
            Self::Tag(tag) => write!(f, "it has the protected tag `{}`", shown(tag, 80)),
            Self::Flag => f.write_str("its configuration has `protection` on"),
            Self::Template => f.write_str("it is a template"),
            Self::Unclear(why) => write!(f, "whether it is protected cannot be told: {why}"),
        }
    }
}

/// Every rule that protects a guest, from how it is listed and from its configuration as its node has it.
pub fn rules(protection: &Protection, guest: &GuestRow, config: Result<&Json, String>) -> Vec<Rule> {
    let mut rules = Vec::new();
    if protection.vmids.contains(&guest.vmid) {
        rules.push(Rule::Listed);
    }
    let config = match config.map(|config| (config, config.as_object())) {
        Ok((_, Some(config))) => Some(config),
        Ok((_, None)) => {
            rules.push(Rule::Unclear("its configuration is not one".to_owned()));
            None
        }
        Err(why) => {
            rules.push(Rule::Unclear(why));
            None
        }
    };
    let key = |name: &str| config.and_then(|config| config.get(name));
    // What is no yes and no no counts as a yes.
    let is_on = |name: &str| key(name).is_some_and(|value| scalar::boolean(value).unwrap_or(true));
    // Both kinds of guests name these alike.
    match key(internal::change_vm::TAGS) {
        None | Some(Json::Null) => {}
        Some(Json::String(text)) => {
            rules.extend(protection.tags.iter().filter(|tag| tags::has(text, tag)).cloned().map(Rule::Tag));
        }
        Some(_) => rules.push(Rule::Unclear("its tags are no text".to_owned())),
    }
    if is_on(internal::change_vm::PROTECTION) {
        rules.push(Rule::Flag);
    }
    if guest.template || is_on(internal::change_vm::TEMPLATE) {
        rules.push(Rule::Template);
    }
    if guest.protected && rules.is_empty() {
        // The list and the configuration are of different moments.
        rules.push(Rule::Unclear(
            "the cluster's list shows it with a protected tag, and its configuration does not".to_owned(),
        ));
    }
    rules
}

/// The words about a waiver that lifts protection of a guest for an operation, if an operator gave one.
pub fn waiver(state: &State, cluster: &str, vmid: Vmid, operation: &Operation, planner: &Principal) -> Option<String> {
    let tools = TOOLS.iter().filter(|tool| match tool.runs {
        Runs::Gateway => false,
        Runs::One(name) => name == operation.name,
        Runs::ByKind { qemu, lxc } => qemu == operation.name || lxc == operation.name,
    });
    let names: Vec<&str> = std::iter::once(operation.name).chain(tools.map(|tool| tool.name)).collect();
    let waiver = state.waivers().matching(cluster, vmid, &names, &planner.name, SystemTime::now())?;
    let until = chrono::DateTime::<chrono::Utc>::from(waiver.until).to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    Some(format!("an operator's waiver lifts that until {until} ({})", shown(&waiver.reason, 200)))
}

/// The refusal of what interrupts or destroys a protected guest.
pub fn refusal(cluster: &str, guest: &GuestRow, what: &str, rules: &[Rule]) -> Refusal {
    Refusal::new(
        "protected",
        format!("guest {} on cluster {cluster} is protected ({}), and {what}", guest.vmid, listed(rules)),
        "An operator can allow it for a while by a waiver in the waiver file; nothing that a caller gives lifts protection.",
    )
}

/// The line that is shown where protection was lifted, or only warns.
pub fn lifted(guest: &GuestRow, rules: &[Rule], by: &str) -> String {
    format!("PROTECTED: guest {} is protected ({}); {by}", guest.vmid, listed(rules))
}

fn listed(rules: &[Rule]) -> String {
    rules.iter().map(Rule::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
