//! The closed vocabularies of the overlay. Each is an enum here, a set of words in TOML, and
//! the same enum again in `generated/`, so that the runtime matches it exhaustively.

/// Declares a vocabulary: `Variant = "word", "what it means"`.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal, $doc:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $doc] #[serde(rename = $word)] $variant,)*
        }

        impl $name {
            /// All of them, in the order of the enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The word in the overlay.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// The variant's name in Rust.
            pub const fn variant(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant)),* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $doc),* }
            }
        }

        impl Vocabulary for $name {
            const NAME: &'static str = stringify!($name);
            fn entries() -> Vec<(&'static str, &'static str, &'static str)> {
                Self::ALL.iter().map(|term| (term.variant(), term.word(), term.meaning())).collect()
            }
        }
    };
}

/// What the emitter needs to write an enum down again.
pub trait Vocabulary {
    /// The enum's name.
    const NAME: &'static str;
    /// Variant, word and meaning of each.
    fn entries() -> Vec<(&'static str, &'static str, &'static str)>;
}

vocabulary! {
    /// The part of the API an operation belongs to: the overlay file that decides about it.
    Area {
        Access = "access", "Users, groups, roles, realms, ACLs, pools.";
        Cluster = "cluster", "Cluster-wide configuration and state.";
        Guests = "guests", "VMs and containers.";
        Network = "network", "Firewall, SDN, node network.";
        Nodes = "nodes", "Nodes, their disks, services and tasks.";
        Storage = "storage", "Storages, their content, backups.";
    }
}

vocabulary! {
    /// How much an operation can hurt.
    Tier {
        Read = "read", "Changes nothing.";
        Low = "low", "Acts on one guest or only adds, and can be reversed; run directly.";
        Destructive = "destructive", "Everything else; only through an approved plan.";
    }
}

vocabulary! {
    /// Why an operation is not offered, or only where the configuration asks for it.
    Reason {
        RootOnly = "root-only", "PVE lets only root@pam itself call it; no API token passes.";
        NoToken = "no-token", "PVE refuses API tokens there.";
        ReturnsCredential = "returns-a-credential", "The answer may hold a password, key or token.";
        TakesCredential = "takes-a-credential", "A password or key of another system would pass through the model.";
        RunsCode = "runs-code", "It runs code, or reads and writes files, in a guest or on a node.";
        Console = "console", "It opens a console or a migration tunnel.";
        Upload = "upload", "It takes a file.";
        NotJson = "not-json", "It does not answer with JSON.";
        Deprecated = "deprecated", "PVE has a successor for it.";
        Internal = "internal", "Only PVE itself calls it.";
        CallsOut = "calls-out", "A node contacts an address that the caller chooses.";
        StartsWork = "starts-work", "The read makes a node or guest work.";
    }
}

vocabulary! {
    /// What a parameter's value names. A role brings its checks.
    Role {
        GuestTarget = "guest-target", "The guest that is acted on.";
        GuestSource = "guest-source", "A guest that is read from or copied.";
        GuestNew = "guest-new", "The vmid of a guest to be.";
        GuestList = "guest-list", "Several guests.";
        GuestRef = "guest-ref", "An id that contains a guest's, such as `vm:100`.";
        Node = "node", "A cluster node.";
        NodeList = "node-list", "Several cluster nodes.";
        Storage = "storage", "A storage.";
        StorageList = "storage-list", "Several storages.";
        Pool = "pool", "A resource pool.";
        Network = "network", "A bridge or VNet.";
        Nic = "nic", "A NIC's property string; its network is inside.";
        Disk = "disk", "A drive's or mount point's property string; its volume is inside.";
        Volume = "volume", "A volume id.";
        Snapshot = "snapshot", "A snapshot's name.";
        Task = "task", "A UPID.";
        ConfigKey = "config-key", "The name of a key in a guest's configuration.";
        Unset = "unset", "Names of settings to delete.";
        Object = "object", "Another thing of PVE's configuration, by its id.";
        Url = "url", "An address that a node will contact.";
        Secret = "secret", "A password, key or token.";
        HostReaching = "host-reaching", "Reaches the host from a guest's configuration.";
        Tags = "tags", "Guest tags.";
        Content = "content", "Text that people or guests read.";
        Digest = "digest", "PVE's optimistic lock; the server supplies it, callers never do.";
        Plain = "plain", "Numbers, switches, filters.";
    }
}

vocabulary! {
    /// What is special about an operation.
    Flag {
        Egress = "egress", "A node contacts other systems.";
        Lockout = "lockout", "It may cut off people, or pvegate itself.";
        Staged = "staged", "It takes effect only with a later apply.";
        Bulk = "bulk", "It reaches guests that its arguments do not enumerate.";
        BulkUnlessListed = "bulk-unless-listed", "It reaches guests of its own choice where its arguments list none.";
        StartsWork = "starts-work", "The read makes a node or guest work.";
        SecretOut = "secret-out", "The answer may hold a secret.";
        SecretIn = "secret-in", "An argument is a secret.";
        Deprecated = "deprecated", "PVE has a successor for it.";
        Experimental = "experimental", "PVE calls it experimental.";
        GrowsOnly = "grows-only", "A size may only grow.";
        Index = "index", "A directory listing of sub-paths.";
    }
}

vocabulary! {
    /// Checks that roles cannot express.
    Guard {
        VmidIsFree = "vmid-is-free", "The new vmid is unused.";
        KeepsOwnAccess = "keeps-own-access", "The cluster stays reachable for pvegate's own token.";
        KeepsManagementAccess = "keeps-management-access", "People keep a way to manage the cluster.";
        VolumeOfGuest = "volume-of-guest", "The volume belongs to a granted guest.";
        OwnTask = "own-task", "The task was started by the same principal.";
        NewFileName = "new-file-name", "No file of that name exists yet.";
    }
}

vocabulary! {
    /// How a lost answer is settled.
    Settle {
        Task = "task", "By finding its task.";
        ReadBack = "read-back", "By reading the object back.";
        Person = "person", "By a person.";
    }
}

vocabulary! {
    /// What a row of a list can belong to.
    Subject {
        Guest = "guest", "A guest by vmid.";
        Node = "node", "A node by name.";
        Storage = "storage", "A storage by id.";
        Pool = "pool", "A pool by id.";
    }
}

vocabulary! {
    /// The grammar of a string.
    Value {
        Plain = "plain", "Any text.";
        Vmid = "vmid", "100 to 999999999.";
        Node = "node", "A node's name.";
        NodePriority = "node-priority", "A node's name, with or without its priority (`pve1:2`).";
        Storage = "storage", "A storage id.";
        Volume = "volume", "`storage:volume`.";
        VolumeOrPath = "volume-or-path", "A volume, or a path of the node.";
        Drive = "drive", "What a drive holds: a volume, a new one (`storage:GiB`), a path of the node, `none` or `cdrom`.";
        Mount = "mount", "What a container mounts: a volume, a new one (`storage:GiB`), or a path of the node.";
        Snapshot = "snapshot", "A snapshot's name.";
        Pool = "pool", "A pool id; nested ones hold `/`.";
        Upid = "upid", "A task id.";
        User = "user", "`name@realm`.";
        ConfigId = "config-id", "A letter, then letters, digits, `-` and `_`.";
        Iface = "iface", "A network interface of a node.";
        Cidr = "cidr", "An address with a prefix length, or a single address.";
        CidrOrAlias = "cidr-or-alias", "The same, or the name of a firewall alias.";
        Mac = "mac", "A MAC address.";
        Size = "size", "A disk size such as `32G`.";
        Growth = "growth", "A new disk size such as `32G`, or what to add to it such as `+2G`.";
        Tag = "tag", "One guest tag.";
        DnsName = "dns-name", "Labels of letters, digits and inner hyphens, with dots between them.";
        Encoded = "encoded", "Text that PVE keeps percent-encoded.";
    }
}
