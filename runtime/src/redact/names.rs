//! Decides which names stand for secrets, in data at any depth and before `=` in text.

use serde_json::{Map, Value};

/// Names that are secrets wherever they stand, in lower case without `-` and `_`.
const SECRET: &[&str] = &[
    "accesskey",
    "apikey",
    "apitoken",
    "args",
    "authorization",
    "cakey",
    "certificatekey",
    "certkey",
    "challenge",
    "cipassword",
    "clientkey",
    "clientsecret",
    "crypted",
    "csrfpreventiontoken",
    "eabhmackey",
    "encryptionkey",
    "env",
    "hmackey",
    "keyring",
    "keys",
    "masterkey",
    "otp",
    "outofbandpassword",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pskkey",
    "pwd",
    "recovery",
    "recoverykeys",
    "secret",
    "secretkey",
    "secrets",
    "sharedsecret",
    "sshprivatekey",
    "tfachallenge",
    "ticket",
    "token",
    "totp",
    "vncticket",
];

/// Endings that make a longer name a secret (`smtp_password`, `PGPASSWORD`, `gotify-token`).
const ENDINGS: &[&str] =
    &["password", "passwd", "passphrase", "secret", "apikey", "privatekey", "token", "encryptionkey"];

/// Names that end like a secret and are none.
const HARMLESS: &[&str] = &["locktoken", "nexttoken", "pagetoken"];

/// Whether a name stands for a secret.
pub fn is_secret(name: &str) -> bool {
    if name.len() > 64 {
        return ENDINGS.iter().any(|ending| normal(name).ends_with(ending));
    }
    let mut buffer = [0_u8; 64];
    let mut length = 0;
    for byte in name.bytes().filter(|byte| !matches!(byte, b'-' | b'_')) {
        if let Some(place) = buffer.get_mut(length) {
            *place = byte.to_ascii_lowercase();
            length += 1;
        }
    }
    let Some(normal) = buffer.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()) else { return false };
    !HARMLESS.contains(&normal)
        && (SECRET.binary_search(&normal).is_ok() || ENDINGS.iter().any(|ending| normal.ends_with(ending)))
}

fn normal(name: &str) -> String {
    name.chars().filter(|character| !matches!(character, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// Names in this object that are secrets because of what stands beside them.
pub(super) fn dependent(entries: &Map<String, Value>) -> &'static [&'static str] {
    let text = |name: &str| entries.get(name).and_then(Value::as_str);
    match text("key") {
        // A pending difference names the setting in `key`.
        Some(_)
            if entries.contains_key("value") || entries.contains_key("pending") || entries.contains_key("delete") =>
        {
            if text("key").is_some_and(|key| is_secret(key) || key.starts_with("lxc.")) {
                &["value", "pending", "old", "new"]
            } else {
                &[]
            }
        }
        // Otherwise `key` is key material: a subscription, a DNS server's or an IPAM's key.
        Some(_) => &["key"],
        None if entries.contains_key("data") && (entries.contains_key("api") || entries.contains_key("plugin")) => {
            &["data"]
        }
        None => match text("name") {
            // Headers and settings given as pairs.
            Some(name) if entries.contains_key("value") && is_secret(name) => &["value"],
            _ => &[],
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_the_search() {
        assert!(SECRET.is_sorted());
    }

    #[test]
    fn secrets_and_their_lookalikes() {
        for secret in [
            "password",
            "cipassword",
            "PGPASSWORD",
            "smtp_password",
            "client-key",
            "token",
            "gotify-token",
            "encryption-key",
            "CSRFPreventionToken",
            "env",
            "args",
            "private_key",
            "x-webhook-secret",
            "keys",
            "out-of-band-password",
        ] {
            assert!(is_secret(secret), "{secret}");
        }
        for harmless in [
            "lock-token",
            "token-coefficient",
            "tokenid",
            "tokens",
            "config-keys",
            "public_key",
            "ssh-public-keys",
            "sshkeys",
            "digest",
            "fingerprint",
            "master-pubkey",
            "keyboard",
            "environment",
            "name",
            "password-policy",
            "",
        ] {
            assert!(!is_secret(harmless), "{harmless}");
        }
    }
}
