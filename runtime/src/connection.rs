//! One cluster as the server reaches it: client, node names, resources and release, each read by the
//! operation that the catalog has for it.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use pvegate_generated::internal;
use pvegate_generated::model::{Lane as CatalogLane, Operation, Verb};
use pvegate_generated::terms::Release;
use serde_json::{Map, Value as Json};

use crate::args::{Args, EncodeError, InvalidArguments, Value, decode, encode};
use crate::authorize::{Authorized, Read};
use crate::config::Cluster;
use crate::identity::{self, Identity};
use crate::pve::{Client, Fetch, Fresh, Kind, Lane, Nodes, PveError, Reply, Request};
use crate::sight::Sight;
use crate::snapshot::{Protection, Snapshot};
use crate::values::NodeName;

/// How long a cluster's release is believed: it changes with an upgrade only.
const RELEASE_LIMIT: Duration = Duration::from_mins(10);

/// How long the server's own privileges are believed.
const SIGHT_LIMIT: Duration = Duration::from_mins(1);

/// How long an answer proves that a cluster answers.
const HELLO_LIMIT: Duration = Duration::from_secs(2);

/// A cluster, ready to be asked.
#[derive(Debug)]
pub struct Connection {
    name: String,
    client: Client,
    nodes: Nodes,
    snapshot: Snapshot,
    version: Fresh<Version>,
    sight: Fresh<Sight>,
    identity: Fresh<Identity>,
    met: AtomicBool,
    protection: Protection,
    lab: bool,
    /// Whom the server is to PVE, as task ids have it.
    user: String,
}

/// What a cluster runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// As PVE says it (`9.2.3`).
    pub text: String,
    /// The pinned release that stands for it.
    pub release: Release,
}

type Pending<T> = Pin<Box<dyn Future<Output = Result<T, PveError>> + Send>>;

