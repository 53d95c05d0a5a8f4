//! Decides what a guest's tags are: how the text in its configuration is taken apart, when two tags are the
//! same, and how new ones are written.

use super::{Tag, ValueError, list, text_traits};

/// Tags to be written, each of them one that PVE takes. They are printed with `;` between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tags {
    list: Vec<Tag>,
    text: Box<str>,
}

impl Tags {
    /// Reads tags with `;`, `,` or blanks between them. No text is no tag.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        list::split(text).map(Tag::parse).collect::<Result<Vec<_>, _>>().map(Self::new)
    }

    /// Takes them in this order.
    pub fn new(list: Vec<Tag>) -> Self {
        let text = list.iter().map(Tag::as_str).collect::<Vec<_>>().join(";").into();
        Self { list, text }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Tag> {
        self.list.iter()
    }

    /// As PVE writes them since 7.3.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

text_traits!(Tags);

/// Whether two tags are the same one: PVE lets a cluster keep their case, and tells none apart by it.
pub fn same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || one.to_lowercase() == other.to_lowercase()
}

/// The tags in a guest's text, whatever they look like: those of older releases have `,` or blanks between them.
pub fn names(text: &str) -> impl Iterator<Item = &str> {
    list::split(text)
}

/// Whether a guest with this text has the tag, for rules that protect: where a blank stands in the text, both the
/// whole and its parts count.
pub fn has(text: &str, tag: &str) -> bool {
    let whole = text.split([';', ',', '\0']).map(str::trim);
    whole.chain(names(text)).any(|own| !own.is_empty() && same(own, tag))
}
