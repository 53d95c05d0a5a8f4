//! What genuine PVE took, the catalog's grammars take too, where the recordings are at hand.

use std::path::PathBuf;

use pvegate_generated::catalog::operation;
use pvegate_generated::model::Verb;
use pvegate_generated::terms::{Release, Role};
use serde_json::{Map, Value as Json, json};

use crate::args::{arrival, decode, encode, parameters};
use crate::values::{Upid, Vmid, VolumeId};

fn recordings() -> Vec<Json> {
    let folder = std::env::var_os("PVEGATE_FIXTURES")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures"), PathBuf::from);
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: no recordings at {}; PVEGATE_FIXTURES names their folder", folder.display());
        return Vec::new();
    };
    let paths = files.map(|file| file.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Json>>()
        })
        .collect()
}

/// The call that a recorded request is; `None` where it is none of the API's.
fn call(request: &Json) -> Option<(&'static str, Map<String, Json>)> {
    let verb = match request.get("method")?.as_str()? {
        "GET" => Verb::Get,
        "POST" => Verb::Post,
        "PUT" => Verb::Put,
        "DELETE" => Verb::Delete,
        _ => return None,
    };
    let url = request.get("url")?.as_str()?.strip_prefix("/api2/json")?;
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let arrived = arrival(verb, path)?;
    let mut pairs: Vec<(String, Json)> =
        arrived.values.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    pairs.extend(parameters(query)?.into_iter().map(|(name, value)| (name, json!(value))));
    let raw = request.get("raw_body").and_then(Json::as_str).filter(|_| request.get("json").is_none());
    pairs.extend(parameters(raw.unwrap_or_default())?.into_iter().map(|(name, value)| (name, json!(value))));
    for body in ["form", "json"] {
        match request.get(body) {
            Some(Json::Object(object)) => pairs.extend(object.clone()),
            Some(Json::Array(list)) => {
                pairs.extend(
                    list.iter().filter_map(|pair| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.clone()))),
                );
            }
            _ => {}
        }
    }
    Some((arrived.operation.name, pairs.into_iter().collect()))
}

/// What PVE takes and pvegate does not, on purpose.
const STRICTER: [(&str, &str); 3] = [
    ("body_dc_param_ignored", "PVE drops `_dc`; here an argument that is not known is a mistake"),
    ("node_localhost_alias", "localhost is whichever node answers"),
    ("user_create", "an empty list; nothing empty is sent"),
];

#[test]
fn what_pve_took_is_taken() {
    let (mut taken, mut refused) = (0, Vec::new());
    for recording in recordings() {
        let status = recording.pointer("/response/status").and_then(Json::as_u64);
        let Some((name, mut arguments)) = recording.get("request").and_then(call).filter(|_| status == Some(200))
        else {
            continue;
        };
        // Its body is a file, not a form.
        if name == "POST /nodes/{node}/storage/{storage}/upload" {
            continue;
        }
        let operation = operation(name).unwrap();
        // The server gives these itself.
        arguments.retain(|name, _| {
            let digest = operation.parameter(name).is_some_and(|parameter| parameter.role == Role::Digest);
            !digest && !operation.fixed.iter().any(|(fixed, _)| fixed == name)
        });
        match decode(operation, &arguments, Release::NEWEST).map(|args| encode(&args)) {
            Ok(Ok(_)) => taken += 1,
            other => {
                let name = recording.get("name").and_then(Json::as_str).unwrap().to_owned();
                refused.push((name, format!("{arguments:?}: {other:?}")));
            }
        }
    }
    println!("{taken} requests that PVE took are taken; these are not: {refused:#?}");
    refused.retain(|(name, _)| STRICTER.iter().all(|(known, _)| known != name));
    // Those that everybody has are all looked at; others may have more.
    assert!(std::env::var_os("PVEGATE_FIXTURES").is_some() || refused.is_empty(), "{refused:#?}");
}

#[test]
fn what_pve_answers_is_read_and_printed_as_it_was() {
    fn look(json: &Json, found: &mut usize) {
        match json {
            Json::Array(items) => items.iter().for_each(|item| look(item, found)),
            Json::Object(object) => {
                if let Some(Json::String(volume)) = object.get("volid") {
                    assert_eq!(VolumeId::parse(volume).unwrap().to_string(), *volume);
                    *found += 1;
                }
                if let Some(vmid @ (Json::Number(_) | Json::String(_))) = object.get("vmid").filter(|vmid| **vmid != "")
                {
                    // A job over several guests has a list here, and errors have a sentence.
                    if vmid.as_str().is_none_or(|text| text.bytes().all(|byte| byte.is_ascii_digit())) {
                        assert!(serde_json::from_value::<Vmid>(vmid.clone()).is_ok(), "{vmid}");
                        *found += 1;
                    }
                }
                object.values().for_each(|value| look(value, found));
            }
            // Without what only looks like one: a line of a log that begins with it.
            Json::String(text) if text.starts_with("UPID:") && text.ends_with(':') && !text.contains(' ') => {
                assert_eq!(Upid::parse(text).unwrap().to_string(), *text);
                *found += 1;
            }
            _ => {}
        }
    }
    let recordings = recordings();
    let mut found = 0;
    recordings
        .iter()
        .filter_map(|recording| recording.pointer("/response/json"))
        .for_each(|json| look(json, &mut found));
    println!("{found} numbers of guests, volumes and tasks are read");
    assert!(recordings.is_empty() || found > 300, "{found}");
}
