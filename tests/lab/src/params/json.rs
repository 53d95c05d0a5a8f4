//! What PVE's JSON parser complains about, and where.

/// The complaint about a text that is not JSON, with the place it stopped at.
pub(super) fn complaint(text: &str) -> String {
    let mut scan = Scan { text, at: 0 };
    let (what, at) = match scan.value().and_then(|()| scan.end()) {
        Ok(()) => ("malformed JSON string, neither tag, array, object, number, string or atom", scan.at),
        Err(what) => (what, scan.at),
    };
    let offset = text.get(..at).unwrap_or_default().chars().count();
    let rest = text.get(at..).unwrap_or_default();
    let before = if rest.is_empty() {
        "(end of string)".to_owned()
    } else if rest.chars().count() > 20 {
        format!("{}...", rest.chars().take(20).collect::<String>())
    } else {
        rest.to_owned()
    };
    format!("{what}, at character offset {offset} (before \"{before}\")")
}

/// A place in a text. Every step returns what was expected where it stopped.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

const MALFORMED: &str = "malformed JSON string, neither tag, array, object, number, string or atom";

impl Scan<'_> {
    fn blanks(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn end(&mut self) -> Result<(), &'static str> {
        self.blanks();
        if self.at == self.text.len() { Ok(()) } else { Err("garbage after JSON object") }
    }

    fn value(&mut self) -> Result<(), &'static str> {
        self.blanks();
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.atom(),
        }
    }

    fn object(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        self.blanks();
        if self.eat(b'}') {
            return Ok(());
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return Err("'\"' expected");
            }
            self.string()?;
            self.blanks();
            if !self.eat(b':') {
                return Err("':' expected");
            }
            self.value()?;
            self.blanks();
            if self.eat(b'}') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(", or } expected while parsing object/hash");
            }
        }
    }

    fn array(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        self.blanks();
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            self.value()?;
            self.blanks();
            if self.eat(b']') {
                return Ok(());
            }
            if !self.eat(b',') {
                return Err(", or ] expected while parsing array");
            }
        }
    }

    fn string(&mut self) -> Result<(), &'static str> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err("unexpected end of string while parsing JSON string"),
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(byte) if byte < b' ' => return Err("invalid character encountered while parsing JSON string"),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), &'static str> {
        self.eat(b'-');
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err("malformed number (no digits after initial minus)");
        }
        if self.eat(b'0') && self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err("malformed number (leading zero must not be followed by another digit)");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) {
            self.at += 1;
        }
        Ok(())
    }

    fn atom(&mut self) -> Result<(), &'static str> {
        for (word, complaint) in
            [("true", "'true' expected"), ("false", "'false' expected"), ("null", "'null' expected")]
        {
            let rest = self.text.get(self.at..).unwrap_or_default();
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(());
            }
            if !rest.is_empty() && rest.as_bytes().first() == word.as_bytes().first() {
                return Err(complaint);
            }
        }
        Err(MALFORMED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_name_the_place() {
        assert_eq!(complaint("{bad json"), "'\"' expected, at character offset 1 (before \"bad json\")");
        assert_eq!(complaint(""), format!("{MALFORMED}, at character offset 0 (before \"(end of string)\")"));
        assert_eq!(
            complaint("{\"a\":1"),
            ", or } expected while parsing object/hash, at character offset 6 (before \"(end of string)\")"
        );
    }
}
