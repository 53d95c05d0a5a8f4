//! Decides which cluster a name of the cluster file stands for, by what PVE says: its name and its nodes' certificates.
//! Writes are refused where that changed, where two names stand for one cluster, and where the addresses of one name lead
//! to several. Reads go on.
//!
//! Certificates are renewed, and nodes come and go: a cluster stays itself as long as its name is the same and one node's
//! certificate is known. A standalone node has no cluster name, and counts by its own.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use pvegate_generated::internal;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::time::timeout;

use crate::config::Cluster;
use crate::connection::{Connection, plain};
use crate::mcp::Refusal;
use crate::pve::{Client, Kind, PveError};
use crate::server::State;
use crate::store::{Identified, Store, StoreError};

/// How long what PVE said is believed.
pub const LIMIT: Duration = Duration::from_mins(1);

/// How long the other clusters are waited for, once.
const PATIENCE: Duration = Duration::from_secs(2);

/// What PVE says a cluster is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The cluster's name, or a standalone node's; none where the server's API token may not see it.
    name: Option<String>,
    /// The fingerprints of its nodes' certificates.
    certificates: BTreeSet<String>,
}

impl Identity {
    /// Reads the status of a cluster, where it may be seen, and its list of nodes.
    pub fn read(status: Option<&Json>, nodes: &Json) -> Option<Self> {
        let name = status.and_then(Json::as_array).and_then(|rows| {
            let of_type = |wanted: &str| {
                rows.iter().find(|row| row.get("type").and_then(Json::as_str) == Some(wanted))?.get("name")?.as_str()
            };
            of_type("cluster").or_else(|| of_type("node")).map(str::to_owned)
        });
        let certificates: BTreeSet<String> = nodes
            .as_array()?
            .iter()
            .filter_map(|node| node.get("ssl_fingerprint")?.as_str())
            .filter(|fingerprint| !fingerprint.is_empty())
            .map(str::to_uppercase)
            .collect();
        (!certificates.is_empty()).then_some(Self { name, certificates })
    }

    /// Whether both are the same cluster. A name that one of them does not know decides nothing.
    pub fn is_same(&self, other: &Self) -> bool {
        let named_alike = match (&self.name, &other.name) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        named_alike && !self.certificates.is_disjoint(&other.certificates)
    }

    /// As it is kept.
    pub fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn shown(&self) -> String {
        let name =
            self.name.as_deref().map_or_else(|| "without a name".to_owned(), |name| crate::untrusted::shown(name, 80));
        let first = self.certificates.first().map_or("", String::as_str);
        format!("{name}, {} certificates, the first {}", self.certificates.len(), first.get(..23).unwrap_or(first))
    }
}

/// Asks every address of a cluster who it is. Those that do not answer are left out; one has to.
pub async fn ask(cluster: &Cluster) -> Result<Identity, PveError> {
    let asked = cluster.endpoints.iter().map(|endpoint| async move {
        // Alone, because the ordinary client would take any address for any other.
        let alone = Cluster { endpoints: vec![endpoint.clone()], ..cluster.clone() };
        let client = Client::new(&alone).map_err(|problem| PveError::new(Kind::Unreachable, problem).not_sent())?;
        one(&client).await
    });
    let answers = join_all(asked).await.into_iter().zip(&cluster.endpoints);
    agreed(cluster.name.as_str(), answers.map(|(answer, endpoint)| (endpoint.base.as_str(), answer)))
}

/// What all addresses that answered agree on.
fn agreed<'a>(
    cluster: &str,
    answers: impl Iterator<Item = (&'a str, Result<Identity, PveError>)>,
) -> Result<Identity, PveError> {
    let mut found: Option<Identity> = None;
    let mut failed: Option<PveError> = None;
    for (address, answer) in answers {
        match (answer, &mut found) {
            (Err(error), _) => failed = Some(error),
            (Ok(first), None) => found = Some(first),
            (Ok(other), Some(first)) if first.is_same(&other) => first.certificates.extend(other.certificates),
            (Ok(other), Some(first)) => {
                let message = format!(
                    "the addresses of cluster {cluster} lead to different clusters ({address} is another: {}; before it: {}), so nothing is changed there",
                    other.shown(),
                    first.shown()
                );
                return Err(PveError::new(Kind::Conflict, message).not_sent());
            }
        }
    }
    let unknown = || PveError::new(Kind::Unreachable, format!("no address of cluster {cluster} tells which it is"));
    found.ok_or_else(|| failed.unwrap_or_else(unknown))
}

async fn one(client: &Client) -> Result<Identity, PveError> {
    let nodes = client.get(&plain(internal::NODES)?).await?.data;
    let status = match client.get(&plain(internal::CLUSTER_STATUS)?).await {
        Ok(reply) => Some(reply.data),
        Err(error) if error.kind() == Kind::Forbidden => None,
        Err(error) => return Err(error),
    };
    Identity::read(status.as_ref(), &nodes).ok_or_else(|| {
        PveError::new(
            Kind::NotJson,
            format!("cluster {} does not tell the certificates of its nodes", client.cluster()),
        )
    })
}

