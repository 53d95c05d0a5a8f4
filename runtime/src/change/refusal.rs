//! The refusals of the write path that PVE and the grant do not give.

use crate::mcp::Refusal;
use crate::store::{ChangeId, StoreError};

/// Why the store did not let a change begin or go on.
pub fn of_store(error: &StoreError) -> Refusal {
    let (code, next) = match error {
        StoreError::Frozen(_) => ("frozen", "Wait until an operator ends it with `pvegate unfreeze`. Reads go on."),
        StoreError::Held { .. } => ("read_only", "Use the server that holds the store."),
        StoreError::Claimed { .. } | StoreError::LeaseLost(_) | StoreError::Conflict(_) => {
            ("conflict", "Look at the change with get_change.")
        }
        StoreError::Full(_) | StoreError::ReadOnly(_) | StoreError::Gone(_) | StoreError::Other(_) => {
            ("no_store", "An operator has to put the store right.")
        }
    };
    Refusal::new(code, error.to_string(), next)
}

/// One key, two wishes.
pub fn other_arguments(change: &ChangeId) -> Refusal {
    Refusal::new(
        "conflict",
        format!("this `idempotency_key` stands for another call already, change {change}; nothing was sent"),
        format!(
            "Choose another key for another call; get_change {{\"change_id\": \"{change}\"}} shows what became of that one."
        ),
    )
}

/// The server ends.
pub fn stopping() -> Refusal {
    Refusal::new(
        "stopping",
        "the server is about to stop, so nothing is changed any more",
        "Call again when it is back.",
    )
}

/// A mistake of the server.
pub fn broken() -> Refusal {
    Refusal::new(
        "internal",
        "the server lost track of this call; whether anything was sent is not known",
        "Look at what it was about before anything is repeated, and report this.",
    )
}

/// The store does not answer; the change may begin yet.
pub fn slow_store() -> Refusal {
    Refusal::new(
        "timeout",
        "the store did not answer in time, so whether this call begins is not known",
        "Call again with the same `idempotency_key`, or look at what it was about before anything is repeated.",
    )
}
