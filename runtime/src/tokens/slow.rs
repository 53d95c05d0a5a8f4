//! Decides whether a secret is that of an entry with an argon2 hash, which older files of the seed's have. Such a
//! comparison is slow on purpose, so one secret is compared at a time, off the threads that serve.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use argon2::password_hash::PasswordVerifier as _;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::{AuthError, Principal, digest};
use crate::values::Secret;

/// Most memory of one comparison, in KiB.
const MEMORY: u32 = 256 << 10;
/// Most rounds of one comparison.
const ROUNDS: u32 = 16;
/// How long a secret waits for its turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose turn it is.
static TURN: Semaphore = Semaphore::const_new(1);

/// One argon2 hash.
pub(super) struct SlowHash {
    hash: PasswordHash,
    /// The digest of its secret, once that was presented: the next time is fast.
    seen: OnceLock<[u8; 32]>,
}

impl SlowHash {
    /// Reads a PHC string.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str =
            "is no argon2 hash like `$argon2id$v=19$m=19456,t=2,p=1$…$…`; `pvegate token rotate` makes another secret";
        let hash = PasswordHash::new(text).map_err(|_| FORM)?;
        let params = Params::try_from(&hash).map_err(|_| FORM)?;
        let known = Algorithm::try_from(hash.algorithm.as_str()).is_ok()
            && hash.version.is_none_or(|version| Version::try_from(version).is_ok());
        if !known || hash.salt.is_none() || hash.hash.is_none() {
            return Err(FORM.to_owned());
        }
        if params.m_cost() > MEMORY || params.t_cost() > ROUNDS {
            return Err(format!(
                "asks for more work than a request may cost: at most m={MEMORY} and t={ROUNDS}; make a new token"
            ));
        }
        Ok(Self { hash, seen: OnceLock::new() })
    }

    /// The digest of its secret, once that was presented.
    pub(super) fn seen(&self) -> Option<&[u8; 32]> {
        self.seen.get()
    }

    fn is_of(&self, bearer: &Secret) -> bool {
        let same = Argon2::default().verify_password(bearer.expose().as_bytes(), &self.hash).is_ok();
        if same {
            self.seen.get_or_init(|| digest(bearer.expose()));
        }
        same
    }
}

impl PartialEq for SlowHash {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for SlowHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SlowHash")
    }
}

/// Whose secret this is.
pub(super) async fn find(
    entries: Vec<(Arc<SlowHash>, Arc<Principal>)>,
    bearer: Secret,
) -> Result<Arc<Principal>, AuthError> {
    let Ok(Ok(turn)) = tokio::time::timeout(PATIENCE, TURN.acquire()).await else { return Err(AuthError::Busy) };
    let compared = tokio::task::spawn_blocking(move || {
        // The turn is over with the work, also where the client has hung up meanwhile.
        let _turn = turn;
        entries.into_iter().find(|(hash, _)| hash.is_of(&bearer)).map(|(_, principal)| principal)
    });
    compared.await.ok().flatten().ok_or(AuthError::Unknown)
}
