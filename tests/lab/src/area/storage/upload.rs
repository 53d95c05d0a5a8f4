//! Files that come to a storage: uploaded, or fetched from a URL.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256, Sha384, Sha512};

use super::super::{Call, Outcome};
use super::content::volume_of;
use super::usable;
use crate::answer::Refusal;
use crate::gate::Shared;
use crate::state::storage::Storage;
use crate::state::{Cluster, hex};
use crate::worker::{self, Done, Worker};

/// The names that files of a kind of content may end with.
fn endings(content: &str) -> &'static [&'static str] {
    match content {
        "iso" => &[".iso", ".img"],
        "vztmpl" => &[".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2", ".tar"],
        _ => &[".ova", ".ovf", ".qcow2", ".raw", ".vmdk"],
    }
}

/// The name a file gets: folders are dropped, and what is unusual becomes `_`.
fn plain(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let usual = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    let cleaned = last.chars().map(|c| if usual(c) { c } else { '_' });
    cleaned.collect::<String>().trim_start_matches('.').to_owned()
}

/// The format that lists show for a file.
fn format_of(content: &str, name: &str) -> String {
    let end = name.rsplit('.').next().unwrap_or_default();
    match content {
        "iso" => "iso".to_owned(),
        "vztmpl" => format!("t{}", if end == "gz" { "gz" } else { end }),
        _ => end.to_owned(),
    }
}

/// What a new file is checked for before its task begins: (its name, the folder it goes to, its storage).
fn place(cluster: &Cluster, call: &Call<'_>) -> Result<(String, String, Storage), Refusal> {
    let storage = usable(cluster, call)?.clone();
    let (content, id) = (call.text("content"), call.text("storage"));
    if !super::plugin_has_files(&storage) {
        return Err(Refusal::failed(format!("can't upload to storage type '{}'", storage.text("type"))));
    }
    let name = plain(call.text("filename"));
    let lower = name.to_ascii_lowercase();
    if !endings(content).iter().any(|end| lower.ends_with(end) && lower.len() > end.len()) {
        return Err(Refusal::parameter("filename", "wrong file extension"));
    }
    if !storage.text("content").split(',').any(|held| held == content) {
        return Err(Refusal::failed(format!("storage '{id}' does not support '{content}' content")));
    }
    let folder = super::folder(&storage, content);
    Ok((name, folder, storage))
}

/// Puts what the proxy received into the storage, as a task.
pub(super) fn receive(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let temporary = call.text("tmpfilename").to_owned();
    let file = shared.change(|cluster| cluster.uploads.remove(&temporary));
    let (name, folder, _) = shared.look(|cluster| place(cluster, call))?;
    let file = file.ok_or_else(|| Refusal::failed("missing temporary file name"))?;
    let (storage, content) = (call.text("storage").to_owned(), call.text("content").to_owned());
    let wanted = call.given("checksum").map(|sum| (call.text("checksum-algorithm").to_owned(), sum.to_owned()));
    let node = call.text("node").to_owned();
    Ok(worker::start(shared, call, "imgcopy", "", |worker| async move {
        worker.log(format!("starting file import from: {temporary}"));
        if let Some((algorithm, expected)) = wanted {
            worker.log("calculating checksum...");
            let got = checksum(&algorithm, &file).unwrap_or_else(|| expected.clone());
            if !got.eq_ignore_ascii_case(&expected) {
                let why = format!("checksum mismatch: got '{got}' != expect '{expected}'");
                return Err(why);
            }
            worker.log("OK, checksum verified");
        }
        let target = format!("{folder}/{name}");
        let command = format!("cp -- {temporary} {target}");
        worker.log(format!("target node: {node}"));
        worker.log(format!("target file: {target}"));
        worker.log(format!("file size is: {}", file.len()));
        worker.log(format!("command: {command}"));
        worker.step(Duration::from_millis(200)).await;
        keep(&worker, (&storage, &content, &name), file.len(), || {
            format!("import failed: cp: error writing '{target}': No space left on device")
        })?;
        worker.log("finished file import successfully");
        Ok(Done::Fine)
    }))
}

/// Writes a file, in place of one of the same name, if it fits.
fn keep(
    worker: &Worker,
    (storage, content, name): (&str, &str, &str),
    size: usize,
    full: impl FnOnce() -> String,
) -> Result<(), String> {
    let size = u64::try_from(size).unwrap_or(u64::MAX);
    let fits = worker.look(|cluster| {
        cluster.storages.get(storage).is_some_and(|definition| super::free(cluster, storage, definition) >= size)
    });
    if !fits {
        return Err(full());
    }
    worker.change(|cluster| {
        let mut volume = volume_of(&format!("{storage}:{content}/{name}"), content, &format_of(content, name));
        volume.size = size;
        let id = volume.id();
        cluster.volumes.retain(|other| other.id() != id);
        cluster.volumes.push(volume);
    });
    Ok(())
}

