//! Decides which addresses a node may be made to contact: those of a list of exact hosts, and none without one.
//!
//! A node reaches what its callers cannot, so a host is named by the operator, with its port where that is not 443, and
//! compared as a whole. What the name resolves to here is a second line, not proof: the node resolves it again. A host
//! whose addresses are not public is listed as `internal:HOST`.

mod address;
mod download;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use pvegate_generated::terms::Role;
use reqwest::Url;

use crate::args::Args;
use crate::mcp::Refusal;
use crate::untrusted::shown;

/// The port of an address that names none.
const HTTPS: u16 = 443;
/// Longest address that is looked at, in bytes.
const LONGEST: usize = 2048;
/// How long a name may take to resolve.
const PATIENCE: Duration = Duration::from_secs(5);

/// What [`Resolve::resolve`] returns.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>>;

/// Finds the addresses of a name.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// All of them.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The system's resolver.
#[derive(Debug)]
pub struct System;

impl Resolve for System {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move {
            let found = tokio::time::timeout(PATIENCE, tokio::net::lookup_host((host, port))).await;
            Ok(found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??.map(|address| address.ip()).collect())
        })
    }
}

/// Which addresses nodes may contact.
#[derive(Clone, Debug)]
pub struct UrlPolicy {
    allowed: Arc<[Entry]>,
    resolver: Arc<dyn Resolve>,
}

/// One entry of the list: `[internal:]HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    host: String,
    port: u16,
    internal: bool,
}

impl Default for UrlPolicy {
    /// Nothing is allowed.
    fn default() -> Self {
        Self { allowed: Arc::new([]), resolver: Arc::new(System) }
    }
}

impl UrlPolicy {
    /// Reads the list. Every entry that is none is a sentence for the operator.
    pub fn new<T: AsRef<str>>(list: impl IntoIterator<Item = T>) -> Result<Self, Vec<String>> {
        Self::with_resolver(list, Arc::new(System))
    }

    /// The same with another resolver.
    pub fn with_resolver<T: AsRef<str>>(
        list: impl IntoIterator<Item = T>,
        resolver: Arc<dyn Resolve>,
    ) -> Result<Self, Vec<String>> {
        let (mut allowed, mut problems) = (Vec::new(), Vec::new());
        for text in list {
            let text = text.as_ref();
            match Entry::parse(text) {
                Some(entry) => allowed.push(entry),
                None => problems.push(format!(
                    "`{}` is no host: write `downloads.example.org`, `mirror.example.org:8443` or `internal:10.0.0.5`, without a scheme or path",
                    shown(text, 120)
                )),
            }
        }
        if problems.is_empty() { Ok(Self { allowed: allowed.into(), resolver }) } else { Err(problems) }
    }

    /// Whether a node may fetch from this URL.
    pub async fn check(&self, url: &str) -> Result<(), Refusal> {
        self.is_on()?;
        let (host, port) = read_url(url)?;
        self.check_listed(&host, port, |entry| entry.host == host && entry.port == port).await
    }

    /// Whether a node may contact a host that is given without a scheme, with or without a port and a path behind it.
    pub async fn check_host(&self, text: &str) -> Result<(), Refusal> {
        self.is_on()?;
        let (host, port) = read_host(text)?;
        let fits = |entry: &Entry| entry.host == host && port.is_none_or(|port| port == entry.port);
        self.check_listed(&host, port.unwrap_or(HTTPS), fits).await
    }

    /// Checks every address that a call names, and of a download what else has to be in order.
    pub async fn check_call(&self, args: &Args) -> Result<(), Refusal> {
        for arg in args.iter().filter(|arg| arg.parameter.role == Role::Url) {
            let text = arg.value.wire();
            if text.contains("://") { self.check(&text).await? } else { self.check_host(&text).await? }
        }
        download::check(args)
    }

    fn is_on(&self) -> Result<(), Refusal> {
        if self.allowed.is_empty() {
            return Err(Refusal::new(
                "not_offered",
                "this server lets nodes contact no address that a caller chooses, because no host is allowed",
                "An operator can list hosts in `url_allow` in the policy of the cluster file.",
            ));
        }
        Ok(())
    }

