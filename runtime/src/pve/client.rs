//! Decides how a request gets its answer: with a token that PVE accepts, to a node that is not known to be down, in
//! its lane, by the first address that works. A read is sent once more where the connection died before an answer
//! began; a write is sent once, whatever happens.

use super::attempt::{Attempt, Sender, timed_out};
use super::health::{Health, Leave};
use super::lanes::Lanes;
use super::{Kind, Lane, PveError, Reply, Request};
use crate::config::Cluster;
use crate::values::NodeName;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a refused API token is not used again: every attempt costs 3 s on the PVE side.
const PARKED: Duration = Duration::from_secs(30);
/// How long an address may be silent before another one is asked too.
const SILENT: Duration = Duration::from_secs(3);
/// Nodes that are remembered before those that answer are forgotten.
const NODES: usize = 1024;

/// The connection to one cluster. Clones share it.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    cluster: String,
    addresses: Vec<Address>,
    nodes: Mutex<HashMap<NodeName, Arc<Health>>>,
    sender: Sender,
    lanes: Lanes,
    parked: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Address {
    base: String,
    health: Health,
}

impl Client {
    /// Builds the client; the error is a sentence for the operator.
    pub fn new(cluster: &Cluster) -> Result<Self, String> {
        let address = |base: &str| Address { base: base.to_owned(), health: Health::default() };
        Ok(Self(Arc::new(Inner {
            cluster: cluster.name.to_string(),
            addresses: cluster.endpoints.iter().map(|endpoint| address(&endpoint.base)).collect(),
            nodes: Mutex::default(),
            sender: Sender::new(cluster)?,
            lanes: Lanes::new(cluster.replicas),
            parked: Mutex::new(None),
        })))
    }

    /// The cluster's name.
    pub fn cluster(&self) -> &str {
        &self.0.cluster
    }

    /// Sends a read and reads its answer.
    pub async fn get(&self, request: &Request) -> Result<Reply, PveError> {
        if !request.is_read() {
            return Err(misuse(request));
        }
        self.0.exchange(request).await
    }

    /// Sends a read and waits for `patience` at most. What comes later is not lost on the server: until then the node
    /// counts as one that does not answer.
    pub async fn get_within(&self, request: &Request, patience: Duration) -> Result<Reply, PveError> {
        let (inner, sent) = (Arc::clone(&self.0), request.clone());
        let mut waiting = tokio::spawn(async move { inner.exchange(&sent).await });
        if let Ok(ended) = tokio::time::timeout(patience, &mut waiting).await {
            return ended.unwrap_or_else(|_| Err(broken(request)));
        }
        if let Some(node) = &request.node {
            let health = self.0.health(node);
            tokio::spawn(async move {
                let _late = health.late();
                // Its result is in the node's health already.
                let _ended = waiting.await;
            });
        }
        Err(timed_out(&self.0.cluster, &request.clone().within(patience)))
    }

    /// Why a node is not to be counted on, if it is known. One whose rest is over is tried with this read behind the
    /// caller's back.
    pub fn trouble(&self, node: &NodeName, read: &Request) -> Option<PveError> {
        let health = self.0.health(node);
        if health.is_late() {
            let message = format!("node {node} of cluster {} has not answered an earlier request yet", self.0.cluster);
            return Some(PveError::new(Kind::Timeout, message).not_sent());
        }
        let error = health.trouble()?;
        let resting = matches!(health.ask(Instant::now()), Leave::Wait(..));
        if !resting && read.is_read() {
            let (inner, read) = (Arc::clone(&self.0), read.clone());
            // Only whether it answers counts, and that is in its health then.
            tokio::spawn(async move { inner.exchange(&read).await });
        }
        Some(error)
    }

    /// Sends a write, once, on a connection of its own. It goes on when the caller hangs up. What a failure means for
    /// PVE is [`PveError::sent`].
    pub async fn write(&self, request: &Request) -> Result<Reply, PveError> {
        if request.is_read() {
            return Err(misuse(request));
        }
        let (inner, sent) = (Arc::clone(&self.0), request.clone());
        tokio::spawn(async move { inner.exchange(&sent).await }).await.unwrap_or_else(|_| Err(broken(request)))
    }
}

