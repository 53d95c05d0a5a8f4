//! The lab, and pvegate in front of it: what the first two rows measure.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use lab::{Front, FrontOptions, Lab, Options};
use serde_json::{Value, json};

use crate::{bare::Upstream, load::Target, protocol::unlimited, tool_call};

/// A lab with pvegate in front of it.
pub(crate) struct Site {
    lab: Lab,
    front: Front,
    address: SocketAddr,
    client: reqwest::Client,
}

impl Site {
    /// Starts both, on free ports.
    pub(crate) async fn start() -> Result<Self> {
        let lab = Lab::start(Options { workers: false, ..Options::default() }).await?;
        let options = FrontOptions { limits: unlimited(), ..FrontOptions::default() };
        let front = Front::start(&[("lab", &lab)], options).await?;
        let url = front.url();
        let authority = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap_or(&url);
        let address = authority.parse().with_context(|| format!("{url} names no address"))?;
        let client = reqwest::Client::builder()
            .tls_certs_only([reqwest::Certificate::from_pem(lab.ca_pem().as_bytes())?])
            .no_proxy()
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { lab, front, address, client })
    }

    fn upstream(&self, path: &str) -> Upstream {
        Upstream {
            client: self.client.clone(),
            url: format!("{}/api2/json{path}", self.lab.url()),
            authorization: format!("PVEAPIToken={}", self.lab.audit_token()),
        }
    }

    /// The read of one guest, as a tool call and as the upstream request that it makes.
    pub(crate) async fn read_of_one_guest(&self) -> Result<(Target, Upstream)> {
        let list = self.upstream("/cluster/resources?type=vm");
        let text = self
            .client
            .get(&list.url)
            .header("authorization", &list.authorization)
            .send()
            .await?
            .error_for_status()?
            .text()
            .await?;
        let list: Value = serde_json::from_str(&text)?;
        let guests = list.get("data").and_then(Value::as_array).context("no guests in the lab")?;
        let is = |guest: &Value, key: &str, value: &str| guest.get(key).and_then(Value::as_str) == Some(value);
        let guest = guests
            .iter()
            .find(|guest| is(guest, "type", "qemu") && is(guest, "status", "running"))
            .context("no running VM in the lab")?;
        let (vmid, node) = (guest.get("vmid").and_then(Value::as_u64), guest.get("node").and_then(Value::as_str));
        let (vmid, node) = vmid.zip(node).context("a guest without vmid or node")?;
        let read = json!({"operation": "GET /nodes/{node}/qemu/{vmid}/status/current", "arguments": {"vmid": vmid}});
        let target = tool_call(self.address, self.front.reader(), "read", &json!({"cluster": "lab", "reads": [read]}));

        let path = format!("/nodes/{node}/qemu/{vmid}/status/current");
        target.once().await?;
        self.lab.clear_journal();
        let answer = String::from_utf8(target.once().await?)?;
        let requests = self.lab.journal();
        ensure!(requests.len() == 1, "one read made {} upstream requests: {requests:?}", requests.len());
        ensure!(answer.contains(r#""qmpstatus""#), "not the state of a VM: {answer}");
        Ok((target, self.upstream(&path)))
    }

    /// A page of guests, as a tool call that makes no upstream request.
    pub(crate) async fn page_from_the_snapshot(&self) -> Result<Target> {
        let target = tool_call(self.address, self.front.reader(), "list_guests", &json!({"cluster": "lab"}));
        target.once().await?;
        self.lab.clear_journal();
        let answer = String::from_utf8(target.once().await?)?;
        ensure!(self.lab.journal().is_empty(), "a page from the snapshot asked the cluster");
        ensure!(answer.contains(r#""vmid":100"#), "not a page of guests: {answer}");
        Ok(target)
    }

    /// Stops both.
    pub(crate) async fn stop(self) {
        self.front.stop().await;
        self.lab.stop().await;
    }
}
