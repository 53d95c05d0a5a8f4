//! Logins with a password.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Call, Outcome};
use crate::access::Caller;
use crate::answer::Refusal;
use crate::clock;
use crate::state::{Cluster, hex};
use crate::tls::random_secret;

/// The roots of the web interface's view of what a user may do.
const SHOWN: [(&str, &str); 7] = [
    ("vms", "/vms"),
    ("storage", "/storage"),
    ("access", "/access"),
    ("nodes", "/nodes"),
    ("sdn", "/sdn"),
    ("dc", "/"),
    ("mapping", "/mapping"),
];

/// The token that a browser sends beside a ticket with everything that changes something.
pub(crate) fn guard_of(ticket: &str) -> String {
    let time = ticket.split(':').nth(2).unwrap_or_default();
    format!("{time}:{}", hex(&Sha256::digest(ticket.as_bytes())))
}

pub(super) fn write(cluster: &mut Cluster, call: &Call<'_>) -> Option<Outcome> {
    (call.operation.name == "POST /access/ticket").then(|| log_in(cluster, call))
}

fn log_in(cluster: &mut Cluster, call: &Call<'_>) -> Outcome {
    let refused = || Refusal::new(401, "authentication failure");
    let name = call.text("username");
    let id = match call.given("realm") {
        Some(realm) if !name.contains('@') => format!("{name}@{realm}"),
        _ => name.to_owned(),
    };
    let password = call.text("password");
    // A ticket that still stands is as good as a password.
    let renewed = cluster.access.tickets.get(password).is_some_and(|holder| *holder == id);
    let user = cluster.access.users.get(&id).ok_or_else(refused)?;
    let live = user.enable && (user.expire == 0 || user.expire > clock::now());
    if !live || !(renewed || user.password.as_deref() == Some(password)) {
        return Err(refused());
    }
    let secret = random_secret().map_err(|error| Refusal::failed(error.to_string()))?;
    let signature = secret.replace('-', "");
    let ticket = format!("PVE:{id}:{:08X}::{signature}", clock::now());
    cluster.access.tickets.insert(ticket.clone(), id.clone());
    let caller = Caller { user: id.clone(), token: String::new() };
    let may: Map<String, Value> = SHOWN
        .iter()
        .map(|(name, path)| {
            let held = cluster.privileges(&caller, path);
            let held: Map<String, Value> = held.into_iter().map(|name| (name.to_owned(), json!(1))).collect();
            ((*name).to_owned(), Value::Object(held))
        })
        .collect();
    let guard = guard_of(&ticket);
    Ok(json!({"username": id, "cap": may, "ticket": ticket, "CSRFPreventionToken": guard}).into())
}
