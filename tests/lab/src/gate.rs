//! The way of a request through the simulated daemon, in PVE's order: method, login, routing, privileges, proxying to the
//! node, parameters, and only then the handler.

mod format;
mod login;
mod upload;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Body as _, Incoming};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::{Caller, allowed};
use crate::answer::{Answer, Refusal};
use crate::area::{self, Call};
use crate::check;
use crate::fault::{Fault, Faults};
use crate::journal::{Entry, Journal};
use crate::params::{Params, decode_body, decode_form, decode_path};
use crate::schema::{Operation, Schema};
use crate::state::Cluster;

/// The most bytes and lines of headers that PVE reads; a request with more is never answered.
const HEADER_LIMIT: usize = 8 * 1024;
const HEADER_LINES: usize = 64;
const BODY_LIMIT: u64 = 512 * 1024;
/// How much of a body that is too large is read before it is refused.
const DRAINED: usize = 8 << 20;
/// How long it may take to arrive before the refusal goes out without it.
const DRAIN_WAIT: Duration = Duration::from_millis(250);
const LOGIN_REFUSED_AFTER: Duration = Duration::from_secs(3);
const NODE_TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long the proxy waits for a daemon whose answer could not be written.
const PIPE_BROKEN_AFTER: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What all connections and tasks share.
pub(crate) struct Shared {
    pub(crate) schema: &'static Schema,
    pub(crate) cluster: RwLock<Cluster>,
    pub(crate) journal: Journal,
    pub(crate) faults: RwLock<Faults>,
    pub(crate) latency: bool,
    pub(crate) stop: CancellationToken,
    pub(crate) running: TaskTracker,
    pub(crate) workers: crate::worker::Workers,
}

impl Shared {
    /// Looks at the cluster.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Cluster) -> T) -> T {
        look(&self.cluster.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the cluster.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Cluster) -> T) -> T {
        change(&mut self.cluster.write().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn faulty(&self, ask: impl FnOnce(&Faults) -> bool) -> bool {
        ask(&self.faults.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits while a node hangs; says whether PVE gave up waiting for it.
    async fn hangs(&self, node: &str) -> bool {
        let mut waited = Duration::ZERO;
        while self.faulty(|faults| faults.hanging(node)) {
            if waited >= NODE_TIME_LIMIT {
                return true;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            waited += LOOK_AGAIN;
        }
        false
    }
}

/// The connection is to be closed without an answer.
#[derive(Debug)]
pub(crate) struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the connection was cut on purpose")
    }
}

impl std::error::Error for Cut {}

/// A request on its way. Recorded when it ends, also when the client gives up before that.
struct Recording {
    shared: Arc<Shared>,
    entry: Option<Entry>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            self.shared.journal.push(entry);
        }
    }
}

/// Answers one request and records it.
pub(crate) async fn serve(shared: Arc<Shared>, request: http::Request<Incoming>) -> Result<Response<Full<Bytes>>, Cut> {
    let (head, body) = request.into_parts();
    let mut recording = Recording {
        shared: Arc::clone(&shared),
        entry: Some(Entry {
            method: head.method.to_string(),
            raw_path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            decoded_path: String::new(),
            operation: None,
            params: Params::new(),
            status: 0,
        }),
    };
    let Some(entry) = &mut recording.entry else { return Err(Cut) };
    let answer = answer(&shared, &head, body, entry).await;
    entry.status = answer.as_ref().map_or(0, |answer| answer.status);
    answer.map(Answer::into_response)
}

async fn answer(shared: &Arc<Shared>, head: &Parts, body: Incoming, entry: &mut Entry) -> Result<Answer, Cut> {
    let method = head.method.as_str();
    let raw = head.uri.path();
    let api = format::split(raw);
    let path = decode_path(api.map_or(raw, |(_, rest)| rest));
    entry.decoded_path.clone_from(&path);
    let route = shared.schema.route(method, &path);
    entry.operation = route.as_ref().map(|route| route.operation.name.clone());

    let length: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if length > HEADER_LIMIT || head.headers.len() > HEADER_LINES {
        return Err(Cut);
    }
    if shared.faulty(|faults| faults.has(&Fault::CutConnection)) {
        return Err(Cut);
    }
    if shared.faulty(|faults| faults.has(&Fault::HtmlInsteadOfJson)) {
        return Ok(Answer::html());
    }
    let local = shared.look(|cluster| cluster.local.clone());
    if shared.hangs(&local).await {
        return Err(Cut);
    }
    if !matches!(method, "GET" | "POST" | "PUT" | "DELETE") {
        return Ok(Answer::bare(501, format!("method '{method}' not available")));
    }
    let Some((format, _)) = api else {
        let rest = path.strip_prefix("/api2").unwrap_or(&path);
        let steps: Vec<&str> = rest.split('/').filter(|step| !step.is_empty()).collect();
        return Ok(Answer::proxy(501, &format!("no formatter for uri /, {}", steps.join(", "))));
    };
    let open = route.as_ref().is_some_and(|route| route.operation.open());
    let caller = match login::log_in(shared, head) {
        Ok(caller) => caller,
        Err(_) if open => Caller::nobody(),
        Err(reason) => {
            refused(shared).await;
            return Ok(Answer::bare(401, reason));
        }
    };
    let upload = route.as_ref().filter(|route| route.operation.name == upload::OPERATION);
    let received = match upload {
        Some(route) => upload::receive(shared, head, body, &caller, (route.operation, &route.values)).await?,
        None => parameters(head, method, body).await,
    };
    let mut given = match received {
        Ok(given) => given,
        Err(answer) => return Ok(answer),
    };
    if path.trim_matches('/').is_empty() && method == "GET" {
        return Ok(format.put(Answer::of(Ok(area::root().into())), head));
    }
    let Some(route) = route else {
        return Ok(format.put(Answer::not_implemented(method, &path), head));
    };
    for (name, value) in &route.values {
        let value = Value::String(value.clone());
        if given.get(name).is_some_and(|other| *other != value) {
            let error = "duplicate parameter (already defined in URI) with conflicting values!";
            return Ok(format.put(Answer::of(Err(Refusal::parameter(name, error))), head));
        }
        given.insert(name.clone(), value);
    }
    entry.params.clone_from(&given);
    let mut answer = call(shared, route.operation, given, &caller).await;
    if answer.status == 401 {
        refused(shared).await;
    }
    answer.connection = route.operation.connection();
    Ok(format.put(answer, head))
}

