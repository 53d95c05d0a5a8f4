//! Reads.

use pvegate_generated::catalog::OPERATIONS;
use pvegate_generated::model::Offered;
use pvegate_generated::terms::{Role, Tier};
use serde_json::json;
use tests::call::{self, Call};
use tests::site::CLUSTER;

use super::{Cells, LACKS, Lack, Named, is_nobodys, named};

/// The code with which a call is refused, and none where it is not the grant that refuses it.
fn expected(call: &Call, lack: Lack) -> Option<&'static str> {
    let lacking: &[Named] = match lack {
        Lack::Nothing => &[],
        Lack::Cluster => return Some("no_such_cluster"),
        Lack::Guests | Lack::AllButGuests if is_nobodys(call) => return Some("not_granted"),
        Lack::Guests => &[Named::Guest, Named::Anything],
        Lack::Nodes => &[Named::Node],
        Lack::Storages => &[Named::Storage],
        Lack::Pools => &[Named::Pool],
        Lack::Networks => &[Named::Network],
        Lack::AllButGuests => &[Named::Node, Named::Storage, Named::Pool, Named::Network, Named::Anything],
    };
    let names = named(call);
    lacking.iter().any(|kind| names.contains(kind)).then_some("not_found")
}

/// Reads of which an argument makes a node call out are refused for that, whoever calls.
fn calls_out(call: &Call) -> bool {
    call.arguments.keys().any(|name| call.operation.parameter(name).is_some_and(|known| known.role == Role::Url))
}

#[tokio::test]
async fn each_read_without_each_grant() {
    let cells = Cells::start().await;
    let reads: Vec<Call> = call::offered_reads(&cells.lab).into_iter().filter(|call| !calls_out(call)).collect();
    assert!(reads.len() > 200, "{}", reads.len());
    let mut refusals = std::collections::BTreeMap::<Lack, usize>::new();
    for call in &reads {
        let mut whole = None;
        for lack in LACKS {
            let what = format!("{} {:?} without {lack:?}", call.operation.name, call.arguments);
            cells.lab.clear_journal();
            let answer = cells.client(lack).read(CLUSTER, call.operation.name, json!(call.arguments)).await;
            let code = answer.as_ref().err().map(|refused| refused.code.clone());
            let by_grant = answer.as_ref().err().is_some_and(|refused| {
                let text = refused.text();
                text.contains("this token") || text.contains("takes a token")
            });
            if let Some(refusal) = expected(call, lack) {
                assert_eq!(code.as_deref(), Some(refusal), "{what}: {answer:?}");
                assert!(by_grant, "{what}: {answer:?}");
                cells.nothing_sent(&what);
                *refusals.entry(lack).or_default() += 1;
            } else {
                assert!(!by_grant, "{what}: {answer:?}");
                // What PVE says of the call does not depend on the grant.
                let whole = whole.get_or_insert_with(|| code.clone());
                assert_eq!(code, *whole, "{what}: {answer:?}");
            }
        }
    }
    // Each column decides something.
    for lack in LACKS.into_iter().filter(|lack| *lack != Lack::Nothing) {
        assert!(refusals.get(&lack).is_some_and(|count| *count > 0), "{lack:?}: {refusals:?}");
    }
}

/// A tool for reads runs nothing else, whatever the token.
#[tokio::test]
async fn nothing_that_changes_is_read() {
    let cells = Cells::start().await;
    for operation in OPERATIONS.iter().filter(|operation| operation.tier != Tier::Read) {
        let refused = cells.client(Lack::Nothing).read(CLUSTER, operation.name, json!({})).await.unwrap_err();
        let expected = if operation.offered == Offered::Yes { "not_a_read" } else { "not_offered" };
        assert_eq!(refused.code, expected, "{}: {refused:?}", operation.name);
    }
    assert!(cells.lab.journal().is_empty(), "{:?}", cells.lab.journal());
}
