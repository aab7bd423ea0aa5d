//! Where an instance sits that answers one kind of question: after a fault the next one takes its place, and the
//! question is asked once more.

use std::sync::Arc;
use std::time::Instant;

use super::fault::Fault;
use super::instance::Instance;
use super::recipe::{ATTEMPT_COUNT_MAX, Recipe};
use super::stats::PluginStats;

pub(super) struct Seat {
    pub(super) recipe: Arc<Recipe>,
    stats: Arc<PluginStats>,
    /// None before the first question and after a fault; the next question makes one.
    instance: Option<Instance>,
}

impl Seat {
    pub(super) fn new(recipe: Arc<Recipe>, stats: Arc<PluginStats>, instance: Option<Instance>) -> Self {
        Self { recipe, stats, instance }
    }

    /// Asks, after a fault once more on a fresh instance. What the plugin itself declines is final: the next instance
    /// would say the same.
    pub(super) fn ask<T>(
        &mut self,
        question: impl Fn(&mut Instance) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut attempt = 1;
        loop {
            let fault = match self.ask_once(&question) {
                Ok(answer) => return Ok(answer),
                Err(fault) => fault,
            };
            self.stats.note_fault(fault.kind());
            if attempt == ATTEMPT_COUNT_MAX || matches!(fault, Fault::Declined { .. } | Fault::Refused { .. })
            {
                return Err(fault);
            }
            tracing::warn!(flow = %self.recipe.link.name, %fault, "plugin fault, asking a fresh instance");
            attempt += 1;
        }
    }

    fn ask_once<T>(&mut self, question: impl Fn(&mut Instance) -> Result<T, Fault>) -> Result<T, Fault> {
        let mut instance = match self.instance.take() {
            Some(instance) => instance,
            None => self.recipe.another_instance()?,
        };
        let start = Instant::now();
        let answer = question(&mut instance);
        self.stats.note_call(start.elapsed());
        if matches!(answer, Ok(_) | Err(Fault::Declined { .. })) {
            self.instance = Some(instance);
        }
        answer
    }
}