/// A refused login takes its time.
async fn refused(shared: &Shared) {
    if shared.latency {
        tokio::time::sleep(LOGIN_REFUSED_AFTER).await;
    }
}

/// Everything behind routing.
async fn call(shared: &Arc<Shared>, operation: &Operation, mut given: Params, caller: &Caller) -> Answer {
    if !operation.allow_token && !caller.token.is_empty() {
        let path = given.iter().fold(operation.path.clone(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default())
        });
        let what = format!("URI '{path}' not available with API token, need proper ticket.\n");
        return Answer::of(Err(Refusal::forbidden(&what)));
    }
    if let Err(refusal) = shared.look(|cluster| allowed(cluster, caller, operation, &given)) {
        return Answer::of(Err(refusal));
    }
    if let Some(answer) = elsewhere(shared, operation, &given).await {
        return answer;
    }
    if let Err(refusal) = check::check(operation, &mut given) {
        return Answer::of(Err(refusal));
    }
    let call = Call { operation, params: &given, caller };
    if let Some(vmid) = area::writes_file_of(&call)
        && let Err(error) = shared.unlocked(vmid).await
    {
        return Answer::of(Err(Refusal::failed(error)));
    }
    let answer = Answer::of(area::answer(shared, &call));
    if answer.unspeakable() && shared.latency {
        tokio::time::sleep(PIPE_BROKEN_AFTER).await;
    }
    answer
}

/// What a call that belongs to another node ends with, if that node is not reached.
async fn elsewhere(shared: &Arc<Shared>, operation: &Operation, given: &Params) -> Option<Answer> {
    let node = given.get(operation.proxy_to.as_ref()?)?.as_str()?;
    let (local, known) =
        shared.look(|cluster| (cluster.local == node || node == "localhost", cluster.node(node).is_some()));
    if local {
        return None;
    }
    if let Some(peer) = shared.look(|cluster| cluster.peers.get(node).copied()) {
        if shared.latency {
            tokio::time::sleep(Duration::from_secs(peer.seconds())).await;
        }
        let (status, reason) = peer.answer();
        return Some(Answer::bare(status, reason));
    }
    if !known {
        let message = format!(
            "hostname lookup '{node}' failed - failed to get address info for: {node}: Temporary failure in name resolution"
        );
        return Some(Answer::of(Err(Refusal::failed(message))));
    }
    if shared.faulty(|faults| faults.dead(node)) {
        return Some(Answer::bare(595, "Connection refused"));
    }
    if shared.hangs(node).await {
        return Some(Answer::bare(596, "Connection timed out"));
    }
    None
}

/// Parameters of query and body; where both name one, the query wins.
async fn parameters(head: &Parts, method: &str, body: Incoming) -> Result<Params, Answer> {
    let mut given = if matches!(method, "POST" | "PUT") {
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        decode_body(content_type, &read(head, body).await?)?
    } else if body.size_hint().exact() == Some(0) {
        Params::new()
    } else {
        return Err(Answer::proxy(501, &format!("Unexpected content for method '{method}'")));
    };
    given.extend(decode_form(head.uri.query().unwrap_or_default()));
    given.remove("_dc");
    Ok(given)
}

/// Reads a body, unless its head says that PVE would not.
async fn read(head: &Parts, body: Incoming) -> Result<Bytes, Answer> {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(Answer::proxy(501, "chunked transfer encoding not supported"));
    }
    if body.size_hint().lower() > BODY_LIMIT {
        // Whoever sends it at once hears the answer only if it was taken.
        let taken = tokio::time::timeout(DRAIN_WAIT, http_body_util::Limited::new(body, DRAINED).collect()).await;
        tracing::debug!(whole = taken.is_ok(), "a body was too large");
        return Err(Answer::proxy(501, "for data too large"));
    }
    let body = body.collect().await;
    body.map(Collected::to_bytes).map_err(|_| Answer::bare(400, "Bad Request"))
}
