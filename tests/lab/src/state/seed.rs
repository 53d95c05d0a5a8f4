//! The cluster that a lab starts with.

mod firewalls;
mod guests;
mod history;
mod people;
mod platform;
mod recorded;
mod sections;

use std::collections::BTreeMap;

use super::Cluster;
use super::node::Node;
use super::secrets::Secrets;
use super::section::Sections;
use super::task::Tasks;
use crate::access::Access;
use crate::clock;
use crate::options::{Options, Profile};

pub(crate) use people::Logins;

impl Cluster {
    /// Builds the cluster, with the tokens that `logins` names, and a node for each fingerprint of a certificate.
    pub(crate) fn seeded(options: &Options, logins: &Logins, fingerprints: &[String]) -> Self {
        let node = |(number, fingerprint): (u32, &String)| Node {
            name: format!("pve{number}"),
            number,
            ip: format!("192.0.2.{}", 10 + number),
            online: true,
            fingerprint: fingerprint.clone(),
            cpus: 16,
            memory: 128 << 30,
            disk: 480 << 30,
        };
        let mut cluster = Self {
            name: options.cluster.clone(),
            local: "pve1".to_owned(),
            nodes: (1..).zip(fingerprints).map(node).collect(),
            guests: BTreeMap::new(),
            storages: BTreeMap::new(),
            volumes: Vec::new(),
            archives: BTreeMap::new(),
            uploads: BTreeMap::new(),
            pools: BTreeMap::new(),
            access: Access::default(),
            tasks: Tasks::default(),
            sections: Sections::default(),
            sdn: super::sdn::Sdn::default(),
            firewalls: BTreeMap::new(),
            secrets: Secrets::new(options.canary.as_deref()),
            release: options.profile.release(),
            split: false,
            full: std::collections::BTreeSet::new(),
            booted: clock::now() - 86_400 * 12,
            host: super::Host { clustered: fingerprints.len() > 1, ..super::Host::default() },
            facts: BTreeMap::new(),
            peers: BTreeMap::new(),
            unseen: std::collections::BTreeSet::new(),
            options: serde_json::Map::new(),
        };
        if options.profile == Profile::Recorded {
            recorded::seed(&mut cluster, logins);
            cluster.fill_archives();
            return cluster;
        }
        people::seed(&mut cluster, logins);
        platform::seed(&mut cluster);
        guests::seed(&mut cluster, options.first_vmid, options.guests.min(10_000));
        platform::disks(&mut cluster);
        cluster.fill_archives();
        firewalls::seed(&mut cluster);
        sections::seed(&mut cluster);
        history::seed(&mut cluster);
        let present = cluster.sections.clone();
        cluster.sdn.apply(&present);
        cluster
    }
}
