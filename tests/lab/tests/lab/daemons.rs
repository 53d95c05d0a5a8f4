//! Three workers of each node's daemon do what the schema marks as protected; more has to wait.

use lab::{Fault, Options};

use crate::client::{Bench, quick};

const SLOW: &str = "POST /nodes/{node}/qemu/{vmid}/agent/ping";
const HERE: &str = "/nodes/pve1/qemu/100/status/current";

/// Keeps three workers of pve1 busy, asks for other things meanwhile, and tells in which order all were answered.
async fn order(bench: &Bench, node: usize, paths: &[&str]) -> Vec<String> {
    bench.lab.set_fault("slow-agent:1.5".parse::<Fault>().unwrap()).await;
    bench.lab.clear_journal();
    let ping = || bench.send("POST", "/nodes/pve1/qemu/100/agent/ping", Some(""));
    let others = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        for path in paths {
            assert_eq!(bench.ask(node, path).await.unwrap().status, 200, "{path}");
        }
    };
    let (first, second, third, ()) = tokio::join!(ping(), ping(), ping(), others);
    assert!([first, second, third].iter().all(|seen| seen.status == 200));
    let answered = bench.lab.journal().into_iter().map(|entry| entry.decoded_path);
    answered.map(|path| if path.ends_with("/ping") { "slow".to_owned() } else { path }).collect()
}

#[tokio::test]
async fn a_fourth_call_waits_and_what_the_proxy_answers_does_not() {
    let bench = Bench::quick().await;
    let answered = order(&bench, 1, &["/version", "/cluster/resources", HERE]).await;
    assert_eq!(answered[..2], ["/version", "/cluster/resources"]);
    let place = answered.iter().position(|path| path == HERE).unwrap();
    assert!(answered[2] == "slow" && place > 2, "{answered:?}");
}

#[tokio::test]
async fn a_call_takes_the_workers_of_the_node_that_it_is_about() {
    let bench = Bench::quick().await;
    let there = "/nodes/pve2/qemu/112/status/current";
    let guest = bench.get("/nodes/pve2/qemu").await.rows()[0]["vmid"].clone();
    let there = there.replace("112", &guest.to_string());
    // Through pve2 to pve1, and through pve1 to pve2.
    let answered = order(&bench, 2, &[&there, HERE]).await;
    assert_eq!((answered[0].as_str(), answered[1].as_str()), (there.as_str(), "slow"), "{answered:?}");
}

#[tokio::test]
async fn workers_need_not_be_counted() {
    let bench = Bench::start(Options { workers: false, ..quick() }).await;
    assert_eq!(order(&bench, 1, &[HERE]).await[0], HERE);
}

#[tokio::test]
async fn an_agent_that_is_silent_keeps_a_worker_waiting() {
    let bench = Bench::start(Options { latency: true, ..quick() }).await;
    bench.lab.set_fault(Fault::AgentOff(100)).await;
    bench.lab.clear_journal();
    let ping = || bench.send("POST", "/nodes/pve1/qemu/100/agent/ping", Some(""));
    let (first, second, third, ()) = tokio::join!(ping(), ping(), ping(), async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        assert_eq!(bench.get("/version").await.status, 200);
        assert_eq!(bench.get(HERE).await.status, 200);
    });
    assert!([first, second, third].iter().all(|seen| seen.reason == "QEMU guest agent is not running"));
    let answered: Vec<_> = bench.lab.journal().into_iter().map(|entry| entry.decoded_path).collect();
    assert_eq!(answered[0], "/version");
    assert_ne!(answered[1], HERE);
}

#[tokio::test]
async fn work_goes_on_for_a_caller_that_is_gone() {
    let bench = Bench::quick().await;
    bench.lab.set_fault("slow-agent:0.5".parse::<Fault>().unwrap()).await;
    let path = "/nodes/pve1/qemu/100/agent/file-write";
    let write = bench.send("POST", path, Some("file=/root/a&content=late"));
    assert!(tokio::time::timeout(std::time::Duration::from_millis(100), write).await.is_err());
    let entry = loop {
        if let Some(entry) = bench.lab.journal().pop() {
            break entry;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!((entry.operation.as_deref(), entry.status), (Some(&*SLOW.replace("ping", "file-write")), 0));
    bench.lab.clear_fault(&"slow-agent:0.5".parse::<Fault>().unwrap()).await.unwrap();
    let read = "/nodes/pve1/qemu/100/agent/file-read?file=/root/a";
    while bench.get(read).await.data()["content"] != "late" {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn reads_can_be_slow_and_writes_are_not() {
    let bench = Bench::quick().await;
    let slow = "slow:0.4@GET /nodes/{node}/qemu/{vmid}/status/current*1".parse::<Fault>().unwrap();
    bench.lab.set_fault(slow).await;
    bench.lab.clear_journal();
    let (read, ()) = tokio::join!(bench.get(HERE), async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        assert_eq!(bench.send("POST", "/pools", Some("poolid=a")).await.status, 200);
    });
    assert_eq!(read.status, 200);
    let answered: Vec<_> = bench.lab.journal().into_iter().map(|entry| entry.decoded_path).collect();
    assert_eq!(answered, ["/pools", HERE]);
}
