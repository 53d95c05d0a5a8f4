//! What a download needs beside an allowed address: a checksum that means something, a certificate that is checked, and
//! a name that fits its content.

use std::borrow::Cow;

use pvegate_generated::internal::{DOWNLOAD, download};

use crate::args::Args;
use crate::mcp::Refusal;

/// Algorithms whose checksums nobody can forge, with the length of their hex digits.
const ALGORITHMS: [(&str, usize); 3] = [("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// How files of a content are called, in every release that has it.
const ENDINGS: [(&str, &[&str]); 3] = [
    ("iso", &[".iso", ".img"]),
    ("vztmpl", &[".tar.gz", ".tar.xz", ".tar.zst"]),
    ("import", &[".ova", ".qcow2", ".raw", ".vmdk"]),
];

/// Checks a call; any other than a download is in order.
pub(super) fn check(args: &Args) -> Result<(), Refusal> {
    let operation = args.operation();
    let given = |name: &str| args.get(name).map(|value| value.wire());
    let verify = operation.params.iter().any(|parameter| parameter.name == download::VERIFY_CERTIFICATES);
    if verify && given(download::VERIFY_CERTIFICATES).is_some_and(|verify| verify == "0") {
        return Err(refuse(
            "certificates are always verified",
            format!("Leave out `{}`.", download::VERIFY_CERTIFICATES),
        ));
    }
    if operation.name != DOWNLOAD.name {
        return Ok(());
    }
    checksum(given(download::CHECKSUM), given(download::CHECKSUM_ALGORITHM))?;
    name(&given(download::FILENAME).unwrap_or_default(), &given(download::CONTENT).unwrap_or_default())
}

fn checksum(sum: Option<Cow<'_, str>>, algorithm: Option<Cow<'_, str>>) -> Result<(), Refusal> {
    let needed = "a download needs a checksum of algorithm sha256, sha384 or sha512";
    let next = format!(
        "Give `{}` and `{}` as the publisher of the file has them.",
        download::CHECKSUM,
        download::CHECKSUM_ALGORITHM
    );
    let (Some(sum), Some(algorithm)) = (sum, algorithm) else { return Err(refuse(needed, next)) };
    let Some((name, digits)) = ALGORITHMS.iter().find(|(name, _)| *name == algorithm) else {
        return Err(refuse(needed, next));
    };
    if sum.len() != *digits || !sum.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse(&format!("the checksum is none of {name}, which has {digits} hex digits"), next));
    }
    Ok(())
}

fn name(name: &str, content: &str) -> Result<(), Refusal> {
    let Some((_, endings)) = ENDINGS.iter().find(|(known, _)| *known == content) else {
        return Err(refuse("nothing of this content can be downloaded", "Use iso, vztmpl or import.".to_owned()));
    };
    let lower = name.to_ascii_lowercase();
    let fits = |ending: &&&str| lower.len() > ending.len() && lower.ends_with(**ending);
    if endings.iter().find(fits).is_none() {
        let other = ENDINGS.iter().find(|(_, endings)| endings.iter().any(|ending| fits(&ending)));
        let next = match other {
            Some((other, _)) => format!("Its name is one of content `{other}`; or give it an ending of these."),
            None => "Call it by what it is; do not give a file the ending of another kind.".to_owned(),
        };
        let endings = endings.join(", ");
        return Err(refuse(&format!("names of content `{content}` end in {endings}, and this one does not"), next));
    }
    // PVE would replace other characters silently, and answer with another name than was asked for.
    if name.starts_with('.')
        || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    {
        return Err(refuse(
            "the name of the file holds characters that PVE would replace",
            "Use letters, digits, `.`, `_` and `-`.".to_owned(),
        ));
    }
    Ok(())
}

fn refuse(problem: &str, next: String) -> Refusal {
    Refusal::new("invalid_arguments", problem, next)
}
