//! A cluster in trouble: how long callers wait for what does not need the part that is down or busy.
//!
//! These are times and no ratios: what is measured is waiting, and the lab keeps a real cluster's waits.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::{Fault, Front, FrontOptions, Lab, Options};
use serde_json::{Value, json};

use crate::load::Target;
use crate::protocol::unlimited;
use crate::tool_call;

/// How long after the first answer the next ones are looked at: long enough for what rests to be tried again.
const AFTERWARDS: Duration = Duration::from_secs(25);
/// How long each call of an agent takes.
const AGENT: Duration = Duration::from_secs(3);
/// How many agent calls wait at once.
const CALLS: usize = 12;

/// What a caller waited, and what would be too long.
pub(crate) struct Wait {
    what: &'static str,
    took: Duration,
    most: Duration,
}

impl Wait {
    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({"what": self.what, "ms": self.took.as_secs_f64() * 1000.0, "most_ms": self.most.as_millis()})
    }

    /// For people: a row of a Markdown table.
    pub(crate) fn markdown(&self) -> String {
        format!("| {} | {:.0} | {} |", self.what, self.took.as_secs_f64() * 1000.0, self.most.as_millis())
    }
}

/// The head of the table that [`Wait::markdown`] makes rows of.
pub(crate) const TABLE_HEAD: &str = "\
| what a caller waits for | ms | at most |
| --- | --- | --- |";

/// Everything of this module.
pub(crate) async fn measure() -> Result<Vec<Wait>> {
    let mut waits = dead(
        "guests, one node of three dead",
        "the same afterwards, longest",
        Fault::DeadNode("pve2".to_owned()),
        |scene| scene.call("list_guests", &json!({"cluster": "lab"})),
    )
    .await?;
    waits.extend(
        dead(
            "guests, first address silent",
            "the same afterwards, longest",
            Fault::HangingNode("pve1".to_owned()),
            |scene| scene.call("list_guests", &json!({"cluster": "lab"})),
        )
        .await?,
    );
    waits.extend(
        dead(
            "a list of every node, one of three silent",
            "the same afterwards, longest",
            Fault::HangingNode("pve3".to_owned()),
            |scene| scene.read("GET /nodes/{node}/storage", &json!({"node": "*"})),
        )
        .await?,
    );
    waits.push(beside_agents().await?);
    Ok(waits)
}

struct Scene {
    lab: Lab,
    front: Front,
    address: SocketAddr,
}

impl Scene {
    async fn start() -> Result<Self> {
        let lab = Lab::start(Options::default()).await?;
        let options = FrontOptions { limits: unlimited(), ..FrontOptions::default() };
        let front = Front::start(&[("lab", &lab)], options).await?;
        let url = front.url();
        let authority = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap_or(&url);
        let address = authority.parse().with_context(|| format!("{url} names no address"))?;
        Ok(Self { lab, front, address })
    }

    fn call(&self, tool: &str, arguments: &Value) -> Target {
        tool_call(self.address, self.front.reader(), tool, arguments)
    }

    fn read(&self, operation: &str, arguments: &Value) -> Target {
        let read = json!({"operation": operation, "arguments": arguments});
        self.call("read", &json!({"cluster": "lab", "reads": [read]}))
    }

    async fn stop(self) {
        self.front.stop().await;
        self.lab.stop().await;
    }
}

/// The first answer after something died, and the longest wait of those that follow.
async fn dead(
    first: &'static str,
    then: &'static str,
    fault: Fault,
    call: impl Fn(&Scene) -> Target,
) -> Result<Vec<Wait>> {
    let scene = Scene::start().await?;
    let target = call(&scene);
    // Known before it dies, as in a server that runs for a while; the list itself is older than it is believed.
    target.once().await?;
    scene.lab.set_fault(fault.clone()).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    let partial = |answer: &[u8]| -> Result<()> {
        let text = String::from_utf8_lossy(answer);
        // A silent node is still up for the cluster, which knows its guests.
        let whole = matches!(&fault, Fault::HangingNode(node) if node == "pve1");
        ensure!(whole || text.contains(r#""partial":true"#), "not said to be partial: {text}");
        Ok(())
    };
    let begun = Instant::now();
    partial(&target.once().await?)?;
    let mut waits = vec![Wait { what: first, took: begun.elapsed(), most: Duration::from_secs(5) }];
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    while start.elapsed() < AFTERWARDS {
        let begun = Instant::now();
        partial(&target.once().await?)?;
        longest = longest.max(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    waits.push(Wait { what: then, took: longest, most: Duration::from_millis(200) });
    scene.stop().await;
    Ok(waits)
}

/// The state of a guest, read while agents of its node are slow.
async fn beside_agents() -> Result<Wait> {
    let scene = Scene::start().await?;
    let guest = json!({"vmid": 100});
    let state = scene.read("GET /nodes/{node}/qemu/{vmid}/status/current", &guest);
    state.once().await?;
    scene.lab.set_fault(Fault::SlowAgent(AGENT)).await;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let call = scene.read("GET /nodes/{node}/qemu/{vmid}/agent/info", &guest);
            tokio::spawn(async move { call.once().await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    ensure!(calls.iter().all(|call| !call.is_finished()), "the agents are not slow");
    let begun = Instant::now();
    state.once().await?;
    let took = begun.elapsed();
    for call in calls {
        call.abort();
    }
    scene.stop().await;
    Ok(Wait { what: "the state of a guest beside twelve slow agent calls on its node", took, most: AGENT })
}