impl Inner {
    async fn exchange(self: &Arc<Self>, request: &Request) -> Result<Reply, PveError> {
        self.check_parked(request)?;
        let health = request.node.as_ref().map(|node| self.health(node));
        let _trial = match health.as_ref().map(|health| health.ask(Instant::now())) {
            Some(Leave::Wait(left, error)) => return Err(error.not_sent().retry_after(left)),
            Some(Leave::Trial(trial)) => Some(trial),
            Some(Leave::Free) | None => None,
        };
        let deadline = Instant::now() + request.within;
        let _leave = self.lanes.enter(request, deadline).await?;
        // A caller that waited in the lane may have been overtaken by a 401.
        self.check_parked(request)?;
        let answer = match tokio::time::timeout_at(deadline, self.fetch(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(timed_out(&self.cluster, request)),
        };
        if let Some(health) = &health {
            learn(&self.cluster, health, request, &answer);
        }
        answer
    }

    async fn fetch(self: &Arc<Self>, request: &Request) -> Result<Reply, PveError> {
        let mut last = None;
        for at in self.order(request) {
            let Some(address) = self.addresses.get(at) else { continue };
            let _trial = match address.health.ask(Instant::now()) {
                Leave::Free => None,
                Leave::Trial(trial) => Some(trial),
                Leave::Wait(pause, error) => {
                    // Every address failed a moment ago: the same answer at once, instead of the same wait.
                    last.get_or_insert(error.not_sent().retry_after(pause));
                    continue;
                }
            };
            let (mut address, mut attempt) = self.first_of_two(address, request).await;
            if matches!(attempt, Attempt::Died(_)) && request.is_read() {
                // Once more, and by another address if there is one: this one may hang up on everybody.
                address = self.other_than(address).unwrap_or(address);
                attempt = self.sender.attempt(&address.base, request).await;
            }
            match attempt {
                Attempt::Answered(response) => {
                    address.health.answered();
                    let answer = self.sender.read(request, response).await;
                    return answer.map_err(|error| self.park(error));
                }
                Attempt::NotReached(error) => {
                    address.health.failed(Instant::now(), error.clone());
                    last = Some(error);
                }
                Attempt::Died(error) | Attempt::Failed(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            PveError::new(Kind::Unreachable, format!("cluster {} has no address", self.cluster)).not_sent()
        }))
    }

    /// One attempt at an address. If it is silent, what any node can answer by itself is asked of another one too, and
    /// who answers first is heard: a proxy that hangs must not hold up what has nothing to do with its node.
    async fn first_of_two<'a>(&'a self, address: &'a Address, request: &Request) -> (&'a Address, Attempt) {
        let mut first = std::pin::pin!(self.sender.attempt(&address.base, request));
        let Some(other) = self.other_than(address).filter(|_| request.is_read() && request.lane == Lane::Proxy) else {
            return (address, first.await);
        };
        if let Ok(attempt) = tokio::time::timeout(SILENT, &mut first).await {
            return (address, attempt);
        }
        let mut second = std::pin::pin!(self.sender.attempt(&other.base, request));
        tokio::select! {
            attempt = &mut first => (address, attempt),
            attempt = &mut second => match attempt {
                Attempt::Answered(_) => {
                    address.health.failed(Instant::now(), self.silent(&address.base));
                    (other, attempt)
                }
                _ => (address, first.await),
            },
        }
    }

    /// Another address that is not known to be down.
    fn other_than(&self, address: &Address) -> Option<&Address> {
        self.addresses.iter().find(|other| !std::ptr::eq(*other, address) && other.health.trouble().is_none())
    }

    fn silent(&self, base: &str) -> PveError {
        let message = format!("{base} of cluster {} takes connections and does not answer", self.cluster);
        PveError::new(Kind::Unreachable, message).not_sent()
    }

