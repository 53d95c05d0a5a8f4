//! What a client that asked for it is told while its call goes on.
//!
//! The protocol wants a number that grows with every notification. Work does not always give one: it may not tell
//! how far it is, or begin anew at nothing for its next part. Then the number grows by a little and has no total.

use std::time::Duration;

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};

/// How long a client may take to take a notification; who takes longer is not told any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a notification grows by where nothing better is known.
const LITTLE: f64 = 0.01;

/// The way to the client of one call.
#[derive(Debug)]
pub struct Progress {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    steps: Steps,
    gone: bool,
}

impl Progress {
    pub(super) fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token, steps: Steps::default(), gone: false }
    }

    /// Tells how far the work is, in percent where that is known, and what it is at. A client that is gone is no
    /// error here: its call ends by itself.
    pub async fn tell(&mut self, percent: Option<f64>, message: &str) {
        if self.gone {
            return;
        }
        let (progress, total) = self.steps.next(percent);
        let mut notification = ProgressNotificationParam::new(self.token.clone(), progress).with_message(message);
        if let Some(total) = total {
            notification = notification.with_total(total);
        }
        let told = tokio::time::timeout(PATIENCE, self.peer.notify_progress(notification)).await;
        self.gone = !matches!(told, Ok(Ok(())));
    }
}

/// The numbers told so far.
#[derive(Debug, Default)]
struct Steps {
    last: Option<f64>,
}

impl Steps {
    /// The next number, with its total where it is a percentage.
    fn next(&mut self, percent: Option<f64>) -> (f64, Option<f64>) {
        let grown = |percent: &f64| self.last.is_none_or(|last| *percent > last);
        let told = match percent.map(|percent| percent.clamp(0.0, 100.0)).filter(grown) {
            Some(percent) => (percent, Some(100.0)),
            None => (self.last.map_or(0.0, |last| last + LITTLE), None),
        };
        self.last = Some(told.0);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_whatever_the_work_says() {
        let mut steps = Steps::default();
        let asked = [None, None, Some(10.0), Some(10.0), Some(55.5), Some(100.0), Some(3.0), None, Some(250.0)];
        let told: Vec<_> = asked.into_iter().map(|percent| steps.next(percent)).collect();
        assert!(told.is_sorted_by(|(one, _), (other, _)| one < other), "{told:?}");
        let with_total: Vec<_> = told.iter().filter(|(_, total)| total.is_some()).map(|(number, _)| *number).collect();
        assert_eq!(with_total, [10.0, 55.5, 100.0], "a total stands beside true percentages only");
    }
}
