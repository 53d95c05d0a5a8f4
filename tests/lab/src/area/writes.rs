//! Who answers which writes.

use std::sync::Arc;

use super::{
    Call, Outcome, access, backup, cluster_write, firewall, ha, job, node_write, notification, pool, sdn, storage, task,
};
use crate::gate::Shared;

type Area = fn(&Arc<Shared>, &Call<'_>) -> Option<Outcome>;

const AREAS: &[Area] = &[
    access::write,
    backup::write,
    cluster_write::write,
    node_write::write,
    task::write,
    firewall::write,
    ha::write,
    job::write,
    notification::write,
    pool::write,
    sdn::write,
    storage::write,
];

pub(super) fn answer(shared: &Arc<Shared>, call: &Call<'_>) -> Option<Outcome> {
    AREAS.iter().find_map(|area| area(shared, call))
}
