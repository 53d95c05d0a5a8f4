//! Uploads, which the proxy takes itself: the right is checked before the file is read, and the file waits in a folder of
//! temporary files for the daemon.

use std::collections::BTreeMap;
use std::time::Duration;

use http::header::{CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use serde_json::Value;

use super::{Cut, Shared, refused};
use crate::access::{Caller, allowed};
use crate::answer::Answer;
use crate::area::storage::upload::temporary;
use crate::connection::body::Body;
use crate::multipart;
use crate::params::{Params, decode_form};
use crate::schema::Operation;

/// The operation that takes files.
pub(super) const OPERATION: &str = "POST /nodes/{node}/storage/{storage}/upload";
/// A body that is no upload is never answered; the proxy gives up waiting for the rest of it.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(5);

/// Reads an upload: its fields as parameters, the file's name and where it waits among them.
pub(super) async fn receive(
    shared: &Shared,
    head: &Parts,
    body: Body,
    caller: &Caller,
    (operation, values): (&Operation, &BTreeMap<String, String>),
) -> Result<Result<Params, Answer>, Cut> {
    let named: Params = values.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
    if let Err(refusal) = shared.look(|cluster| allowed(cluster, caller, operation, &named)) {
        refused(shared).await;
        return Ok(Err(Answer::bare(refusal.status, refusal.message)));
    }
    if head.headers.contains_key(TRANSFER_ENCODING) {
        return Ok(Err(Answer::proxy(501, "chunked transfer encoding not supported")));
    }
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(boundary) = multipart::boundary(content_type) else {
        if shared.latency {
            tokio::time::sleep(GIVEN_UP_AFTER).await;
        }
        return Err(Cut);
    };
    let body = body.whole().await.map_err(|_| Cut)?;
    let upload = match multipart::read(&body, boundary) {
        Ok(upload) => upload,
        Err(answer) => return Ok(Err(answer)),
    };
    let mut given: Params = upload.fields.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
    if let Some((name, content)) = upload.file {
        let place = shared.change(|cluster| {
            let place = temporary(cluster);
            cluster.uploads.insert(place.clone(), content);
            place
        });
        given.insert("filename".to_owned(), Value::String(name));
        given.insert("tmpfilename".to_owned(), Value::String(place));
    }
    given.extend(decode_form(head.uri.query().unwrap_or_default()));
    given.remove("_dc");
    Ok(Ok(given))
}
