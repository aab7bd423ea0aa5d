//! `tidegate plugin inspect MODULE`: what a module is, also one that would be refused.

use clap::Args;
use serde::Serialize;

use super::subject::{LimitArguments, Looked, ModuleArguments, engine, settings_text};
use crate::author::suite::{Subject, link};
use crate::cli::status::bytes_text;
use crate::cli::{Exit, Failure, Output};
use crate::plugin::{LoadError, Needed};

#[derive(Debug, Args)]
pub(in crate::cli) struct InspectArguments {
    #[command(flatten)]
    module: ModuleArguments,
    /// Start it with these settings, a JSON object or @FILE, and show what it needs.
    #[arg(long, value_name = "JSON|@FILE")]
    settings: Option<String>,
    /// The flow that it is told of.
    #[arg(long, value_name = "SOURCE->TARGET", default_value = "east->west")]
    flow: String,
    #[command(flatten)]
    limits: LimitArguments,
    /// How to print.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Output,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Inspection {
    module: String,
    name: Option<String>,
    version: Option<String>,
    digest: String,
    size_bytes: usize,
    contract_version: Option<String>,
    hooks: Vec<&'static str>,
    imports: Vec<String>,
    exports: Vec<String>,
    needs: Option<Vec<String>>,
    settings_schema: Option<serde_json::Value>,
    refusal: Option<String>,
}

pub(super) fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let module = arguments.module.module()?;
    let mut looked = Looked::at(&module)?;
    let needs = match (&arguments.settings, &looked.refusal) {
        (Some(settings), None) => match started_needs(arguments, &module, settings)? {
            Ok(needs) => needs.map(|needs| needs_words(&needs)),
            Err(refusal) => {
                looked.refusal = Some(refusal);
                None
            }
        },
        _ => None,
    };
    let refusal = looked.refusal.as_ref().map(ToString::to_string);
    let inspection = inspection(module.to_string(), looked, needs);
    let text = match arguments.output {
        Output::Table => text(&inspection),
        Output::Json => {
            serde_json::to_string_pretty(&inspection).map_err(|error| Exit::Internal.because(error))? + "\n"
        }
    };
    crate::cli::print(&text);
    match refusal {
        None => Ok(()),
        Some(_) => {
            Err(Exit::Data
                .because(anyhow::anyhow!("{module} would be refused; why is said behind \"refused\"")))
        }
    }
}

/// What the plugin needs with these settings, or why it does not start.
fn started_needs(
    arguments: &InspectArguments,
    module: &crate::config::PluginModule,
    settings: &str,
) -> Result<Result<Option<Needed>, LoadError>, Failure> {
    let settings = settings_text(Some(settings))?;
    let Some((source, target)) = arguments.flow.split_once("->") else {
        let problem = format!("{:?} is no flow; it looks like east->west", arguments.flow);
        return Err(Exit::Usage.because(anyhow::anyhow!("{problem}")));
    };
    let engine = engine()?;
    let start = || {
        let subject = Subject::read(&engine, module, arguments.limits.limits())?;
        Ok(subject.start(&link(source, target), &settings)?.needs)
    };
    Ok(start())
}

fn inspection(module: String, looked: Looked, needs: Option<Vec<String>>) -> Inspection {
    let Looked { digest, size_bytes, anatomy, about, refusal } = looked;
    let (name, version, schema) = match about {
        Some(about) => (Some(about.name), Some(about.version), about.settings_schema),
        None => (None, None, None),
    };
    let hooks = anatomy.as_ref().map(|anatomy| anatomy.hooks.words()).unwrap_or_default();
    let (imports, exports, contract_version) = match anatomy {
        Some(anatomy) => (anatomy.imports, anatomy.exports, anatomy.contract_version),
        None => (Vec::new(), Vec::new(), None),
    };
    // A schema that is no JSON is shown as the text that it is.
    let settings_schema =
        schema.map(|schema| serde_json::from_str(&schema).unwrap_or(serde_json::Value::String(schema)));
    let refusal = refusal.map(|refusal| refusal.to_string());
    Inspection {
        module,
        name,
        version,
        digest,
        size_bytes,
        contract_version,
        hooks,
        imports,
        exports,
        needs,
        settings_schema,
        refusal,
    }
}