    async fn check_listed(&self, host: &str, port: u16, fits: impl Fn(&Entry) -> bool) -> Result<(), Refusal> {
        let listed = || self.allowed.iter().filter(|entry| fits(entry));
        if listed().any(|entry| entry.internal) {
            return Ok(());
        }
        if listed().next().is_none() {
            return Err(Refusal::new(
                "not_granted",
                format!("no node may contact {} on port {port}: it is not among the allowed hosts", shown(host, 120)),
                "Use an allowed host, or ask an operator to list this one in `url_allow`.",
            ));
        }
        let addresses = match host.trim_matches(['[', ']']).parse() {
            Ok(address) => vec![address],
            Err(_) => self.resolver.resolve(host, port).await.map_err(|error| {
                Refusal::new(
                    "not_found",
                    format!("{host} is allowed, but its addresses cannot be found: {error}"),
                    "Check the name, or try again later.",
                )
            })?,
        };
        // One that is not public is enough: the node may take any of them.
        match addresses.iter().find(|address| !address::is_public(**address)) {
            Some(address) => Err(Refusal::new(
                "not_granted",
                format!("{host} is allowed, but {address} among its addresses is not a public one"),
                format!("If that is meant, an operator can list it as `internal:{host}`."),
            )),
            None if addresses.is_empty() => Err(Refusal::new(
                "not_found",
                format!("{host} is allowed, but it has no address"),
                "Check the name, or try again later.",
            )),
            None => Ok(()),
        }
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        let (internal, text) = match text.strip_prefix("internal:") {
            Some(rest) if !rest.bytes().all(|byte| byte.is_ascii_digit()) => (true, rest),
            _ => (false, text),
        };
        if text.is_empty()
            || text
                .chars()
                .any(|c| matches!(c, '/' | '?' | '#' | '@' | '\\' | '%' | '*') || c.is_whitespace() || c.is_control())
        {
            return None;
        }
        let url = Url::parse(&format!("https://{text}/")).ok()?;
        let host = url.host_str()?.trim_end_matches('.').to_owned();
        (!host.is_empty()).then(|| Self { host, port: url.port().unwrap_or(HTTPS), internal })
    }
}

fn refuse(problem: &str) -> Refusal {
    Refusal::new(
        "invalid_arguments",
        format!("the address cannot be used: {problem}"),
        "Write it like https://downloads.example.org/images/debian.iso.",
    )
}

/// Host and port of a URL that every reader of URLs reads alike: PVE's own is another than this one.
fn read_url(text: &str) -> Result<(String, u16), Refusal> {
    plain(text)?;
    let Some((scheme, rest)) = text.split_once("://") else { return Err(refuse("it has no scheme")) };
    if !scheme.eq_ignore_ascii_case("https") {
        return Err(refuse("only https is allowed"));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = read_authority(authority)?;
    let read = Url::parse(text).map_err(|_| refuse("it is no URL"))?;
    let port = port.unwrap_or(HTTPS);
    if read.host_str().map(|host| host.trim_end_matches('.')) != Some(&host) || read.port().unwrap_or(HTTPS) != port {
        return Err(refuse("its host is written in an unusual way"));
    }
    Ok((host, port))
}

/// Host and port of what is no URL: `nas.example.org`, `10.0.0.5:3260`, `registry.example.org/name:tag`.
fn read_host(text: &str) -> Result<(String, Option<u16>), Refusal> {
    plain(text)?;
    if let Ok(IpAddr::V6(address)) = text.parse() {
        return Ok((format!("[{address}]"), None));
    }
    read_authority(text.split('/').next().unwrap_or_default())
}

fn plain(text: &str) -> Result<(), Refusal> {
    if text.len() > LONGEST {
        return Err(refuse("it is too long"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
        return Err(refuse("it holds characters that are none of a URL; encode them, and names of hosts as punycode"));
    }
    Ok(())
}

/// A host in lower case without a final dot, and a port. The host is written as the parser would write it.
fn read_authority(text: &str) -> Result<(String, Option<u16>), Refusal> {
    if text.contains('@') {
        return Err(refuse("it holds a user or password"));
    }
    let unusual = || refuse("its host is written in an unusual way");
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port = match port {
        None => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse::<u16>().map_err(|_| refuse("its port is none"))?)
        }
        Some(_) => return Err(refuse("its port is none")),
    };
    let host = host.to_ascii_lowercase();
    let read = Url::parse(&format!("https://{host}/")).map_err(|_| unusual())?;
    if host.is_empty() || read.host_str() != Some(&host) || read.port().is_some() || host.ends_with("..") {
        return Err(unusual());
    }
    Ok((host.trim_end_matches('.').to_owned(), port))
}
