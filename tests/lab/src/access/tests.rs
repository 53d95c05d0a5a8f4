//! Who is let in, and which privileges they have where.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use super::*;

fn access() -> Access {
    let user = |groups: &[&str], privsep: bool| User {
        enable: true,
        expire: 0,
        groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        tokens: BTreeMap::from([("t".to_owned(), Token { secret: "s".to_owned(), privsep, expire: 0, comment: None })]),
        ..User::default()
    };
    let grant = |path: &str, subject: Subject, role: &str, propagate: bool| Grant {
        path: path.to_owned(),
        subject,
        role: role.to_owned(),
        propagate,
    };
    Access {
        users: BTreeMap::from([("a@pve".to_owned(), user(&["ops"], false)), ("b@pve".to_owned(), user(&[], true))]),
        acl: vec![
            grant("/", Subject::Group("ops".to_owned()), "PVEAuditor", true),
            grant("/vms/100", Subject::User("a@pve".to_owned()), "NoAccess", true),
            grant("/pool/p", Subject::User("a@pve".to_owned()), "PVEVMUser", true),
            grant("/vms", Subject::User("b@pve".to_owned()), "PVEVMAdmin", true),
            grant("/vms/101", Subject::Token("b@pve!t".to_owned()), "PVETemplateUser", false),
        ],
        ..Access::default()
    }
}

fn caller(user: &str) -> Caller {
    Caller { user: user.to_owned(), token: "t".to_owned() }
}

#[test]
fn groups_are_overridden_deeper_down() {
    let access = access();
    assert!(access.privileges(&caller("a@pve"), "/vms/101", None).contains("VM.Audit"));
    assert!(access.privileges(&caller("a@pve"), "/vms/100", None).is_empty());
}

#[test]
fn a_pool_adds_to_its_members() {
    assert!(access().privileges(&caller("a@pve"), "/vms/102", Some("p")).contains("VM.PowerMgmt"));
}

#[test]
fn a_separated_token_has_what_both_have() {
    let access = access();
    let held = access.privileges(&caller("b@pve"), "/vms/101", None);
    assert_eq!(held.into_iter().collect::<Vec<_>>(), ["VM.Audit", "VM.Clone"]);
    assert!(access.privileges(&caller("b@pve"), "/vms/102", None).is_empty());
}

#[test]
fn credentials_must_fit_and_be_live() {
    let mut access = access();
    assert!(access.authenticate("a@pve!t=s", 10).is_some());
    assert!(access.authenticate("a@pve!t=x", 10).is_none());
    assert!(access.authenticate("garbage", 10).is_none());
    access.users.get_mut("a@pve").unwrap().expire = 5;
    assert!(access.authenticate("a@pve!t=s", 10).is_none());
}
