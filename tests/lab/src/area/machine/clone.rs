//! Copies of guests: full ones on any storage, linked ones that build on a template's disks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{found, locked, net, noun, prefix, rights};
use crate::answer::Refusal;
use crate::area::{Call, Outcome};
use crate::gate::Shared;
use crate::state::Cluster;
use crate::state::config;
use crate::state::disk::{self, FILE, format_of, is_drive, is_mount, split};
use crate::state::guest::{Guest, Kind};
use crate::state::property::Property;
use crate::state::storage::Storage;
use crate::worker::{self, Done, Worker};

/// What a clone is to be.
#[derive(Clone)]
struct Plan {
    kind: Kind,
    source: u32,
    new: u32,
    name: String,
    description: Option<String>,
    pool: Option<String>,
    storage: Option<String>,
    format: Option<String>,
    node: String,
    linked: bool,
    /// The configuration that is copied: the present one, or that of a snapshot.
    config: Map<String, Value>,
}

pub(super) fn clone(shared: &Arc<Shared>, call: &Call<'_>, kind: Kind) -> Outcome {
    let plan = shared.look(|cluster| plan(cluster, call, kind))?;
    let task = format!("{}clone", prefix(kind));
    let source = plan.source;
    Ok(worker::start(shared, call, &task, &source.to_string(), |worker| async move {
        let what = if kind == Kind::Qemu { "VM" } else { "container" };
        worker.log(format!("creating a clone of {what} {source} with ID {}", plan.new));
        worker.change(|cluster| {
            let guest = found(cluster, source, kind)?;
            locked(guest)?;
            let mut blank = Guest::new(plan.new, kind, &plan.node, Map::new());
            blank.lock = Some("clone".to_owned());
            blank.pool.clone_from(&plan.pool);
            cluster.guests.insert(plan.new, blank);
            Ok::<_, String>(())
        })?;
        let copied = copy(&worker, &plan).await;
        worker.change(|cluster| match copied {
            Ok(config) => {
                let blank = found(cluster, plan.new, kind)?;
                blank.config = config;
                blank.lock = None;
                Ok(Done::Fine)
            }
            Err(error) => {
                cluster.guests.remove(&plan.new);
                cluster.volumes.retain(|volume| volume.vmid != Some(plan.new));
                Err(format!("clone failed: {error}"))
            }
        })
    }))
}

fn plan(cluster: &Cluster, call: &Call<'_>, kind: Kind) -> Result<Plan, Refusal> {
    let guest = call.guest(cluster, kind)?;
    let failed = |text: String| Err(Refusal::failed(text));
    let new: u32 = call.text("newid").parse().unwrap_or_default();
    if let Some(pool) = call.given("pool")
        && !cluster.pools.contains_key(pool)
    {
        return failed(format!("pool '{pool}' does not exist"));
    }
    let storage = call.given("storage");
    if let Some(storage) = storage {
        if !cluster.storages.contains_key(storage) {
            return failed(format!("storage '{storage}' does not exist"));
        }
        rights::need(cluster, call, &format!("/storage/{storage}"), &["Datastore.AllocateSpace"])?;
    }
    let node = match call.given("target") {
        None => guest.node.clone(),
        Some(target) => target_node(cluster, guest, target)?,
    };
    locked(guest).map_err(Refusal::failed)?;
    let mut config = guest.config.clone();
    if let Some(name) = call.given("snapname") {
        let snapshot = guest.snapshots.iter().find(|snapshot| snapshot.name == name);
        let snapshot = snapshot.ok_or_else(|| Refusal::failed(format!("snapshot '{name}' does not exist")))?;
        config.clone_from(&snapshot.config);
    }
    if cluster.guests.contains_key(&new) {
        return failed(match kind {
            Kind::Qemu => format!("unable to create VM {new}: config file already exists"),
            Kind::Lxc => exists(cluster, new),
        });
    }
    let linked = if call.given("full").is_some() { !call.flag("full") } else { guest.template() };
    for (key, value) in &config {
        let Some(volume) = copied(key, value) else { continue };
        let based = split(&volume).is_some_and(|(_, name)| name.contains("base-") || name.contains("basevol-"));
        if linked && !(guest.template() && based) {
            return failed(match kind {
                Kind::Qemu => format!("Linked clone feature is not supported for '{volume}' ({key})"),
                Kind::Lxc => format!("Linked clone feature for '{volume}' is not available"),
            });
        }
    }
    if linked && storage.is_some() {
        return failed("parameter 'storage' not allowed for linked clones".to_owned());
    }
    if linked && call.given("format").is_some() {
        return failed("parameter 'format' not allowed for linked clones".to_owned());
    }
    if kind == Kind::Lxc && !linked && guest.running() && call.given("snapname").is_none() {
        return failed("Cannot do full clones on a running container without snapshots".to_owned());
    }
    let key = if kind == Kind::Qemu { "name" } else { "hostname" };
    let name = call.given(key).map_or_else(
        || match guest.text(key) {
            Some(old) => format!("Copy-of-{}{old}", if kind == Kind::Qemu { "VM-" } else { "" }),
            None => format!("Copy-of-{}-{}", noun(kind), guest.vmid),
        },
        str::to_owned,
    );
    Ok(Plan {
        kind,
        source: guest.vmid,
        new,
        name,
        description: call.given("description").map(str::to_owned),
        pool: call.given("pool").map(str::to_owned),
        storage: storage.map(str::to_owned),
        format: call.given("format").map(str::to_owned),
        node,
        linked,
        config,
    })
}