/// A checksum in hex; none for the kinds that nobody should rely on.
fn checksum(algorithm: &str, content: &[u8]) -> Option<String> {
    match algorithm {
        "sha256" => Some(hex(&Sha256::digest(content))),
        "sha384" => Some(hex(&Sha384::digest(content))),
        "sha512" => Some(hex(&Sha512::digest(content))),
        _ => None,
    }
}

/// Fetches a file from a URL, as a task. Only hosts of the lab's own domain have one to give.
pub(super) fn fetch(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let (name, folder, _) = shared.look(|cluster| place(cluster, call))?;
    let (storage, content) = (call.text("storage").to_owned(), call.text("content").to_owned());
    let url = call.text("url").to_owned();
    Ok(worker::start(shared, call, "download", &name.clone(), |worker| async move {
        let target = format!("{folder}/{name}");
        let held = format!("{storage}:{content}/{name}");
        if worker.look(|cluster| cluster.volumes.iter().any(|volume| volume.id() == held)) {
            return Err(format!("refusing to override existing file '{target}'"));
        }
        worker.log(format!("downloading {url} to {target}"));
        worker.step(Duration::from_secs(1)).await;
        let host = url.split("://").nth(1).unwrap_or_default().split(['/', ':']).next().unwrap_or_default();
        if !host.ends_with(".lab.test") {
            let command = format!("wget --progress=dot:giga -O {target}.tmp_dwnl.{} {url}", worker.pid());
            return Err(if worker.look(|cluster| cluster.host.missing.contains("wget")) {
                format!(
                    "download failed: open3: exec of {command} failed: No such file or directory at /usr/share/perl5/PVE/Cmd.pm line 174."
                )
            } else {
                format!("download failed: command '{command}' failed: exit code 4")
            });
        }
        let size = 64 << 20;
        keep(&worker, (&storage, &content, &name), size, || {
            format!("download failed: unable to write '{target}': No space left on device")
        })?;
        worker.log(format!("download of '{url}' to '{target}' finished"));
        Ok(Done::Fine)
    }))
}

/// Fetches a container image from a registry, as a task.
/// Fetches a container template of the index, unless the storage has it.
pub(super) fn template(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    let (storage, name) = (call.text("storage").to_owned(), call.text("template").to_owned());
    shared.look(|cluster| {
        let Some(held) = cluster.storages.get(&storage) else {
            return Err(Refusal::failed(format!("storage '{storage}' does not exist")));
        };
        if !held.text("content").split(',').any(|content| content == "vztmpl") {
            return Err(Refusal::failed(format!("storage '{storage}' does not support templates")));
        }
        if name == super::super::node::TEMPLATE { Ok(()) } else { Err(Refusal::failed("no such template")) }
    })?;
    Ok(worker::start(shared, call, "download", "", |worker| async move {
        let held = format!("{storage}:vztmpl/{name}");
        if worker.look(|cluster| cluster.volumes.iter().any(|volume| volume.id() == held)) {
            worker.log("OK, got correct file already, no need to download".to_owned());
            return Ok(Done::Fine);
        }
        worker.log(format!("downloading {name}"));
        worker.step(Duration::from_secs(1)).await;
        keep(&worker, (&storage, "vztmpl", &name), 64 << 20, || "No space left on device".to_owned())?;
        Ok(Done::Fine)
    }))
}

pub(super) fn pull(shared: &Arc<Shared>, call: &Call<'_>) -> Outcome {
    shared.look(|cluster| usable(cluster, call).map(|_| ()))?;
    let reference = call.text("reference").to_owned();
    let storage = call.text("storage").to_owned();
    let last = reference.rsplit('/').next().unwrap_or_default();
    let name = format!("{}.tar", plain(call.given("filename").unwrap_or(last)));
    Ok(worker::start(shared, call, "ociregistrypull", &storage.clone(), |worker| async move {
        worker.log(format!("pulling {reference}"));
        worker.step(Duration::from_secs(1)).await;
        keep(&worker, (&storage, "vztmpl", &name), 16 << 20, || "no space left on device".to_owned())?;
        Ok(Done::Fine)
    }))
}

/// The name of a file that the proxy has received and nobody has taken yet.
pub(crate) fn temporary(cluster: &Cluster) -> String {
    let seed = crate::state::digest(&Value::from(vec![
        crate::clock::now(),
        i64::try_from(cluster.tasks.all.len()).unwrap_or_default(),
    ]));
    format!("/var/tmp/pveupload-{}", seed.get(..32).unwrap_or_default())
}
