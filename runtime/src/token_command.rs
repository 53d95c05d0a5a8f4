//! `pvegate token`: makes, shows, changes and ends tokens in the token file. A secret is printed once, alone, on
//! standard output; everything else goes to standard error.

mod scopes;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Result, bail, ensure};
use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use pvegate::tokens::{Actor, Principal, TokenEditor};
use serde_json::{Map, Value, json};

use crate::end_time;
use scopes::Scopes;

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
        #[command(flatten)]
        scopes: Box<Scopes>,
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
    /// Changes what a token reaches, and not its secret; what is left out stays as it is.
    SetScopes {
        /// Its name.
        name: String,
        #[command(flatten)]
        scopes: Box<Scopes>,
        /// When it ends; `never` to take the end away.
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
        Command::Add { name, owner, person, scopes, expires } => {
            let grant = scopes.new_grant()?;
            let mut entry: Map<String, Value> = Map::new();
            let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
            put("name", json!(name));
            put("actor_type", json!(if person.is_some() { "human" } else { "agent" }));
            for (key, value) in [("owner", owner), ("person", person)] {
                value.map(|value| put(key, json!(value)));
            }
            if let Some(end) = expires {
                put("expires", json!(end_of(&end, now())?));
            }
            let secret = editor.insert(entry, &grant)?;
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
        Command::SetScopes { name, scopes, expires, yes } => {
            let principal = find(&editor, &name)?;
            let grant = if scopes.is_empty() { None } else { Some(scopes.over(&principal.grant)?) };
            let mut wider = grant.as_ref().map(|grant| scopes::wider(grant, &principal.grant)).unwrap_or_default();
            let mut ends = None;
            if let Some(end) = expires {
                let end = if end == "never" { None } else { Some(end_of(&end, now())?) };
                if is_later(end.as_deref(), principal.expires) {
                    wider.push(format!("until {} instead of {}", end.as_deref().unwrap_or("ever"), until(principal)));
                }
                ends = Some(end);
            }
            ensure!(
                grant.is_some() || ends.is_some(),
                "nothing to change: give what it is to reach (--tools, --guests, … as in --help) or --expires"
            );
            if !wider.is_empty() && !yes {
                ask(&format!("Token `{name}` would reach more than it did: {}.", wider.join("; ")))?;
            }
            let seeds = editor.change(&name, grant.as_ref(), ends)?;
            eprintln!("Token `{name}` is changed in {file}, its secret is not; {EFFECT}.");
            if seeds {
                eprintln!(
                    "It was an entry of rust-proxmoxmcp's. It has pvegate's keys now and reaches what `pvegate token show {name}` lists; names that mean nothing here are gone."
                );
            }
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

fn find<'a>(editor: &'a TokenEditor, name: &str) -> Result<&'a Principal> {
    match editor.tokens().principals().find(|principal| principal.name == name) {
        Some(principal) => Ok(principal),
        None => bail!("there is no token `{name}`; `pvegate token list` shows them"),
    }
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
    let mut facts = vec![("name", principal.name.clone()), ("who", who)];
    facts.extend(scopes::facts(&principal.grant));
    facts.push(("until", format!("{}{}", until(principal), if over { " (over)" } else { "" })));
    facts
}

/// The most important of it.
fn line(principal: &Principal) -> String {
    let brief = ["name", "who", "tools", "clusters", "guests", "tiers", "until"];
    facts(principal)
        .into_iter()
        .filter(|(key, _)| brief.contains(key))
        .map(|(_, value)| value)
        .collect::<Vec<_>>()
        .join("  ")
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
