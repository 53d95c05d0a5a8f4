//! Decides what `clusters.json` says: how each cluster is reached, how its certificate is recognised,
//! with which API token, and which guests are protected.

use super::credential_file::{SECRET_LIMIT, read_credential};
use super::{ConfigError, Document, Problems, Table};
use crate::values::{Secret, TokenId, UserId, Vmid, text_value};
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

text_value!(
    /// What operators and callers call a cluster.
    ClusterName,
    "a cluster name",
    "letters, digits, `-`, `_` and `.`, beginning with a letter or digit, at most 64 characters",
    |text| text.len() <= 64
        && !text.contains("..")
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
);

/// All clusters of this server.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    by_name: BTreeMap<ClusterName, Arc<Cluster>>,
    opt_in: BTreeSet<String>,
    url_allow: Vec<String>,
}

/// One cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its name.
    pub name: ClusterName,
    /// Where its API answers, in order of preference; at least one.
    pub endpoints: Vec<Endpoint>,
    /// How its certificates are recognised.
    pub trust: Trust,
    /// Whom the server is to PVE.
    pub token: ApiToken,
    /// Guests that refuse whatever interrupts or destroys them.
    pub protected_vmids: BTreeSet<Vmid>,
    /// The same by tag, in lower case.
    pub protected_tags: BTreeSet<String>,
    /// How old its list of guests may be.
    pub resource_ttl: Duration,
    /// How many replicas of this server share PVE's few workers.
    pub replicas: NonZeroUsize,
    /// Whether it is for experiments: protection only warns there, and a person may approve what they planned.
    pub lab: bool,
}

/// An API address of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Scheme, host and port, without a path: `https://pve1.example.org:8006`.
    pub base: String,
}

/// How a certificate is recognised. There is no way not to check it.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// The only accepted roots, in PEM.
    pub ca_pem: Option<Arc<[u8]>>,
    /// SHA-256 of the only accepted server certificates (one for each endpoint's node).
    pub fingerprints: Vec<[u8; 32]>,
    /// The name that the certificate has to hold, where it differs from the address.
    pub server_name: Option<ServerName<'static>>,
}

/// A PVE API token.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// `user@realm!name`.
    pub id: TokenId,
    /// Its secret.
    pub secret: Secret,
}

impl Clusters {
    /// Reads `clusters.json`, or the same data as TOML.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let Document { mut root, mut problems } = Document::load(path)?;
        root.version_one(&mut problems);
        let mut policy = Policy::default();
        if let Some(table) = root.table("policy", &mut problems) {
            policy = Policy::read(table, &mut problems);
        }
        let devices = root.table("devices", &mut problems);
        root.finish(&["version", "devices", "policy"], &mut problems);
        let mut by_name = BTreeMap::new();
        match devices.map(Table::into_entries) {
            Some(entries) if !entries.is_empty() => {
                for (name, value) in entries {
                    if let Some(cluster) = Cluster::read(&name, value, &policy, &mut problems) {
                        by_name.insert(cluster.name.clone(), Arc::new(cluster));
                    }
                }
            }
            _ => problems.at("key `devices`", "has to name at least one cluster"),
        }
        problems.finish(Self { by_name, opt_in: policy.opt_in, url_allow: policy.url_allow })
    }

    /// The cluster with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Cluster>> {
        self.by_name.iter().find(|(known, _)| known.as_str() == name).map(|(_, cluster)| cluster)
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Cluster>> {
        self.by_name.values()
    }

    /// The secrets that the server holds for them, for masking.
    pub fn secrets(&self) -> impl Iterator<Item = Secret> {
        self.by_name.values().map(|cluster| cluster.token.secret.clone())
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none, which only an unused default is.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Operations that are offered only where the operator says so (`GET /access/users`).
    pub fn opt_in(&self) -> &BTreeSet<String> {
        &self.opt_in
    }

    /// Hosts that nodes may be told to contact, as the operator wrote them.
    pub fn url_allow(&self) -> &[String] {
        &self.url_allow
    }
}

/// What holds for all clusters of the file.
struct Policy {
    resource_ttl: Duration,
    replicas: NonZeroUsize,
    opt_in: BTreeSet<String>,
    url_allow: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            resource_ttl: Duration::from_secs(10),
            replicas: NonZeroUsize::MIN,
            opt_in: BTreeSet::new(),
            url_allow: Vec::new(),
        }
    }
}

impl Policy {
    fn read(mut table: Table, problems: &mut Problems) -> Self {
        let mut policy = Self::default();
        if let Some(ttl) = resource_ttl(&mut table, problems) {
            policy.resource_ttl = ttl;
        }
        if let Some(number) = table.number("replicas", problems) {
            match usize::try_from(number).ok().and_then(NonZeroUsize::new).filter(|number| number.get() <= 64) {
                Some(replicas) => policy.replicas = replicas,
                None => {
                    problems.at(table.place("replicas"), "has to be 1 to 64, the servers that share these clusters");
                }
            }
        }
        policy.opt_in = table.texts("opt_in", problems).unwrap_or_default().into_iter().collect();
        policy.url_allow = table.texts("url_allow", problems).unwrap_or_default();
        table.finish(&["resource_cache_ttl_secs", "replicas", "opt_in", "url_allow"], problems);
        policy
    }
}

