//! From checked arguments to the request line and body, and the check that the written path arrives
//! at the operation and values that were authorized.

use pvegate_generated::model::{Place, Segment};

use super::route::{Arrival, arrival, parameters};
use super::{Args, Value};
use crate::pve::encode::{pairs, segment};

/// PVE reads no larger body.
const LARGEST_FORM: usize = 512 * 1024;

/// Arguments as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The path below `/api2/json`, percent-encoded.
    pub path: String,
    /// The query, percent-encoded; empty for operations that send a body.
    pub query: String,
    /// The form body, percent-encoded; empty for operations that send a query.
    pub form: String,
}

/// Why nothing is sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The path would reach something else.
    #[error("the arguments of {operation} would reach {arrives} on the PVE side, so nothing was sent; check {values}")]
    Elsewhere {
        /// The operation that was authorized.
        operation: &'static str,
        /// Where PVE would take it.
        arrives: String,
        /// The path arguments.
        values: String,
    },
    /// The body is larger than PVE reads.
    #[error("the arguments of {0} are larger than the 512 KiB that PVE reads; send less")]
    TooLarge(&'static str),
}

/// Writes the request of a call.
pub fn encode(args: &Args) -> Result<Encoded, EncodeError> {
    let operation = args.operation();
    let mut path = String::new();
    for step in operation.segments {
        path.push('/');
        match step {
            Segment::Literal(text) => path.push_str(text),
            Segment::Param(name) => {
                let wire = args.get(name).map(Value::wire).unwrap_or_default();
                path.push_str(&segment(&wire).map_err(|_| elsewhere(args, "another path"))?);
            }
        }
    }
    check_arrival(args, &path)?;
    let rest = |place: Place| {
        let list: Vec<(String, String)> = args
            .iter()
            .filter(|arg| arg.parameter.place == place)
            .flat_map(|arg| texts(&arg.value).map(move |text| (arg.name(), text)))
            .collect();
        let written = pairs(list.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        if parameters(&written).is_some_and(|arrived| arrived == list) {
            Ok(written)
        } else {
            Err(elsewhere(args, "the same operation with other values"))
        }
    };
    let (query, form) = (rest(Place::Query)?, rest(Place::Body)?);
    if form.len().max(query.len()) > LARGEST_FORM {
        return Err(EncodeError::TooLarge(operation.name));
    }
    Ok(Encoded { path, query, form })
}

fn texts(value: &Value) -> impl Iterator<Item = String> {
    let items = match value {
        Value::Array(items) => items.iter().map(|item| item.wire().into_owned()).collect(),
        single => vec![single.wire().into_owned()],
    };
    items.into_iter()
}

/// PVE decodes the path before it routes, so encoding protects nothing. This does what PVE does and
/// compares.
fn check_arrival(args: &Args, path: &str) -> Result<(), EncodeError> {
    let operation = args.operation();
    match arrival(operation.verb, path) {
        Some(Arrival { operation: found, values }) if std::ptr::eq(found, operation) => {
            let same =
                values.iter().all(|(name, value)| args.get(name).is_some_and(|wanted| wanted.wire() == value.as_str()));
            if same { Ok(()) } else { Err(elsewhere(args, "the same operation with other values")) }
        }
        Some(Arrival { operation: found, .. }) => Err(elsewhere(args, found.name)),
        None => Err(elsewhere(args, "no operation")),
    }
}

fn elsewhere(args: &Args, arrives: &str) -> EncodeError {
    let values: Vec<&str> =
        args.iter().filter(|arg| arg.parameter.place == Place::Path).map(|arg| arg.parameter.name).collect();
    EncodeError::Elsewhere { operation: args.operation().name, arrives: arrives.to_owned(), values: values.join(", ") }
}
