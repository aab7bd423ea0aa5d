//! One round of a flow's control loop. When to make one is the loop's business ([`super::Pace`] helps).

use super::access::{AccessPlan, plan_access};
use super::apply::{ActionResult, apply};
use super::naming::Naming;
use super::observe::{Observation, Observed, observe};
use super::plan::{Memory, Plan, Preview, Situation, plan};
use super::policies::Policies;
use crate::cluster::ClusterAdmin;
use crate::config::FlowConfig;
use crate::names::TopicName;

/// What a flow needs to observe, plan and apply, and what it remembers from round to round.
pub struct Round {
    flow: FlowConfig,
    source: ClusterAdmin,
    target: ClusterAdmin,
    policies: Policies,
    memory: Memory,
    /// What the last round saw.
    observed: Observed,
}

impl Round {
    /// Nothing is asked of the clusters yet.
    pub fn new(
        flow: FlowConfig,
        source: ClusterAdmin,
        target: ClusterAdmin,
        policies: impl Into<Policies>,
    ) -> Self {
        let policies = policies.into();
        Self { flow, source, target, policies, memory: Memory::default(), observed: Observed::default() }
    }

    /// From the next round on these decide. What was copied before is remembered.
    pub fn take_policies(&mut self, policies: Policies) {
        self.policies = policies;
    }

    /// Who names topics now.
    pub fn naming(&mut self) -> &mut Naming {
        &mut self.policies.naming
    }

    /// The source topics that the last round's plan copies.
    pub fn copied_topics(&self) -> impl Iterator<Item = &TopicName> {
        self.memory.topic_map().iter().map(|(topic, _)| topic)
    }

    /// Looks and plans; changes nothing on either cluster. After an error everything is as before.
    pub async fn observe_and_plan(&mut self) -> anyhow::Result<Plan> {
        let copied = self.memory.topic_map();
        let Observation { observed, answers, selection_fault } =
            observe(&self.source, &self.target, &mut self.policies, &self.observed, copied).await?;
        let plan = plan(&Situation {
            observed: &observed,
            answers: &answers,
            memory: &self.memory,
            flow: &self.flow,
            names_are_kept: self.policies.naming.keeps_names(),
            wants_quarantine: self.policies.wants_quarantine,
            selection_fault: selection_fault.as_deref(),
        });
        self.memory.remember(&observed, &plan);
        self.observed = observed;
        Ok(plan)
    }

    /// As [`Round::observe_and_plan`], with what the plugins say to consumer groups and access rules, which nothing acts on
    /// yet. What can't be read is said in the preview.
    pub async fn observe_and_preview(&mut self) -> anyhow::Result<Plan> {
        let mut plan = self.observe_and_plan().await?;
        if plan.flow_refusal().is_none() {
            let mut preview = Preview::default();
            self.preview_groups(&mut preview).await;
            preview.access = self.preview_access(&plan).await;
            plan.preview = Some(preview);
        }
        Ok(plan)
    }

    async fn preview_groups(&mut self, preview: &mut Preview) {
        let groups = match self.source.consumer_groups().await {
            Ok(groups) => groups,
            Err(problem) => return preview.notes.push(format!("{problem:#}")),
        };
        let mut accepted = Vec::new();
        for group in groups {
            match self.flow.groups.accepts(&group) {
                Ok(true) => accepted.push(group),
                Ok(false) => {}
                Err(undecided) => preview.notes.push(format!("group \"{group}\": {undecided}")),
            }
        }
        match self.policies.selector.groups(accepted) {
            Ok((groups, left_out)) => {
                preview.groups = groups;
                preview.groups_left_out = left_out;
            }
            Err(fault) => preview.notes.push(fault),
        }
    }

    async fn preview_access(&mut self, plan: &Plan) -> AccessPlan {
        let unread = |why: String| AccessPlan { notes: vec![why], ..AccessPlan::default() };
        match self.source.topic_access().await {
            Ok(Ok(rules)) => plan_access(&rules, &plan.topic_map, &mut self.policies.mappings),
            Ok(Err(refusal)) if refusal.error == kafka_protocol::ResponseError::SecurityDisabled => unread(
                format!("cluster \"{}\" has no access rules: no authorizer guards it", self.source.alias()),
            ),
            Ok(Err(refusal)) => unread(format!(
                "cluster \"{}\" does not tell its access rules: {refusal}; allow DESCRIBE on the cluster",
                self.source.alias()
            )),
            Err(problem) => unread(format!("{problem:#}")),
        }
    }

    /// Does what the plan says. What came of it shows in the next round.
    pub async fn apply(&self, plan: &Plan) -> Vec<ActionResult> {
        apply(&self.source, &self.target, &self.flow, plan).await
    }

    /// The flow's settings.
    pub fn flow(&self) -> &FlowConfig {
        &self.flow
    }
}
