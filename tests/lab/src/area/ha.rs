//! Writes of ha.

use std::sync::Arc;

use super::{Call, Outcome};
use crate::gate::Shared;

pub(super) fn write(_: &Arc<Shared>, _: &Call<'_>) -> Option<Outcome> {
    None
}
