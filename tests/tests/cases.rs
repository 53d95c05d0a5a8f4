//! What went wrong in the field around other software of this kind, each as the kind of fault that it is. The numbers
//! are those of the project's case list.

mod agent;
mod answers;
mod approval;
mod arguments;
mod moved;
mod refusals;
mod seen;
mod trust;
mod types;
