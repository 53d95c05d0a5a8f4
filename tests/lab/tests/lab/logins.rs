//! Tokens, and what each may see.

use std::time::{Duration, Instant};

use lab::{Certificate, Lab, Options};

use crate::client::{Bench, client, quick, take_apart, url};

#[tokio::test]
async fn a_refused_login_has_a_reason_phrase_and_nothing_else() {
    let bench = Bench::quick().await;
    let url = format!("{}/api2/json/version", bench.lab.url());
    for (header, reason) in [
        (None, "No ticket"),
        (Some("Bearer abc"), "No ticket"),
        (Some("pveapitoken=a@pve!b=c"), "No ticket"),
        (Some("PVEAPIToken=garbage"), "Authentication failed!"),
        (Some("PVEAPIToken=root@pam!nosuch=1"), "Authentication failed!"),
    ] {
        let mut request = bench.client.get(&url);
        if let Some(header) = header {
            request = request.header("Authorization", header);
        }
        let seen = take_apart(request.send().await.unwrap()).await;
        assert_eq!((seen.status, seen.reason.as_str(), seen.text.as_str()), (401, reason, ""));
        assert_eq!(seen.content_type, None);
    }
}

#[tokio::test]
async fn a_refused_login_takes_three_seconds_where_latency_is_kept() {
    let bench = Bench::start(Options { latency: true, ..quick() }).await;
    let before = Instant::now();
    assert_eq!(bench.send_as("a@pve!b=c", "GET", "/version", None).await.status, 401);
    assert!(before.elapsed() >= Duration::from_secs(3));
}

#[tokio::test]
async fn lists_are_filtered_silently() {
    let bench = Bench::quick().await;
    let count = |token: String| {
        let bench = &bench;
        async move { bench.send_as(&token, "GET", "/cluster/resources?type=vm", None).await.rows().len() }
    };
    assert_eq!(count(bench.lab.full_token()).await, 40);
    assert_eq!(count(bench.lab.audit_token()).await, 40);
    assert_eq!(count(bench.lab.scoped_token()).await, 10);
    assert_eq!(count(bench.lab.blind_token()).await, 0);
}

#[tokio::test]
async fn a_missing_privilege_is_named() {
    let bench = Bench::quick().await;
    let blind = bench.lab.blind_token();
    let audit = bench.lab.audit_token();
    for (token, path, reason) in [
        (&blind, "/nodes/pve1/qemu/100/config", "Permission check failed (/vms/100, VM.Audit)"),
        (&blind, "/nodes/pve1/qemu/999/config", "Permission check failed (/vms/999, VM.Audit)"),
        (&audit, "/nodes/pve1/syslog", "Permission check failed (/nodes/pve1, Sys.Syslog)"),
        (&audit, "/nodes/bad_name!/status", "Permission check failed (, Sys.Audit)"),
        (
            &blind,
            "/nodes/pve1/storage/local/content/local:iso/virtio-win-0.1.285.iso",
            "Permission check failed (/storage/local, Datastore.Audit|Datastore.AllocateSpace)",
        ),
        (
            &blind,
            "/cluster/sdn/vnets/vnet1/firewall/rules",
            "Permission check failed (/sdn/zones/zone1/vnet1, SDN.Audit|SDN.Allocate)",
        ),
        (&audit, "/cluster/backup-info", "Permission check failed (user != root@pam)"),
        (
            &audit,
            "/nodes/pve1/qemu/100/agent/file-read?file=/etc/hostname",
            "Permission check failed (/vms/100, VM.GuestAgent.FileRead|VM.GuestAgent.Unrestricted)",
        ),
    ] {
        let seen = bench.send_as(token, "GET", path, None).await;
        assert_eq!((seen.status, seen.reason.as_str()), (403, reason));
    }
    let seen = bench.send_as(&audit, "POST", "/nodes/pve1/qemu/100/status/start", Some("")).await;
    assert_eq!(seen.status, 403);
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused_by_a_client_that_looks() {
    let lab = Lab::start(Options { certificate: Certificate::WrongName, ..quick() }).await.unwrap();
    let sent = client(&lab).get(format!("{}/api2/json/version", lab.url())).send().await;
    assert!(sent.is_err());
}

/// Reads that PVE answers alike for everyone, or with the little that everyone may know.
#[tokio::test]
async fn a_token_without_rights_learns_nothing_about_guests() {
    let bench = Bench::quick().await;
    let blind = bench.lab.blind_token();
    for sample in bench.lab.sample_reads() {
        let seen = bench.send_as(&blind, "GET", &url(&sample), None).await;
        for known in ["DB.Primary", "before-upgrade", "vm-100-disk", "lab-secret", "BC:24:11:00:64"] {
            assert!(!seen.text.contains(known), "{}: {}", sample.operation, seen.text);
        }
    }
}
