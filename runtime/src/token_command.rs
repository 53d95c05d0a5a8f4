//! `pvegate token`: makes, shows, changes and ends tokens in the token file. A secret is printed once, alone, on
//! standard output; everything else goes to standard error.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use pvegate::grant::Scope;
use pvegate::server::known_tool;
use pvegate::tokens::{Actor, Principal, TokenEditor};
use serde_json::{Map, Value, json};

use crate::end_time;

/// When a change counts.
const EFFECT: &str = "a running server knows it after SIGHUP (systemctl reload), or when it is started again";

#[derive(Args)]
pub struct Token {
    /// The token file.
    #[arg(long, env = "PVEGATE_TOKENS", default_value = "tokens.json", global = true)]
    tokens: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes a token and prints its secret, once.
    Add {
        /// What logs and messages call it.
        name: String,
        /// For an agent: the person who answers for it.
        #[arg(long, required_unless_present = "person", conflicts_with = "person")]
        owner: Option<String>,
        /// For a person's own token: who.
        #[arg(long)]
        person: Option<String>,
        /// Tools and toolsets, with commas; `*` for all that change nothing.
        #[arg(long, value_delimiter = ',', required = true)]
        tools: Vec<String>,
        /// Clusters, with commas; `*` for all.
        #[arg(long, value_delimiter = ',', required = true)]
        clusters: Vec<String>,
        /// When it ends: a time with its zone (2027-01-31T12:00:00Z), or from now (90d, 12h).
        #[arg(long)]
        expires: Option<String>,
    },
    /// Lists the tokens.
    List,
    /// Shows one token.
    Show {
        /// Its name.
        name: String,
    },
    /// Changes what a token reaches, and not its secret.
    SetScopes {
        /// Its name.
        name: String,
        /// Tools and toolsets, with commas; as they are if left out.
        #[arg(long, value_delimiter = ',')]
        tools: Vec<String>,
        /// Clusters, with commas; as they are if left out.
        #[arg(long, value_delimiter = ',')]
        clusters: Vec<String>,
        /// When it ends; as it is if left out, `never` to take the end away.
        #[arg(long)]
        expires: Option<String>,
        /// Do not ask before the token reaches more than it did.
        #[arg(long)]
        yes: bool,
    },
    /// Gives a token another secret and prints it, once.
    Rotate {
        /// Its name.
        name: String,
    },
    /// Takes a token out.
    Revoke {
        /// Its name.
        name: String,
    },
}

/// Runs the command.
pub fn run(token: Token) -> Result<()> {
    let editor = TokenEditor::open(&token.tokens)?;
    let file = token.tokens.display();
    match token.command {
        Command::Add { name, owner, person, tools, clusters, expires } => {
            check_tools(&tools)?;
            let mut entry: Map<String, Value> = Map::new();
            let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
            put("name", json!(name));
            put("actor_type", json!(if person.is_some() { "human" } else { "agent" }));
            put("tools", json!(tools));
            put("clusters", json!(clusters));
            for (key, value) in [("owner", owner), ("person", person)] {
                value.map(|value| put(key, json!(value)));
            }
            if let Some(end) = expires {
                put("expires", json!(end_of(&end, now())?));
            }
            let secret = editor.insert(entry)?;
            eprintln!("Token `{name}` is in {file}; {EFFECT}. Its secret, which is shown only now:");
            println!("{}", secret.expose());
        }
        Command::List => {
            for principal in editor.tokens().principals() {
                println!("{}", line(principal));
            }
        }
        Command::Show { name } => {
            let principal = find(&editor, &name)?;
            for (key, value) in facts(principal) {
                println!("{key}: {value}");
            }
        }
        Command::SetScopes { name, tools, clusters, expires, yes } => {
            check_tools(&tools)?;
            let principal = find(&editor, &name)?;
            let mut wider = Vec::new();
            let mut keys: Vec<(&str, Option<Value>)> = Vec::new();
            for (key, given, now) in
                [("tools", tools, &principal.grant.tools), ("clusters", clusters, &principal.grant.clusters)]
            {
                if given.is_empty() {
                    continue;
                }
                if is_wider(&given, now) {
                    wider.push(format!("{key} {} instead of {}", given.join(", "), words(now)));
                }
                keys.push((key, Some(json!(given))));
            }
            if let Some(end) = expires {
                let end = if end == "never" { None } else { Some(end_of(&end, now())?) };
                if is_later(end.as_deref(), principal.expires) {
                    wider.push(format!("until {} instead of {}", end.as_deref().unwrap_or("ever"), until(principal)));
                }
                keys.push(("expires", end.map(Value::from)));
            }
            ensure!(!keys.is_empty(), "nothing to change: give --tools, --clusters or --expires");
            if !wider.is_empty() && !yes {
                ask(&format!("Token `{name}` would reach more than it did: {}.", wider.join("; ")))?;
            }
            editor.change(&name, keys)?;
            eprintln!("Token `{name}` is changed in {file}, its secret is not; {EFFECT}.");
        }
        Command::Rotate { name } => {
            let secret = editor.rotate(&name)?;
            eprintln!(
                "Token `{name}` has a new secret in {file}; until then the old one is good: {EFFECT}. It is shown only now:"
            );
            println!("{}", secret.expose());
        }
        Command::Revoke { name } => {
            editor.revoke(&name)?;
            eprintln!("Token `{name}` is out of {file}. It is good until then: {EFFECT}.");
        }
    }
    Ok(())
}