    /// Addresses that work come first, in the operator's order. As long as there is one, those that failed are tried
    /// behind the caller's back too, and only by reads that take no worker of a daemon: those have their lane.
    fn order(self: &Arc<Self>, request: &Request) -> Vec<usize> {
        let works = |at: &usize| self.addresses.get(*at).is_some_and(|address| address.health.trouble().is_none());
        let (mut order, troubled): (Vec<usize>, Vec<usize>) = (0..self.addresses.len()).partition(works);
        if !order.is_empty() && request.is_read() && request.lane == Lane::Proxy {
            for at in &troubled {
                self.try_again(*at, request);
            }
        }
        order.extend(troubled);
        order
    }

    fn try_again(self: &Arc<Self>, at: usize, request: &Request) {
        let Some(address) = self.addresses.get(at) else { return };
        if matches!(address.health.ask(Instant::now()), Leave::Wait(..)) {
            return;
        }
        let (inner, request) = (Arc::clone(self), request.clone());
        tokio::spawn(async move {
            let Some(address) = inner.addresses.get(at) else { return };
            let Leave::Trial(_trial) = address.health.ask(Instant::now()) else { return };
            let attempt = tokio::time::timeout(request.within, inner.sender.attempt(&address.base, &request));
            match attempt.await {
                Ok(Attempt::Answered(_)) => address.health.answered(),
                Ok(Attempt::NotReached(error)) => address.health.failed(Instant::now(), error),
                Ok(_) => {}
                Err(_) => address.health.failed(Instant::now(), inner.silent(&address.base)),
            }
        });
    }

    fn health(&self, node: &NodeName) -> Arc<Health> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if nodes.len() >= NODES {
            nodes.retain(|_, health| Arc::strong_count(health) > 1 || health.trouble().is_some());
        }
        Arc::clone(nodes.entry(node.clone()).or_default())
    }

    fn park(&self, error: PveError) -> PveError {
        if error.status() != Some(401) {
            return error;
        }
        *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PARKED);
        error.retry_after(PARKED)
    }

    fn check_parked(&self, request: &Request) -> Result<(), PveError> {
        let until = *self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) =
            until.and_then(|until| until.checked_duration_since(Instant::now())).filter(|left| !left.is_zero())
        else {
            return Ok(());
        };
        let message = format!(
            "cluster {} did not accept the server's API token a moment ago, so {request} was not sent; an operator has to check the token, the next attempt is made in {} s",
            self.cluster,
            left.as_secs() + 1
        );
        Err(PveError::new(Kind::Unauthorized, message).not_sent().retry_after(left))
    }
}

/// What an answer tells about the node that was to give it.
fn learn(cluster: &str, health: &Health, request: &Request, answer: &Result<Reply, PveError>) {
    let Err(error) = answer else { return health.answered() };
    let rest = || {
        // What is remembered is told to others, who asked for something else and sent nothing.
        let node = request.node.as_ref().map_or("it", |node| node.as_str());
        let message = format!(
            "node {node} of cluster {cluster} did not answer a moment ago, so it is left alone; look at its status in the cluster's node list"
        );
        PveError::new(error.kind(), message).not_sent()
    };
    match (error.kind(), error.status()) {
        (Kind::NodeDown | Kind::Timeout, Some(595)) => health.failed(Instant::now(), rest()),
        // An agent that takes its time says nothing about its node.
        (Kind::NodeDown | Kind::Timeout, Some(596 | 599) | None) if request.lane != Lane::Slow => {
            health.doubted(Instant::now(), rest());
        }
        // The node that is asked first answers so by itself, before it asks the one that is meant.
        (_, Some(401 | 403 | 501 | 595..=599) | None) => {}
        (_, Some(_)) => health.answered(),
    }
}

fn misuse(request: &Request) -> PveError {
    let message = format!("{request} was handed to the wrong half of the client, so nothing was sent; report this");
    PveError::new(Kind::Other, message).not_sent()
}

/// The task that sent it is gone, which only a mistake of the server's can do.
fn broken(request: &Request) -> PveError {
    PveError::new(Kind::Other, format!("the server failed while it sent {request}; its log says more"))
}
