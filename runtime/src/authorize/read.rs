//! Decides whether a read may be sent, in two stages: what can be told before anything is asked, and then whether the
//! grant covers everything that the arguments name. A read of the first stage cannot be sent.

use std::sync::Arc;

use pvegate_generated::model::Operation;
use pvegate_generated::terms::Tier;
use serde_json::{Map, Value as Json};

use super::decide::takes_everything;
use super::reach::{self, Known};
use super::rows::{self, Shown};
use super::{Authorized, Named, NotReached, invalid, none, offered, whole};
use crate::args::{Args, Value, decode, decode_text};
use crate::connection::Connection;
use crate::grant::Grant;
use crate::mcp::Refusal;
use crate::pve::{Kind, PveError};
use crate::server::{self, Addressed, State, addressed};
use crate::snapshot::GuestKind;
use crate::tokens::Principal;
use crate::values::{NodeName, Upid};

/// Parameters that a tool sets, whoever calls.
pub type Fixed = &'static [(&'static str, &'static str)];

/// A read of one cluster that may be asked for. What its arguments name is still to be looked at.
///
/// It cannot be sent:
///
/// ```
/// use pvegate::authorize::{Authorized, Read};
/// use pvegate::connection::Connection;
///
/// async fn sent(read: Authorized<Read<'_>>) {
///     let _answer = Connection::get(read).await;
/// }
/// ```
///
/// ```compile_fail
/// use pvegate::authorize::{Asked, Authorized};
/// use pvegate::connection::Connection;
///
/// async fn sent(asked: Authorized<Asked<'_>>) {
///     let _answer = Connection::get(asked).await;
/// }
/// ```
///
/// ```compile_fail
/// use pvegate::authorize::Read;
/// use pvegate::connection::Connection;
///
/// async fn sent(read: Read<'_>) {
///     let _answer = Connection::get(read).await;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Asked<'a> {
    /// The cluster.
    pub connection: Arc<Connection>,
    /// The operation.
    pub operation: &'static Operation,
    /// What is granted.
    pub grant: &'a Grant,
    /// To whom.
    pub principal: &'a str,
}

/// A read of which the grant covers everything that it names, with what of the answer is shown.
///
/// Its arguments are those that were looked at:
///
/// ```compile_fail
/// use pvegate::args::Args;
/// use pvegate::authorize::Read;
///
/// fn exchanged(read: &mut Read<'_>, args: Args) {
///     read.args = args;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Read<'a> {
    connection: Arc<Connection>,
    args: Args,
    task: Option<Upid>,
    shown: Shown<'a>,
}

impl Read<'_> {
    /// The cluster.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// What is sent.
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The node that it is sent to, where it is one's.
    pub fn node(&self) -> Option<&NodeName> {
        match self.args.get("node") {
            Some(Value::Node(node)) => Some(node),
            _ => None,
        }
    }

    /// The task that it is about.
    pub fn task(&self) -> Option<&Upid> {
        self.task.as_ref()
    }

    /// What of the answer is shown.
    pub(crate) fn shown(&self) -> &Shown<'_> {
        &self.shown
    }
}

/// The first stage: whether an operation may be read on a cluster. Nothing is asked.
pub fn read<'a>(
    state: &State,
    principal: &'a Principal,
    connection: Authorized<Arc<Connection>>,
    operation: &'static Operation,
) -> Result<Authorized<Asked<'a>>, Refusal> {
    offered(state, operation)?;
    if operation.tier != Tier::Read {
        return Err(Refusal::new(
            "not_a_read",
            format!("{} changes something (tier {}), and this tool only reads", operation.name, operation.tier),
            "describe_operation tells whether this token may run it, and how.",
        ));
    }
    let Principal { grant, name, .. } = principal;
    if takes_everything(operation) && !grant.guests.is_all() {
        return Err(whole(&format!("{} does not tell whose it is that it answers", operation.name)));
    }
    Ok(Authorized::passed(Asked { connection: connection.into_inner(), operation, grant, principal: name }))
}

/// The second stage: decodes the arguments by the cluster's release, finds the guest, and checks that the grant covers
/// everything that is named.
pub async fn reach<'a>(
    state: &State,
    asked: &Authorized<Asked<'a>>,
    arguments: &Map<String, Json>,
    fixed: Fixed,
) -> Result<Authorized<Read<'a>>, NotReached> {
    let Asked { connection, operation, grant, .. } = asked.get();
    let (cluster, refuse) = (connection.name(), NotReached::Refused);
    let mut arguments = arguments.clone();
    let known = if rows::is_filtered(grant, operation) {
        Known::of(grant, connection).await.map_err(NotReached::Pve)?
    } else {
        Known { grant, inventory: None }
    };
    let shown = Shown::of(known, operation, &mut arguments);
    if addressed(operation) != Addressed::NoGuest {
        let node = guests_node(asked.get(), &arguments).await?;
        arguments.insert("node".to_owned(), Json::from(node.as_str()));
    }
    let version = connection.version().await.map_err(NotReached::Pve)?;
    if !operation.releases.contains(version.release) {
        return Err(refuse(Refusal::new(
            "not_offered",
            format!(
                "{} does not exist on PVE {}, which cluster {cluster} runs; it came with {}",
                operation.name, version.text, operation.releases.first
            ),
            "search_operations finds what there is.",
        )));
    }
    let wrong = |error| refuse(invalid(state, &error));
    let mut args = decode(operation, &arguments, version.release).map_err(wrong)?;
    decode_text(&mut args, fixed).map_err(wrong)?;
    let mut named = Named::by(&args);
    let task = named.tasks.first().cloned();
    leave_own_tasks(state, asked.get(), &mut named).await;
    reach::names(grant, cluster, &named).map_err(refuse)?;
    if let Some(network) = named.networks.iter().find(|network| !grant.networks.covers(&network.bridge, network.vlan)) {
        return Err(refuse(none(cluster, "network", &network.bridge)));
    }
    belongings(asked.get(), &named).await?;
    listed(asked.get(), &named).await?;
    // Last, so that names are looked up for nobody who may not read this anyway.
    state.url_policy().check_call(&args).await.map_err(refuse)?;
    Ok(Authorized::passed(Read { connection: Arc::clone(connection), args, task, shown }))
}

