//! `tidegate plugin new NAME --kind KIND [--lang LANGUAGE] [--path FOLDER]`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::author::project::{Kind, Language, NewProjectError, PluginName, new_project};
use crate::cli::{Exit, Failure};

#[derive(Debug, Args)]
pub(in crate::cli) struct NewArguments {
    /// The plugin's name: of the folder, the crate and the component.
    name: String,
    /// What it does to begin with.
    #[arg(long, value_enum)]
    kind: KindArgument,
    /// What it is written in.
    #[arg(long, value_enum, default_value = "rust")]
    lang: LanguageArgument,
    /// Where the project's folder is made.
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KindArgument {
    /// Names topics.
    Rename,
    /// Keeps or drops records.
    Filter,
    /// Changes headers.
    Headers,
    /// Maps access rules.
    Acl,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LanguageArgument {
    /// With the SDK; some 10 to 100 ns a record.
    Rust,
    /// As quick and a quarter of the size; needs Python 3, Node.js and npm to build.
    C,
    /// Microseconds a record; needs Node.js and npm to build.
    Javascript,
    /// Microseconds a record, 18 MB; needs Python 3 to build.
    Python,
}

pub(super) fn run(arguments: &NewArguments) -> Result<(), Failure> {
    let kind = match arguments.kind {
        KindArgument::Rename => Kind::Rename,
        KindArgument::Filter => Kind::Filter,
        KindArgument::Headers => Kind::Headers,
        KindArgument::Acl => Kind::Acl,
    };
    let language = match arguments.lang {
        LanguageArgument::Rust => Language::Rust,
        LanguageArgument::C => Language::C,
        LanguageArgument::Javascript => Language::JavaScript,
        LanguageArgument::Python => Language::Python,
    };
    let name = PluginName::parse(&arguments.name).map_err(failure)?;
    let folder = new_project(&arguments.path, &name, kind, language).map_err(failure)?;
    let folder = folder.strip_prefix(".").unwrap_or(&folder).display();
    crate::cli::print(&format!(
        "made {folder}, a plugin of kind {kind} in {language}\n\n\
         \x20 cd {folder}\n\
         \x20 tidegate plugin build\n\
         \x20 tidegate plugin test\n\n\
         README.md there says how to go on: its cost, real records, a running flow\n"
    ));
    Ok(())
}

fn failure(error: NewProjectError) -> Failure {
    let exit = match error {
        NewProjectError::Write { .. } => Exit::Internal,
        _ => Exit::Usage,
    };
    exit.because(error)
}
