//! Entries of everything that PVE keeps as sections: jobs, HA, SDN, mappings, notifications, plugins.

use serde_json::json;

use crate::state::Cluster;

pub(super) fn seed(cluster: &mut Cluster) {
    jobs(cluster);
    high_availability(cluster);
    network(cluster);
    mappings(cluster);
    notifications(cluster);
    plugins(cluster);
}

fn jobs(cluster: &mut Cluster) {
    let put = &mut cluster.sections;
    put.put("/cluster/backup", "backup-nightly", json!({"type": "vzdump", "enabled": 1, "schedule": "02:00", "all": 1, "storage": "nas", "mode": "snapshot", "compress": "zstd", "notes-template": "{{guestname}}", "prune-backups": {"keep-daily": "7", "keep-last": "3"}}));
    put.put("/cluster/backup", "backup-ci", json!({"type": "vzdump", "enabled": 0, "schedule": "sun 04:00", "pool": "ci", "storage": "pbs", "mode": "snapshot", "comment": "Weekly"}));
    if cluster.host.clustered && cluster.guests.contains_key(&100) {
        put.put(
            "/cluster/replication",
            "100-0",
            json!({"type": "local", "source": "pve1", "target": "pve2", "guest": 100, "jobnum": 0, "schedule": "*/15"}),
        );
    }
    put.put(
        "/cluster/jobs/realm-sync",
        "sync-corp",
        json!({"type": "realm-sync", "realm": "corp", "enabled": 1, "schedule": "hourly", "scope": "users"}),
    );
}

/// A node alone has none. Before there were rules, a resource named a group of nodes.
fn high_availability(cluster: &mut Cluster) {
    if !cluster.host.clustered {
        return;
    }
    let rules = cluster.release.has_rules();
    let mut kept =
        json!({"type": "vm", "state": "started", "max_restart": 2, "max_relocate": 1, "comment": "keep it up"});
    if let Some(kept) = kept.as_object_mut() {
        let (name, value) = if rules { ("failback", json!(1)) } else { ("group", json!("main")) };
        kept.insert(name.to_owned(), value);
    }
    let present = |vmid: u32| cluster.guests.contains_key(&vmid);
    let (vm, container) = (present(107), present(108));
    let put = &mut cluster.sections;
    if vm {
        put.put("/cluster/ha/resources", "vm:107", kept);
    }
    if container {
        put.put(
            "/cluster/ha/resources",
            "ct:108",
            json!({"type": "ct", "state": "stopped", "max_restart": 1, "max_relocate": 1}),
        );
    }
    if rules && vm {
        put.put(
            "/cluster/ha/rules",
            "prefer-pve1",
            json!({"type": "node-affinity", "resources": "vm:107", "nodes": "pve1:2", "strict": 0, "order": 1}),
        );
    }
    if !rules {
        put.put(
            "/cluster/ha/groups",
            "main",
            json!({"type": "group", "nodes": "pve1:2,pve2", "restricted": 0, "nofailback": 0}),
        );
    }
}

fn network(cluster: &mut Cluster) {
    let dns_key = cluster.secrets.of("sdn-dns-key");
    let ipam_token = cluster.secrets.of("sdn-ipam-token");
    let ipam_url = cluster.secrets.url("sdn-ipam-url", "netbox.lab.test");
    let put = &mut cluster.sections;
    put.put("/cluster/sdn/zones", "zone1", json!({"type": "simple", "ipam": "pve", "mtu": 1450}));
    put.put("/cluster/sdn/zones", "vlans", json!({"type": "vlan", "bridge": "vmbr0", "ipam": "pve"}));
    put.put("/cluster/sdn/vnets", "vnet1", json!({"type": "vnet", "zone": "zone1", "alias": "Lab network"}));
    put.put("/cluster/sdn/vnets", "vnet20", json!({"type": "vnet", "zone": "vlans", "tag": 20, "vlanaware": 1}));
    put.put("/cluster/sdn/vnets/{vnet}/subnets", "zone1-198.51.100.0-24", json!({"type": "subnet", "vnet": "vnet1", "zone": "zone1", "cidr": "198.51.100.0/24", "network": "198.51.100.0", "mask": "24", "gateway": "198.51.100.1", "id": "zone1-198.51.100.0-24"}));
    put.put(
        "/cluster/sdn/controllers",
        "bgppve1",
        json!({"type": "bgp", "asn": 65000, "node": "pve1", "peers": "192.0.2.1", "ebgp": 0}),
    );
    put.put("/cluster/sdn/dns", "pdns", json!({"type": "powerdns", "url": "http://pdns.lab.test:8081/api/v1/servers/localhost", "key": dns_key, "ttl": 300}));
    put.put("/cluster/sdn/ipams", "pve", json!({"type": "pve"}));
    put.put("/cluster/sdn/ipams", "netbox", json!({"type": "netbox", "url": ipam_url, "token": ipam_token}));
    put.put(
        "/cluster/sdn/fabrics/fabric",
        "fab1",
        json!({"protocol": "openfabric", "ip_prefix": "10.80.0.0/24", "hello_interval": 3}),
    );
    put.put("/cluster/sdn/fabrics/node", "fab1_pve1", json!({"fabric_id": "fab1", "node_id": "pve1", "protocol": "openfabric", "ip": "10.80.0.1", "interfaces": ["name=eno2"]}));
    put.put("/cluster/sdn/prefix-lists", "pl1", json!({"entries": ["seq=10,action=permit,prefix=10.0.0.0/8"]}));
    put.put("/cluster/sdn/route-maps/entries", "rm1/10", json!({"route-map-id": "rm1", "order": 10, "action": "permit", "match": ["key=ip-address-prefix-list,value=pl1"]}));
}