/// The node of the guest that a read is about, if the grant covers the guest and it is of the right kind.
async fn guests_node(asked: &Asked<'_>, arguments: &Map<String, Json>) -> Result<NodeName, NotReached> {
    let Asked { connection, operation, grant, .. } = asked;
    if arguments.contains_key("node") {
        return Err(NotReached::Refused(Refusal::new(
            "invalid_arguments",
            format!(
                "{} names a guest, and guests are named by `cluster` and `vmid`: `node` is not taken",
                operation.name
            ),
            "Leave out `node`; the server finds it.",
        )));
    }
    let vmid = server::vmid(arguments.get("vmid")).map_err(NotReached::Refused)?;
    let guest = reach::guest(grant, connection, vmid).await?;
    match addressed(operation) {
        Addressed::Guest(kind) if kind != guest.kind => {
            Err(NotReached::Refused(other_kind(operation, guest.vmid.get(), guest.kind)))
        }
        _ => Ok(guest.node),
    }
}

/// Who started a task through this server may see it through, whatever it works on. What the store cannot tell was
/// started by somebody else.
async fn leave_own_tasks(state: &State, asked: &Asked<'_>, named: &mut Named) {
    let Asked { grant, principal, .. } = asked;
    if grant.guests.is_all() && grant.nodes.is_all() {
        return;
    }
    for upid in named.tasks.clone() {
        if matches!(state.store().started_by(upid.as_str()).await, Ok(Some(by)) if by == **principal) {
            named.tasks.remove(&upid);
        }
    }
}

/// What is named besides, and belongs to guests: their volumes, backups, tasks and jobs may outlive them.
async fn belongings(asked: &Asked<'_>, named: &Named) -> Result<(), NotReached> {
    let Asked { connection, grant, .. } = asked;
    if grant.guests.is_all() || named.guests.is_empty() && named.tasks.is_empty() {
        return Ok(());
    }
    let known = Known::of(grant, connection).await.map_err(NotReached::Pve)?;
    let refused = |kind: &str, name: &str| Err(NotReached::Refused(none(connection.name(), kind, name)));
    if let Some(upid) = named.tasks.iter().find(|upid| !known.covers_task(upid)) {
        return refused("task", upid.as_str());
    }
    let is_hidden = |volume: &&crate::values::VolumeId| volume.owner().is_some_and(|vmid| !known.covers_guest(vmid));
    if let Some(volume) = named.volumes.iter().find(is_hidden) {
        return refused("volume", volume.as_str());
    }
    match named.guests.iter().find(|vmid| !known.covers_guest(**vmid)) {
        Some(vmid) => refused("guest", &vmid.to_string()),
        None => Ok(()),
    }
}

/// Where only some nodes are granted, one that the cluster does not list is refused without the names of the others.
async fn listed(asked: &Asked<'_>, named: &Named) -> Result<(), NotReached> {
    let Asked { connection, grant, .. } = asked;
    if grant.nodes.is_all() {
        return Ok(());
    }
    let of_tasks = named.tasks.iter().map(|upid| (upid.node().as_str(), "task", upid.as_str()));
    let given = named.nodes.iter().map(|node| (&**node, "node", &**node));
    for (node, kind, name) in of_tasks.chain(given) {
        let refused = || NotReached::Refused(none(connection.name(), kind, name));
        let node = NodeName::parse(node).map_err(|_| refused())?;
        match connection.nodes().check(&node).await {
            Ok(()) => {}
            Err(error) if error.kind() == Kind::NotFound => return Err(refused()),
            Err(error) => return Err(NotReached::Pve(error)),
        }
    }
    Ok(())
}

/// What PVE's failure to read is to this grant: that a task is not there is told in the same words as that it is not
/// granted.
pub fn failed(grant: &Grant, cluster: &str, task: Option<&Upid>, error: PveError) -> NotReached {
    match task {
        Some(upid) if error.kind() == Kind::NotFound && !(grant.guests.is_all() && grant.nodes.is_all()) => {
            NotReached::Refused(none(cluster, "task", upid.as_str()))
        }
        _ => NotReached::Pve(error),
    }
}

pub(super) fn other_kind(operation: &Operation, vmid: u32, kind: GuestKind) -> Refusal {
    let (is, other) = match kind {
        GuestKind::Qemu => ("a VM", GuestKind::Lxc),
        GuestKind::Lxc => ("a container", GuestKind::Qemu),
    };
    let twin = operation.name.replace(&format!("/{other}/"), &format!("/{kind}/"));
    let next = if pvegate_generated::catalog::operation(&twin).is_some() {
        format!("Use {twin}.")
    } else {
        format!("Choose a guest of type {other}; list_guests filters by `type`.")
    };
    Refusal::new(
        "wrong_kind",
        format!("guest {vmid} is {is}, and {} is for guests of type {other}", operation.name),
        next,
    )
}