fn resource_ttl(table: &mut Table, problems: &mut Problems) -> Option<Duration> {
    const KEY: &str = "resource_cache_ttl_secs";
    let seconds = table.number(KEY, problems)?;
    if seconds > 300 {
        problems.at(table.place(KEY), "at most 300, or lists would show guests that are long gone");
    }
    Some(Duration::from_secs(seconds))
}

const CLUSTER_KEYS: &[&str] = &[
    "endpoint",
    "endpoints",
    "token_id",
    "token_secret",
    "token_secret_file",
    "token_secret_env",
    "ca_pem_path",
    "fingerprint",
    "fingerprints",
    "server_name",
    "protected_vmids",
    "protected_tags",
    "resource_cache_ttl_secs",
    "lab",
];

impl Cluster {
    fn read(name: &str, value: Value, policy: &Policy, problems: &mut Problems) -> Option<Self> {
        let name = ClusterName::parse(name).map_err(|error| problems.at("key `devices`", error.to_string())).ok()?;
        let mut table = Table::new(format!("cluster `{name}`"), value, problems)?;
        let endpoints = endpoints(&mut table, problems);
        let trust = trust(&mut table, problems);
        let token = api_token(&mut table, problems);
        let protected_vmids = protected_vmids(&mut table, problems);
        // The tag that the seed protects when the key is absent.
        let protected_tags = table.texts("protected_tags", problems).unwrap_or_else(|| vec!["protected".to_owned()]);
        let resource_ttl = resource_ttl(&mut table, problems).unwrap_or(policy.resource_ttl);
        let lab = match table.take("lab") {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) => true,
            Some(_) => {
                problems.at(table.place("lab"), "has to be true or false");
                false
            }
        };
        table.finish(CLUSTER_KEYS, problems);
        Some(Self {
            name,
            endpoints,
            trust: trust?,
            token: token?,
            protected_vmids,
            protected_tags: protected_tags.into_iter().map(|tag| tag.to_lowercase()).collect(),
            resource_ttl,
            replicas: policy.replicas,
            lab,
        })
    }
}

/// `endpoint` for one, `endpoints` for several.
fn endpoints(table: &mut Table, problems: &mut Problems) -> Vec<Endpoint> {
    let (key, texts) = match (table.has("endpoint"), table.has("endpoints")) {
        (true, true) => {
            problems.at(table.place("endpoint"), "give `endpoint` or `endpoints`, not both");
            table.take("endpoint");
            table.take("endpoints");
            return Vec::new();
        }
        (false, true) => ("endpoints", table.texts("endpoints", problems).unwrap_or_default()),
        (true, false) => ("endpoint", table.text("endpoint", problems).into_iter().collect()),
        (false, false) => {
            problems
                .at(table.place("endpoint"), "is missing; write the API address, like https://pve1.example.org:8006");
            return Vec::new();
        }
    };
    if key == "endpoints" && texts.is_empty() {
        problems.at(table.place(key), "has to hold at least one address");
    }
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for text in texts {
        match Endpoint::parse(&text) {
            Ok(endpoint) if endpoints.contains(&endpoint) => {
                problems.at(table.place(key), format!("{} is listed twice", endpoint.base));
            }
            Ok(endpoint) => endpoints.push(endpoint),
            Err(message) => problems.at(table.place(key), message),
        }
    }
    endpoints
}

impl Endpoint {
    /// PVE's port.
    const PORT: u16 = 8006;

    /// Reads `https://host:port`, or `host` and `host:port` without the scheme.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "has to be an address like https://pve1.example.org:8006";
        let full = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let url = reqwest::Url::parse(&full).map_err(|_| FORM)?;
        if url.scheme() != "https" {
            return Err("has to begin with https://; PVE's API token would travel in the clear otherwise");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not hold a user or password; use token_id and its secret");
        }
        if !matches!(url.path(), "" | "/" | "/api2/json" | "/api2/json/")
            || url.query().is_some()
            || url.fragment().is_some()
        {
            return Err("has to end after the port; the path of each operation is added by the server");
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(FORM)?;
        // A port of 443 is dropped by the parser as the default of https, so look at the text.
        let default = if full.trim_end_matches('/').ends_with(":443") { 443 } else { Self::PORT };
        Ok(Self { base: format!("https://{host}:{}", url.port().unwrap_or(default)) })
    }
}

