//! `tidegate plan FILE`: looks at the clusters and says what `run` would do. Changes nothing.

use std::sync::Arc;

use super::run::{flow_failure, runtime};
use super::{Exit, Failure, Output, PlanArguments, ProcessArguments};
use crate::control::Plan;
use crate::flow::look_once;
use crate::plugin::Engine;

pub(super) fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    let loaded = arguments.file.load(&ProcessArguments::default())?;
    let engine = Engine::new(None).map_err(|problem| Exit::Internal.because(problem))?;
    let config = Arc::new(loaded.config);
    let plans = runtime()?.block_on(async {
        let mut plans = Vec::new();
        for flow in &config.flows {
            plans.push(look_once(flow, &config, &engine).await?);
        }
        Ok(plans)
    });
    let plans = plans.map_err(flow_failure)?;
    match arguments.output {
        Output::Json => {
            let json = serde_json::to_string_pretty(&plans).map_err(|error| Exit::Internal.because(error))?;
            super::print(&format!(
                "{json}
"
            ));
        }
        Output::Table => {
            for plan in &plans {
                super::print(&format!(
                    "{plan}
"
                ));
            }
        }
    }
    match plans.iter().find_map(Plan::flow_refusal) {
        Some(refusal) => Err(Exit::Configuration.because(anyhow::anyhow!("{}", refusal.text))),
        None => Ok(()),
    }
}
