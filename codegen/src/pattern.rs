//! Operation patterns of the overlay: `VERB /path`, where the verb may be `*`,
//! `*` stands for one step of a path and a final `**` for any number of steps.

/// A parsed pattern. A plain operation name is a pattern that matches itself alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// Takes the text as written; `None` if it has not the form `VERB /path`.
    pub fn parse(text: &str) -> Option<Self> {
        let (verb, path) = text.split_once(' ')?;
        let verb_ok = matches!(verb, "*" | "GET" | "POST" | "PUT" | "DELETE");
        let steps: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let star_inside = steps.iter().rev().skip(1).any(|step| *step == "**");
        (verb_ok && !star_inside && steps.iter().all(|step| !step.is_empty())).then(|| Self { text: text.to_owned() })
    }

    /// Whether the operation `VERB /path` falls under it.
    pub fn matches(&self, operation: &str) -> bool {
        let (Some((verb, path)), Some((wanted_verb, wanted_path))) =
            (operation.split_once(' '), self.text.split_once(' '))
        else {
            return false;
        };
        if wanted_verb != "*" && wanted_verb != verb {
            return false;
        }
        let mut steps = path.split('/');
        for wanted in wanted_path.split('/') {
            if wanted == "**" {
                return true;
            }
            match steps.next() {
                Some(step) if wanted == "*" || wanted == step => {}
                _ => return false,
            }
        }
        steps.next().is_none()
    }

    /// As written in the overlay.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a panic is how a test fails")]

    use super::Pattern;

    #[test]
    fn a_name_matches_itself_alone() {
        let pattern = Pattern::parse("GET /nodes/{node}").expect("valid");
        assert!(pattern.matches("GET /nodes/{node}"));
        assert!(!pattern.matches("GET /nodes"));
        assert!(!pattern.matches("GET /nodes/{node}/status"));
        assert!(!pattern.matches("PUT /nodes/{node}"));
    }

    #[test]
    fn stars_stand_for_steps() {
        let one = Pattern::parse("* /nodes/*/qemu").expect("valid");
        assert!(one.matches("POST /nodes/{node}/qemu"));
        assert!(!one.matches("POST /nodes/{node}/qemu/{vmid}"));
        let any = Pattern::parse("GET /cluster/**").expect("valid");
        assert!(any.matches("GET /cluster/sdn/zones"));
        assert!(any.matches("GET /cluster"), "any number of steps is also none");
        assert!(!any.matches("GET /clusters"));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["", "GET", "GET nodes", "HEAD /nodes", "GET /a//b", "GET /**/b"] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
    }
}
