//! Users, groups, roles, tokens.

use crate::recording::Recording;
use crate::stage::Stage;

pub async fn before(_stage: &mut Stage<'_>, _recording: &Recording) {}
