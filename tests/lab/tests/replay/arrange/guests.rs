//! Guests: what has to be configured, running or locked before a recording.

use lab::Arrange;
use serde_json::Value;

use crate::recording::Recording;
use crate::stage::Stage;

pub async fn before(stage: &mut Stage<'_>, recording: &Recording) {
    let steps = recording.steps();
    let (Some(&kind @ ("qemu" | "lxc")), Some(vmid)) = (steps.get(2), steps.get(3).and_then(|vmid| vmid.parse().ok()))
    else {
        return;
    };
    // A configuration that was read was there.
    if recording.method() == "GET" && steps.get(4..) == Some(&["config"]) && recording.status() == 200 {
        let config: Value = recording.data().clone();
        stage.lab.arrange(Arrange::Guest { vmid, kind: kind.to_owned(), config });
    }
}