/// Where a clone may be put: another node only where all its disks are shared.
fn target_node(cluster: &Cluster, guest: &Guest, target: &str) -> Result<String, Refusal> {
    let Some(node) = cluster.node(target) else {
        return Err(Refusal::failed(format!("no such cluster node '{target}'")));
    };
    let shared = |storage: &str| cluster.storages.get(storage).is_some_and(Storage::shared);
    let local = guest.disks().any(|(_, volume, _)| !split(volume).is_some_and(|(storage, _)| shared(storage)));
    if node.name != guest.node && local {
        let noun = noun(guest.kind);
        return Err(Refusal::failed(format!("can't clone {noun} to node '{target}' ({noun} uses local storage)")));
    }
    Ok(node.name.clone())
}

/// What PVE says about an id that is taken.
pub(super) fn exists(cluster: &Cluster, vmid: u32) -> String {
    let guest = cluster.guests.get(&vmid);
    let (noun, node) = guest.map_or(("VM", ""), |guest| (noun(guest.kind), guest.node.as_str()));
    format!("{noun} {vmid} already exists on node '{node}'")
}

/// The volume of an option that a clone gets a copy of.
fn copied(key: &str, value: &Value) -> Option<String> {
    let text = value.as_str()?;
    if !(is_drive(key) || is_mount(key)) || text.contains("media=cdrom") {
        return None;
    }
    let drive = Property::read(text, &FILE);
    split(&drive.first).is_some().then_some(drive.first)
}

async fn copy(worker: &Worker, plan: &Plan) -> Result<Map<String, Value>, String> {
    let mut config = Map::new();
    for (key, value) in &plan.config {
        if key.starts_with("unused") || matches!(key.as_str(), "template" | "parent" | "snaptime" | "vmstate") {
            continue;
        }
        let text = config::text(value);
        let value = match rights::stem(key) {
            "net" if plan.kind == Kind::Qemu => json!(net::qemu(&anew(&text))),
            "net" => json!(net::lxc(&anew(&text))),
            "smbios1" => json!(super::create::identity(&text)),
            "vmgenid" => json!(super::uuid()),
            _ => match copied(key, value) {
                Some(volume) => json!(copy_disk(worker, plan, key, &text, &volume).await?),
                None => value.clone(),
            },
        };
        config.insert(key.clone(), value);
    }
    let key = if plan.kind == Kind::Qemu { "name" } else { "hostname" };
    config.insert(key.to_owned(), json!(plan.name));
    if let Some(description) = &plan.description {
        config.insert("description".to_owned(), json!(description));
    }
    Ok(config)
}

/// A card without its address.
fn anew(text: &str) -> String {
    let parts: Vec<String> = text
        .split(',')
        .filter(|part| !part.starts_with("hwaddr="))
        .map(|part| match part.split_once('=') {
            Some((model, address)) if address.split(':').count() == 6 => model.to_owned(),
            _ => part.to_owned(),
        })
        .collect();
    parts.join(",")
}

