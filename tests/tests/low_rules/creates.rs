//! New guests: what keeps the call low, and where they may be.

use super::{Rules, on};
use serde_json::{Value, json};

fn vm(more: Value) -> Value {
    let mut base = json!({"node": "pve1", "vmid": 600, "name": "fresh", "scsi0": "local-lvm:8", "net0": "virtio,bridge=vmbr0", "memory": 1024});
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

fn ct(more: Value) -> Value {
    let mut base =
        json!({"node": "pve1", "vmid": 600, "ostemplate": "local:vztmpl/debian-13.tar.zst", "rootfs": "local-lvm:4"});
    base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    base
}

#[tokio::test]
async fn what_a_new_vm_may_have() {
    let rules = Rules::start().await;
    for more in [
        json!({}),
        json!({"ide2": "local:iso/debian.iso,media=cdrom"}),
        json!({"ide2": "none,media=cdrom"}),
        json!({"ide2": "local-lvm:cloudinit", "ciuser": "me", "ipconfig0": "ip=dhcp"}),
        json!({"efidisk0": "local-lvm:1,efitype=4m,pre-enrolled-keys=1", "tpmstate0": "local-lvm:4,version=v2.0", "bios": "ovmf"}),
        json!({"scsi1": "local-lvm:16,discard=on,ssd=1", "cpu": "host", "machine": "q35"}),
        json!({"net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=20,firewall=1,rate=10"}),
        json!({"net1": {"model": "virtio", "bridge": "vmbr0", "tag": 29}}),
        json!({"tags": "web;test"}),
        json!({"start": true}),
    ] {
        rules.acts("narrow", on::CREATE, vm(more)).await;
    }
}

#[tokio::test]
async fn what_makes_a_new_vm_more_than_a_low_call() {
    let rules = Rules::start().await;
    for (more, words) in [
        (json!({"archive": "local:backup/vzdump-qemu-600-2026_11_29-02_00_00.vma.zst"}), "archive"),
        (json!({"force": true}), "force"),
        (json!({"args": "-device x"}), "args"),
        (json!({"hookscript": "local:snippets/x.pl"}), "hookscript"),
        (json!({"cicustom": "user=local:snippets/x.yaml"}), "cicustom"),
        (json!({"hostpci0": "0000:01:00.0"}), "hostpci0"),
        (json!({"usb0": "host=1234:5678"}), "usb0"),
        (json!({"serial0": "/dev/ttyS0"}), "serial0"),
        (json!({"virtiofs0": "dirid=share"}), "virtiofs0"),
        (json!({"cipassword": "secret-word"}), "cipassword"),
        (json!({"storage": "local-lvm"}), "storage"),
        (json!({"scsi1": "local-lvm:0,import-from=local-lvm:vm-110-disk-0"}), "import-from"),
        (json!({"scsi1": "local-lvm:vm-600-disk-7"}), "not a new volume"),
        (json!({"scsi1": "local:iso/debian.iso"}), "not a new volume"),
        (json!({"scsi1": "/dev/sda"}), "reaches the node"),
        (json!({"ide2": "cdrom,media=cdrom"}), "reaches the node"),
        (json!({"scsi1": "local-lvm:8,scsiblock=1"}), "reaches the node"),
        (json!({"cpu": "host,flags=+aes"}), "`flags` of `cpu`"),
        (json!({"cpu": "cputype=host,hidden=1"}), "`hidden` of `cpu`"),
        (json!({"machine": "type=q35,viommu=intel"}), "`viommu` of `machine`"),
        (json!({"net0": "virtio,bridge=vmbr0,tag=30"}), "VLAN 30"),
        (json!({"net0": "virtio,bridge=vmbr1"}), "network"),
        (json!({"net0": "virtio"}), "no bridge"),
        (json!({"net0": "virtio,bridge=vmbr0,trunks=20;30"}), "trunks"),
        (json!({"net1": {"model": "virtio", "bridge": "vmbr0", "trunks": "20"}}), "trunks"),
    ] {
        rules.refused("narrow", on::CREATE, vm(more), "needs_a_plan", words).await;
    }
    // No network is granted that this is on.
    rules.refused("offline", on::CREATE, vm(json!({})), "needs_a_plan", "network").await;
}

#[tokio::test]
async fn what_a_new_container_may_have() {
    let rules = Rules::start().await;
    let write = rules.acts("narrow", on::CREATE_CT, ct(json!({}))).await;
    // Releases differ in what absence means.
    assert_eq!(write.args.get("unprivileged").unwrap().wire(), "1");
    rules.acts("narrow", on::CREATE_CT, ct(json!({"unprivileged": true, "features": "nesting=1"}))).await;
    rules
        .acts(
            "narrow",
            on::CREATE_CT,
            ct(json!({"mp0": "local-lvm:2,mp=/srv", "net0": "name=eth0,bridge=vmbr0,tag=21,ip=dhcp"})),
        )
        .await;
    for (more, words) in [
        (json!({"unprivileged": false}), "unprivileged"),
        (json!({"features": "nesting=1,keyctl=1"}), "features"),
        (json!({"features": "mount=nfs"}), "features"),
        (json!({"features": "force_rw_sys=1"}), "features"),
        (json!({"mp0": "/srv,mp=/srv"}), "reaches the node"),
        (json!({"dev0": "/dev/kvm"}), "dev0"),
        (json!({"hookscript": "local:snippets/x.pl"}), "hookscript"),
        (json!({"restore": true}), "restore"),
        (json!({"password": "secret-word"}), "password"),
        (json!({"ostemplate": "local:backup/vzdump-lxc-600-2026_11_29-02_00_00.tar.zst"}), "template"),
        (json!({"rootfs": "local-lvm:vm-600-disk-0"}), "not a new volume"),
        (json!({"net0": "name=eth0,bridge=vmbr0,tag=99"}), "VLAN 99"),
    ] {
        rules.refused("narrow", on::CREATE_CT, ct(more), "needs_a_plan", words).await;
    }
    let mut bare = ct(json!({}));
    bare.as_object_mut().unwrap().remove("rootfs");
    rules.refused("narrow", on::CREATE_CT, bare, "invalid_arguments", "rootfs").await;
}

/// C047, C025: the range that PVE proposes numbers from is a hint; the grant's is a rule, both ends included.
#[tokio::test]
async fn a_new_guest_has_a_number_or_pool_of_the_grant() {
    let rules = Rules::start().await;
    for vmid in [600, 699] {
        rules.acts("narrow", on::CREATE, vm(json!({"vmid": vmid}))).await;
    }
    let outside = rules.refused("narrow", on::CREATE, vm(json!({"vmid": 599})), "not_found", "599").await;
    rules.refused("narrow", on::CREATE, vm(json!({"vmid": 700})), "not_found", "700").await;
    // A pool that the grant selects guests by, and only where it is named.
    rules.acts("pooled", on::CREATE, vm(json!({"vmid": 50_000, "pool": "lab"}))).await;
    rules.refused("pooled", on::CREATE, vm(json!({"vmid": 50_000})), "not_found", "50000").await;
    rules.refused("pooled", on::CREATE, vm(json!({"vmid": 50_000, "pool": "other"})), "not_found", "50000").await;
    // Tags, which whoever makes it could choose, never do.
    rules.refused("tagged", on::CREATE, vm(json!({"vmid": 50_000})), "not_found", "50000").await;
    // Whether somebody else's guest has a number is told in the words for one that is not granted.
    let taken = rules.refused("pooled", on::CREATE, vm(json!({"vmid": 122, "pool": "lab"})), "not_found", "122").await;
    assert_eq!(taken.message.replace("122", "N"), outside.message.replace("599", "N"));
    // Of the own one it is said.
    rules.refused("narrow", on::CREATE, vm(json!({"vmid": 110})), "exists", "exists already").await;
}

#[tokio::test]
async fn nodes_storages_and_pools_are_those_of_the_grant() {
    let rules = Rules::start().await;
    for (more, name) in [
        (json!({"node": "pve3"}), "pve3"),
        (json!({"node": "nowhere"}), "nowhere"),
        (json!({"scsi0": "nas:8"}), "nas"),
        (json!({"scsi1": "nowhere:8"}), "nowhere"),
        (json!({"ide2": "nas:iso/x.iso,media=cdrom"}), "nas"),
        (json!({"efidisk0": "nas:1"}), "nas"),
        (json!({"pool": "ci"}), "ci"),
    ] {
        rules.refused("narrow", on::CREATE, vm(more), "not_found", name).await;
    }
    rules.refused("narrow", on::CREATE_CT, ct(json!({"ostemplate": "nas:vztmpl/x.tar.zst"})), "not_found", "nas").await;
    rules.refused("reader", on::CREATE, vm(json!({})), "not_granted", "only reads").await;
}

/// C024, C025: every privilege that the server's API token lacks is told at once, and one in a pool counts where the call
/// names the pool.
#[tokio::test]
async fn all_missing_privileges_are_told_at_once() {
    let rules = Rules::start().await;
    assert_eq!(rules.acts("wide", on::CREATE, vm(json!({}))).await.lacking, [""; 0]);
    let rules = Rules::as_token(lab::Lab::audit_token).await;
    let lacking = rules.acts("wide", on::CREATE, vm(json!({"net0": "virtio,bridge=vmbr0,tag=20"}))).await.lacking;
    let expected = [
        "VM.Allocate on /vms/600",
        "Datastore.AllocateSpace on /storage/local-lvm",
        "SDN.Use on /sdn/zones/localnetwork/vmbr0/20",
    ];
    assert_eq!(lacking, expected);
    let named = rules.acts("pooled", on::CREATE, vm(json!({"pool": "lab"}))).await.lacking;
    assert!(named.contains(&"VM.Allocate on /vms/600 or /pool/lab".to_owned()), "{named:?}");
    let start = rules.acts("wide", on::START, json!({"vmid": 122})).await.lacking;
    assert_eq!(start, ["VM.PowerMgmt on /vms/122"]);
}