impl Connection {
    /// Builds the client; nothing is sent. The error is a sentence for the operator.
    pub fn new(cluster: &Cluster) -> Result<Self, String> {
        let client = Client::new(cluster)?;
        let fetch = |operation: &'static Operation| {
            let client = client.clone();
            move || -> Pending<Json> {
                let client = client.clone();
                Box::pin(async move {
                    let request = plain(operation)?;
                    Ok(client.get(&request).await?.data)
                })
            }
        };
        let version = fetch(internal::VERSION);
        let version: Fetch<Version> = Box::new(move || {
            let data = version();
            Box::pin(async move { read_version(&data.await?) })
        });
        let permissions = fetch(internal::PERMISSIONS);
        let sight: Fetch<Sight> = Box::new(move || {
            let data = permissions();
            Box::pin(async move { Ok(Sight::read(&data.await?)) })
        });
        let asked = Arc::new(cluster.clone());
        let identity: Fetch<Identity> = Box::new(move || {
            let cluster = Arc::clone(&asked);
            Box::pin(async move { identity::ask(&cluster).await })
        });
        Ok(Self {
            identity: Fresh::new(identity::LIMIT, identity),
            met: AtomicBool::new(false),
            lab: cluster.lab,
            protection: Protection { vmids: cluster.protected_vmids.clone(), tags: cluster.protected_tags.clone() },
            name: cluster.name.to_string(),
            nodes: Nodes::new(cluster.name.as_str(), fetch(internal::NODES)),
            snapshot: Snapshot::new(cluster, fetch(internal::RESOURCES)),
            version: Fresh::new(RELEASE_LIMIT, version),
            sight: Fresh::new(SIGHT_LIMIT, sight),
            user: cluster.token.id.to_string(),
            client,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its guests.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What it runs.
    pub async fn version(&self) -> Result<Arc<Version>, PveError> {
        self.version.get().await
    }

    /// What it runs, asked now: an answer that is seconds old counts, one from before a failure does not.
    pub async fn hello(&self) -> Result<Arc<Version>, PveError> {
        if self.version.last().is_none_or(|(_, age)| age >= HELLO_LIMIT) {
            self.version.expire();
        }
        self.version().await
    }

    /// What the server's API token sees there.
    pub async fn sight(&self) -> Result<Arc<Sight>, PveError> {
        self.sight.get().await
    }

    /// Which cluster it is, by what PVE says.
    pub async fn identity(&self) -> Result<Arc<Identity>, PveError> {
        self.identity.get().await
    }

    /// What it last said it is, however long ago.
    pub fn known_identity(&self) -> Option<Arc<Identity>> {
        self.identity.last().map(|(identity, _)| identity)
    }

    /// Whether nobody wanted to know yet which cluster it is. Only the first is told so.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.met.swap(true, Ordering::Relaxed)
    }

    /// Which of its guests the operator protects.
    pub fn protection(&self) -> &Protection {
        &self.protection
    }

    /// Whether it is for experiments, where protection only warns.
    pub fn is_lab(&self) -> bool {
        self.lab
    }

    /// Its nodes.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// Its client.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whom the server is to PVE: `user@realm!token`.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Asks for what the server itself needs, by the names of `internal.toml`.
    pub(crate) async fn ask(
        &self,
        operation: &'static Operation,
        given: impl IntoIterator<Item = (&'static str, Json)>,
    ) -> Result<Reply, PveError> {
        let given = given.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let release = self.version().await?.release;
        let args = decode(operation, &given, release).map_err(|error| invalid(&error))?;
        self.check_nodes(&args).await?;
        self.client.get(&request(&args)?).await
    }

    /// Sends a caller's read to the cluster that it was authorized for. Every node that the arguments name has to be one
    /// that the cluster lists. Of the answer only what the grant covers comes back.
    pub async fn get(read: Authorized<Read<'_>>) -> Result<Reply, PveError> {
        let read = read.into_inner();
        let (connection, args) = (read.connection(), read.args());
        connection.check_nodes(args).await?;
        let request = request(args)?;
        // A few questions to the guest agent are a POST to PVE, which is sent once as every POST is.
        let mut reply = if args.operation().verb == Verb::Get {
            connection.client.get(&request).await?
        } else {
            connection.client.write(&request).await?
        };
        read.shown().apply(&mut reply);
        Ok(reply)
    }

    /// The same for one of several nodes, which is not asked where it is known to be in trouble, and waited for that
    /// long at most.
    pub async fn get_within(read: Authorized<Read<'_>>, patience: Duration) -> Result<Reply, PveError> {
        let read = read.into_inner();
        let connection = read.connection();
        connection.check_nodes(read.args()).await?;
        let request = request(read.args())?;
        if let Some(error) = read.node().and_then(|node| connection.client.trouble(node, &request)) {
            return Err(error);
        }
        let mut reply = connection.client.get_within(&request, patience).await?;
        read.shown().apply(&mut reply);
        Ok(reply)
    }

    /// Every node that arguments name has to be one that the cluster lists.
    pub(crate) async fn check_nodes(&self, args: &Args) -> Result<(), PveError> {
        for node in named_nodes(args) {
            self.nodes.check(node).await?;
        }
        Ok(())
    }
}

/// The nodes that arguments name, also inside a UPID.
fn named_nodes(args: &Args) -> Vec<&NodeName> {
    fn of<'a>(value: &'a Value, found: &mut Vec<&'a NodeName>) {
        match value {
            Value::Node(node) => found.push(node),
            Value::NodePriority(one) => found.push(one.node()),
            Value::Upid(upid) => found.push(upid.node()),
            Value::List(items) | Value::Array(items) => items.iter().for_each(|item| of(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    args.iter().for_each(|arg| of(&arg.value, &mut found));
    found.dedup();
    found
}

/// A read without arguments.
pub(crate) fn plain(operation: &'static Operation) -> Result<Request, PveError> {
    let args = decode(operation, &Map::new(), Release::NEWEST).map_err(|error| invalid(&error))?;
    request(&args)
}

/// A call as it is sent.
pub(crate) fn request(args: &Args) -> Result<Request, PveError> {
    let operation = args.operation();
    let encoded = encode(args).map_err(|error| match error {
        EncodeError::Elsewhere { .. } | EncodeError::TooLarge(_) => {
            PveError::new(Kind::Invalid, error.to_string()).not_sent()
        }
    })?;
    let lane = match operation.lane {
        CatalogLane::Proxy => Lane::Proxy,
        CatalogLane::Daemon => Lane::Daemon,
        CatalogLane::Slow => Lane::Slow,
    };
    let mut request = Request::new(operation.name, encoded.path, encoded.query).in_lane(lane);
    request = match operation.verb {
        Verb::Get => request,
        Verb::Post => request.writing(Method::POST, encoded.form),
        Verb::Put => request.writing(Method::PUT, encoded.form),
        Verb::Delete => request.writing(Method::DELETE, encoded.form),
    };
    Ok(match args.get("node") {
        Some(Value::Node(node)) => request.on_node(node.clone()),
        _ => request,
    })
}

fn invalid(error: &InvalidArguments) -> PveError {
    PveError::new(Kind::Invalid, error.to_string()).not_sent()
}

fn read_version(data: &Json) -> Result<Version, PveError> {
    let text = data.get("version").or_else(|| data.get("release")).and_then(Json::as_str).unwrap_or_default();
    let mut numbers = text.split(['.', '-']).map(str::parse::<u16>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Err(PveError::new(
            Kind::NotJson,
            "the cluster does not say which release of PVE it runs; check that the endpoint is a PVE node's API",
        ));
    };
    // It stands in answers as it is, so what a release does not have is cut off.
    let plain = |character: &char| character.is_ascii_alphanumeric() || ".-+~".contains(*character);
    Ok(Version { text: text.chars().take_while(plain).take(20).collect(), release: pinned((major, minor)) })
}

/// The newest pinned release that is not newer than the cluster's; for older clusters the oldest.
fn pinned(version: (u16, u16)) -> Release {
    let number = |release: Release| {
        let (major, minor) = release.as_str().split_once('.')?;
        Some((major.parse::<u16>().ok()?, minor.parse::<u16>().ok()?))
    };
    Release::ALL
        .iter()
        .copied()
        .rfind(|release| number(*release).is_some_and(|known| known <= version))
        .unwrap_or(Release::OLDEST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_is_taken_for_the_pin_that_is_not_newer() {
        let release = |text: &str| read_version(&json!({"version": text})).unwrap().release;
        assert_eq!(release("9.2.3"), Release::R9_2);
        assert_eq!(release("9.1.9"), Release::R9_1);
        assert_eq!(release("9.0.1"), Release::R8_4);
        assert_eq!(release("8.3.0"), Release::OLDEST);
        assert_eq!(release("10.0.1"), Release::NEWEST);
        assert!(read_version(&json!({"version": "soon"})).is_err());
        assert!(read_version(&json!(null)).is_err());
    }

    #[test]
    fn internal_reads_need_no_arguments() {
        for operation in [internal::NODES, internal::PERMISSIONS, internal::RESOURCES, internal::VERSION] {
            assert!(plain(operation).is_ok(), "{}", operation.name);
        }
    }
}