/// The parts of records, in the contract's words.
fn needs_words(needs: &Needed) -> Vec<String> {
    let parts = [(needs.key, "key"), (needs.value, "value"), (needs.timestamps, "timestamps")];
    let mut words: Vec<String> =
        parts.iter().filter(|(is_needed, _)| *is_needed).map(|(_, word)| (*word).to_owned()).collect();
    if needs.headers && needs.header_names.is_empty() {
        words.push("headers".to_owned());
    } else if needs.headers {
        words.extend(needs.header_names.iter().map(|name| format!("header {name}")));
    }
    words
}

fn text(inspection: &Inspection) -> String {
    let list = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    let unknown = || "unknown".to_owned();
    let mut lines = vec![
        ("module", inspection.module.clone()),
        ("name", inspection.name.clone().unwrap_or_else(unknown)),
        ("version", inspection.version.clone().unwrap_or_else(unknown)),
        ("sha256", inspection.digest.clone()),
        ("size", bytes_text(inspection.size_bytes as f64)),
        ("contract", inspection.contract_version.clone().unwrap_or_else(unknown)),
        ("hooks", if inspection.hooks.is_empty() { "none".to_owned() } else { inspection.hooks.join(", ") }),
        ("imports", list(&inspection.imports)),
        ("exports", list(&inspection.exports)),
    ];
    if inspection.hooks.contains(&"records") {
        lines.push((
            "needs",
            match (&inspection.needs, &inspection.refusal) {
                (Some(needs), _) => list(needs),
                (None, None) => "depends on the settings; give --settings".to_owned(),
                (None, Some(_)) => unknown(),
            },
        ));
    }
    let schema = inspection.settings_schema.as_ref().map(|schema| match schema {
        serde_json::Value::String(text) => text.clone(),
        schema => serde_json::to_string_pretty(schema).unwrap_or_default(),
    });
    if let Some(refusal) = &inspection.refusal {
        lines.push(("refused", refusal.clone()));
    }
    // Last, for it is the longest, in lines below each other.
    let none = || if inspection.name.is_some() { "none".to_owned() } else { unknown() };
    lines.push(("schema", schema.map_or_else(none, |schema| schema.replace('\n', "\n          "))));
    lines.iter().map(|(word, value)| format!("{word:<10}{value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inspection() -> Inspection {
        Inspection {
            module: "a.wasm".into(),
            name: Some("a".into()),
            version: Some("0.1.0".into()),
            digest: "00ff".into(),
            size_bytes: 2048,
            contract_version: Some("0.1.0".into()),
            hooks: vec!["records"],
            imports: vec!["tidegate:plugin/host@0.1.0".into()],
            exports: vec!["tidegate:plugin/lifecycle@0.1.0".into(), "tidegate:plugin/records@0.1.0".into()],
            needs: Some(vec!["header region".into()]),
            settings_schema: Some(serde_json::json!({"type": "object"})),
            refusal: None,
        }
    }

    #[test]
    fn everything_is_on_the_page() {
        assert_eq!(
            text(&inspection()),
            "module    a.wasm\n\
             name      a\n\
             version   0.1.0\n\
             sha256    00ff\n\
             size      2.0 KiB\n\
             contract  0.1.0\n\
             hooks     records\n\
             imports   tidegate:plugin/host@0.1.0\n\
             exports   tidegate:plugin/lifecycle@0.1.0, tidegate:plugin/records@0.1.0\n\
             needs     header region\n\
             schema    {\n            \"type\": \"object\"\n          }\n"
        );
    }

    #[test]
    fn a_refused_module_shows_what_it_has_and_why() {
        let refused = Inspection {
            name: None,
            version: None,
            imports: vec!["wasi:io/streams@0.2.6".into()],
            needs: None,
            settings_schema: None,
            refusal: Some("it imports too much".into()),
            ..inspection()
        };
        let shown = text(&refused);
        for line in [
            "name      unknown\n",
            "imports   wasi:io/streams@0.2.6\n",
            "needs     unknown\n",
            "refused   it imports too much\n",
        ] {
            assert!(shown.contains(line), "no {line:?} in {shown}");
        }
    }

    #[test]
    fn needs_are_told_in_the_contracts_words() {
        let needed = |headers, header_names: &[&str]| Needed {
            key: true,
            value: false,
            headers,
            timestamps: true,
            header_names: header_names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert_eq!(needs_words(&needed(false, &[])), ["key", "timestamps"]);
        assert_eq!(needs_words(&needed(true, &[])), ["key", "timestamps", "headers"]);
        assert_eq!(needs_words(&needed(true, &["a", "b"])), ["key", "timestamps", "header a", "header b"]);
    }
}
