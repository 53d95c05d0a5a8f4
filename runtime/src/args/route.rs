//! Where PVE takes a path: the same decoding and the same choice of a route as on its side.

use percent_encoding::percent_decode_str;
use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::{Kind, Operation, Segment, Text, Verb};
use pvegate_generated::terms::Value as Grammar;

/// The operation that a path arrives at, and the values that its parameters then have.
#[derive(Debug)]
pub struct Arrival {
    /// The operation.
    pub operation: &'static Operation,
    /// Path parameters and their decoded values, in the order of the path.
    pub values: Vec<(&'static str, String)>,
}

/// Decodes and routes the path below `/api2/json`. `None`: no operation.
pub fn arrival(verb: Verb, path: &str) -> Option<Arrival> {
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    let steps: Vec<&str> = decoded.strip_prefix('/')?.split('/').collect();
    let operation = OPERATIONS
        .iter()
        .copied()
        .filter(|operation| operation.verb == verb && fits(operation, &steps))
        .reduce(|one, other| if is_more_literal(other, one) { other } else { one })?;
    Some(Arrival { operation, values: bind(operation, &steps) })
}

/// The parameters that PVE finds in a query or form: it splits at `&` and `;` and takes `+` for a blank. `None`: not text.
pub fn parameters(pairs: &str) -> Option<Vec<(String, String)>> {
    let decoded = |part: &str| {
        let part = part.replace('+', " ");
        percent_decode_str(&part).decode_utf8().ok().map(std::borrow::Cow::into_owned)
    };
    pairs
        .split(['&', ';'])
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            // A second raw `=` ends the value.
            let mut sides = pair.split('=');
            Some((decoded(sides.next()?)?, decoded(sides.next().unwrap_or_default())?))
        })
        .collect()
}

/// Whether the steps of a path are those of an operation's.
fn fits(operation: &Operation, steps: &[&str]) -> bool {
    let segments = operation.segments;
    let greedy = ends_greedy(operation);
    let long_enough = if greedy { steps.len() >= segments.len() } else { steps.len() == segments.len() };
    long_enough
        && segments.iter().zip(steps).all(|(segment, step)| match segment {
            Segment::Literal(text) => text == step,
            Segment::Param(_) => greedy || !step.is_empty(),
        })
}

/// PVE looks for fixed text first, step by step.
fn is_more_literal(one: &Operation, other: &Operation) -> bool {
    let params = |operation: &'static [Segment]| operation.iter().map(|segment| matches!(segment, Segment::Param(_)));
    params(one.segments).lt(params(other.segments))
}

fn bind(operation: &'static Operation, steps: &[&str]) -> Vec<(&'static str, String)> {
    let last = operation.segments.len().saturating_sub(1);
    let greedy = ends_greedy(operation);
    let value = |at: usize| {
        let rest = steps.get(at..).unwrap_or_default();
        if greedy && at == last { rest.join("/") } else { rest.first().copied().unwrap_or_default().to_owned() }
    };
    let names = operation.segments.iter().enumerate();
    names
        .filter_map(|(at, segment)| if let Segment::Param(name) = segment { Some((*name, value(at))) } else { None })
        .collect()
}

fn ends_greedy(operation: &Operation) -> bool {
    matches!(operation.segments.last(), Some(Segment::Param(name)) if holds_slash(operation, name))
}

/// Volumes and networks may hold a slash; at the end of a path PVE takes all that is left for them. Not so for
/// nested pools, which only the query of the list of pools can name.
fn holds_slash(operation: &Operation, name: &str) -> bool {
    operation.parameter(name).is_some_and(|parameter| {
        matches!(parameter.kind, Kind::Text(Text { value: Grammar::Volume | Grammar::Cidr | Grammar::CidrOrAlias, .. }))
    })
}
