//! Calls of operations with arguments that exist in the lab, in the form in which callers give them.

use lab::Lab;
use pvegate_generated::catalog;
use pvegate_generated::model::{Offered, Operation, Place, Verb};
use pvegate_generated::terms::{Role, Tier};
use serde_json::{Map, Value, json};

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is asked for.
    pub operation: &'static Operation,
    /// With what.
    pub arguments: Map<String, Value>,
}

impl Call {
    /// With one argument changed or added.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut call = self.clone();
        call.arguments.insert(name.to_owned(), Value::from(value));
        call
    }

    /// As an entry of `reads`.
    pub fn as_read(&self) -> Value {
        json!({"operation": self.operation.name, "arguments": self.arguments})
    }
}

/// Whether a guest is named by vmid alone, and the server finds the node.
pub fn by_vmid(operation: &Operation) -> bool {
    let in_path = |roles: &[Role]| {
        operation.params.iter().any(|parameter| parameter.place == Place::Path && roles.contains(&parameter.role))
    };
    in_path(&[Role::GuestTarget, Role::GuestSource]) && in_path(&[Role::Node])
}

/// One call of every read that the catalog knows, offered or not.
pub fn every_read(lab: &Lab) -> Vec<Call> {
    let calls = lab.sample_reads().into_iter().map(|sample| {
        let operation = catalog::operation(&sample.operation).unwrap();
        assert_eq!(operation.tier, Tier::Read, "{}", operation.name);
        let arguments = sample.arguments.into_iter().filter(|(name, _)| !(name == "node" && by_vmid(operation)));
        Call { operation, arguments: arguments.map(|(name, value)| (name, Value::from(value))).collect() }
    });
    // The lab counts what is no GET as a write. These ask a VM's guest agent, and take nothing but the VM.
    let posts = catalog::OPERATIONS
        .iter()
        .filter(|operation| operation.tier == Tier::Read && operation.verb != Verb::Get)
        .map(|operation| Call { operation, arguments: Map::from_iter([("vmid".to_owned(), Value::from("100"))]) });
    calls.chain(posts).collect()
}

/// One call of every read that is offered, at least where an operator asks for it.
pub fn offered_reads(lab: &Lab) -> Vec<Call> {
    let mut calls = every_read(lab);
    calls.retain(|call| !matches!(call.operation.offered, Offered::Never(_)));
    calls
}
