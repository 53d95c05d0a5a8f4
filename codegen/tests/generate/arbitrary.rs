//! Properties: no text makes the reader of the overlay panic, and patterns mean what they say.

use proptest::prelude::*;
use pvegate_codegen::overlay::Overlay;
use pvegate_codegen::pattern::Pattern;

use crate::schema::real;

fn file() -> impl Strategy<Value = String> {
    prop::sample::select(
        real()
            .inputs
            .files
            .keys()
            .filter_map(|path| path.strip_prefix("overlay/"))
            .map(str::to_owned)
            .chain(["other.toml".to_owned(), "tools/other.toml".to_owned()])
            .collect::<Vec<_>>(),
    )
}

fn steps() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[a-z]{1,3}|\\{[a-z]{1,3}\\}", 1..6)
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(file in file(), text in ".{0,200}") {
        let _ = Overlay::read(&[(file, text)].into());
    }

    #[test]
    fn any_damage_to_a_real_file_is_read_or_refused(file in file(), at in 0.0..1.0_f64, cut in 0..40_usize, text in "[\\[\\]{}=\"a-z0-9 \n*/]{0,12}") {
        let whole: Vec<char> = real().inputs.files.get(&format!("overlay/{file}")).map(|text| text.chars().take(3000).collect()).unwrap_or_default();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place in a few thousand characters")]
        let at = (whole.len() as f64 * at) as usize;
        let damaged: String = whole.iter().take(at).copied().chain(text.chars()).chain(whole.iter().skip(at + cut).copied()).collect();
        let _ = Overlay::read(&[(file, damaged)].into());
    }

    #[test]
    fn any_text_is_a_pattern_or_not(text in ".{0,60}", operation in ".{0,60}") {
        if let Some(pattern) = Pattern::parse(&text) {
            prop_assert_eq!(pattern.as_str(), &text);
            let _ = pattern.matches(&operation);
        }
    }

    #[test]
    fn a_name_matches_itself_and_no_longer_or_shorter_one(steps in steps()) {
        let path = format!("/{}", steps.join("/"));
        let pattern = Pattern::parse(&format!("GET {path}")).unwrap();
        let name = format!("GET {path}");
        let longer = format!("GET {path}/more");
        let other_verb = format!("PUT {path}");
        prop_assert!(pattern.matches(&name));
        prop_assert!(!pattern.matches(&longer));
        prop_assert!(!pattern.matches(&other_verb));
        let shorter = format!("GET /{}", steps[1..].join("/"));
        prop_assert!(!pattern.matches(&shorter));
    }

    #[test]
    fn stars_match_what_they_stand_for(steps in steps(), at in any::<prop::sample::Index>(), more in steps()) {
        let at = at.index(steps.len());
        let mut starred = steps.clone();
        starred[at] = "*".to_owned();
        let one = Pattern::parse(&format!("* /{}", starred.join("/"))).unwrap();
        let same = format!("DELETE /{}", steps.join("/"));
        let longer = format!("DELETE /{}/{}", steps.join("/"), more.join("/"));
        prop_assert!(one.matches(&same));
        prop_assert!(!one.matches(&longer));
        let any = Pattern::parse(&format!("* /{}/**", steps.join("/"))).unwrap();
        prop_assert!(any.matches(&same));
        prop_assert!(any.matches(&longer));
    }
}
