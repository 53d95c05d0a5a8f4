//! Decides what the flags of `pvegate token` grant, and which of it is more than a token had.

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use pvegate::grant::{Caps, Grant, Guests, Networks, Scope, Tiers};
use pvegate::server::{known_tool, reads_only};

/// Stands for nothing in a list.
const NOTHING: &str = "-";

/// What a token is to reach. Lists have commas; `*` stands for all, `-` for nothing.
#[derive(Args)]
pub struct Scopes {
    /// Tools and toolsets; `*` for all tools that change nothing.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    tools: Vec<String>,
    /// Clusters.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    clusters: Vec<String>,
    /// Guests: `vmid:600`, `vmid:600-699`, `tag:ci`, `pool:lab`, `node:pve1`, `type:lxc`; one that fits is enough.
    #[arg(long, value_delimiter = ',', value_name = "SELECTORS")]
    guests: Vec<String>,
    /// Nodes that calls may name.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    nodes: Vec<String>,
    /// Storages.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    storages: Vec<String>,
    /// Pools.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pools: Vec<String>,
    /// The same as `*` for guests, nodes, storages and pools.
    #[arg(long, conflicts_with_all = ["guests", "nodes", "storages", "pools"])]
    everywhere: bool,
    /// Networks of NICs: `vmbr0` (untagged), `vmbr0:20`, `vmbr0:20-29`.
    #[arg(long, value_delimiter = ',', value_name = "NETWORKS")]
    networks: Vec<String>,
    /// Tiers: `read` (always there), `low`, `destructive`.
    #[arg(long, value_delimiter = ',', value_name = "TIERS")]
    tiers: Vec<String>,
    /// Most memory of the selected guests of a cluster together, in MiB; `unlimited` for no limit.
    #[arg(long, value_parser = most, value_name = "MIB")]
    max_memory_mib: Option<Most>,
    /// The same for their disks, in GiB.
    #[arg(long, value_parser = most, value_name = "GIB")]
    max_disk_gib: Option<Most>,
    /// Most guests that it selects in a cluster.
    #[arg(long, value_parser = most, value_name = "NUMBER")]
    max_guests: Option<Most>,
    /// Most snapshots of each guest.
    #[arg(long, value_parser = most, value_name = "NUMBER")]
    max_snapshots: Option<Most>,
}

/// A limit, or none.
#[derive(Clone, Copy)]
struct Most(Option<u64>);

fn most(text: &str) -> Result<Most, String> {
    if text == "unlimited" {
        return Ok(Most(None));
    }
    let read = text.parse().map(|number| Most(Some(number)));
    read.map_err(|_| "has to be a whole number, or `unlimited`".to_owned())
}

impl Scopes {
    /// Whether no flag was given.
    pub fn is_empty(&self) -> bool {
        let lists = [
            &self.tools,
            &self.clusters,
            &self.guests,
            &self.nodes,
            &self.storages,
            &self.pools,
            &self.networks,
            &self.tiers,
        ];
        let caps = [self.max_memory_mib, self.max_disk_gib, self.max_guests, self.max_snapshots];
        lists.iter().all(|list| list.is_empty()) && caps.iter().all(Option::is_none) && !self.everywhere
    }

    /// The grant of a token that is made.
    pub fn new_grant(&self) -> Result<Grant> {
        ensure!(
            !self.tools.is_empty(),
            "give --tools: names of tools and toolsets, or `*` for all that change nothing"
        );
        ensure!(!self.clusters.is_empty(), "give --clusters: names of clusters, or `*`");
        self.over(&Grant {
            tools: Scope::None,
            clusters: Scope::None,
            guests: Guests::None,
            nodes: Scope::None,
            storages: Scope::None,
            pools: Scope::None,
            networks: Networks::None,
            tiers: Tiers::default(),
            caps: Caps::default(),
            plans: std::collections::BTreeSet::new(),
        })
    }

