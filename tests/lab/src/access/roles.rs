//! PVE's privileges and the roles that it brings along.

/// Every privilege.
pub(crate) const PRIVILEGES: [&str; 47] = [
    "Datastore.Allocate",
    "Datastore.AllocateSpace",
    "Datastore.AllocateTemplate",
    "Datastore.Audit",
    "Group.Allocate",
    "Mapping.Audit",
    "Mapping.Modify",
    "Mapping.Use",
    "Permissions.Modify",
    "Pool.Allocate",
    "Pool.Audit",
    "Realm.Allocate",
    "Realm.AllocateUser",
    "SDN.Allocate",
    "SDN.Audit",
    "SDN.Use",
    "Sys.AccessNetwork",
    "Sys.Audit",
    "Sys.Console",
    "Sys.Incoming",
    "Sys.Modify",
    "Sys.PowerMgmt",
    "Sys.Syslog",
    "User.Modify",
    "VM.Allocate",
    "VM.Audit",
    "VM.Backup",
    "VM.Clone",
    "VM.Config.CDROM",
    "VM.Config.CPU",
    "VM.Config.Cloudinit",
    "VM.Config.Disk",
    "VM.Config.HWType",
    "VM.Config.Memory",
    "VM.Config.Network",
    "VM.Config.Options",
    "VM.Console",
    "VM.GuestAgent.Audit",
    "VM.GuestAgent.FileRead",
    "VM.GuestAgent.FileSystemMgmt",
    "VM.GuestAgent.FileWrite",
    "VM.GuestAgent.Unrestricted",
    "VM.Migrate",
    "VM.PowerMgmt",
    "VM.Replicate",
    "VM.Snapshot",
    "VM.Snapshot.Rollback",
];

/// Names of the roles that exist from the start.
pub(crate) const BUILT_IN: [&str; 17] = [
    "Administrator",
    "NoAccess",
    "PVEAdmin",
    "PVEAuditor",
    "PVEDatastoreAdmin",
    "PVEDatastoreUser",
    "PVEMappingAdmin",
    "PVEMappingUser",
    "PVEPoolAdmin",
    "PVEPoolUser",
    "PVESDNAdmin",
    "PVESDNUser",
    "PVESysAdmin",
    "PVETemplateUser",
    "PVEUserAdmin",
    "PVEVMAdmin",
    "PVEVMUser",
];

/// Whether a name is a privilege.
pub(crate) fn is_privilege(name: &str) -> bool {
    PRIVILEGES.contains(&name)
}

/// Privileges of a built-in role; none for a name that is not one.
pub(crate) fn built_in(role: &str) -> Vec<&'static str> {
    let starting = |prefixes: &[&str]| -> Vec<&'static str> {
        PRIVILEGES.iter().copied().filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix))).collect()
    };
    match role {
        "Administrator" => PRIVILEGES.to_vec(),
        // All but what changes nodes, realms and permissions, and what opens a door to other systems.
        "PVEAdmin" => PRIVILEGES
            .iter()
            .copied()
            .filter(|name| {
                !matches!(
                    *name,
                    "Mapping.Modify"
                        | "Permissions.Modify"
                        | "Realm.Allocate"
                        | "Sys.AccessNetwork"
                        | "Sys.Incoming"
                        | "Sys.Modify"
                        | "Sys.PowerMgmt"
                )
            })
            .collect(),
        "PVEAuditor" => PRIVILEGES.iter().copied().filter(|name| name.ends_with(".Audit")).collect(),
        "PVEDatastoreAdmin" => starting(&["Datastore."]),
        "PVEDatastoreUser" => vec!["Datastore.AllocateSpace", "Datastore.Audit"],
        "PVEMappingAdmin" => starting(&["Mapping."]),
        "PVEMappingUser" => vec!["Mapping.Audit", "Mapping.Use"],
        "PVEPoolAdmin" => starting(&["Pool."]),
        "PVEPoolUser" => vec!["Pool.Audit"],
        "PVESDNAdmin" => starting(&["SDN."]),
        "PVESDNUser" => vec!["SDN.Audit", "SDN.Use"],
        "PVESysAdmin" => vec!["Sys.Audit", "Sys.Console", "Sys.Syslog"],
        "PVETemplateUser" => vec!["VM.Audit", "VM.Clone"],
        "PVEUserAdmin" => vec!["Group.Allocate", "Realm.AllocateUser", "User.Modify"],
        "PVEVMAdmin" => starting(&["VM."]),
        "PVEVMUser" => vec![
            "VM.Audit",
            "VM.Backup",
            "VM.Config.CDROM",
            "VM.Config.Cloudinit",
            "VM.Console",
            "VM.GuestAgent.Audit",
            "VM.GuestAgent.FileRead",
            "VM.GuestAgent.FileSystemMgmt",
            "VM.GuestAgent.FileWrite",
            "VM.PowerMgmt",
        ],
        _ => Vec::new(),
    }
}
