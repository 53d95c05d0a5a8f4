//! Decides what the overlay's guards ask of a call, beyond what roles bring.

use pvegate_generated::internal;
use pvegate_generated::terms::Guard;

use super::low::Wish;
use super::{Named, live, needs_a_plan, none};
use crate::mcp::Refusal;
use crate::own_access::{self, Effect, Own};
use crate::server::{State, refusal};
use crate::snapshot::Resolution;
use crate::tokens::Principal;
use crate::values::{Upid, Vmid};

/// Workers of tasks that no low call stops: halfway they leave data gone, or a guest between two places.
const NOT_STOPPED: [&str; 17] = [
    "imgcopy",
    "imgdel",
    "move_volume",
    "qmclone",
    "qmconfig",
    "qmdestroy",
    "qmigrate",
    "qmmove",
    "qmrestore",
    "qmrollback",
    "qmtemplate",
    "vzclone",
    "vzdestroy",
    "vzmigrate",
    "vzrestore",
    "vzrollback",
    "vztemplate",
];

/// The guards of one call.
pub(super) struct Guards<'a> {
    wish: &'a Wish<'a>,
}

impl<'a> Guards<'a> {
    pub(super) fn of(wish: &'a Wish<'a>) -> Self {
        Self { wish }
    }

    /// Whether all of them hold.
    pub(super) async fn check(&self) -> Result<(), Refusal> {
        for guard in self.wish.args.operation().guards {
            match guard {
                Guard::VmidIsFree => self.vmid_is_free().await?,
                Guard::KeepsOwnAccess | Guard::KeepsManagementAccess => self.keeps_access(*guard)?,
                Guard::VolumeOfGuest => self.volume_of_guest()?,
                Guard::OwnTask => self.may_be_stopped()?,
                Guard::NewFileName => self.new_file_name().await?,
            }
        }
        Ok(())
    }

    async fn vmid_is_free(&self) -> Result<(), Refusal> {
        let Wish { state, principal, connection, named, .. } = self.wish;
        let inventory = connection.snapshot().get().await.map_err(|error| refusal(state, &error))?;
        for vmid in &named.new_guests {
            match inventory.resolve(*vmid) {
                Resolution::Missing => {}
                Resolution::Found(guest) if principal.grant.guests.covers(guest) => {
                    return Err(Refusal::new(
                        "exists",
                        format!("guest {vmid} exists already on cluster {}", connection.name()),
                        "Take another number, or work with that guest.",
                    ));
                }
                // Whose it is, is not told.
                Resolution::Found(_) | Resolution::Ambiguous(_) => {
                    return Err(no_new_guest(connection.name(), *vmid));
                }
            }
        }
        Ok(())
    }

    fn keeps_access(&self, guard: Guard) -> Result<(), Refusal> {
        let effect = match Own::parse(self.wish.connection.user()) {
            Some(own) => own_access::effect(guard, self.wish.args, &own),
            None => Effect::Unknown("whom this server is to the cluster is not known".to_owned()),
        };
        match effect {
            Effect::Keeps => Ok(()),
            Effect::Breaks(why) | Effect::Unknown(why) => Err(Refusal::new(
                "protected",
                format!("{} may cut off this server or people: {why}", self.wish.args.operation().name),
                "Only a person can do that, in PVE itself.",
            )),
        }
    }

    /// The guest itself was found among those that the grant covers.
    fn volume_of_guest(&self) -> Result<(), Refusal> {
        match self.wish.named.volumes.iter().find(|volume| volume.owner().is_none()) {
            Some(volume) => Err(needs_a_plan(&format!(
                "volume `{}` belongs to no guest, and others may rely on it",
                crate::untrusted::shown(volume.as_str(), 120)
            ))),
            None => Ok(()),
        }
    }

    fn may_be_stopped(&self) -> Result<(), Refusal> {
        match self.wish.named.tasks.iter().find(|upid| NOT_STOPPED.contains(&upid.worker())) {
            Some(upid) => Err(needs_a_plan(&format!(
                "a task of the kind `{}` leaves things half done when it is stopped",
                crate::untrusted::shown(upid.worker(), 40)
            ))),
            None => Ok(()),
        }
    }

    async fn new_file_name(&self) -> Result<(), Refusal> {
        let Wish { state, connection, args, .. } = self.wish;
        let text = |name: &str| args.get(name).map(|value| value.wire().into_owned()).unwrap_or_default();
        let (node, storage, file) =
            (text("node"), text(internal::download::STORAGE), text(internal::download::FILENAME));
        let volumes = live::volumes(connection, &node, &storage).await.map_err(|error| refusal(state, &error))?;
        let content = text(internal::download::CONTENT);
        let wanted = format!("{storage}:{content}/{file}");
        match volumes.iter().find(|volume| volume.eq_ignore_ascii_case(&wanted)) {
            Some(_) => Err(Refusal::new(
                "exists",
                format!(
                    "storage {storage} of cluster {} has `{}` already, and nothing is overwritten",
                    connection.name(),
                    crate::untrusted::shown(&file, 120)
                ),
                "Take another name, or use what is there.",
            )),
            None => Ok(()),
        }
    }
}

/// Whether the principal started every task that is named. Another's and one that is not there are refused alike.
pub(super) async fn own_tasks(
    state: &State,
    principal: &Principal,
    cluster: &str,
    named: &Named,
) -> Result<(), Refusal> {
    for upid in &named.tasks {
        let by = state.store().started_by(upid.as_str()).await.map_err(|error| {
            Refusal::new(
                "store",
                format!("who started the task cannot be read: {error}"),
                "An operator has to look at the store.",
            )
        })?;
        if by.as_deref() != Some(principal.name.as_str()) {
            return Err(no_task(cluster, upid));
        }
    }
    Ok(())
}

fn no_task(cluster: &str, upid: &Upid) -> Refusal {
    none(cluster, "task", upid.as_str())
}

/// The one refusal of a number that this token may not use, or that somebody else's guest has.
pub(super) fn no_new_guest(cluster: &str, vmid: Vmid) -> Refusal {
    Refusal::new(
        "not_found",
        format!("cluster {cluster} has no guest number `{vmid}` that this token may use for a new guest"),
        "Take a free number within the `vmid:` selectors of the token, or name a `pool` that it selects guests by.",
    )
}
