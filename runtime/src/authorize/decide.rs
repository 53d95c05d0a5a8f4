//! Decides, from facts alone, what becomes of a call: whether it reads, acts at once, needs a plan, or is refused. Nothing
//! else decides that; who calls this finds the facts and the words.

use std::fmt;

use pvegate_generated::model::{Offered, Operation, Rows};
use pvegate_generated::terms::{Flag, Role, Tier};

/// How much of what a call reaches the grant covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered {
    /// Not all that it names.
    No,
    /// All that it names, and not every guest.
    Named,
    /// All that it names, and every guest.
    Everything,
}

/// The facts.
#[derive(Clone, Copy, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and the table of answers has a column for it"
)]
pub struct Case {
    /// What is called.
    pub operation: &'static Operation,
    /// Whether the operator asked for what is offered on request only.
    pub opted_in: bool,
    /// Whether the tier is granted.
    pub tier: bool,
    /// What of it is granted.
    pub covered: Covered,
    /// Whether it reaches guests that it does not name.
    pub every_guest: bool,
    /// Whether arguments and values keep it low, if it is.
    pub stays_low: bool,
    /// Whether it interrupts or destroys a guest, by itself or by an argument.
    pub endangers: bool,
    /// Whether such a guest is protected.
    pub protected: bool,
    /// Whether an operator's waiver lifts that.
    pub waived: bool,
    /// Whether the cluster is for experiments, where protection only warns.
    pub lab: bool,
}

impl Case {
    /// A call that everything speaks for.
    pub const fn granted(operation: &'static Operation) -> Self {
        Self {
            operation,
            opted_in: true,
            tier: true,
            covered: Covered::Everything,
            every_guest: false,
            stays_low: true,
            endangers: false,
            protected: false,
            waived: false,
            lab: false,
        }
    }
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It reads.
    Reads,
    /// It acts at once.
    Acts,
    /// A person has to approve it first.
    Plans,
    /// The operation is not offered.
    NotOffered,
    /// Its tier, or the whole of the cluster, is not granted.
    NotGranted,
    /// What it names is not there for this caller.
    NotFound,
    /// A protected guest is in the way.
    Protected,
}

impl Decision {
    /// The word in the table that people review; refusals have their code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Acts => "acts",
            Self::Plans => "plans",
            Self::NotOffered => "not_offered",
            Self::NotGranted => "not_granted",
            Self::NotFound => "not_found",
            Self::Protected => "protected",
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What becomes of a call. The order is that in which things may be told: what is no secret first, what is not granted
/// before what is there, protection only to whom the guest is granted.
pub fn decide(case: &Case) -> Decision {
    let operation = case.operation;
    match operation.offered {
        Offered::Never(_) => return Decision::NotOffered,
        Offered::OptIn(_) if !case.opted_in => return Decision::NotOffered,
        Offered::OptIn(_) | Offered::Yes => {}
    }
    if !case.tier {
        return Decision::NotGranted;
    }
    let takes_everything = case.every_guest || takes_everything(operation);
    match case.covered {
        Covered::Named | Covered::No if takes_everything => return Decision::NotGranted,
        Covered::Everything | Covered::Named => {}
        // Rows that are not granted are left out, so such a list is only shorter.
        Covered::No if operation.tier == Tier::Read && !is_bound(operation) => {}
        Covered::No => return Decision::NotFound,
    }
    if case.endangers && case.protected && !case.waived && !case.lab {
        return Decision::Protected;
    }
    match operation.tier {
        Tier::Read => Decision::Reads,
        Tier::Low if case.stays_low => Decision::Acts,
        Tier::Low | Tier::Destructive => Decision::Plans,
    }
}

/// Whether an operation names something that a grant names too: what it reaches belongs to that.
pub fn is_bound(operation: &Operation) -> bool {
    operation.params.iter().filter(|parameter| parameter.required).any(|parameter| {
        matches!(
            parameter.role,
            Role::GuestTarget
                | Role::GuestSource
                | Role::GuestNew
                | Role::GuestList
                | Role::GuestRef
                | Role::Node
                | Role::NodeList
                | Role::Storage
                | Role::StorageList
                | Role::Pool
                | Role::Network
                | Role::Volume
                | Role::Task
        )
    })
}

/// Whether an operation takes the grant of every guest whatever its arguments are: it reaches guests of its own choice,
/// or nothing tells whose it is.
pub fn takes_everything(operation: &Operation) -> bool {
    match operation.rows {
        Rows::All => true,
        Rows::Columns(_) | Rows::Bound => operation.has(Flag::Bulk),
        Rows::NotAList => operation.has(Flag::Bulk) || !is_bound(operation),
    }
}

/// Whether an operation may interrupt or destroy the guests that it reaches. A destructive one counts where it reaches
/// any, because what it does to them is for a person to judge.
pub fn may_endanger(operation: &Operation) -> bool {
    let reaches_guests = operation.has(Flag::Bulk)
        || operation.has(Flag::BulkUnlessListed)
        || operation.params.iter().any(|parameter| {
            matches!(parameter.role, Role::GuestTarget | Role::GuestList | Role::GuestRef | Role::Volume)
        });
    match operation.tier {
        Tier::Read => false,
        Tier::Low => operation.interrupts,
        Tier::Destructive => operation.interrupts || reaches_guests,
    }
}
