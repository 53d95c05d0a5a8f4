//! What of the software-defined network is in force, and who keeps others from changing it.

use super::section::Sections;

/// Kinds of entries that apply only when they are made to.
pub(crate) const PENDING: [&str; 4] =
    ["/cluster/sdn/zones", "/cluster/sdn/vnets", "/cluster/sdn/vnets/{vnet}/subnets", "/cluster/sdn/controllers"];

/// The part of the network's state that its entries do not hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sdn {
    /// The entries as they were last applied; none before the first time.
    pub(crate) running: Option<Sections>,
    /// The token of whoever holds the lock.
    pub(crate) lock: Option<String>,
}

impl Sdn {
    /// Remembers the present entries as the ones in force.
    pub(crate) fn apply(&mut self, present: &Sections) {
        let mut running = Sections::default();
        for list in PENDING {
            running.set(list, present.entries(list).cloned().unwrap_or_default());
        }
        self.running = Some(running);
    }
}
