//! Decides which tags and pools no low call may give or take: those that protect, and those by which some token selects
//! guests. Otherwise a caller could lift a protection, or widen what a token reaches, by a label.

use std::collections::BTreeSet;

use pvegate_generated::internal;
use pvegate_generated::terms::Role;
use serde_json::{Map, Value as Json};

use super::needs_a_plan;
use crate::args::{Args, Value};
use crate::grant::{Grant, Selector};
use crate::mcp::Refusal;
use crate::snapshot::Protection;
use crate::untrusted::shown;
use crate::values::tags;

/// The labels that mean something here.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    /// Tags that protect.
    pub protection: &'a Protection,
    /// Tags by which tokens select guests.
    pub granting_tags: BTreeSet<&'a str>,
    /// Pools by which they do.
    pub granting_pools: BTreeSet<&'a str>,
}

impl Reserved<'_> {
    fn why(&self, tag: &str) -> Option<&'static str> {
        if self.protection.tags.iter().any(|own| tags::same(own, tag)) {
            Some("protects guests")
        } else if self.granting_tags.iter().any(|own| tags::same(own, tag)) {
            Some("decides which tokens reach a guest")
        } else {
            None
        }
    }

    /// Whether a call leaves reserved tags as they are. `before` is the configuration of the guest that it changes; none
    /// for one that is to be made.
    pub(super) fn keeps_tags(&self, args: &Args, before: Option<&Map<String, Json>>) -> Result<(), Refusal> {
        let Some(arg) = args.iter().find(|arg| arg.parameter.role == Role::Tags) else { return Ok(()) };
        let text = match &arg.value {
            Value::Tags(tags) => tags.as_str().to_owned(),
            other => other.wire().into_owned(),
        };
        let had = before.and_then(|config| config.get(arg.parameter.name)).map(tag_text).unwrap_or_default();
        let (after, had) = (all(&text), all(&had));
        let changed = after.iter().filter(|tag| !holds(&had, tag)).map(|tag| (tag, "adds"));
        let changed = changed.chain(had.iter().filter(|tag| !holds(&after, tag)).map(|tag| (tag, "removes")));
        for (tag, does) in changed {
            if let Some(why) = self.why(tag) {
                return Err(needs_a_plan(&format!(
                    "`{}` {does} the tag `{}`, which {why}",
                    arg.parameter.name,
                    shown(tag, 80)
                )));
            }
        }
        Ok(())
    }

    /// Whether a copy of a guest with this configuration would have a reserved tag: copies have the tags of what they
    /// are made from.
    pub(super) fn inherited(&self, config: &Map<String, Json>) -> Result<(), Refusal> {
        let had = config.get(internal::change_vm::TAGS).map(tag_text).unwrap_or_default();
        match all(&had).iter().find_map(|tag| Some((*tag, self.why(tag)?))) {
            Some((tag, why)) => {
                Err(needs_a_plan(&format!("the copy would have the tag `{}`, which {why}", shown(tag, 80))))
            }
            None => Ok(()),
        }
    }

    /// Whether a new guest may go into the pools that a call names. Into one by which tokens select guests only callers
    /// whose own grant selects guests by it: for others it would hand the guest to somebody.
    pub(super) fn keeps_pools(&self, args: &Args, grant: &Grant) -> Result<(), Refusal> {
        for arg in args.iter().filter(|arg| arg.parameter.role == Role::Pool) {
            let pool = arg.value.wire();
            let own = grant
                .guests
                .selectors()
                .iter()
                .any(|selector| matches!(selector, Selector::Pool(selected) if selected.as_str() == pool));
            if self.granting_pools.contains(&*pool) && !own {
                return Err(needs_a_plan(&format!(
                    "`{}` puts the guest into the pool `{}`, by which another token reaches guests",
                    arg.parameter.name,
                    shown(&pool, 80)
                )));
            }
        }
        Ok(())
    }
}

/// Tags that are no text are told apart from none.
fn tag_text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Every tag in a text; where a blank stands, both the whole and its parts count.
fn all(text: &str) -> Vec<&str> {
    let whole = text.split([';', ',', '\0']).map(str::trim).filter(|tag| !tag.is_empty());
    let mut list: Vec<&str> = whole.chain(tags::names(text)).collect();
    list.dedup();
    list
}

fn holds(list: &[&str], tag: &str) -> bool {
    list.iter().any(|own| tags::same(own, tag))
}
