//! Property strings of guests: read into parts, changed, and written in the order in which PVE writes them.

/// A first value without a key, and the others by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Property {
    pub(crate) first: String,
    pub(crate) rest: Vec<(String, String)>,
}

impl Property {
    /// Reads a property string whose first value may be spelled with its key or one of that key's other names.
    pub(crate) fn read(text: &str, first: &[&str]) -> Self {
        let mut property = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                None => part.clone_into(&mut property.first),
                Some((key, value)) if first.contains(&key) => value.clone_into(&mut property.first),
                Some((key, value)) => property.rest.push((key.to_owned(), value.to_owned())),
            }
        }
        property
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.rest.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.remove(key);
        self.rest.push((key.to_owned(), value.into()));
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<String> {
        let at = self.rest.iter().position(|(name, _)| name == key)?;
        Some(self.rest.remove(at).1)
    }

    /// Writes the first value bare and the rest by name.
    pub(crate) fn write(&self) -> String {
        self.write_with(&[])
    }

    /// Writes with some keys before all others.
    pub(crate) fn write_with(&self, before: &[&str]) -> String {
        let mut rest = self.rest.clone();
        rest.sort_by_key(|(key, _)| (!before.contains(&key.as_str()), key.clone()));
        let first = (!self.first.is_empty()).then(|| self.first.clone());
        let parts: Vec<String> =
            first.into_iter().chain(rest.into_iter().map(|(key, value)| format!("{key}={value}"))).collect();
        parts.join(",")
    }
}
