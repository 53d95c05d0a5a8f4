//! Says which privileges the server's own API token lacks at PVE for a call, all of them at once, so that nobody finds them
//! one refusal after the other. It is advice: PVE decides, and knows more.

use pvegate_generated::internal;
use pvegate_generated::model::Permission;

use super::Named;
use super::values::is;
use crate::args::Args;
use crate::sight::Sight;

/// What is lacking, each as `PRIVILEGE on /path`.
pub(super) fn lacking(sight: &Sight, args: &Args, named: &Named) -> Vec<String> {
    let mut lacking = missing(sight, args, &args.operation().permission).unwrap_or_default();
    if is(args.operation(), &[internal::CREATE_VM, internal::CREATE_CONTAINER]) {
        lacking.extend(new_guest(sight, args, named));
    }
    lacking
}

/// What creating a guest takes, which PVE checks in code. Privileges in a pool count where the call names it, and only
/// there: putting the guest into it later is too late.
fn new_guest(sight: &Sight, args: &Args, named: &Named) -> Vec<String> {
    let own = named.new_guests.iter().map(|vmid| format!("/vms/{vmid}"));
    let pool = args.get(internal::create_vm::POOL).map(|pool| format!("/pool/{}", pool.wire()));
    let places: Vec<String> = own.chain(pool).collect();
    let mut lacking = Vec::new();
    if !places.iter().any(|path| sight.holds(path, "VM.Allocate")) {
        lacking.push(format!("VM.Allocate on {}", places.join(" or ")));
    }
    for storage in made_on(args) {
        let path = format!("/storage/{storage}");
        if !sight.holds(&path, "Datastore.AllocateSpace") {
            lacking.push(format!("Datastore.AllocateSpace on {path}"));
        }
    }
    for network in &named.networks {
        // The zone of a bridge that is no VNet's.
        let vlan = network.vlan.map(|vlan| format!("/{vlan}")).unwrap_or_default();
        let path = format!("/sdn/zones/localnetwork/{}{vlan}", network.bridge);
        if !sight.holds(&path, "SDN.Use") {
            lacking.push(format!("SDN.Use on {path}"));
        }
    }
    lacking
}

fn made_on(args: &Args) -> Vec<String> {
    super::disks::made(args).into_keys().collect()
}

/// What of a permission is missing; nothing where it is given, none where it cannot be told here.
fn missing(sight: &Sight, args: &Args, permission: &Permission) -> Option<Vec<String>> {
    match permission {
        Permission::World
        | Permission::RootOnly
        | Permission::InCode(_)
        | Permission::UserGroup(..)
        | Permission::UserParam(_)
        | Permission::PermModify(_) => None,
        Permission::Perm { path, privs, any, require_param } => {
            if require_param.is_some_and(|name| args.get(name).is_none()) {
                return None;
            }
            let path = filled(args, path)?;
            let without: Vec<&str> = privs.iter().copied().filter(|one| !sight.holds(&path, one)).collect();
            if without.is_empty() || *any && without.len() < privs.len() {
                return Some(Vec::new());
            }
            let between = if *any { " or " } else { " and " };
            Some(vec![format!("{} on {path}", without.join(between))])
        }
        Permission::And(all) => Some(all.iter().filter_map(|one| missing(sight, args, one)).flatten().collect()),
        Permission::Or(any) => {
            let each: Vec<Vec<String>> = any.iter().filter_map(|one| missing(sight, args, one)).collect();
            if each.is_empty() {
                return None;
            }
            if each.iter().any(Vec::is_empty) {
                return Some(Vec::new());
            }
            Some(vec![each.iter().map(|one| one.join(" and ")).collect::<Vec<_>>().join(" or ")])
        }
    }
}

/// An ACL path with the call's arguments in it.
fn filled(args: &Args, template: &str) -> Option<String> {
    let mut path = String::new();
    for step in template.split('/').skip(1) {
        path.push('/');
        match step.strip_prefix('{').and_then(|step| step.strip_suffix('}')) {
            Some(name) => path.push_str(&args.get(name)?.wire()),
            None => path.push_str(step),
        }
    }
    Some(path)
}
