//! The way of a request through the simulated daemon, in PVE's order: method, login, routing, privileges, proxying to the
//! node, parameters, and only then the handler.

mod elsewhere;
mod format;
mod login;
mod upload;
mod work;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use serde_json::Value;

use crate::access::{Caller, allowed};
use crate::answer::{Answer, Refusal};
use crate::area;
use crate::connection::body::Body;
use crate::fault::Fault;
use crate::journal::Entry;
use crate::params::{Params, decode_body, decode_form, decode_path};
use crate::schema::Operation;

pub(crate) use crate::shared::Shared;

const BODY_LIMIT: u64 = 512 * 1024;
/// How much of a body that is too large is read before it is refused.
const DRAINED: usize = 8 << 20;
/// How long it may take to arrive before the refusal goes out without it.
const DRAIN_WAIT: Duration = Duration::from_millis(250);
const LOGIN_REFUSED_AFTER: Duration = Duration::from_secs(3);

/// Where a request came in.
#[derive(Clone)]
pub(crate) struct Via {
    /// The node that listens.
    pub(crate) node: Arc<str>,
    pub(crate) connection: u64,
}

/// The connection is to be closed without an answer.
#[derive(Debug)]
pub(crate) struct Cut;

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
pub(crate) async fn serve(shared: Arc<Shared>, via: Via, request: http::Request<Body>) -> Result<Answer, Cut> {
    let (head, body) = request.into_parts();
    let mut recording = Recording {
        shared: Arc::clone(&shared),
        entry: Some(Entry {
            node: via.node.to_string(),
            connection: via.connection,
            method: head.method.to_string(),
            raw_path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            decoded_path: String::new(),
            operation: None,
            params: Params::new(),
            status: 0,
        }),
    };
    let Some(entry) = &mut recording.entry else { return Err(Cut) };
    let answer = answer(&shared, &via.node, &head, body, entry).await;
    entry.status = answer.as_ref().map_or(0, |answer| answer.status);
    answer
}

async fn answer(
    shared: &Arc<Shared>,
    here: &Arc<str>,
    head: &Parts,
    body: Body,
    entry: &mut Entry,
) -> Result<Answer, Cut> {
    let method = head.method.as_str();
    let raw = head.uri.path();
    let api = format::split(raw);
    let path = decode_path(api.map_or(raw, |(_, rest)| rest));
    entry.decoded_path.clone_from(&path);
    let route = shared.schema.route(method, &path);
    entry.operation = route.as_ref().map(|route| route.operation.name.clone());

    let operation = route.as_ref().map(|route| route.operation.name.as_str());
    if shared.hit(operation, &Fault::CutBefore) {
        return Err(Cut);
    }
    shared.holds(operation, &Fault::HoldBefore).await;
    if shared.hit(operation, &Fault::HtmlInsteadOfJson) {
        return Ok(Answer::html());
    }
    if shared.hangs(here).await {
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
    let put = |answer: Answer| format.put(shared.schema.release, answer, head);
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
        return Ok(put(Answer::of(Ok(area::root().into()))));
    }
    let Some(route) = route else {
        return Ok(put(Answer::not_implemented(method, &path)));
    };
    for (name, value) in &route.values {
        let value = Value::String(value.clone());
        if given.get(name).is_some_and(|other| *other != value) {
            let error = "duplicate parameter (already defined in URI) with conflicting values!";
            return Ok(put(Answer::of(Err(Refusal::parameter(name, error)))));
        }
        given.insert(name.clone(), value);
    }
    entry.params.clone_from(&given);
    let mut answer = call(shared, here, route.operation, given, caller).await;
    if answer.status == 401 {
        refused(shared).await;
    }
    if answer.status < 400 {
        shared.holds(operation, &Fault::HoldAfter).await;
        if shared.hit(operation, &Fault::CutAfter) {
            return Err(Cut);
        }
        if shared.hit(operation, &Fault::Late599) {
            return Ok(Answer::bare(599, "Too many redirections"));
        }
        if shared.hit(operation, &Fault::EmptyBody) {
            answer.body = Bytes::new();
        }
    }
    answer.connection = route.operation.connection();
    Ok(put(answer))
}

/// A refused login takes its time.
async fn refused(shared: &Shared) {
    if shared.latency {
        tokio::time::sleep(LOGIN_REFUSED_AFTER).await;
    }
}

/// Everything behind routing: what the proxy that took the request checks and passes on, and then what is done, which goes
/// on whether or not anybody still waits for the answer.
async fn call(
    shared: &Arc<Shared>,
    here: &Arc<str>,
    operation: &'static Operation,
    given: Params,
    caller: Caller,
) -> Answer {
    if !operation.allow_token && !caller.token.is_empty() {
        let path = given.iter().fold(operation.path.clone(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default())
        });
        let what = format!("URI '{path}' not available with API token, need proper ticket.\n");
        return Answer::of(Err(Refusal::forbidden(&what)));
    }
    if let Err(refusal) = shared.look(|cluster| allowed(cluster, &caller, operation, &given)) {
        return Answer::of(Err(refusal));
    }
    let at = match elsewhere::passed_on(shared, here, operation, &given).await {
        Ok(at) => at.unwrap_or_else(|| here.to_string()),
        Err(answer) => return answer,
    };
    let work = work::done(Arc::clone(shared), at, operation, given, caller);
    let done = shared.running.spawn(work).await;
    // Work does not panic; should it, PVE's proxy says this of a daemon that died.
    done.unwrap_or_else(|_| Answer::bare(596, "Broken pipe"))
}

/// Parameters of query and body; where both name one, the query wins.
async fn parameters(head: &Parts, method: &str, body: Body) -> Result<Params, Answer> {
    let mut given = if matches!(method, "POST" | "PUT") {
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        decode_body(content_type, &read(head, body).await?)?
    } else if body.length() == 0 && !head.headers.contains_key(TRANSFER_ENCODING) {
        Params::new()
    } else {
        return Err(Answer::proxy(501, &format!("Unexpected content for method '{method}'")));
    };
    given.extend(decode_form(head.uri.query().unwrap_or_default()));
    given.remove("_dc");
    Ok(given)
}

/// Reads a body, unless its head says that PVE would not.
async fn read(head: &Parts, body: Body) -> Result<Bytes, Answer> {
    if head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(Answer::proxy(501, "chunked transfer encoding not supported"));
    }
    if body.length() > BODY_LIMIT {
        // Whoever sends it at once hears the answer only if it was taken.
        let taken = tokio::time::timeout(DRAIN_WAIT, body.drain(DRAINED)).await;
        tracing::debug!(whole = taken.is_ok(), "a body was too large");
        return Err(Answer::proxy(501, "for data too large"));
    }
    body.whole().await.map_err(|_| Answer::bare(400, "Bad Request"))
}
