//! Decides what kind of failure PVE's text means: nearly everything is a 500, and only the words tell.

use super::Kind;
use regex::RegexSet;
use std::sync::LazyLock;

/// The first line that matches decides; more telling ones stand first.
const TABLE: &[(Kind, &str)] = &[
    (Kind::Conflict, r"checksum mismatch|detected modified configuration|file changed by other user"),
    (Kind::NoQuorum, r"no quorum|cluster not ready|not quorate"),
    (
        Kind::Locked,
        r"(?:vm|ct) is locked|is locked \(|can't lock file|can't acquire lock|unable to acquire lock|got lock timeout|invalid lock token|trying to acquire",
    ),
    (Kind::Protected, r"protection mode enabled|is protected|protected volume"),
    (
        Kind::Forbidden,
        r"permission check failed|permission denied|only root (?:can|may)|not available with api token|user != root@pam|(?:@[\w.-]+![\w.-]+)' does not look like a valid user name",
    ),
    (Kind::Agent, r"guest agent|^agent error"),
    (Kind::NotRunning, r"\b(?:vm|ct|container) '?\d+'? (?:is )?not running|^not running"),
    (Kind::Running, r"\d+ (?:is )?(?:already )?running|if (?:vm|ct) is running|is running - destroy failed"),
    (Kind::NoSpace, r"no space left|not enough (?:free )?space|out of space|disk quota exceeded"),
    (
        Kind::Unavailable,
        r"is not online|unable to activate storage|is disabled|not installed|can't connect to|error fetching|not in a cluster|not configured|is not available|could not load supported|connection refused|no route to host|have been migrated to|^install '",
    ),
    (
        Kind::InUse,
        r"is not empty|is used by|used in ha|still in use|in use by|if subnets exists|is referenced|base volume|already a pool member",
    ),
    (Kind::Invalid, r"duplicate parameter"),
    (Kind::Exists, r"already exists|already defined|already used|already in use"),
    (
        Kind::NotFound,
        r"does not exist|no such|not found|no rule at position|hostname lookup .* failed|not ha managed|unable to find",
    ),
    (Kind::Timeout, r"timeout|timed out"),
    (
        Kind::Invalid,
        r"parameter verification failed|^400 |failed: 400 |does not look like|unable to parse|invalid format|invalid |missing value|missing property|unexpected property|no options specified|reserved name|wrong (?:file|field)|you can't|cannot |is not supported|not a valid|cannot lookup undefined|option conflicts|too large",
    ),
];

/// `None` only if the table could not be compiled, which tests rule out.
static WORDS: LazyLock<Option<RegexSet>> =
    LazyLock::new(|| RegexSet::new(TABLE.iter().map(|(_, words)| format!("(?im){words}"))).ok());

/// The kind of failure that a text of PVE means.
pub(super) fn kind_of_text(text: &str) -> Option<Kind> {
    let first = WORDS.as_ref()?.matches(text).iter().next()?;
    TABLE.get(first).map(|(kind, _)| *kind)
}

/// The kind of failure that status and text mean together.
pub(super) fn kind_of(status: u16, text: &str, slow: bool) -> Kind {
    match status {
        401 => Kind::Unauthorized,
        403 => Kind::Forbidden,
        404 => kind_of_text(text).filter(|kind| *kind != Kind::Invalid).unwrap_or(Kind::NotFound),
        // Some things that do not exist are told as a bad argument.
        400 => match kind_of_text(text) {
            Some(kind @ (Kind::NotFound | Kind::Exists | Kind::Forbidden | Kind::Conflict)) => kind,
            _ => Kind::Invalid,
        },
        413 | 414 => Kind::TooLarge,
        424 => kind_of_text(text).unwrap_or(Kind::Unavailable),
        429 | 503 => Kind::Busy,
        501 if text.contains("not implemented") => Kind::NotImplemented,
        501 | 506 => Kind::Invalid,
        // An error text of the guest agent with characters that PVE cannot pass on ends like this.
        596 if slow && text.contains("Broken pipe") => Kind::Agent,
        595 | 596 | 599 if text.contains("timed out") => Kind::Timeout,
        502 | 504 | 595..=599 => Kind::NodeDown,
        _ => kind_of_text(text).unwrap_or(Kind::Other),
    }
}

/// Whether something that PVE waited for took too long, whatever else the text says.
pub(super) fn is_out_of_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("timeout") || text.contains("timed out")
}
