//! The generator's inputs and output as files: reading `schema/`, comparing and writing `generated/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Everything the generator reads, by path below `schema/`.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// File contents.
    pub files: BTreeMap<String, String>,
}

impl Inputs {
    /// Reads `schema/`.
    pub fn read(schema: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        read_below(schema, schema, &mut files)?;
        Ok(Self { files })
    }

    /// The files of one folder, by path below it.
    pub fn below(&self, folder: &str) -> BTreeMap<String, String> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(folder)?.strip_prefix('/')?.to_owned(), text.clone())))
            .collect()
    }
}

fn read_below(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_below(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "toml" || extension == "json") {
            let text = fs::read_to_string(&path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            files.insert(relative(root, &path), text.replace("\r\n", "\n"));
        }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    let steps: Vec<_> =
        path.strip_prefix(root).unwrap_or(path).components().map(|step| step.as_os_str().to_string_lossy()).collect();
    steps.join("/")
}

/// Everything the generator writes, by path below the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// File contents.
    pub files: BTreeMap<String, String>,
}

/// One file that is not as the generator would write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is missing.
    Missing(String),
    /// Its content differs; the first differing line of each side.
    Differs(String, usize, String, String),
    /// The generator does not write it.
    Stale(String),
}

impl Difference {
    /// The file's path below the workspace.
    pub fn path(&self) -> &str {
        match self {
            Self::Missing(path) | Self::Differs(path, ..) | Self::Stale(path) => path,
        }
    }
}

/// The folders that hold nothing but generated files.
const OWNED: [&str; 2] = ["generated/src", "generated/json"];

impl Output {
    /// Compares with what stands in the workspace.
    pub fn compare(&self, workspace: &Path) -> io::Result<Vec<Difference>> {
        let mut differences = Vec::new();
        for (path, wanted) in &self.files {
            match fs::read_to_string(workspace.join(path)) {
                Ok(found) if found.replace("\r\n", "\n") == *wanted => {}
                Ok(found) => differences.push(first_difference(path, &found, wanted)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    differences.push(Difference::Missing(path.clone()));
                }
                Err(error) => return Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
            }
        }
        for folder in OWNED {
            let mut present = Vec::new();
            list_below(&workspace.join(folder), &mut present)?;
            for path in present {
                let path = relative(workspace, &path);
                if !self.files.contains_key(&path) {
                    differences.push(Difference::Stale(path));
                }
            }
        }
        Ok(differences)
    }

    /// Writes what differs, each file by a rename, and removes stale ones.
    pub fn write(&self, workspace: &Path, differences: &[Difference]) -> io::Result<()> {
        let _lock = Lock::take(&workspace.join("generated/.codegen.lock"))?;
        for difference in differences {
            let path = workspace.join(difference.path());
            match self.files.get(difference.path()) {
                Some(text) => write_by_rename(&path, text)?,
                None => fs::remove_file(&path)?,
            }
        }
        Ok(())
    }
}

fn first_difference(path: &str, found: &str, wanted: &str) -> Difference {
    let line = found.lines().zip(wanted.lines()).take_while(|(one, other)| one == other).count();
    let cut = |text: &str| text.lines().nth(line).unwrap_or("(end of file)").chars().take(160).collect();
    Difference::Differs(path.to_owned(), line + 1, cut(found), cut(wanted))
}

fn list_below(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { list_below(&path, found)? } else { found.push(path) }
    }
    found.sort();
    Ok(())
}

fn write_by_rename(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    let fresh = path.with_file_name(name);
    fs::write(&fresh, text)?;
    fs::rename(&fresh, path)
}

/// Two builds at once must not write the same tree.
struct Lock(fs::File);

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(Self(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file unlocks it as well; an error here changes nothing.
        let _ = self.0.unlock();
    }
}

/// The differences as a person reads them.
pub fn describe(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences {
        let _ = match difference {
            Difference::Missing(path) => writeln!(text, "  {path}: missing"),
            Difference::Stale(path) => writeln!(text, "  {path}: no longer generated"),
            Difference::Differs(path, line, found, wanted) => {
                writeln!(text, "  {path}:{line}\n    - {found}\n    + {wanted}")
            }
        };
    }
    text
}