async fn copy_disk(worker: &Worker, plan: &Plan, key: &str, text: &str, volume: &str) -> Result<String, String> {
    let mut drive = Property::read(text, &FILE);
    let (storage, name) = split(volume).unwrap_or_default();
    let what = if plan.kind == Kind::Qemu { "drive" } else { "mountpoint" };
    let size = worker.look(|cluster| cluster.volume_size(volume)).unwrap_or_else(|| disk::sized(&drive));
    if plan.linked {
        worker.log(format!("create linked clone of {what} {key} ({volume})"));
        drive.first = worker.change(|cluster| link(cluster, plan.new, (storage, name), size));
        let log = worker.look(|cluster| linked_log(cluster, plan.new, name, &drive.first, size));
        for line in log {
            worker.log(line);
        }
        return Ok(drive.write());
    }
    worker.log(format!("create full clone of {what} {key} ({volume})"));
    let target = plan.storage.as_deref().unwrap_or(storage);
    let stem = if format_of(name) == "subvol" { "subvol" } else { "vm" };
    let format = match &plan.format {
        Some(format) if stem == "vm" => format.as_str(),
        _ if stem == "vm" && !worker.look(|cluster| cluster.in_files(target)) => "raw",
        _ => format_of(name),
    };
    let (made, log) = worker.change(|cluster| cluster.allocate((target, plan.new), size, format, stem))?;
    if let Some(line) = log {
        worker.log(line);
    }
    let running = worker.look(|cluster| {
        let source = cluster.guests.get(&plan.source);
        source.is_some_and(Guest::running) && !cluster.host.own_qemu
    });
    if running && plan.kind == Kind::Qemu {
        worker.log(format!("allocated target volume '{made}'"));
        return Err(format!("drive-{key}: throttle node without file child node name!"));
    }
    if plan.kind == Kind::Qemu {
        transfer(worker, size).await;
    }
    drive.first = made;
    Ok(drive.write())
}

/// Copies, and tells how far it is.
pub(super) async fn transfer(worker: &Worker, size: u64) {
    let shown = |bytes: u64| {
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let bytes = bytes as f64;
        if bytes >= 1_073_741_824.0 {
            format!("{:.1} GiB", bytes / 1_073_741_824.0)
        } else {
            format!("{:.1} MiB", bytes / 1_048_576.0)
        }
    };
    for percent in [0, 25, 50, 75, 100] {
        worker.log(format!("transferred {} of {} ({percent}.00%)", shown(size / 100 * percent), shown(size)));
        if percent < 100 {
            worker.step(Duration::from_millis(150)).await;
        }
    }
}

/// Makes a linked clone of a base and says its id.
fn link(cluster: &mut Cluster, new: u32, (storage, base): (&str, &str), size: u64) -> String {
    let format = format_of(base);
    let stem = if format == "subvol" { "subvol" } else { "vm" };
    let Ok((made, _)) = cluster.allocate((storage, new), size, format, stem) else { return String::new() };
    let (_, name) = split(&made).unwrap_or_default();
    let name = format!("{base}/{name}");
    if let Some(volume) = cluster.volumes.last_mut() {
        volume.name.clone_from(&name);
    }
    format!("{storage}:{name}")
}

fn linked_log(cluster: &Cluster, new: u32, base: &str, made: &str, size: u64) -> Vec<String> {
    let Some((storage, name)) = split(made) else { return Vec::new() };
    let last = name.rsplit('/').next().unwrap_or_default();
    if !cluster.in_files(storage) {
        return vec![format!("  Logical volume \"{last}\" created.")];
    }
    let path = cluster.path_of(&format!("{storage}:{new}/{last}"));
    vec![
        format!("clone {base}: images, {last}, {new} to {last} (base=../{base})"),
        format!(
            "Formatting '{path}', fmt=qcow2 cluster_size=131072 extended_l2=on preallocation=metadata compression_type=zlib size={size} backing_file=../{base} backing_fmt=qcow2 lazy_refcounts=off refcount_bits=16"
        ),
    ]
}
