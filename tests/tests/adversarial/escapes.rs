//! What a call names beside its guest, by every role: nothing of it reaches past the grant.

use lab::FrontOptions;
use serde_json::{Value, json};
use tests::site::{CLUSTER, Site, low_token, quick};
use tests::token::Token;

use super::{CLONE, CONFIG, CREATE, CREATE_CT, RESIZE, START, STOP_TASK, VOLUME, guests, run, with};

fn vm(more: Value) -> Value {
    with(json!({"node": "pve1", "vmid": 600, "scsi0": "local-lvm:4", "net0": "virtio,bridge=vmbr0"}), more)
}

fn ct(more: Value) -> Value {
    let template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst";
    with(json!({"node": "pve1", "vmid": 600, "ostemplate": template, "rootfs": "local-lvm:4"}), more)
}

#[tokio::test]
async fn by_every_role() {
    let beside = json!({"nodes": ["pve1"], "storages": ["local", "local-lvm"], "networks": ["vmbr0", "vmbr0:20-29"]});
    let narrow = with(guests(&["vmid:110", "vmid:112", "vmid:122", "vmid:600-609"]), beside);
    // By its selectors these tags and pools grant something.
    let others = guests(&["tag:ci", "tag:prod", "pool:lab"]);
    let (site, [client, _]) = Site::granting([narrow, others]).await;
    let copy = |more: Value| with(json!({"vmid": 122, "newid": 601, "full": true}), more);
    for (operation, arguments) in [
        // Storages.
        (CREATE, vm(json!({"scsi1": "nas:4"}))),
        (CREATE, vm(json!({"scsi1": {"file": "nas:4"}}))),
        (CREATE, vm(json!({"scsi1": "file=nas:4"}))),
        (CREATE, vm(json!({"scsi1": "cache=none,file=nas:4"}))),
        (CREATE, vm(json!({"ide2": "nas:iso/x.iso,media=cdrom"}))),
        (CREATE, vm(json!({"ide2": "nas:cloudinit"}))),
        (CREATE, vm(json!({"efidisk0": "nas:1"}))),
        (CREATE, vm(json!({"tpmstate0": "nas:1"}))),
        (CREATE, vm(json!({"scsi1": "LOCAL:4"}))),
        (CREATE, vm(json!({"storage": "nas"}))),
        (CREATE, vm(json!({"archive": "local:backup/vzdump-qemu-100-2026_11_29-02_00_00.vma.zst"}))),
        (CREATE, vm(json!({"archive": "-"}))),
        (CREATE_CT, ct(json!({"mp0": "nas:4,mp=/srv"}))),
        (CREATE_CT, ct(json!({"rootfs": "nas:4"}))),
        (CREATE_CT, ct(json!({"ostemplate": "nas:vztmpl/debian.tar.zst"}))),
        (CREATE_CT, ct(json!({"ostemplate": "/var/lib/vz/template/cache/x.tar.zst"}))),
        (CREATE_CT, ct(json!({"ostemplate": "local:vztmpl/../../etc/passwd"}))),
        (CLONE, copy(json!({"storage": "nas"}))),
        // Volumes that are another guest's.
        (CREATE, vm(json!({"scsi1": "local-lvm:vm-101-disk-0"}))),
        (CREATE, vm(json!({"scsi1": "local-lvm:0,import-from=local-lvm:vm-101-disk-0"}))),
        (CREATE, vm(json!({"unused0": "local-lvm:vm-101-disk-0"}))),
        (RESIZE, json!({"vmid": 122, "disk": "unused0", "size": "+1G"})),
        // Networks.
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr1"}))),
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,tag=30"}))),
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,tag=19"}))),
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,tag=20,trunks=30"}))),
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,bridge=vmbr1"}))),
        (CREATE, vm(json!({"net1": "virtio"}))),
        (CREATE_CT, ct(json!({"net0": "name=eth0,bridge=vmbr1"}))),
        (CREATE_CT, ct(json!({"net0": "name=eth0,bridge=vmbr0,trunks=30"}))),
        // Nodes and pools.
        (CREATE, vm(json!({"node": "pve2"}))),
        (CREATE, vm(json!({"node": "PVE1"}))),
        (CREATE, vm(json!({"node": "localhost"}))),
        (CLONE, copy(json!({"target": "pve2"}))),
        (CREATE, vm(json!({"pool": "ci"}))),
        (CREATE, vm(json!({"pool": "lab"}))),
        (CLONE, copy(json!({"pool": "lab"}))),
        // Numbers.
        (CREATE, vm(json!({"vmid": 599}))),
        (CREATE, vm(json!({"vmid": 610}))),
        (CREATE, vm(json!({"vmid": 101}))),
        (CREATE, vm(json!({"vmid": 110}))),
        (CREATE_CT, ct(json!({"vmid": 1}))),
        (CLONE, copy(json!({"newid": 610}))),
        (CLONE, copy(json!({"vmid": 101}))),
        (CLONE, copy(json!({"vmid": 112}))),
        (CLONE, copy(json!({"newid": 110}))),
        // Tags that grant something, added or taken away.
        (CONFIG, json!({"vmid": 122, "tags": "ci"})),
        (CONFIG, json!({"vmid": 122, "tags": "web;CI"})),
        (CONFIG, json!({"vmid": 122, "tags": "web,Prod"})),
        (CONFIG, json!({"vmid": 122, "tags": "web ci"})),
        (CONFIG, json!({"vmid": 122, "tags": "web\0ci"})),
        (CONFIG, json!({"vmid": 122, "tags": ["web", "ci"]})),
        (CONFIG, json!({"vmid": 112, "tags": "web"})),
        (CONFIG, json!({"vmid": 112, "delete": "tags"})),
        (CREATE, vm(json!({"tags": "ci"}))),
        (CREATE, vm(json!({"tags": "x;PROD"}))),
    ] {
        site.lab.clear_journal();
        let answer = run(&client, operation, &arguments).await;
        let refused = answer.expect_err(&format!("{operation} {arguments}"));
        let codes = ["not_found", "not_granted", "needs_a_plan", "invalid_arguments", "exists"];
        assert!(codes.contains(&refused.code.as_str()), "{operation} {arguments}: {refused:?}");
        let writes = site.writes();
        assert!(writes.is_empty(), "{operation} {arguments}: {writes:?}");
    }
    // What stays within the grant is done, so it was not for another reason that the others were refused.
    for (operation, arguments) in [
        (CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,tag=20", "tags": "web"}))),
        (CREATE_CT, ct(json!({"vmid": 602}))),
        (CLONE, copy(json!({}))),
        (CONFIG, json!({"vmid": 122, "tags": "web"})),
    ] {
        let answer = run(&client, operation, &arguments).await;
        assert_eq!(
            answer.as_ref().ok().map(|answer| &answer["outcome"]),
            Some(&json!("ok")),
            "{operation}: {answer:?}"
        );
    }
}

/// A guest does not become another by its name.
#[tokio::test]
async fn by_a_name() {
    let (site, [client]) = Site::granting([guests(&["vmid:122"])]).await;
    let named = run(&client, CONFIG, &json!({"vmid": 122, "name": "app-112"})).await;
    assert!(named.is_ok(), "{named:?}");
    site.lab.clear_journal();
    for vmid in [json!("app-112"), json!(112), json!("vm:112"), json!("qemu/112")] {
        let refused = run(&client, START, &json!({"vmid": &vmid})).await.unwrap_err();
        assert!(["not_found", "invalid_arguments"].contains(&refused.code.as_str()), "{vmid}: {refused:?}");
    }
    assert!(site.writes().is_empty());
}

/// Tasks and volumes belong to whoever began them, or to the guest in their name.
#[tokio::test]
async fn by_what_belongs_to_another() {
    let (secret, entry) = low_token("operator");
    let beside = json!({"storages": ["nas"], "nodes": ["*"]});
    let narrow = Token::new("narrow", &with(guests(&["vmid:112", "vmid:118"]), beside));
    let options = FrontOptions { more_tokens: vec![entry, narrow.entry], ..FrontOptions::default() };
    let mut site = Site::with(quick(), options).await;
    site.client = site.client.with_token(&secret);
    let client = site.client.with_token(&narrow.secret);
    let started = run(&site.client, START, &json!({"vmid": 118})).await.unwrap();
    let asked = json!({"cluster": CLUSTER, "node": "pve1", "storage": "nas", "vmid": 102});
    let backups = site.client.tool("list_backups", asked).await.unwrap();
    site.lab.clear_journal();
    let of_another = "UPID:pve1:000004BB:000AB759:6B0E504B:vzdump:115:pvegate@pve!full:";
    for (operation, arguments) in [
        (STOP_TASK, json!({"upid": started["upid"]})),
        (STOP_TASK, json!({"upid": of_another})),
        (STOP_TASK, json!({"upid": of_another.replace("115", "118")})),
        (VOLUME, json!({"node": "pve1", "storage": "nas", "volume": backups["items"][0]["volid"], "notes": "mine"})),
        (VOLUME, json!({"node": "pve1", "storage": "nas", "volume": "nas:iso/x.iso", "notes": "mine"})),
    ] {
        let refused = run(&client, operation, &arguments).await.unwrap_err();
        let codes = ["not_found", "not_granted", "needs_a_plan"];
        assert!(codes.contains(&refused.code.as_str()), "{operation} {arguments}: {refused:?}");
        assert!(site.writes().is_empty(), "{operation} {arguments}");
    }
}
