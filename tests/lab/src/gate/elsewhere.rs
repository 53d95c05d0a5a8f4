//! Calls that belong to another node than the one that was asked: where they go, and what they end with where it is not
//! reached.

use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use crate::answer::{Answer, Refusal};
use crate::params::Params;
use crate::schema::Operation;

/// The node that a call is passed on to; none where the one that was asked answers itself.
pub(super) async fn passed_on(
    shared: &Arc<Shared>,
    here: &str,
    operation: &Operation,
    given: &Params,
) -> Result<Option<String>, Answer> {
    let named = operation.proxy_to.as_ref().and_then(|parameter| given.get(parameter)?.as_str());
    let Some(node) = named.filter(|node| *node != here && *node != "localhost") else { return Ok(None) };
    if let Some(peer) = shared.look(|cluster| cluster.peers.get(node).copied()) {
        if shared.latency {
            tokio::time::sleep(Duration::from_secs(peer.seconds())).await;
        }
        let (status, reason) = peer.answer();
        return Err(Answer::bare(status, reason));
    }
    if shared.look(|cluster| cluster.node(node).is_none()) {
        let message = format!(
            "hostname lookup '{node}' failed - failed to get address info for: {node}: Temporary failure in name resolution"
        );
        return Err(Answer::of(Err(Refusal::failed(message))));
    }
    if shared.faulty(|faults| faults.dead(node)) {
        return Err(Answer::bare(595, "Connection refused"));
    }
    if shared.hangs(node).await {
        return Err(Answer::bare(596, "Connection timed out"));
    }
    Ok(Some(node.to_owned()))
}
