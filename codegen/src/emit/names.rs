//! Names of generated Rust items: valid, readable, unique where they stand.

use std::collections::BTreeSet;

/// Strict and reserved keywords that `r#` makes usable.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else", "enum",
    "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod", "move",
    "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// `post nodes qemu` becomes `PostNodesQemu`; also for choices.
pub fn type_name(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        // `1.2` is not `12`.
        if name.ends_with(|last: char| last.is_ascii_digit()) && word.starts_with(|first: char| first.is_ascii_digit())
        {
            name.push('_');
        }
        let shouted = word.len() > 1 && word.chars().all(|character| !character.is_ascii_lowercase());
        let word = if shouted { word.to_ascii_lowercase() } else { word.to_owned() };
        name.extend(
            word.chars()
                .enumerate()
                .map(|(at, character)| if at == 0 { character.to_ascii_uppercase() } else { character }),
        );
    }
    name
}

/// The variant for a choice.
pub fn variant(choice: &str) -> String {
    let name = type_name(choice);
    match name.chars().next() {
        None if choice.is_empty() => "Empty".to_owned(),
        None => "Other".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("V{name}"),
        Some(_) if name == "Self" => "Own".to_owned(),
        Some(_) => name,
    }
}

/// The field for a parameter: `net[n]` becomes `net`, `forceStop` `force_stop`, `type` `r#type`.
pub fn field(parameter: &str) -> String {
    let mut name = String::new();
    for character in parameter.trim_end_matches("[n]").chars() {
        if character.is_ascii_uppercase() && name.ends_with(|last: char| last.is_ascii_lowercase()) {
            name.push('_');
        }
        name.push(if character.is_ascii_alphanumeric() { character.to_ascii_lowercase() } else { '_' });
    }
    match name.as_str() {
        "self" | "super" | "crate" | "" => format!("{name}_"),
        keyword if KEYWORDS.contains(&keyword) => format!("r#{name}"),
        digits if digits.starts_with(|first: char| first.is_ascii_digit()) => format!("n{name}"),
        _ => name,
    }
}

/// The name, or the first of its numbered forms that nothing else has.
pub fn unique(name: String, taken: &BTreeSet<String>) -> String {
    if !taken.contains(&name) {
        return name;
    }
    let mut number = 2_u32;
    while taken.contains(&format!("{name}{number}")) {
        number += 1;
    }
    format!("{name}{number}")
}

#[cfg(test)]
mod tests {
    use super::{field, type_name, unique, variant};

    #[test]
    fn names_are_valid_rust() {
        assert_eq!(type_name("put nodes {node} qemu"), "PutNodesNodeQemu");
        assert_eq!(variant("802.1q"), "V802_1q");
        assert_eq!(variant("ACCEPT"), "Accept");
        assert_eq!(variant("Haswell-noTSX"), "HaswellNoTSX");
        assert_eq!(variant(""), "Empty");
        assert_eq!(field("net[n]"), "net");
        assert_eq!(field("forceStop"), "force_stop");
        assert_eq!(field("type"), "r#type");
        assert_eq!(field("bwlimit-in"), "bwlimit_in");
    }

    #[test]
    fn a_name_is_numbered_where_it_is_taken() {
        let taken = ["Mode".to_owned(), "Mode2".to_owned()].into();
        assert_eq!(unique("Mode".to_owned(), &taken), "Mode3");
        assert_eq!(unique("Kind".to_owned(), &taken), "Kind");
    }
}
