//! What one operation does, takes and answers, for a model that is about to use it.

use pvegate_generated::model::{Answer as Shape, Field, Offered, Operation, Parameter, Undo};
use pvegate_generated::terms::{Role, Tier};
use serde_json::{Map, Value as Json, json};

use super::reading::{self, Addressed};
use super::{State, gateway, page, spread};
use crate::args::expected;
use crate::authorize;
use crate::mcp::{Answer, Refusal};
use crate::tokens::Principal;

/// Describes an operation; `fields` narrows its parameters.
pub fn answer(state: &State, principal: &Principal, name: &str, fields: &[String]) -> Result<Answer, Refusal> {
    page::check_fields(fields)?;
    let operation = gateway::operation(name)?;
    let by_vmid = reading::addressed(operation) != Addressed::NoGuest;
    let parameters: Map<String, Json> = operation
        .params
        .iter()
        .filter(|parameter| parameter.role != Role::Digest && !(by_vmid && parameter.name == "node"))
        .filter(|parameter| fields.is_empty() || fields.iter().any(|field| parameter.index_of(field).is_some()))
        .map(|parameter| (parameter.name.to_owned(), describe(parameter)))
        .collect();
    let mut object = json!({
        "operation": operation.name,
        "summary": operation.summary,
        "tier": operation.tier.as_str(),
        "offered": offered(state, operation),
        "granted": granted(principal, operation),
        "parameters": parameters,
        "answers": shape(operation.answer),
    });
    if let Some(object) = object.as_object_mut() {
        extras(operation, by_vmid, object);
    }
    page::of_object(object, &[])
}

fn extras(operation: &Operation, by_vmid: bool, object: &mut Map<String, Json>) {
    let mut put = |key: &str, value: Json| object.insert(key.to_owned(), value);
    if by_vmid {
        put("guest", Json::from("Named by cluster and vmid; the server finds the node."));
    }
    if spread::is_possible(operation) {
        put(
            "every_node",
            Json::from("`node` may be `*`: every node that is up is asked, and those without an answer are named."),
        );
    }
    if operation.tier == Tier::Low {
        put("low_arguments", json!(operation.low_args));
    }
    if operation.interrupts {
        put("interrupts", Json::from(true));
    }
    if !operation.flags.is_empty() {
        put("flags", operation.flags.iter().map(|flag| Json::from(flag.as_str())).collect());
    }
    if let Undo::Operation(name) = operation.undo {
        put("undo", Json::from(name));
    }
    if operation.releases.first != pvegate_generated::terms::Release::OLDEST {
        put("since", Json::from(operation.releases.first.as_str()));
    }
    if !operation.leaves.is_empty() {
        put("keys_that_leave", json!(operation.leaves));
    }
}

fn offered(state: &State, operation: &Operation) -> Json {
    match operation.offered {
        Offered::Yes => Json::from("yes"),
        Offered::OptIn(_) if state.opted_in(operation.name) => Json::from("yes"),
        Offered::OptIn(reason) => Json::from(format!("not here: {reason}; an operator can opt in")),
        Offered::Never(reason) => Json::from(format!("never: {reason}")),
    }
}

/// What the token says of it, before any argument is known.
fn granted(principal: &Principal, operation: &Operation) -> &'static str {
    let grant = &principal.grant;
    if !grant.tiers.allows(operation.tier) {
        return "no: the token lacks the tier";
    }
    if operation.tier == Tier::Read && authorize::decide::takes_everything(operation) && !grant.guests.is_all() {
        return "no: it takes a token for every guest";
    }
    "yes, on what the token reaches"
}

fn describe(parameter: &Parameter) -> Json {
    let mut text = expected(&parameter.kind);
    if let Some((first, last)) = parameter.index {
        text = format!("{text}; `{}` with n from {first} to {last}", parameter.name);
    }
    let mut object = json!({"type": text});
    if let Some(object) = object.as_object_mut() {
        let mut put = |key: &str, value: Option<Json>| value.map(|value| object.insert(key.to_owned(), value));
        put("required", parameter.required.then(|| Json::from(true)));
        put("default", parameter.default.map(Json::from));
        put("requires", parameter.requires.map(Json::from));
        put(
            "only_where",
            parameter.only_with.map(|(name, values)| Json::from(format!("{name} is {}", values.join(" or ")))),
        );
        put("names", (parameter.role != Role::Plain).then(|| Json::from(parameter.role.as_str())));
        put("text", parameter.words.map(Json::from));
    }
    object
}

fn shape(answer: Shape) -> Json {
    let fields = |fields: &[Field]| {
        fields.iter().map(|field| (field.name.to_owned(), Json::from(field.kind))).collect::<Map<_, _>>()
    };
    match answer {
        Shape::Nothing => Json::from("nothing"),
        Shape::Task => Json::from("a task id (upid)"),
        Shape::MaybeTask => Json::from("a task id (upid), or nothing where the work is done at once"),
        Shape::Value => Json::from("a value"),
        Shape::Undescribed => Json::from("not described"),
        Shape::Object(of) => json!({"object": fields(of)}),
        Shape::List(of) => json!({"list_of": fields(of)}),
    }
}
