//! `tidegate plugin build [--path FOLDER]`.

use std::path::PathBuf;

use clap::Args;

use super::subject::Looked;
use crate::author::toolchain::{self, BuildError};
use crate::cli::status::bytes_text;
use crate::cli::{Exit, Failure};
use crate::config::PluginModule;

#[derive(Debug, Args)]
pub(in crate::cli) struct BuildArguments {
    /// The project's folder.
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
}

pub(super) fn run(arguments: &BuildArguments) -> Result<(), Failure> {
    let component = toolchain::build(&arguments.path).map_err(build_failure)?;
    let looked = Looked::at(&PluginModule::File(component.clone()))?;
    if let Some(refusal) = looked.refusal {
        return Err(Exit::Data.because(refusal));
    }
    let hooks = looked.anatomy.map(|anatomy| anatomy.hooks.to_string()).unwrap_or_default();
    crate::cli::print(&format!(
        "component  {}\nsize       {}\nsha256     {}\nhooks      {hooks}\n",
        component.display(),
        bytes_text(looked.size_bytes as f64),
        looked.digest,
    ));
    Ok(())
}

/// The exit code follows from who has to do something.
pub(super) fn build_failure(error: BuildError) -> Failure {
    let exit = match error {
        BuildError::NoProject(_) => Exit::Usage,
        BuildError::MissingTool { .. } => Exit::Unavailable,
        BuildError::Failed { .. } | BuildError::NoComponent(_) => Exit::Data,
        BuildError::Unreadable { .. } => Exit::Internal,
    };
    exit.because(error)
}
