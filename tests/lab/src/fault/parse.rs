//! Faults from text: `NAME`, `NAME:ARGUMENT`, and behind it `@OPERATION` and `*TIMES`.

use std::str::FromStr;
use std::time::Duration;

use super::Fault;

const KNOWN: &str = "dead-node:NODE, hanging-node:NODE, cluster-down, no-quorum, full-storage:STORAGE, agent-off:VMID, \
                     locked-guest:VMID[:KIND], moved-guest:VMID, slow-agent:SECONDS, slow:SECONDS, html-instead-of-json, \
                     cut-before, cut-after, hold-before, hold-after, hold-tasks, \
                     empty-body, late-599";

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, times) = match text.rsplit_once('*') {
            Some((rest, times)) => (rest, Some(count(times)?)),
            None => (text, None),
        };
        let (name, operation) = match rest.split_once('@') {
            Some((name, operation)) => (name, Some(operation.to_owned())),
            None => (rest, None),
        };
        let fault = named(name)?;
        if times.is_none() && operation.is_none() {
            return Ok(fault);
        }
        if !fault.is_of_requests() {
            return Err(format!("`{fault}` is so until it is cleared: it takes neither `@OPERATION` nor `*TIMES`"));
        }
        Ok(Self::limited(fault, operation, times))
    }
}

fn count(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("`*{text}` does not say how many times: a whole number from 1 on"))
}

fn named(text: &str) -> Result<Fault, String> {
    let (name, argument) = text.split_once(':').map_or((text, None), |(name, argument)| (name, Some(argument)));
    let unknown = || format!("no fault `{text}`; known: {KNOWN}");
    let argument = argument.filter(|argument| !argument.is_empty());
    let vmid = |text: &str| text.parse().map_err(|_| format!("`{text}` is no vmid"));
    Ok(match (name, argument) {
        ("dead-node", Some(node)) => Fault::DeadNode(node.to_owned()),
        ("hanging-node", Some(node)) => Fault::HangingNode(node.to_owned()),
        ("cluster-down", None) => Fault::ClusterDown,
        ("no-quorum", None) => Fault::NoQuorum,
        ("full-storage", Some(storage)) => Fault::FullStorage(storage.to_owned()),
        ("agent-off", Some(id)) => Fault::AgentOff(vmid(id)?),
        ("locked-guest", Some(rest)) => {
            let (id, kind) = rest.split_once(':').unwrap_or((rest, "backup"));
            Fault::LockedGuest(vmid(id)?, kind.to_owned())
        }
        ("moved-guest", Some(id)) => Fault::MovedGuest(vmid(id)?),
        ("slow-agent", Some(time)) => Fault::SlowAgent(seconds(time)?),
        ("slow", Some(time)) => Fault::Slow(seconds(time)?),
        ("html-instead-of-json", None) => Fault::HtmlInsteadOfJson,
        ("cut-before", None) => Fault::CutBefore,
        ("cut-after", None) => Fault::CutAfter,
        ("hold-before", None) => Fault::HoldBefore,
        ("hold-after", None) => Fault::HoldAfter,
        ("hold-tasks", None) => Fault::HoldTasks,
        ("empty-body", None) => Fault::EmptyBody,
        ("late-599", None) => Fault::Late599,
        _ => return Err(unknown()),
    })
}

fn seconds(text: &str) -> Result<Duration, String> {
    let time = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.ok_or_else(|| format!("`{text}` is no time in seconds"))
}
