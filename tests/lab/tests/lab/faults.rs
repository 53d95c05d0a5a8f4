//! What can go wrong on purpose.

use std::time::Duration;

use lab::Fault;
use serde_json::Value;

use crate::client::Bench;

const CONFIG: &str = "/nodes/pve1/qemu/100/config";

fn fault(text: &str) -> Fault {
    text.parse().unwrap()
}

impl Bench {
    async fn break_it(&self, text: &str) {
        self.lab.set_fault(fault(text)).await;
    }

    async fn mend(&self, text: &str) {
        self.lab.clear_fault(&fault(text)).await.unwrap();
    }

    async fn has_pool(&self, name: &str) -> bool {
        self.get("/pools").await.rows().iter().any(|row| row["poolid"] == name)
    }
}

#[tokio::test]
async fn a_page_instead_of_json() {
    let bench = Bench::quick().await;
    bench.break_it("html-instead-of-json").await;
    let seen = bench.get("/version").await;
    assert_eq!((seen.status, seen.content_type.as_deref()), (200, Some("text/html")));
    bench.mend("html-instead-of-json").await;
    assert_eq!(bench.get("/version").await.data()["release"], "9.2");
}

#[tokio::test]
async fn a_connection_cut_before_and_after_the_work() {
    let bench = Bench::quick().await;
    bench.break_it("cut-before").await;
    assert!(bench.attempt("POST", "/pools", Some("poolid=before")).await.is_err());
    let entry = bench.lab.journal().pop().unwrap();
    assert_eq!((entry.operation.as_deref(), entry.status), (Some("POST /pools"), 0));
    bench.mend("cut-before").await;
    bench.break_it("cut-after@POST /pools").await;
    assert!(bench.attempt("POST", "/pools", Some("poolid=after")).await.is_err());
    assert_eq!((bench.has_pool("before").await, bench.has_pool("after").await), (false, true));
}

#[tokio::test]
async fn requests_are_held_before_and_after_they_are_done() {
    let bench = Bench::quick().await;
    for (name, done) in [("hold-before", false), ("hold-after", true)] {
        bench.break_it(&format!("{name}@POST /pools")).await;
        let form = format!("poolid={name}");
        let asked = bench.attempt("POST", "/pools", Some(&form));
        let looked = async {
            while bench.lab.held() == 0 {
                tokio::task::yield_now().await;
            }
            let there = bench.has_pool(name).await;
            bench.mend(name).await;
            there
        };
        let (answer, there) = tokio::join!(asked, looked);
        assert_eq!((answer.unwrap().status, there, bench.has_pool(name).await), (200, done, true), "{name}");
        assert_eq!(bench.lab.held(), 0);
    }
    // Whoever hangs up while it is held has asked for nothing.
    bench.break_it("hold-before@POST /pools").await;
    let asked = bench.attempt("POST", "/pools", Some("poolid=gone"));
    let waited = async {
        while bench.lab.held() == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = asked => panic!("it is held: {:?}", answer.map(|seen| seen.status)),
        () = waited => {}
    }
    while bench.lab.held() > 0 {
        tokio::task::yield_now().await;
    }
    bench.mend("hold-before").await;
    assert!(!bench.has_pool("gone").await);
    assert_eq!(
        bench
            .lab
            .journal()
            .iter()
            .filter(|entry| entry.method == "POST" && entry.params.contains_key("poolid"))
            .count(),
        2
    );
}

#[tokio::test]
async fn tasks_are_held_at_their_end() {
    let bench = Bench::quick().await;
    bench.break_it("hold-tasks").await;
    let begun = bench.send("POST", "/nodes/pve1/qemu/100/snapshot", Some("snapname=held")).await;
    let upid = begun.json()["data"].as_str().unwrap().to_owned();
    let path = format!("/nodes/pve1/tasks/{upid}/status");
    let snapshots = || async { bench.get("/nodes/pve1/qemu/100/snapshot").await.text };
    while !snapshots().await.contains("held") {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.get(&path).await.json()["data"]["status"], "running");
    bench.mend("hold-tasks").await;
    while bench.get(&path).await.json()["data"]["status"] == "running" {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.get(&path).await.json()["data"]["exitstatus"], "OK");
}

