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
    OPERATIONS
        .iter()
        .copied()
        .filter(|operation| operation.verb == verb)
        .filter_map(|operation| Some((operation, bind(operation, &steps)?)))
        // PVE looks for fixed text first, step by step.
        .min_by_key(|(operation, _)| {
            operation.segments.iter().map(|step| matches!(step, Segment::Param(_))).collect::<Vec<_>>()
        })
        .map(|(operation, values)| Arrival { operation, values })
}

fn bind(operation: &'static Operation, steps: &[&str]) -> Option<Vec<(&'static str, String)>> {
    let segments = operation.segments;
    let mut values = Vec::new();
    for (at, segment) in segments.iter().enumerate() {
        let step = steps.get(at)?;
        match segment {
            Segment::Literal(text) => {
                if text != step {
                    return None;
                }
            }
            Segment::Param(name) => {
                let rest = steps.get(at..)?;
                let greedy = at + 1 == segments.len() && holds_slash(operation, name);
                let value = if greedy { rest.join("/") } else { (*step).to_owned() };
                if value.is_empty() {
                    return None;
                }
                values.push((*name, value));
                if greedy {
                    return Some(values);
                }
            }
        }
    }
    (segments.len() == steps.len()).then_some(values)
}

/// Volumes, networks and pools may hold a slash; at the end of a path PVE takes all that is left for them.
fn holds_slash(operation: &Operation, name: &str) -> bool {
    operation.parameter(name).is_some_and(|parameter| {
        matches!(
            parameter.kind,
            Kind::Text(Text { value: Grammar::Volume | Grammar::Cidr | Grammar::CidrOrAlias | Grammar::Pool, .. })
        )
    })
}