fn now() -> DateTime<Utc> {
    SystemTime::now().into()
}

/// A name that means nothing would be found at the next start only.
fn check_tools(tools: &[String]) -> Result<()> {
    match tools.iter().find(|tool| *tool != "*" && !known_tool(tool)) {
        Some(tool) => bail!("there is no tool or toolset `{tool}`; docs/tools.md lists them"),
        None => Ok(()),
    }
}

fn find<'a>(editor: &'a TokenEditor, name: &str) -> Result<&'a Principal> {
    match editor.tokens().principals().find(|principal| principal.name == name) {
        Some(principal) => Ok(principal),
        None => bail!("there is no token `{name}`; `pvegate token list` shows them"),
    }
}

fn is_wider(given: &[String], now: &Scope) -> bool {
    !now.is_all() && given.iter().any(|name| !now.allows(name))
}

fn is_later(end: Option<&str>, now: Option<SystemTime>) -> bool {
    let end = end.and_then(|end| DateTime::parse_from_rfc3339(end).ok()).map(SystemTime::from);
    match (end, now) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(end), Some(now)) => end > now,
    }
}

/// An end as the file has it.
fn end_of(text: &str, now: DateTime<Utc>) -> Result<String> {
    Ok(end_time::read(text, now)?.to_rfc3339_opts(SecondsFormat::Secs, true))
}

fn words(scope: &Scope) -> String {
    if scope.is_all() { "*".to_owned() } else { scope.names().collect::<Vec<_>>().join(", ") }
}

fn until(principal: &Principal) -> String {
    principal.expires.map_or_else(
        || "no end".to_owned(),
        |end| DateTime::<Utc>::from(end).to_rfc3339_opts(SecondsFormat::Secs, true),
    )
}

fn facts(principal: &Principal) -> Vec<(&'static str, String)> {
    let who = match &principal.actor {
        Actor::Agent { owner: Some(owner) } => format!("agent of {owner}"),
        Actor::Agent { owner: None } => "agent of nobody in particular".to_owned(),
        Actor::Human { person } => person.clone(),
    };
    let over = principal.expires.is_some_and(|end| end <= SystemTime::now());
    vec![
        ("name", principal.name.clone()),
        ("who", who),
        ("tools", words(&principal.grant.tools)),
        ("clusters", words(&principal.grant.clusters)),
        ("until", format!("{}{}", until(principal), if over { " (over)" } else { "" })),
    ]
}

fn line(principal: &Principal) -> String {
    facts(principal).into_iter().map(|(_, value)| value).collect::<Vec<_>>().join("  ")
}

/// Only a person at a terminal can say yes.
fn ask(what: &str) -> Result<()> {
    let input = std::io::stdin();
    ensure!(input.is_terminal(), "{what} Nothing is changed; give --yes if it is meant.");
    eprint!("{what} Write yes to do it: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    input.lock().read_line(&mut line)?;
    ensure!(line.trim() == "yes", "nothing is changed");
    Ok(())
}