fn trust(table: &mut Table, problems: &mut Problems) -> Option<Trust> {
    let names_ca = table.has("ca_pem_path");
    let ca_pem = table.text("ca_pem_path", problems).and_then(|path| {
        let path = beside(problems.file(), &path);
        // A pipe would wait for a writer, and a device may have no end.
        if std::fs::metadata(&path).is_ok_and(|facts| !facts.is_file()) {
            problems.at(table.place("ca_pem_path"), format!("{} is not a regular file", path.display()));
            return None;
        }
        match std::fs::read(&path) {
            Ok(pem) if pem.len() <= 1 << 20 => Some(Arc::from(pem)),
            Ok(_) => {
                problems.of(&path, "is larger than a CA file can be");
                None
            }
            Err(error) => {
                problems.at(table.place("ca_pem_path"), format!("{}: {error}", path.display()));
                None
            }
        }
    });
    let mut texts = table.texts("fingerprints", problems).unwrap_or_default();
    texts.extend(table.text("fingerprint", problems));
    let mut fingerprints = Vec::new();
    for text in &texts {
        match fingerprint(text) {
            Some(bytes) => fingerprints.push(bytes),
            None => problems.at(
                table.place("fingerprint"),
                "has to be the SHA-256 of the server's certificate: 64 hex digits, with or without `:` between pairs",
            ),
        }
    }
    let server_name = table.text("server_name", problems).and_then(|name| {
        let name = ServerName::try_from(name).ok();
        if name.is_none() {
            problems.at(table.place("server_name"), "has to be a host name or an IP address");
        }
        name
    });
    if !names_ca && texts.is_empty() {
        problems.at(
            table.place("ca_pem_path"),
            "is missing: name the cluster's CA (on a node: /etc/pve/pve-root-ca.pem), or give `fingerprint`, the SHA-256 of the node's certificate",
        );
        return None;
    }
    Some(Trust { ca_pem, fingerprints, server_name })
}

fn fingerprint(text: &str) -> Option<[u8; 32]> {
    let digits: String =
        text.strip_prefix("sha256:").unwrap_or(text).chars().filter(|character| *character != ':').collect();
    crate::tokens::hex_digest(&digits)
}

/// Which part of a token id is wrong. It is not repeated: whole tokens, secret and all, are pasted there.
fn not_a_token_id(text: &str) -> String {
    let (user, token) = text.split_once('!').unwrap_or((text, ""));
    let wrong = if text.contains('=') {
        "it holds `=`, and what stands behind that is the secret, which has a key of its own"
    } else if !text.contains('!') {
        "it has no `!` with the name of a token behind it"
    } else if token.contains('!') {
        "it has more than one `!`"
    } else if UserId::parse(user).is_err() {
        "what stands before `!` is not a user with a realm"
    } else {
        "what stands behind `!` is not a letter and then letters, digits, `.`, `-` and `_`"
    };
    format!("is not an API token id like pvegate@pve!mcp: {wrong}")
}

fn api_token(table: &mut Table, problems: &mut Problems) -> Option<ApiToken> {
    let id = if let Some(text) = table.text("token_id", problems) {
        TokenId::parse(&text).map_err(|_| problems.at(table.place("token_id"), not_a_token_id(&text))).ok()
    } else {
        problems.at(table.place("token_id"), "is missing; write the API token's id, like pvegate@pve!mcp");
        None
    };
    let given: Vec<&str> =
        ["token_secret", "token_secret_file", "token_secret_env"].into_iter().filter(|key| table.has(key)).collect();
    if given.len() != 1 {
        problems.at(
            table.place("token_secret_file"),
            "give the API token's secret in exactly one way: token_secret_file, token_secret_env or token_secret",
        );
        for key in given {
            table.take(key);
        }
        return None;
    }
    let secret = if let Some(secret) = table.text("token_secret", problems) {
        Some(Secret::new(secret))
    } else if let Some(path) = table.text("token_secret_file", problems) {
        let path = beside(problems.file(), &path);
        match read_credential(&path, SECRET_LIMIT) {
            Ok(text) => Some(Secret::new(text.trim_end().to_owned())),
            Err(message) => {
                problems.of(&path, message);
                None
            }
        }
    } else if let Some(variable) = table.text("token_secret_env", problems) {
        let found = std::env::var(&variable).ok().filter(|value| !value.is_empty());
        if found.is_none() {
            problems.at(table.place("token_secret_env"), format!("the environment variable {variable} is not set"));
        }
        found.map(Secret::new)
    } else {
        None
    }?;
    // PVE makes UUIDs; anything that could end a header line is not a secret of PVE's.
    if secret.is_empty() || secret.expose().len() > 256 || !secret.expose().bytes().all(|byte| byte.is_ascii_graphic())
    {
        problems.at(
            table.place("token_secret_file"),
            "the secret has to be one line of printable characters, as PVE showed it when the token was made",
        );
        return None;
    }
    Some(ApiToken { id: id?, secret })
}

fn protected_vmids(table: &mut Table, problems: &mut Problems) -> BTreeSet<Vmid> {
    let mut vmids = BTreeSet::new();
    for item in table.list("protected_vmids", problems).unwrap_or_default() {
        match item.as_u64().map(Vmid::from_number) {
            Some(Ok(vmid)) => {
                if !vmids.insert(vmid) {
                    problems.at(table.place("protected_vmids"), format!("{vmid} is listed twice"));
                }
            }
            Some(Err(error)) => problems.at(table.place("protected_vmids"), error.to_string()),
            None => problems.at(table.place("protected_vmids"), "has to hold guest numbers"),
        }
    }
    vmids
}

/// A path in a file is relative to the file.
fn beside(file: &Path, path: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(path), |folder| folder.join(path))
}
