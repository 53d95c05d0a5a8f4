//! Plain tool calls, answered without the SDK's detour.
//!
//! The SDK gives every request a service, a task and a channel of its own, and reads and writes each message more than
//! once; for a call that needs no upstream request that costs several times the call. A client that works correctly
//! sends nothing but plain `tools/call` requests once it knows the tools, so those are read and answered here.
//!
//! Only acceptance is decided here, by conditions that are narrower than the SDK's. Whatever is not plainly one well
//! formed call of a revision that is served goes to the SDK untouched: the SDK alone decides about the protocol's
//! errors, and about every other method. A test holds both ways against each other, answer for answer.

use std::{borrow::Cow, fmt, marker::PhantomData, sync::Arc};

use http::{HeaderMap, StatusCode, header};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequestMethod, ConstString, JsonRpcVersion2_0, ProtocolVersion, RequestId, RequestMetaObject,
        ServerJsonRpcMessage,
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{
    Client, Surface, ToolCall, View, door, handler,
    reply::{Response, json_body},
};

/// What an `Mcp-Name` begins with that is not the name itself but an encoding of it.
const ENCODED_NAME: &str = "=?";

/// A derived struct that is read from an object only; serde would take an array of its fields as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = Object<T>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(OnlyMap(PhantomData))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(rename = "jsonrpc")]
    _jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: Object<Params>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    arguments: Option<Map<String, Value>>,
    // Read whole, although little of it is used: what is skipped is not checked, and the SDK checks it.
    #[serde(rename = "_meta")]
    meta: Option<Map<String, Value>>,
}

/// A request that is plainly one tool call.
pub(super) struct PlainCall {
    id: RequestId,
    name: String,
    arguments: Map<String, Value>,
    client: Option<Client>,
    /// The 2026-07-28 revision, whose results say that they are complete.
    modern: bool,
    /// Whether the client wants to be told how far it is.
    progress: bool,
}

impl PlainCall {
    /// Reads a POST with a JSON body; `None` leaves it to the SDK.
    pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let text = |name: &'static str| door::single(headers, name).ok().flatten();
        let version = text("mcp-protocol-version")?;
        let modern = version == ProtocolVersion::V_2026_07_28.as_str();
        if !modern
            && ![ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2025_06_18].iter().any(|v| v.as_str() == version)
        {
            return None;
        }
        if !accepts_both(headers) || headers.contains_key("mcp-session-id") || headers.contains_key("last-event-id") {
            return None;
        }
        let Object(Message { id, params: Object(params), .. }) = serde_json::from_slice(body).ok()?;
        let meta = params.meta.unwrap_or_default();
        let client = Client::from_meta(&meta);
        let meta = RequestMetaObject::from(meta);
        let declared = meta.protocol_version();
        let well_formed = if modern {
            declared == Some(ProtocolVersion::V_2026_07_28)
                && meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty()
                && text("mcp-method") == Some(CallToolRequestMethod::VALUE)
                && text("mcp-name").is_some_and(|name| name == params.name && !name.starts_with(ENCODED_NAME))
        } else {
            // An older revision in the body makes the SDK treat the request as one of the new kind.
            declared.is_none()
        };
        let arguments = params.arguments.unwrap_or_default();
        let progress = meta.get_progress_token().is_some();
        well_formed.then_some(Self { id, name: params.name, arguments, client, modern, progress })
    }

    /// Whether more than one message may answer it, which takes the SDK's way.
    pub(super) fn tells_progress<S: Surface>(&self, surface: &S) -> bool {
        self.progress && surface.tells_progress(&self.name)
    }

    /// Runs the call. When the client hangs up, this future is dropped, and the call with it.
    pub(super) async fn answer<S: Surface>(
        self,
        surface: &S,
        principal: Arc<S::Principal>,
        view: View,
        answer_bytes: usize,
        abort: &CancellationToken,
    ) -> Response {
        let Self { id, name, arguments, client, modern, .. } = self;
        let cancellation = abort.child_token();
        let _hung_up = cancellation.clone().drop_guard();
        let name = Cow::Owned(name);
        let request_id = id.to_string();
        let call = ToolCall { principal, view, name, arguments, request_id, client, progress: None, cancellation };
        let written = match handler::run(surface, call, answer_bytes).await {
            Ok(Ok(answer)) => write_result(&id, modern, answer.json(), Some(answer.json())),
            Ok(Err(refusal)) => write_result(&id, modern, &handler::refusal_text(&refusal), None),
            Err(error) => serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id.clone()))),
        };
        let body = written.or_else(|error| {
            let error = ErrorData::internal_error(format!("the answer cannot be written: {error}"), None);
            serde_json::to_vec(&ServerJsonRpcMessage::error(error, Some(id)))
        });
        json_body(StatusCode::OK, body.unwrap_or_default())
    }
}

/// Whether the client plainly takes both kinds of response that the protocol asks it to take.
fn accepts_both(headers: &HeaderMap) -> bool {
    let Ok(Some(accept)) = door::single(headers, header::ACCEPT) else { return false };
    // Parameters, weights above all, are the SDK's to judge.
    let takes = |wanted: &str| accept.split(',').any(|kind| kind.trim().eq_ignore_ascii_case(wanted));
    !accept.contains([';', '"']) && takes("application/json") && takes("text/event-stream")
}

/// One response with a result: `structured` is JSON already, and `text` mostly the same JSON.
fn write_result(id: &RequestId, modern: bool, text: &str, structured: Option<&str>) -> serde_json::Result<Vec<u8>> {
    // As a JSON string, JSON grows by a backslash before every quote: about a quarter.
    let mut out = Vec::with_capacity(text.len() + text.len() / 3 + structured.map_or(0, str::len) + 256);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    serde_json::to_writer(&mut out, id)?;
    out.extend_from_slice(br#","result":{"#);
    if modern {
        out.extend_from_slice(br#""resultType":"complete","#);
    }
    out.extend_from_slice(br#""content":[{"type":"text","text":"#);
    serde_json::to_writer(&mut out, text)?;
    out.extend_from_slice(b"}],");
    if let Some(structured) = structured {
        out.extend_from_slice(br#""structuredContent":"#);
        out.extend_from_slice(structured.as_bytes());
        out.extend_from_slice(br#","isError":false}}"#);
    } else {
        out.extend_from_slice(br#""isError":true}}"#);
    }
    Ok(out)
}
