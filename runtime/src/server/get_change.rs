//! The tool that tells how a change of the caller's own stands.

use serde::Deserialize;

use super::State;
use crate::change;
use crate::mcp::{Answer, Refusal};
use crate::store::ChangeId;
use crate::tokens::Principal;

/// Its name.
pub const NAME: &str = "get_change";

/// What it is asked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    change_id: String,
}

/// Tells it. Changes of others and those that do not exist are refused in the same words.
pub async fn answer(state: &State, principal: &Principal, asked: Asked) -> Result<Answer, Refusal> {
    let id = ChangeId::parse(&asked.change_id).map_err(|error| {
        Refusal::new("invalid_arguments", format!("`change_id`: {error}"), "Give it whole, as the call answered it.")
    })?;
    let found = state.store().change(&id).await.map_err(|error| change::of_store(&error))?;
    match found.filter(|change| change.new.principal == principal.name) {
        Some(change) => Ok(Answer::from(&change::told(state, &change, true))),
        None => Err(Refusal::new(
            "not_found",
            format!("there is no change {id} of this token"),
            "A token sees the changes that its own calls made.",
        )),
    }
}