#[tokio::test]
async fn answers_that_tell_nothing_of_work_that_was_done() {
    let bench = Bench::quick().await;
    bench.break_it("late-599*1").await;
    let seen = bench.send("POST", "/pools", Some("poolid=late")).await;
    assert_eq!((seen.status, seen.reason.as_str(), seen.text.as_str()), (599, "Too many redirections", ""));
    assert_eq!((seen.content_type, seen.connection.as_deref()), (None, Some("close")));
    assert!(bench.has_pool("late").await, "it happens once");
    bench.break_it("empty-body*1").await;
    let seen = bench.send("POST", "/pools", Some("poolid=empty")).await;
    assert_eq!((seen.status, seen.text.as_str()), (200, ""));
    assert!(bench.has_pool("empty").await);
}

#[tokio::test]
async fn a_limit_counts_only_what_the_fault_happens_to() {
    let bench = Bench::quick().await;
    bench.break_it("html-instead-of-json@GET /version*2").await;
    assert_eq!(bench.get("/nodes").await.content_type.as_deref(), Some("application/json;charset=UTF-8"));
    for expected in ["text/html", "text/html", "application/json;charset=UTF-8"] {
        assert_eq!(bench.get("/version").await.content_type.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_guest_moves_between_the_list_and_the_call() {
    let bench = Bench::quick().await;
    let node = async || {
        let rows = bench.get("/cluster/resources?type=vm").await.rows();
        rows.iter().find(|row| row["vmid"] == 100).unwrap()["node"].as_str().unwrap().to_owned()
    };
    bench.break_it("moved-guest:100*1").await;
    assert_eq!(node().await, "pve1");
    let seen = bench.get(CONFIG).await;
    let text = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";
    assert_eq!((seen.status, seen.reason.as_str()), (500, text));
    let now = node().await;
    assert_ne!(now, "pve1");
    assert_eq!(bench.get(&CONFIG.replace("pve1", &now)).await.data()["name"], "web");
}

#[tokio::test]
async fn locks_in_and_on_the_configuration() {
    let bench = Bench::quick().await;
    bench.break_it("locked-guest:100").await;
    assert_eq!(bench.send("PUT", CONFIG, Some("cores=3")).await.reason, "VM is locked (backup)");
    bench.break_it("locked-guest:100:migrate").await;
    assert_eq!(bench.get(CONFIG).await.data()["lock"], "migrate");
    bench.mend("locked-guest:100:migrate").await;
    bench.mend("locked-guest:100").await;
    assert_eq!(bench.send("PUT", CONFIG, Some("cores=3")).await.status, 200);
    bench.break_it("locked-guest:100:file").await;
    let seen = bench.send("PUT", CONFIG, Some("cores=4")).await;
    assert_eq!(seen.reason, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout");
    bench.mend("locked-guest:100:file").await;
    assert_eq!(bench.send("PUT", CONFIG, Some("cores=4")).await.status, 200);
}

#[tokio::test]
async fn without_a_quorum_reads_work_and_writes_do_not() {
    let bench = Bench::quick().await;
    bench.break_it("no-quorum").await;
    assert_eq!(bench.get("/cluster/status").await.rows()[0]["quorate"], 0);
    assert_eq!(bench.get(CONFIG).await.status, 200);
    for (method, path, form) in [
        ("PUT", CONFIG, Some("cores=3")),
        ("POST", "/nodes/pve1/qemu/100/status/stop", Some("")),
        ("DELETE", "/pools/ci", None),
    ] {
        let seen = bench.send(method, path, form).await;
        assert_eq!((seen.status, seen.reason.as_str()), (500, "cluster not ready - no quorum?"), "{method} {path}");
    }
    bench.mend("no-quorum").await;
    assert_eq!(bench.send("PUT", CONFIG, Some("cores=3")).await.status, 200);
}

#[tokio::test]
async fn a_full_storage_takes_nothing_more() {
    let bench = Bench::quick().await;
    assert_eq!(bench.send("PUT", CONFIG, Some("protection=0")).await.status, 200);
    for storage in ["local-lvm", "nas"] {
        bench.break_it(&format!("full-storage:{storage}")).await;
    }
    let status = bench.get("/nodes/pve1/storage/local-lvm/status").await.data();
    assert_eq!((&status["used"], &status["avail"]), (&status["total"], &0.into()));
    let end = bench.task("POST", CONFIG, Some("scsi5=local-lvm%3A2")).await;
    assert!(end.contains("No space left on device"), "{end}");
    let end = bench.task("PUT", "/nodes/pve1/qemu/100/resize", Some("disk=scsi0&size=%2B1G")).await;
    assert!(end.contains("full"), "{end}");
    assert_eq!(bench.task("POST", "/nodes/pve1/vzdump", Some("vmid=102&storage=nas")).await, "job errors");
    bench.mend("full-storage:local-lvm").await;
    assert_eq!(bench.task("POST", CONFIG, Some("scsi5=local-lvm%3A2")).await, "OK");
}

#[tokio::test]
async fn an_agent_is_off_and_back() {
    let bench = Bench::quick().await;
    let ping = "/nodes/pve1/qemu/100/agent/ping";
    bench.break_it("agent-off:100").await;
    assert_eq!(bench.send("POST", ping, Some("")).await.reason, "QEMU guest agent is not running");
    bench.mend("agent-off:100").await;
    assert_eq!(bench.send("POST", ping, Some("")).await.status, 200);
}

#[tokio::test]
async fn a_cluster_that_is_down_comes_back_on_its_ports() {
    let bench = Bench::quick().await;
    bench.break_it("cluster-down").await;
    for node in 1..=3 {
        let error = bench.ask(node, "/version").await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
    }
    bench.break_it("dead-node:pve2").await;
    bench.mend("cluster-down").await;
    assert_eq!(bench.ask(1, "/version").await.unwrap().status, 200);
    assert!(bench.ask(2, "/version").await.unwrap_err().is_connect(), "it is still dead");
}

#[test]
fn faults_have_names() {
    let names = [
        "dead-node:pve2",
        "hanging-node:pve1",
        "cluster-down",
        "no-quorum",
        "full-storage:nas",
        "agent-off:100",
        "locked-guest:100:backup",
        "moved-guest:100",
        "slow-agent:3",
        "slow:0.5",
        "html-instead-of-json",
        "cut-before",
        "cut-after",
        "hold-before",
        "hold-after",
        "hold-tasks",
        "empty-body",
        "late-599",
        "late-599*1",
        "slow:2@GET /nodes/{node}/status",
        "cut-after@POST /nodes/{node}/qemu/{vmid}/status/start*3",
    ];
    for name in names {
        assert_eq!(fault(name).to_string(), name);
    }
    assert_eq!(fault("locked-guest:100"), Fault::LockedGuest(100, "backup".to_owned()));
    assert_eq!(fault("slow-agent:2.5"), Fault::SlowAgent(Duration::from_millis(2500)));
    assert_eq!(fault("late-599@GET /version*2"), Fault::Late599.times(2).on("GET /version"));
    let wrong = |text: &str| text.parse::<Fault>().unwrap_err();
    for name in names.iter().filter_map(|name| name.split([':', '@', '*']).next()) {
        assert!(wrong("nonsense").contains(name), "{name} is not among the known ones");
    }
    assert!(wrong("late-599*0").contains("how many times"));
    assert!(wrong("dead-node:pve2*1").contains("until it is cleared"));
    for text in ["agent-off:x", "slow:-1", "dead-node", "dead-node:", "late-599:1"] {
        assert!(!wrong(text).is_empty());
    }
}

#[tokio::test]
async fn what_was_asked_is_in_the_journal_all_the_same() {
    let bench = Bench::quick().await;
    bench.break_it("empty-body").await;
    bench.get("/pools/ci").await;
    let entry = bench.lab.journal().pop().unwrap();
    assert_eq!((entry.status, &entry.params["poolid"]), (200, &Value::from("ci")));
}
