//! Names of topics, there and back.

use crate::author::fixture::{Case, NameCase};
use crate::plugin::{LoadedPlugin, NamingPlugin};

pub(super) fn check(plugin: &LoadedPlugin, case: &Case) -> Vec<String> {
    if case.names.is_empty() {
        return Vec::new();
    }
    let mut naming = plugin.naming();
    case.names.iter().filter_map(|name| failure(&mut naming, name)).collect()
}

fn failure(naming: &mut NamingPlugin, case: &NameCase) -> Option<String> {
    match (&case.source, &case.target, &case.refused) {
        (Some(Some(source)), Some(target), _) => there_and_back(naming, source, target),
        (Some(Some(source)), None, Some(text)) => refused(naming, source, text),
        (_, Some(target), _) => stands_for(naming, target, None),
        // `NameCase::is_clear` lets nothing else pass.
        _ => Some("the case says nothing".to_owned()),
    }
}

fn there_and_back(naming: &mut NamingPlugin, source: &str, target: &str) -> Option<String> {
    match naming.to_target(source) {
        Err(fault) => Some(fault.to_string()),
        Ok(Err(words)) => Some(format!("\"{source}\": expected \"{target}\", but it is refused: {words}")),
        Ok(Ok(found)) if found != target => {
            Some(format!("\"{source}\": expected \"{target}\", found \"{found}\""))
        }
        Ok(Ok(_)) => stands_for(naming, target, Some(source)),
    }
}

fn refused(naming: &mut NamingPlugin, source: &str, text: &str) -> Option<String> {
    match naming.to_target(source) {
        Err(fault) => Some(fault.to_string()),
        Ok(Ok(found)) => Some(format!("\"{source}\": expected to be refused, found \"{found}\"")),
        Ok(Err(words)) if words.contains(text) => None,
        Ok(Err(words)) => Some(format!("\"{source}\": the refusal does not hold {text:?}: {words}")),
    }
}

fn stands_for(naming: &mut NamingPlugin, target: &str, expected: Option<&str>) -> Option<String> {
    let words = |name: Option<&str>| match name {
        Some(name) => format!("\"{name}\""),
        None => "no topic".to_owned(),
    };
    match naming.to_source(target) {
        Err(fault) => Some(fault.to_string()),
        Ok(found) if found.as_deref() == expected => None,
        Ok(found) => Some(format!(
            "the way back: \"{target}\" should stand for {}, the plugin says {}",
            words(expected),
            words(found.as_deref())
        )),
    }
}
