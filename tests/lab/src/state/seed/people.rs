//! Users, their tokens, groups and grants.

use std::collections::{BTreeMap, BTreeSet};

use crate::access::{Grant, Subject, Token, User};
use crate::lab::LabError;
use crate::state::Cluster;
use crate::tls::random_secret;

/// The credentials of the lab's own tokens, made at start.
#[derive(Clone)]
pub(crate) struct Logins {
    pub(crate) full: String,
    pub(crate) audit: String,
    pub(crate) scoped: String,
    pub(crate) blind: String,
    /// Of the tokens of the recorded cluster, which are many.
    pub(crate) other: String,
}

impl Logins {
    pub(crate) fn generate() -> Result<Self, LabError> {
        Ok(Self {
            full: random_secret()?,
            audit: random_secret()?,
            scoped: random_secret()?,
            blind: random_secret()?,
            other: random_secret()?,
        })
    }
}

pub(super) fn seed(cluster: &mut Cluster, logins: &Logins) {
    let keys = cluster.secrets.of("user-keys");
    let access = &mut cluster.access;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let token = |secret: &str, privsep: bool, comment: &str| Token {
        secret: secret.to_owned(),
        privsep,
        expire: 0,
        comment: text(comment),
    };
    let user = |comment: &str, email: &str, groups: &[&str], tokens: Vec<(&str, Token)>| User {
        enable: true,
        expire: 0,
        comment: text(comment),
        email: text(email),
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        tokens: tokens.into_iter().map(|(name, token)| (name.to_owned(), token)).collect(),
        ..User::default()
    };
    access.users = BTreeMap::from([
        ("root@pam".to_owned(), user("", "root@lab.test", &[], vec![])),
        (
            "pvegate@pve".to_owned(),
            user("Gateway for agents", "", &[], vec![("full", token(&logins.full, false, "All rights"))]),
        ),
        (
            "auditor@pve".to_owned(),
            user("Looks, never touches", "", &["auditors"], vec![("audit", token(&logins.audit, false, "Read only"))]),
        ),
        (
            "ci@pve".to_owned(),
            user(
                "Continuous integration",
                "ci@lab.test",
                &[],
                vec![("ci", token(&logins.scoped, true, "Pool ci only"))],
            ),
        ),
        ("nobody@pve".to_owned(), user("No rights", "", &[], vec![("none", token(&logins.blind, true, ""))])),
        ("jane@pve".to_owned(), User { keys: Some(keys), ..user("Jane Roe", "jane@lab.test", &["admins"], vec![]) }),
    ]);
    access.groups = BTreeMap::from([
        ("admins".to_owned(), "People who run the cluster".to_owned()),
        ("auditors".to_owned(), String::new()),
    ]);
    access.roles = BTreeMap::from([(
        "LabOperator".to_owned(),
        BTreeSet::from(["VM.Audit", "VM.PowerMgmt", "VM.Console"].map(str::to_owned)),
    )]);
    let grant = |path: &str, subject: Subject, role: &str| Grant {
        path: path.to_owned(),
        subject,
        role: role.to_owned(),
        propagate: true,
    };
    access.acl = vec![
        grant("/", Subject::User("pvegate@pve".to_owned()), "Administrator"),
        grant("/", Subject::Group("admins".to_owned()), "Administrator"),
        grant("/", Subject::Group("auditors".to_owned()), "PVEAuditor"),
        grant("/pool/ci", Subject::User("ci@pve".to_owned()), "PVEVMUser"),
        grant("/pool/ci", Subject::User("ci@pve".to_owned()), "PVEPoolUser"),
        grant("/pool/ci", Subject::Token("ci@pve!ci".to_owned()), "LabOperator"),
        grant("/pool/ci", Subject::Token("ci@pve!ci".to_owned()), "PVEPoolUser"),
    ];
}