fn mappings(cluster: &mut Cluster) {
    let put = &mut cluster.sections;
    put.put(
        "/cluster/mapping/pci",
        "gpu",
        json!({"description": "Graphics card", "map": ["node=pve1,path=0000:01:00.0,id=10de:2684,iommugroup=14"]}),
    );
    put.put(
        "/cluster/mapping/usb",
        "dongle",
        json!({"description": "Licence dongle", "error": "", "map": ["node=pve1,id=0529:0001"]}),
    );
    put.put("/cluster/mapping/dir", "shared", json!({"description": "", "map": ["node=pve1,path=/srv/shared"]}));
    put.put(
        "/cluster/qemu/custom-cpu-models",
        "lab-cpu",
        json!({"reported-model": "kvm64", "flags": "+aes;+avx2", "hidden": 0, "phys-bits": "host"}),
    );
}

fn notifications(cluster: &mut Cluster) {
    let hook_url = cluster.secrets.url("webhook-url", "hooks.lab.test");
    let hook_header = cluster.secrets.of("webhook-header");
    let hook_secret = cluster.secrets.of("webhook-secret");
    let gotify = cluster.secrets.url("gotify-url", "gotify.lab.test");
    let put = &mut cluster.sections;
    put.put(
        "/cluster/notifications/endpoints/sendmail",
        "mail-to-root",
        json!({"mailto-user": ["root@pam"], "origin": "builtin", "comment": "Mails to root"}),
    );
    put.put("/cluster/notifications/endpoints/smtp", "relay", json!({"server": "mx.lab.test", "port": 587, "mode": "starttls", "username": "alerts", "from-address": "pve@lab.test", "mailto": ["ops@lab.test"], "origin": "user-created"}));
    put.put("/cluster/notifications/endpoints/gotify", "phone", json!({"server": gotify, "origin": "user-created"}));
    put.put("/cluster/notifications/endpoints/webhook", "chat", json!({"url": hook_url, "method": "post", "header": [format!("name=Authorization,value={hook_header}")], "secret": [format!("name=token,value={hook_secret}")], "body": "e30=", "origin": "user-created"}));
    put.put(
        "/cluster/notifications/matchers",
        "default-matcher",
        json!({"mode": "all", "target": ["mail-to-root"], "origin": "builtin", "comment": "Everything to root"}),
    );
    put.put(
        "/cluster/notifications/matchers",
        "errors",
        json!({"match-severity": ["error", "warning"], "target": ["phone", "chat"], "origin": "user-created"}),
    );
}

fn plugins(cluster: &mut Cluster) {
    let acme_data = cluster.secrets.of("acme-plugin-data");
    let metric_token = cluster.secrets.of("metric-token");
    let client_key = cluster.secrets.of("realm-client-key");
    let bind_password = cluster.secrets.of("realm-bind-password");
    let put = &mut cluster.sections;
    put.put("/cluster/acme/plugins", "standalone", json!({"type": "standalone"}));
    put.put(
        "/cluster/acme/plugins",
        "dns1",
        json!({"type": "dns", "api": "cf", "data": format!("CF_Token={acme_data}\n"), "validation-delay": 30}),
    );
    put.put("/cluster/acme/account", "default", json!({"account": {"status": "valid", "contact": ["mailto:root@lab.test"]}, "directory": "https://acme.lab.test/directory", "location": "https://acme.lab.test/acct/1", "tos": "https://acme.lab.test/tos"}));
    put.put("/cluster/metrics/server", "influx", json!({"type": "influxdb", "disable": 0, "server": "influx.lab.test", "port": 8086, "influxdbproto": "https", "organization": "lab", "bucket": "pve", "token": metric_token}));
    put.put("/access/domains", "pam", json!({"type": "pam", "comment": "Linux PAM standard authentication"}));
    put.put(
        "/access/domains",
        "pve",
        json!({"type": "pve", "comment": "Proxmox VE authentication server", "default": 1}),
    );
    put.put("/access/domains", "sso", json!({"type": "openid", "issuer-url": "https://sso.lab.test/realms/lab", "client-id": "pve", "client-key": client_key, "comment": "Single sign-on"}));
    put.put("/access/domains", "corp", json!({"type": "ldap", "server1": "ldap.lab.test", "base_dn": "dc=lab,dc=test", "user_attr": "uid", "bind_dn": "cn=pve,dc=lab,dc=test", "password": bind_password}));
}