    /// A grant with what the flags say in place of what it said. A name that means nothing would be found at the next
    /// start only, so it is refused here.
    pub fn over(&self, old: &Grant) -> Result<Grant> {
        if let Some(tool) = self.tools.iter().find(|tool| *tool != "*" && *tool != NOTHING && !known_tool(tool)) {
            bail!("there is no tool or toolset `{tool}`; docs/tools.md lists them");
        }
        let names =
            |flag, given: &[String], old: &Scope| taken(flag, given, old, |given| Scope::from_names(given.to_vec()));
        let everywhere = self.everywhere.then(|| vec!["*".to_owned()]);
        let given = |flag: &'static str, list| (flag, everywhere.as_ref().unwrap_or(list));
        let (guests, nodes) = (given("guests", &self.guests), given("nodes", &self.nodes));
        let (storages, pools) = (given("storages", &self.storages), given("pools", &self.pools));
        let most = |given: Option<Most>, old| given.map_or(old, |Most(most)| most);
        Ok(Grant {
            tools: names("tools", &self.tools, &old.tools)?,
            clusters: names("clusters", &self.clusters, &old.clusters)?,
            guests: taken(guests.0, guests.1, &old.guests, Guests::from_texts)?,
            nodes: names(nodes.0, nodes.1, &old.nodes)?,
            storages: names(storages.0, storages.1, &old.storages)?,
            pools: names(pools.0, pools.1, &old.pools)?,
            networks: taken("networks", &self.networks, &old.networks, Networks::from_texts)?,
            tiers: taken("tiers", &self.tiers, &old.tiers, Tiers::from_texts)?,
            caps: Caps {
                max_memory_mib: most(self.max_memory_mib, old.caps.max_memory_mib),
                max_disk_gib: most(self.max_disk_gib, old.caps.max_disk_gib),
                max_guests: most(self.max_guests, old.caps.max_guests),
                max_snapshots: most(self.max_snapshots, old.caps.max_snapshots),
            },
            plans: old.plans.clone(),
        })
    }
}

/// What a flag says, or what was there if it was not given.
fn taken<T: Clone + Default>(
    flag: &str,
    given: &[String],
    old: &T,
    read: impl FnOnce(&[String]) -> Result<T, String>,
) -> Result<T> {
    match given {
        [] => Ok(old.clone()),
        [nothing] if nothing == NOTHING => Ok(T::default()),
        given => read(given).map_err(|message| anyhow!("--{flag}: {message}")),
    }
}

/// Each kind of which a grant holds more than the other did, in words.
pub fn wider(new: &Grant, old: &Grant) -> Vec<String> {
    let included = [
        ("tools", includes_tools(&old.tools, &new.tools)),
        ("clusters", old.clusters.includes(&new.clusters)),
        ("guests", old.guests.includes(&new.guests)),
        ("nodes", old.nodes.includes(&new.nodes)),
        ("storages", old.storages.includes(&new.storages)),
        ("pools", old.pools.includes(&new.pools)),
        ("networks", old.networks.includes(&new.networks)),
        ("tiers", old.tiers.includes(new.tiers)),
    ];
    let kinds = included.into_iter().filter(|(_, included)| !included).map(|(kind, _)| kind);
    let caps = new.caps.named().into_iter().zip(old.caps.named());
    let raised = caps.filter_map(|((key, new), (_, old))| {
        let old = old?;
        new.is_none_or(|new| new > old).then_some(key)
    });
    let (now, before) = (facts(new), facts(old));
    let value = |facts: &[(&str, String)], kind: &str| {
        facts.iter().find(|(key, _)| *key == kind).map_or_else(|| "unlimited".to_owned(), |(_, value)| value.clone())
    };
    kinds
        .chain(raised)
        .map(|kind| format!("{kind} {} instead of {}", value(&now, kind), value(&before, kind)))
        .collect()
}

/// `*` holds only what changes nothing, so it does not include every name.
fn includes_tools(old: &Scope, new: &Scope) -> bool {
    old.includes(new) && (!old.is_all() || new.names().all(reads_only))
}

/// A grant in words, kind by kind.
pub fn facts(grant: &Grant) -> Vec<(&'static str, String)> {
    let words = |texts: Vec<String>| if texts.is_empty() { NOTHING.to_owned() } else { texts.join(", ") };
    let mut facts = vec![
        ("tools", words(grant.tools.texts())),
        ("clusters", words(grant.clusters.texts())),
        ("guests", words(grant.guests.texts())),
        ("nodes", words(grant.nodes.texts())),
        ("storages", words(grant.storages.texts())),
        ("pools", words(grant.pools.texts())),
        ("networks", words(grant.networks.texts())),
        ("tiers", words(grant.tiers.texts())),
    ];
    facts.extend(grant.caps.named().into_iter().filter_map(|(key, most)| Some((key, most?.to_string()))));
    if !grant.plans.is_empty() {
        facts.push(("plans", words(grant.plans.iter().cloned().collect())));
    }
    facts
}
