//! The settings: what is redacted, and how.

use tidegate_json_fields::{Paths, Scanner, write_string};
use tidegate_plugin::Problem;
use tidegate_setting_tables::{Table, read};

use crate::action::Action;
use crate::hash::Hash;
use crate::{NotJson, Redact, Scratch};

/// A salt with fewer bytes is refused: with it, hashes of addresses or numbers can be undone by trying all of them.
const SALT_BYTES_MIN: usize = 8;
/// More paths than this are refused.
const PATH_COUNT_MAX: usize = 1024;

pub(crate) fn read_settings(settings: &str) -> Result<Redact, Vec<Problem>> {
    read(settings, |table| {
        let salt = take_salt(table);
        let mut redact = Redact {
            paths: Paths::new(),
            fields: Vec::new(),
            constants: Vec::new(),
            headers: Vec::new(),
            key: None,
            not_json: NotJson::Reject,
            scanner: Scanner::default(),
            scratch: Scratch::default(),
        };
        table.tables("fields", |rule| take_fields(rule, &salt, &mut redact));
        table.tables("headers", |rule| take_headers(rule, &salt, &mut redact.headers));
        redact.key = table.table("key", |rule| take_key(rule, &salt));
        redact.not_json = match table.choice("not_json", &["reject", "pass", "drop"]) {
            "pass" => NotJson::Pass,
            "drop" => NotJson::Drop,
            _ => NotJson::Reject,
        };
        if redact.fields.is_empty() && redact.headers.is_empty() && redact.key.is_none() {
            table.object_to(
                "",
                "names nothing that is right to redact: needed is one of fields, headers, key",
            );
        }
        if redact.fields.len() > PATH_COUNT_MAX {
            let message = format!("have {} paths, at most {PATH_COUNT_MAX} are taken", redact.fields.len());
            table.object_to("fields", message);
        }
        redact
    })
}

/// What is said about the salt; its problem is told once.
enum Salt {
    Given(String),
    Absent,
    Wrong,
}

fn take_salt(table: &mut Table<'_>) -> Salt {
    match table.string("salt") {
        None => Salt::Absent,
        Some(salt) if salt.len() < SALT_BYTES_MIN => {
            table.object_to(
                "salt",
                format!("must have at least {SALT_BYTES_MIN} bytes, better 32 that are random"),
            );
            Salt::Wrong
        }
        Some(salt) => Salt::Given(salt),
    }
}

fn take_fields(table: &mut Table<'_>, salt: &Salt, redact: &mut Redact) -> Option<()> {
    let paths = take_list(table, "paths");
    let action = take_action(table, &["mask", "hash", "hmac", "remove"], salt)?;
    for (index, path) in paths?.iter().enumerate() {
        match redact.paths.add(path, matches!(action, Action::Remove)) {
            Ok(_) => {
                redact.fields.push(action.clone());
                redact.constants.push(constant(&action));
            }
            Err(message) => table.object_to(&format!("paths/{index}"), message),
        }
    }
    Some(())
}

/// A mask as it is written into JSON; nothing for what is removed, or differs.
fn constant(action: &Action) -> Vec<u8> {
    let mut written = Vec::new();
    if let Action::Mask { with, .. } = action {
        write_string(with.as_bytes(), &mut written);
    }
    written
}

fn take_headers(table: &mut Table<'_>, salt: &Salt, headers: &mut Vec<(String, Action)>) -> Option<()> {
    let names = take_list(table, "names");
    let action = take_action(table, &["mask", "hash", "hmac", "remove"], salt)?;
    headers.extend(names?.into_iter().map(|name| (name, action.clone())));
    Some(())
}

/// A mask would give all records one key, and compaction would leave one of them.
fn take_key(table: &mut Table<'_>, salt: &Salt) -> Option<Action> {
    take_action(table, &["hash", "hmac"], salt)
}

fn take_list(table: &mut Table<'_>, name: &'static str) -> Option<Vec<String>> {
    let list = table.strings(name);
    if list.as_ref().is_none_or(Vec::is_empty) {
        table.object_to(name, "must list at least one");
    }
    list
}

fn take_action(table: &mut Table<'_>, actions: &[&'static str], salt: &Salt) -> Option<Action> {
    match table.required_choice("action", actions)? {
        "mask" => {
            let with = table.string("with").unwrap_or("***".to_owned());
            Some(Action::Mask { with, keep_last: table.count("keep_last").unwrap_or(0) })
        }
        "hash" => take_hash(table, salt, Hash::salted),
        "hmac" => take_hash(table, salt, Hash::hmac),
        _ => Some(Action::Remove),
    }
}

fn take_hash(table: &mut Table<'_>, salt: &Salt, hash: fn(&[u8]) -> Hash) -> Option<Action> {
    match salt {
        Salt::Given(salt) => Some(Action::Hash(hash(salt.as_bytes()))),
        Salt::Wrong => None,
        Salt::Absent => {
            table.object_to("action", "needs the setting \"salt\" beside \"fields\"");
            None
        }
    }
}
