//! Theme L: a guest agent that does not answer is a state of the guest, told as one.

use lab::{Arrange, Fault};
use serde_json::json;
use tests::site::{CLUSTER, Site};

/// C103: the agent is off, the VM is, or no agent was ever set up; and whoever asks may go on with everything else.
#[tokio::test]
async fn an_agent_that_cannot_be_asked() {
    let operation = "GET /nodes/{node}/qemu/{vmid}/agent/get-osinfo";
    let site = Site::start().await;
    let ask = async || site.client.read(CLUSTER, operation, json!({"vmid": 100})).await;
    assert!(ask().await.is_ok());
    site.lab.set_fault(Fault::AgentOff(100)).await;
    let off = ask().await.unwrap_err();
    assert_eq!(off.code, "agent", "{off:?}");
    assert!(off.text().contains("qemu-guest-agent"), "{off:?}");
    let config = site.client.read(CLUSTER, "GET /nodes/{node}/qemu/{vmid}/config", json!({"vmid": 100})).await;
    assert!(config.is_ok(), "{config:?}");
    site.lab.clear_fault(&Fault::AgentOff(100)).await.unwrap();
    site.lab.arrange(Arrange::Running { vmid: 100, running: false });
    assert_eq!(ask().await.unwrap_err().code, "not_running");
    let without = json!({"name": "bare", "memory": "512"});
    site.lab.arrange(Arrange::Guest { vmid: 100, kind: "qemu".to_owned(), config: without });
    site.lab.arrange(Arrange::Running { vmid: 100, running: true });
    let none = ask().await.unwrap_err();
    assert!(none.code == "agent" && none.message.contains("agent option"), "{none:?}");
}
