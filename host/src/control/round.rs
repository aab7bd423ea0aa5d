//! One round of a flow's control loop. When to make one is the loop's business ([`super::Pace`] helps).

use super::apply::{ActionResult, apply};
use super::naming::Naming;
use super::observe::observe;
use super::plan::{Memory, Plan, Situation, plan};
use crate::cluster::ClusterAdmin;
use crate::config::FlowConfig;

/// What a flow needs to observe, plan and apply, and what it remembers from round to round.
pub struct Round {
    flow: FlowConfig,
    source: ClusterAdmin,
    target: ClusterAdmin,
    naming: Naming,
    memory: Memory,
}

impl Round {
    /// Nothing is asked of the clusters yet.
    pub fn new(flow: FlowConfig, source: ClusterAdmin, target: ClusterAdmin, naming: Naming) -> Self {
        Self { flow, source, target, naming, memory: Memory::default() }
    }

    /// Looks and plans; changes nothing on either cluster. After an error everything is as before.
    pub async fn observe_and_plan(&mut self) -> anyhow::Result<Plan> {
        let (observed, answers) = observe(&self.source, &self.target, &mut self.naming).await?;
        let plan = plan(&Situation {
            observed: &observed,
            answers: &answers,
            memory: &self.memory,
            flow: &self.flow,
            names_are_kept: self.naming.keeps_names(),
        });
        self.memory.remember(&observed, &plan);
        Ok(plan)
    }

    /// Does what the plan says, on the target. What came of it shows in the next round.
    pub async fn apply(&self, plan: &Plan) -> Vec<ActionResult> {
        apply(&self.target, &self.flow, plan).await
    }

    /// Names topics by another plugin from now on; what it called them before is forgotten.
    pub fn take_naming(&mut self, naming: Naming) {
        self.naming = naming;
    }

    /// The flow's settings.
    pub fn flow(&self) -> &FlowConfig {
        &self.flow
    }
}
