//! Uploads as PVE's proxy reads them: it knows one way to write a multipart body, and what comes after the file is lost.

use bytes::Bytes;

use crate::answer::Answer;

/// Where in PVE's program an upload that cannot be read dies.
const PLACE: &str = "at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line";

/// Fields in front of the file, and the file.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    pub(crate) fields: Vec<(String, String)>,
    /// The file's own name and its content.
    pub(crate) file: Option<(String, Bytes)>,
}

/// The boundary that a content type names, quotes included, which PVE takes for a part of it.
pub(crate) fn boundary(content_type: &str) -> Option<&str> {
    let (kind, rest) = content_type.split_once(';')?;
    let boundary = rest.trim().strip_prefix("boundary=")?;
    (kind.trim().eq_ignore_ascii_case("multipart/form-data") && !boundary.is_empty()).then_some(boundary)
}

fn unreadable() -> Answer {
    Answer::died(&format!("upload failed {PLACE} 1370."))
}

/// A line and what follows it. Lines end with or without a carriage return.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let (line, rest) = (text.get(..end)?, text.get(end + 1..)?);
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// Reads a body.
pub(crate) fn read(body: &[u8], boundary: &str) -> Result<Upload, Answer> {
    let opening = format!("--{boundary}").into_bytes();
    let mut upload = Upload::default();
    let mut rest = body;
    loop {
        rest = rest.strip_prefix(opening.as_slice()).ok_or_else(unreadable)?;
        if rest.starts_with(b"--") {
            return Ok(upload);
        }
        let (_, after) = line(rest).ok_or_else(unreadable)?;
        let (disposition, after) = line(after).ok_or_else(unreadable)?;
        let (name, file) = names(disposition).ok_or_else(unreadable)?;
        let mut content = after;
        loop {
            let (header, after) = line(content).ok_or_else(unreadable)?;
            content = after;
            if header.is_empty() {
                break;
            }
        }
        let mut ending = b"\n".to_vec();
        ending.extend_from_slice(&opening);
        let end = find(content, &ending).ok_or_else(unreadable)?;
        let value = content.get(..end).unwrap_or_default();
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        if let Some(file) = file {
            if name != "filename" {
                let what = format!("wrong field name '{name}' for file upload, expected 'filename' {PLACE} 1325.");
                return Err(Answer::died(&what));
            }
            upload.file = Some((file, Bytes::copy_from_slice(value)));
            return Ok(upload);
        }
        upload.fields.push((name, String::from_utf8_lossy(value).into_owned()));
        rest = content.get(end + 1..).unwrap_or_default();
    }
}

/// Field and file name of a part, whose first header has to say them.
fn names(header: &[u8]) -> Option<(String, Option<String>)> {
    let text = String::from_utf8_lossy(header);
    let rest = text.strip_prefix("Content-Disposition: form-data; name=\"")?;
    let (name, rest) = rest.split_once('"')?;
    let file =
        rest.strip_prefix("; filename=\"").and_then(|rest| rest.split_once('"')).map(|(file, _)| file.to_owned());
    Some((name.to_owned(), file))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

    use super::*;

    const BODY: &str = "--B\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--B\r\nContent-Disposition: form-data; name=\"filename\"; filename=\"a.iso\"\r\nContent-Type: x/y\r\n\r\n1\n--2\r\n--B--\r\n";

    #[test]
    fn what_pve_reads_is_read() {
        let upload = read(BODY.as_bytes(), "B").unwrap();
        assert_eq!(upload.fields, vec![("content".to_owned(), "iso".to_owned())]);
        let (name, content) = upload.file.unwrap();
        assert_eq!((name.as_str(), content.as_ref()), ("a.iso", b"1\n--2".as_slice()));
        assert!(read(BODY.replace("\r\n", "\n").as_bytes(), "B").unwrap().file.is_some());
    }

    #[test]
    fn what_pve_does_not_read_is_refused() {
        assert_eq!(boundary("multipart/form-data; boundary=\"B\""), Some("\"B\""));
        assert!(boundary("application/x-www-form-urlencoded").is_none());
        assert_eq!(read(BODY.as_bytes(), "\"B\"").unwrap_err().status, 500);
        let other = BODY.replace("name=\"filename\"", "name=\"file\"");
        assert_eq!(read(other.as_bytes(), "B").unwrap_err().status, 500);
    }
}
