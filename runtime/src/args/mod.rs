//! Decides what a call's arguments are: decoding JSON into [`Args`] by the catalog is the only
//! validation there is, and encoding `Args` is the only way a request is written.

mod decode;
mod encode;
mod property;
mod route;
#[cfg(test)]
mod tests;
mod value;

use pvegate_generated::model::{Operation, Parameter};
use pvegate_generated::terms::Role;

pub use decode::{InvalidArguments, decode, decode_text, expected};
pub use encode::{EncodeError, Encoded, encode};
pub use property::PropertyText;
pub use route::{Arrival, arrival, parameters};
pub use value::Value;

/// One argument.
#[derive(Clone, Debug)]
pub struct Arg {
    /// Which parameter of the operation it is for.
    pub parameter: &'static Parameter,
    /// For a member of an indexed family: its number.
    pub index: Option<u16>,
    /// Its value, checked.
    pub value: Value,
}

impl Arg {
    /// The name on the wire: `net0` for member 0 of `net[n]`.
    pub fn name(&self) -> String {
        match (self.index, self.parameter.name.strip_suffix("[n]")) {
            (Some(index), Some(family)) => format!("{family}{index}"),
            _ => self.parameter.name.to_owned(),
        }
    }
}

/// The arguments of one call of an operation, in the order of its parameters.
#[derive(Clone, Debug)]
pub struct Args {
    operation: &'static Operation,
    list: Vec<Arg>,
}

impl Args {
    /// The operation that they are for.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arg> {
        self.list.iter()
    }

    /// The value of the parameter with this name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.list.iter().find(|arg| arg.parameter.name == name).map(|arg| &arg.value)
    }

    /// Adds PVE's own lock, which callers never give, where the operation takes one. An empty one would lock nothing.
    pub(crate) fn supply_digest(&mut self, digest: &str) {
        let parameter = self.operation.params.iter().find(|parameter| parameter.role == Role::Digest);
        if let (Some(parameter), false) = (parameter, digest.is_empty()) {
            self.list.push(Arg { parameter, index: None, value: Value::Text(digest.into()) });
        }
    }
}
