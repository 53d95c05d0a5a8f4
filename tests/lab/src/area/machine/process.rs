//! Programs inside a VM: a handful that tests and people try, run on the files that are there.

use crate::state::inside::{Inside, Process};

/// Runs a command with some input; none where there is no such program.
pub(super) fn run(inside: &Inside, now: i64, command: &[String], input: Option<&str>) -> Option<Process> {
    let mut process = Process { until: now, code: Some(0), signal: None, out: Vec::new(), err: Vec::new() };
    let (program, arguments) = command.split_first()?;
    let program = program
        .rsplit_once('/')
        .filter(|(folder, _)| folder.ends_with("bin"))
        .map_or(program.as_str(), |(_, name)| name);
    let input = input.map(latin1).unwrap_or_default();
    one(inside, program, arguments, &input, &mut process).then_some(process)
}

/// Characters up to U+00FF are bytes to PVE.
pub(super) fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect()
}

fn one(inside: &Inside, program: &str, arguments: &[String], input: &[u8], process: &mut Process) -> bool {
    let first = arguments.first().map(String::as_str).unwrap_or_default();
    match program {
        "true" | "sync" | ":" => {}
        "false" => process.code = Some(1),
        "cat" if arguments.is_empty() => process.out.extend(input),
        "cat" => {
            for path in arguments {
                if let Some(content) = inside.files.get(path) {
                    process.out.extend(content);
                } else {
                    process.err.extend(format!("cat: can't open '{path}': No such file or directory\n").bytes());
                    process.code = Some(1);
                }
            }
        }
        "echo" => process.out.extend(format!("{}\n", arguments.join(" ")).bytes()),
        "printf" => process.out.extend(escaped(first)),
        "hostname" => process.out.extend(b"labguest\n"),
        "uname" => process.out.extend(b"Linux\n"),
        "id" => process.out.extend(b"uid=0(root) gid=0(root)\n"),
        "whoami" => process.out.extend(b"root\n"),
        "sleep" => process.until += first.parse::<i64>().unwrap_or_default(),
        "ls" => list(inside, arguments, process),
        "sh" | "bash" if first == "-c" => {
            let script = arguments.get(1).map(String::as_str).unwrap_or_default();
            shell(inside, script, input, process);
        }
        _ => return false,
    }
    true
}

fn list(inside: &Inside, arguments: &[String], process: &mut Process) {
    let long = arguments.iter().any(|argument| argument.starts_with('-') && argument.contains('l'));
    let folder = arguments.iter().find(|argument| !argument.starts_with('-')).map_or("/root", String::as_str);
    let prefix = format!("{}/", folder.trim_end_matches('/'));
    let mut lines = Vec::new();
    if long {
        lines.push("total 4".to_owned());
        lines.push("drwxr-xr-x    2 root     root            60 Nov 30 11:21 .".to_owned());
        lines.push("drwxr-xr-x   15 root     root           320 Nov 30 11:21 ..".to_owned());
    }
    for (path, content) in &inside.files {
        if let Some(name) = path.strip_prefix(&prefix).filter(|name| !name.contains('/')) {
            lines.push(if long {
                format!("-rw-r--r--    1 root     root     {:>9} Nov 30 11:21 {name}", content.len())
            } else {
                name.to_owned()
            });
        }
    }
    process.out.extend(lines.iter().flat_map(|line| format!("{line}\n").into_bytes()));
}

/// A script of simple commands one after the other, with output to the error stream where it is sent there.
fn shell(inside: &Inside, script: &str, input: &[u8], process: &mut Process) {
    for step in script.split([';', '\n']).map(str::trim).filter(|step| !step.is_empty()) {
        let (step, to_err) = match step.strip_suffix(">&2").or_else(|| step.strip_suffix("1>&2")) {
            Some(step) => (step.trim(), true),
            None => (step, false),
        };
        let words = words(step);
        let Some((program, arguments)) = words.split_first() else { continue };
        match (program.as_str(), arguments.first().map(String::as_str)) {
            ("exit", code) => {
                process.code = Some(code.and_then(|code| code.parse().ok()).unwrap_or(0));
                return;
            }
            ("kill", Some(signal)) if step.ends_with("$$") => {
                process.signal = signal.trim_start_matches('-').parse().ok();
                process.code = None;
                return;
            }
            _ => {}
        }
        let before = process.out.len();
        if !one(inside, program, arguments, input, process) {
            process.err.extend(format!("sh: {program}: not found\n").bytes());
            process.code = Some(127);
            continue;
        }
        if to_err {
            let moved = process.out.split_off(before);
            process.err.extend(moved);
        }
    }
}

fn words(step: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut any) = (String::new(), None, false);
    for c in step.chars() {
        match (quote, c) {
            (None, '"' | '\'') => {
                quote = Some(c);
                any = true;
            }
            (Some(open), c) if open == c => quote = None,
            (None, c) if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (_, c) => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// What `printf` makes of octal and the usual escapes.
fn escaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.extend(c.to_string().bytes());
            continue;
        }
        let mut octal = 0_u32;
        let mut digits = 0;
        while digits < 3
            && let Some(digit) = chars.peek().and_then(|c| c.to_digit(8))
        {
            octal = octal * 8 + digit;
            digits += 1;
            chars.next();
        }
        if digits > 0 {
            out.push(u8::try_from(octal & 0xff).unwrap_or_default());
            continue;
        }
        match chars.next() {
            Some('n') => out.push(b'\n'),
            Some('t') => out.push(b'\t'),
            Some(other) => out.extend(other.to_string().bytes()),
            None => out.push(b'\\'),
        }
    }
    out
}
