//! What a narrow token sees, and that it learns nothing of the rest: through the running server, on the lab's guests.

mod lists;
mod members;
mod refusals;
mod tasks;
mod tools;
