//! What is known of the recorded cluster while one recording is replayed: all that the other recordings tell.

use crate::recording::Recording;

/// The recordings without the one that is replayed, its task's, and those that are held out; with the baseline.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    all: &'a [Recording],
    baseline: &'a [Recording],
    /// Every how many-th recording is held out; 0: none is.
    held_out: usize,
    /// The recording that is replayed.
    replayed: &'a str,
}

impl<'a> Known<'a> {
    pub const fn new(all: &'a [Recording], baseline: &'a [Recording], held_out: usize) -> Self {
        Self { all, baseline, held_out, replayed: "" }
    }

    /// What is known while a recording is replayed.
    pub const fn without(self, replayed: &'a str) -> Self {
        Self { replayed, ..self }
    }

    /// Whether a recording is held out from the others, by its place among all.
    pub const fn holds_out(&self, place: usize) -> bool {
        self.held_out > 0 && place.is_multiple_of(self.held_out)
    }

    /// The others, the oldest first; the baseline is the state before them.
    pub fn others(self) -> impl Iterator<Item = &'a Recording> {
        let later = self.all.iter().enumerate().filter(move |(place, other)| {
            let name = &other.question.name;
            !self.holds_out(*place) && name != self.replayed && other.question.of_task() != Some(self.replayed)
        });
        self.baseline.iter().chain(later.map(|(_, other)| other))
    }

    /// Reads that root made and that were answered.
    pub fn reads(self) -> impl Iterator<Item = &'a Recording> {
        self.others()
            .filter(|other| other.shows() && matches!(other.question.request["auth"].as_str(), Some("root" | "full")))
    }

    /// Writes that were accepted.
    pub fn writes(self) -> impl Iterator<Item = &'a Recording> {
        self.others().filter(|other| other.wrote())
    }
}