/// Whether this is still the cluster that the name stood for, and no other name's; answers what it is, as text.
pub async fn check(state: &State, connection: &Connection) -> Result<String, Refusal> {
    let cluster = connection.name();
    let present = connection.identity().await.map_err(|error| match error.kind() {
        Kind::Conflict => refused(error.message()),
        _ => crate::server::refusal(state, &error),
    })?;
    let store = state.store().as_ref();
    let others: Vec<_> = state.connections().filter(|other| other.name() != cluster).collect();
    // Each is asked once, and not waited for long: one that is down must not stop writes to this one.
    let strangers = others.iter().filter(|other| other.is_stranger()).map(|other| timeout(PATIENCE, other.identity()));
    join_all(strangers).await;
    for other in others {
        let known = if let Some(known) = other.known_identity() {
            Some(Identity::clone(&known))
        } else {
            let known = store.identity(other.name()).await.map_err(|error| stored(&error))?;
            known.as_deref().and_then(Identity::parse)
        };
        if known.is_some_and(|known| known.is_same(&present)) {
            return Err(twice(cluster, other.name()));
        }
    }
    let text = present.text();
    match store.identity(cluster).await.map_err(|error| stored(&error))? {
        None => match store.set_identity(cluster, &text).await.map_err(|error| stored(&error))? {
            Identified::New | Identified::Same => Ok(text),
            Identified::Changed { known } => keep(store, cluster, &known, &present).await,
            Identified::Twice { cluster: other } => Err(twice(cluster, &other)),
        },
        Some(known) => keep(store, cluster, &known, &present).await,
    }
}

/// A renewed certificate or a node that joined is written down, so that the next one is still known.
async fn keep(store: &dyn Store, cluster: &str, known: &str, present: &Identity) -> Result<String, Refusal> {
    let text = present.text();
    match Identity::parse(known) {
        Some(known) if known == *present => Ok(text),
        Some(known) if known.is_same(present) => {
            store.replace_identity(cluster, &text).await.map_err(|error| stored(&error))?;
            Ok(text)
        }
        known => {
            let known = known.map_or_else(|| "something unreadable".to_owned(), |known| known.shown());
            Err(refused(&format!(
                "cluster {cluster} is another one than before (recorded: {known}; now: {}), so nothing is changed there",
                present.shown()
            )))
        }
    }
}

fn twice(cluster: &str, other: &str) -> Refusal {
    refused(&format!(
        "cluster {cluster} and cluster {other} are the same one under two names, so nothing is changed there: limits, protection and locks of one would not hold for the other"
    ))
}

fn refused(why: &str) -> Refusal {
    Refusal::new(
        "cluster_identity",
        why,
        "Reads go on. An operator has to look: a cluster that was really rebuilt or moved gets a new name in the cluster file, and of two names one is removed.",
    )
}

fn stored(error: &StoreError) -> Refusal {
    Refusal::new(
        "store",
        format!("which cluster this is cannot be recorded: {error}"),
        "An operator has to look at the store.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use serde_json::json;

    use super::*;

    fn identity(name: Option<&str>, certificates: &[&str]) -> Identity {
        let status = name.map(|name| json!([{"type": "node", "name": "pve1"}, {"type": "cluster", "name": name}]));
        let nodes: Vec<Json> = certificates.iter().map(|one| json!({"node": "x", "ssl_fingerprint": one})).collect();
        Identity::read(status.as_ref(), &Json::Array(nodes)).unwrap()
    }

    #[test]
    fn a_renewed_certificate_or_a_joined_node_is_the_same_cluster() {
        let before = identity(Some("lab"), &["AA:01", "AA:02"]);
        assert!(before.is_same(&identity(Some("lab"), &["AA:01", "AA:03"])), "renewed");
        assert!(before.is_same(&identity(Some("lab"), &["aa:02", "AA:01", "AA:04"])), "joined");
        assert!(before.is_same(&identity(None, &["AA:02"])), "the name may not be seen");
    }

    #[test]
    fn another_name_or_other_certificates_are_another_cluster() {
        let before = identity(Some("lab"), &["AA:01"]);
        assert!(!before.is_same(&identity(Some("other"), &["AA:01"])));
        assert!(!before.is_same(&identity(Some("lab"), &["BB:01"])));
    }

    #[test]
    fn a_standalone_node_counts_by_its_own_name() {
        let nodes = json!([{"node": "solo", "ssl_fingerprint": "AA:01"}]);
        let alone = Identity::read(Some(&json!([{"type": "node", "name": "solo"}])), &nodes).unwrap();
        assert_eq!(alone.name.as_deref(), Some("solo"));
        assert_eq!(Identity::parse(&alone.text()), Some(alone));
    }

    #[test]
    fn addresses_that_lead_to_different_clusters_are_refused() {
        let down = || PveError::new(Kind::Unreachable, "down");
        let of =
            |answers: Vec<Result<Identity, PveError>>| agreed("lab", answers.into_iter().map(|one| ("https://x", one)));
        let lab = || identity(Some("lab"), &["AA:01", "AA:02"]);
        assert_eq!(of(vec![Ok(lab()), Err(down()), Ok(lab())]).unwrap(), lab());
        for other in [identity(Some("other"), &["BB:01"]), identity(Some("lab"), &["BB:01"])] {
            let refused = of(vec![Ok(lab()), Ok(other)]).unwrap_err();
            assert_eq!(refused.kind(), Kind::Conflict);
            assert!(refused.message().contains("different clusters"), "{}", refused.message());
        }
        assert_eq!(of(vec![Err(down())]).unwrap_err().kind(), Kind::Unreachable);
    }

    #[test]
    fn a_cluster_that_tells_no_certificate_has_no_identity() {
        assert_eq!(Identity::read(None, &json!([{"node": "pve1"}])), None);
        assert_eq!(Identity::read(None, &json!(null)), None);
    }
}
