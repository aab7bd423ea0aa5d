//! How one generation of plugins follows another. Whoever asks, the way is one: prove the plugins beside the loop, write the
//! decision, read it back as every node does, hand a chain to each worker, report from where on it edits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::Instant;
use tracing::{info, warn};

use super::book::{Book, News};
use super::decision::{DecidedPlugin, Decision, DecisionId, Kind, Occasion, fingerprint};
use super::first::{First, blocking, load_decision};
use super::policies::{Loaded, Loader, Modules, Origin, Ready, Wanted};
use super::reports::Report;
use super::trial::AfterTrial;
use super::{Done, FlowLoop};
use crate::cluster::{LogRecord, PluginsKey, PluginsLog, SHARED_MODULE_BYTES_MAX};
use crate::config::{NAMING_PLUGIN_NAME, PluginConfig, PluginModule, check_joining_name};
use crate::control::{Naming, Policies as Hooks, renames};
use crate::names::SourcePartition;
use crate::plugin::LoadError;
use crate::serve::orders::{
    Answer, NoAnswer, NoAnswerKind, RollbackWish, SentModule, SwapView, SwapWish, SwappedPartition, Who,
};
use crate::status::{Changeover, FlowStats, now_ms};

/// How long the node that was asked waits for the reports of others, in milliseconds.
const REPORTS_MS_MAX: u64 = 30_000;

/// How long a node waits until its workers have taken a chain, in milliseconds.
const TAKEN_MS_MAX: u64 = 10_000;

/// Partitions that begin just now tell their first offset within this time, in milliseconds …
const OFFSETS_MS_MAX: u64 = 2_000;

/// … and are looked at so often, in milliseconds.
const OFFSETS_LOOK_MS: u64 = 20;

/// What runs at the start is tried to be written again after this time, in milliseconds.
const FIRST_RETRY_MS: u64 = 5_000;

/// The plugins of a running flow: what runs, what is being made, what is known of other nodes.
pub(super) struct Policies {
    pub(super) loader: Loader,
    /// What runs here.
    pub(super) decision: Decision,
    pub(super) loaded: Loaded,
    /// It does not stand in the log yet.
    is_unwritten: bool,
    /// What the configuration file says.
    pub(super) file: Vec<DecidedPlugin>,
    pub(super) book: Book,
    log: Arc<Mutex<PluginsLog>>,
    pub(super) records: mpsc::Receiver<Vec<LogRecord>>,
    /// The generation that is being made on this node, until it is read back.
    making: Option<Making>,
    /// Made here, written, not read back yet.
    prepared: Option<(DecisionId, Box<Ready>)>,
    /// Another node's decision, or one that came before it was expected, being made ready.
    following: Option<DecisionId>,
    waiting: Vec<Waiting>,
    /// Workers are taking a generation; what came of it is reported then.
    is_changing: bool,
    /// A change of a module file was overtaken by another decision.
    pub(super) must_look_again: bool,
    /// For the round, when it comes home.
    pub(super) new_hooks: Option<Hooks>,
    /// What must be compared with the round's names, when it comes home.
    deferred: Option<Box<Made>>,
}

/// A generation on its way from the wish to the log and back. What is proposed meanwhile would not know of it.
struct Making {
    number: u64,
    /// None while it is made ready. What was written comes back within `REPORTS_MS_MAX`, or is not waited for.
    written_at: Option<Instant>,
}

/// A generation that was made ready, or can't be.
pub(super) struct Made {
    ready: anyhow::Result<Box<Ready>>,
    occasion: Occasion,
    force: bool,
    answer: Option<Answer<SwapView>>,
    started: Instant,
}

/// Somebody who wants to know what came of a decision.
struct Waiting {
    id: DecisionId,
    answer: Answer<SwapView>,
    started: Instant,
    deadline: Instant,
}

/// A change that somebody wants.
pub(super) struct Proposal {
    pub(super) kind: Kind,
    pub(super) who: Who,
    pub(super) what: String,
    pub(super) force: bool,
    pub(super) change: Change,
}

/// What shall change.
pub(super) enum Change {
    /// These plugins from now on.
    Plugins(Vec<Wanted>),
    /// What an earlier decision said.
    BackTo(Box<Decision>),
}

impl Policies {
    pub(super) fn new(
        loader: Loader,
        first: First,
        book: Book,
        log: PluginsLog,
        records: mpsc::Receiver<Vec<LogRecord>>,
    ) -> (Self, Ready) {
        let First { ready, decision, file, .. } = first;
        let is_unwritten = book.last().is_none_or(|last| last.id() != decision.id());
        let policies = Self {
            loader,
            decision,
            loaded: ready.loaded.clone(),
            is_unwritten,
            file,
            book,
            log: Arc::new(Mutex::new(log)),
            records,
            making: None,
            prepared: None,
            following: None,
            waiting: Vec::new(),
            is_changing: false,
            must_look_again: false,
            new_hooks: None,
            deferred: None,
        };
        (policies, ready)
    }

    /// When somebody has waited long enough.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|waiting| waiting.deadline).min()
    }

    /// What the file said is as it was, unless the file is what changes something.
    fn fingerprint_for(&self, kind: Kind) -> String {
        match self.book.last() {
            Some(last) if kind != Kind::File => last.fingerprint.clone(),
            _ => fingerprint(&self.file),
        }
    }

    /// The number of the next generation.
    fn next_number(&self) -> u64 {
        self.book.holding().unwrap_or(0).max(self.decision.generation) + 1
    }

    /// The generation that holds for the flow, also while this node has not taken it.
    fn holding(&self) -> u64 {
        let own = self.decision.generation;
        self.book.holding().filter(|held| !self.is_unwritten || *held >= own).unwrap_or(own)
    }

    /// Why nothing can be proposed on the ground of what runs here: something else was decided.
    fn behind(&self) -> Option<String> {
        if let Some(unreadable) = self.book.unreadable() {
            return Some(unreadable.to_string());
        }
        let own = &self.decision;
        let last = self.book.last().filter(|last| last.id() != own.id())?;
        (!self.is_unwritten || last.generation >= own.generation).then(|| {
            format!(
                "this node runs generation {}, and generation {} was decided",
                own.generation, last.generation
            )
        })
    }

    /// The plugins as they would be with a wish fulfilled.
    pub(super) fn propose(&self, wish: &SwapWish) -> Result<Proposal, NoAnswer> {
        if wish.seen_generation.is_some_and(|seen| seen != self.decision.generation) {
            return Err(NoAnswer::new(
                NoAnswerKind::Conflict,
                format!("generation {} runs now, not the one that you have seen", self.decision.generation),
                "look again with tidegate plugin list, then swap",
            ));
        }
        if wish.module.is_none() && wish.settings.is_none() {
            return Err(NoAnswer::new(
                NoAnswerKind::BadRequest,
                "neither a module nor settings are given, so nothing would change",
                "give a module, --settings, or both",
            ));
        }
        if let Some(behind) = self.behind() {
            return Err(NoAnswer::new(
                NoAnswerKind::Conflict,
                behind,
                "try again in a moment or ask another node of the flow; where it can't be taken, tidegate plugin rollback is the way \
                 back",
            ));
        }
        let mut wanted: Vec<Wanted> = self
            .loaded
            .plugins
            .iter()
            .map(|plugin| Wanted {
                config: plugin.config.clone(),
                origin: Origin::Loaded(Arc::clone(plugin)),
            })
            .collect();
        let decided = self.decision.plugin(&wish.name);
        if decided.is_none() {
            // The naming plugin of the file stays the last one.
            let last = wanted.len().saturating_sub(1);
            wanted.insert(last, self.newcomer(wish)?);
        }
        let Some(own) = wanted.iter_mut().find(|wanted| wanted.config.name == wish.name) else {
            return Err(not_loaded(&wish.name));
        };
        own.config.sha256 = self.pin(&wish.name);
        if let Some(settings) = &wish.settings {
            own.config.settings_json.clone_from(settings);
        }
        let (module, origin) = match &wish.module {
            None => {
                let same = decided.map_or(Origin::Config, |decided| self.same_module(&decided.digest));
                (own.config.module.clone(), same)
            }
            Some(SentModule::Builtin(name)) => (PluginModule::Builtin(name.clone()), Origin::Config),
            Some(SentModule::Bytes { path, bytes }) => {
                (PluginModule::File(path.into()), Origin::Bytes(Bytes::from(bytes.clone())))
            }
        };
        own.config.module = module;
        own.origin = origin;
        let (kind, what) = match &wish.module {
            None => (Kind::Settings, format!("settings of \"{}\"", wish.name)),
            Some(_) if decided.is_none() => {
                (Kind::Swap, format!("\"{}\" joins: {}", wish.name, own.config.module))
            }
            Some(_) => (Kind::Swap, format!("\"{}\" is {}", wish.name, own.config.module)),
        };
        let change = Change::Plugins(wanted);
        Ok(Proposal { kind, who: wish.who.clone(), what, force: wish.force, change })
    }

    /// A plugin that the flow did not have: it joins at the end of the chain, with the file's defaults for what is not said.
    fn newcomer(&self, wish: &SwapWish) -> Result<Wanted, NoAnswer> {
        let mut known: Vec<String> = self.decision.plugins.iter().map(|plugin| plugin.name.clone()).collect();
        known.retain(|name| name != NAMING_PLUGIN_NAME);
        let module = match &wish.module {
            Some(SentModule::Builtin(name)) => PluginModule::Builtin(name.clone()),
            Some(SentModule::Bytes { path, .. }) => PluginModule::File(path.into()),
            None => {
                return Err(NoAnswer::new(
                    NoAnswerKind::Unknown,
                    format!("flow {} has no plugin \"{}\"", self.decision.flow, wish.name),
                    format!("name one of {}, or give the module of a new one", self.known_names()),
                ));
            }
        };
        check_joining_name(&wish.name, &known).map_err(|problem| {
            let error =
                format!("\"{}\" can't join flow {}: its list {problem}", wish.name, self.decision.flow);
            NoAnswer::new(NoAnswerKind::BadRequest, error, "choose another name")
        })?;
        let config = PluginConfig::with_defaults(&wish.name, module);
        Ok(Wanted { config, origin: Origin::Config })
    }

    fn known_names(&self) -> String {
        let names: Vec<&str> = self.decision.plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        names.join(", ")
    }

    /// The digest that the file pins a plugin to.
    fn pin(&self, name: &str) -> Option<String> {
        let own = self.loader.flow.plugins.iter().find(|own: &&PluginConfig| own.name == name)?;
        own.sha256.clone()
    }

    fn same_module(&self, digest: &str) -> Origin {
        self.loaded.modules.get(digest).map_or(Origin::Config, |bytes| Origin::Bytes(bytes.clone()))
    }

    /// The way back that is wished.
    fn propose_rollback(&self, wish: &RollbackWish) -> Result<Proposal, NoAnswer> {
        let current = self.holding();
        let back = match wish.to {
            Some(number) => self.book.decision(number).filter(|_| number != current),
            None => self.book.decisions().rev().find(|decision| decision.generation < current),
        };
        let Some(back) = back else {
            return Err(NoAnswer::new(
                NoAnswerKind::Unknown,
                match wish.to {
                    Some(number) => format!("generation {number} is none to go back to"),
                    None => format!("there is none before generation {current}"),
                },
                "tidegate plugin history shows those that are kept",
            ));
        };
        Ok(Proposal {
            kind: Kind::Rollback,
            who: wish.who.clone(),
            what: format!("back to generation {}", back.generation),
            force: wish.force,
            change: Change::BackTo(Box::new(back.clone())),
        })
    }
}

fn not_loaded(name: &str) -> NoAnswer {
    NoAnswer::new(
        NoAnswerKind::Unavailable,
        format!("plugin \"{name}\" is being changed by another decision"),
        "try again",
    )
}

/// What a plugin that can't be used is answered with.
pub(super) fn unusable(problem: &anyhow::Error) -> NoAnswer {
    let is_plugin = problem.chain().any(|cause| cause.is::<LoadError>());
    let kind = if is_plugin { NoAnswerKind::Plugin } else { NoAnswerKind::Unavailable };
    NoAnswer::new(
        kind,
        format!("{problem:#}"),
        "nothing has changed: mend the module or its settings, then try again",
    )
}

/// Answers; whoever asked may have gone.
pub(super) fn send<T>(answer: Answer<T>, end: Result<T, NoAnswer>) {
    let _asker_has_gone = answer.send(end);
}

impl FlowLoop {
    /// Tries it first, if that is wished.
    pub(super) fn begin_swap(&mut self, wish: SwapWish, answer: Answer<SwapView>) {
        if wish.replay > 0 {
            return self.begin_trial(&wish.clone(), AfterTrial::Swap(Box::new(wish), answer));
        }
        match self.policies.propose(&wish) {
            Ok(proposal) => self.make(proposal, Some(answer)),
            Err(refused) => send(answer, Err(refused)),
        }
    }

    pub(super) fn begin_rollback(&mut self, wish: &RollbackWish, answer: Answer<SwapView>) {
        match self.policies.propose_rollback(wish) {
            Ok(proposal) => self.make(proposal, Some(answer)),
            Err(refused) => send(answer, Err(refused)),
        }
    }

    /// Makes the next generation ready beside the loop. One at a time.
    pub(super) fn make(&mut self, proposal: Proposal, answer: Option<Answer<SwapView>>) {
        if self.is_making()
            && let Some(Making { number, .. }) = self.policies.making
        {
            if let Some(answer) = answer {
                let error = format!("a swap to generation {number} is running");
                let refused = NoAnswer::new(
                    NoAnswerKind::Conflict,
                    error,
                    "wait for its end, then look with tidegate plugin list",
                );
                send(answer, Err(refused));
            }
            return;
        }
        let number = self.policies.next_number();
        self.policies.making = Some(Making { number, written_at: None });
        let started = Instant::now();
        let loader = self.policies.loader.clone();
        let running = self.policies.loaded.clone();
        let is_back = matches!(proposal.change, Change::BackTo(_));
        let change = proposal.change;
        // Places of modules are all that is needed of it.
        let loading = match change {
            Change::Plugins(wanted) => Loading::Plugins(wanted),
            Change::BackTo(decision) => Loading::Decision(decision, self.policies.book.clone()),
        };
        let target = self.started.target.clone();
        let occasion = Occasion {
            kind: proposal.kind,
            who: proposal.who,
            at_ms: now_ms(),
            node: self.setting.node.id().to_owned(),
            fingerprint: self.policies.fingerprint_for(proposal.kind),
            what: proposal.what,
        };
        let force = proposal.force;
        self.tasks.spawn(async move {
            let made = async {
                let loaded = match loading {
                    Loading::Plugins(wanted) => {
                        let (loader, known) = (loader.clone(), running.modules.clone());
                        blocking(move || loader.load(wanted, &known)).await?
                    }
                    Loading::Decision(decision, book) => {
                        load_decision(&loader, &decision, &running, &book, &target).await?
                    }
                };
                let is_same = loaded.decided() == running.decided();
                anyhow::ensure!(force || is_back || !is_same, Nothing);
                blocking(move || loader.ready(number, loaded)).await
            };
            let ready = made.await.map(Box::new);
            Done::Made(Box::new(Made { ready, occasion, force, answer, started }))
        });
    }

    /// What was made ready is written down; it runs when it is read back.
    pub(super) fn take_made(&mut self, made: Made) {
        if made.ready.is_ok() && self.round.is_none() {
            // It is to be asked what topics are called now.
            self.policies.deferred = Some(Box::new(made));
            return;
        }
        let Made { ready, occasion, force, answer, started } = made;
        let ready = ready.and_then(|ready| match self.policies.next_number() {
            next if next == ready.number => Ok(ready),
            next => Err(Overtaken(next - 1).into()),
        });
        let ready = ready.and_then(|mut ready| match self.renames(&mut ready) {
            renames if force || renames.is_empty() => Ok(ready),
            renames => Err(Renames(renames.join("; ")).into()),
        });
        let ready = match ready {
            Ok(ready) => ready,
            Err(problem) => return self.refuse(&problem, answer),
        };
        let name = &self.setting.flow.name;
        let decision = Decision::new(name, ready.number, occasion, ready.loaded.decided());
        let id = decision.id();
        let mut decisions = Vec::new();
        if self.policies.is_unwritten
            && self.policies.book.decision(self.policies.decision.generation).is_none()
        {
            // The way back leads there.
            decisions.push(self.policies.decision.clone());
        }
        decisions.push(decision);
        self.write(decisions, ready.loaded.modules.clone(), id.clone());
        self.policies.prepared = Some((id.clone(), ready));
        if let Some(answer) = answer {
            // From now: a large module may have been compiled for longer than that.
            let deadline = Instant::now() + Duration::from_millis(REPORTS_MS_MAX);
            self.policies.waiting.push(Waiting { id, answer, started, deadline });
        }
    }

    /// Whether the next generation is being made on this node.
    pub(super) fn is_making(&self) -> bool {
        let is_late = |at: Instant| at.elapsed() > Duration::from_millis(REPORTS_MS_MAX);
        self.policies.making.as_ref().is_some_and(|making| !making.written_at.is_some_and(is_late))
    }

    /// Whether something was decided that does not run here.
    pub(super) fn is_behind(&self) -> bool {
        self.policies.behind().is_some()
    }

    /// What waited for the round.
    pub(super) fn take_deferred(&mut self) {
        if let Some(made) = self.policies.deferred.take() {
            self.take_made(*made);
        }
    }

    /// Copied topics that would be called otherwise.
    fn renames(&mut self, ready: &mut Ready) -> Vec<String> {
        if ready.loaded.names_as(&self.policies.loaded) {
            return Vec::new();
        }
        self.renamed_by(ready.policies.naming())
    }

    /// Copied topics that these names would call otherwise. The round is here.
    pub(super) fn renamed_by(&mut self, naming: &mut Naming) -> Vec<String> {
        let Some(round) = &mut self.round else { return Vec::new() };
        let copied: Vec<_> = round.copied_topics().cloned().collect();
        renames(round.naming(), naming, copied.iter()).iter().map(ToString::to_string).collect()
    }

    fn refuse(&mut self, problem: &anyhow::Error, answer: Option<Answer<SwapView>>) {
        self.policies.making = None;
        warn!(flow = %self.setting.flow.name, problem = format!("{problem:#}"), "plugins stay as they are");
        let refused = if let Some(nothing) = problem.downcast_ref::<Nothing>() {
            NoAnswer::new(
                NoAnswerKind::Conflict,
                nothing.to_string(),
                "give another module or other settings",
            )
        } else if let Some(overtaken) = problem.downcast_ref::<Overtaken>() {
            // A file that has changed is looked at again.
            self.policies.must_look_again |= answer.is_none();
            NoAnswer::new(
                NoAnswerKind::Conflict,
                overtaken.to_string(),
                "look with tidegate plugin list, then try again",
            )
        } else if let Some(renames) = problem.downcast_ref::<Renames>() {
            NoAnswer::new(
                NoAnswerKind::Conflict,
                renames.to_string(),
                "if that is what you want, swap with --force",
            )
        } else {
            unusable(problem)
        };
        match answer {
            Some(answer) => send(answer, Err(refused)),
            None => self.stats.set_error(now_ms(), refused.to_string()),
        }
    }

    /// Writes what runs at the start, if it should stand in the log.
    pub(super) fn write_first(&mut self) {
        let decision = self.policies.decision.clone();
        let id = decision.id();
        self.write(vec![decision], self.policies.loaded.modules.clone(), id);
    }

    /// Tries again to write it, unless something later is written or about to be: the later in the log would hold.
    pub(super) fn write_first_again(&mut self) {
        let policies = &self.policies;
        let is_latest =
            policies.book.last().is_none_or(|last| last.generation < policies.decision.generation);
        if policies.is_unwritten && is_latest && !self.is_making() && policies.prepared.is_none() {
            self.write_first();
        }
    }

    fn write(&mut self, decisions: Vec<Decision>, modules: Modules, id: DecisionId) {
        let book = &self.policies.book;
        let is_news = |digest: &String, bytes: &Bytes| {
            book.module(digest).is_none() && bytes.len() <= SHARED_MODULE_BYTES_MAX
        };
        let mut modules: Modules =
            modules.into_iter().filter(|(digest, bytes)| is_news(digest, bytes)).collect();
        if decisions.len() > 1 {
            let before = self.policies.loaded.modules.iter();
            modules.extend(
                before
                    .filter(|(digest, bytes)| is_news(digest, bytes))
                    .map(|(digest, bytes)| (digest.clone(), bytes.clone())),
            );
        }
        let outdated = decisions.last().map(|next| book.outdated(next)).unwrap_or_default();
        let log = Arc::clone(&self.policies.log);
        self.tasks.spawn(async move {
            let mut log = log.lock().await;
            let end = write_all(&mut log, modules, &decisions, outdated).await;
            Done::DecisionWritten { id, end }
        });
    }

    pub(super) fn take_written(&mut self, id: &DecisionId, end: anyhow::Result<()>) {
        let is_read_back = self.policies.book.holding().is_some_and(|held| held >= id.generation);
        if self.policies.making.as_ref().is_some_and(|making| making.number == id.generation) {
            self.policies.making = match end.is_ok() && !is_read_back {
                true => Some(Making { number: id.generation, written_at: Some(Instant::now()) }),
                false => None,
            };
        }
        let Err(problem) = end else { return };
        let problem = format!("{problem:#}");
        warn!(flow = %self.setting.flow.name, generation = id.generation, problem, "a decision about plugins could not be written");
        self.stats.set_error(now_ms(), format!("generation {} of the plugins: {problem}", id.generation));
        if *id == self.policies.decision.id() {
            self.tasks.spawn(async {
                tokio::time::sleep(Duration::from_millis(FIRST_RETRY_MS)).await;
                Done::FirstDue
            });
        }
        let refused = NoAnswer::new(
            NoAnswerKind::Unavailable,
            format!("generation {} could not be written down: {problem}", id.generation),
            "if it was written all the same, tidegate plugin history will show it",
        );
        for waiting in self.policies.waiting.extract_if(.., |waiting| waiting.id == *id) {
            send(waiting.answer, Err(refused.clone()));
        }
    }

    /// Takes what the topic brought. Of several decisions the last holds.
    pub(super) async fn take_log(&mut self, records: Vec<LogRecord>) {
        let mut decided = None;
        let mut reported = Vec::new();
        for record in &records {
            match self.policies.book.take(record) {
                News::Nothing => {}
                News::Decision(decision) => decided = Some(decision),
                News::Unreadable(unreadable) => {
                    decided = None;
                    self.stats.set_error(now_ms(), unreadable.to_string());
                }
                News::Report { generation } => reported.push(generation),
            }
        }
        if let Some(decision) = decided {
            self.take_decision(*decision).await;
        }
        for generation in reported {
            self.answer_waiting(generation);
        }
    }

    async fn take_decision(&mut self, decision: Decision) {
        self.answer_outrun(&decision);
        let is_over =
            |making: &mut Making| making.written_at.is_some() && making.number <= decision.generation;
        self.policies.making.take_if(is_over);
        let current = &self.policies.decision;
        if decision.id() == current.id()
            || (decision.generation == current.generation && decision.is_same_policy(current))
        {
            self.policies.decision = decision;
            self.policies.is_unwritten = false;
            return self.report_slots();
        }
        let id = decision.id();
        match self.policies.prepared.take() {
            Some((prepared, ready)) if prepared == id => {
                // Whoever reads the topic may be faster than the answer to the write: the next swap need not wait for it.
                self.policies.making.take_if(|making| making.number == id.generation);
                self.publish(*ready, decision).await;
            }
            other => {
                self.policies.prepared = other.filter(|(prepared, _)| prepared.generation > id.generation);
                self.follow(decision);
            }
        }
    }

    /// Those who wait for a decision in whose place this one has come.
    fn answer_outrun(&mut self, decision: &Decision) {
        let id = decision.id();
        let is_outrun = |waiting: &mut Waiting| waiting.id != id && waiting.id.generation == id.generation;
        for waiting in self.policies.waiting.extract_if(.., is_outrun) {
            let error = format!(
                "{} gave generation {} another meaning at the same time",
                decision.who, id.generation
            );
            let remedy = "look with tidegate plugin list, then swap again";
            send(waiting.answer, Err(NoAnswer::new(NoAnswerKind::Conflict, error, remedy)));
        }
    }

    /// Makes ready what another node decided.
    fn follow(&mut self, decision: Decision) {
        self.policies.following = Some(decision.id());
        let loader = self.policies.loader.clone();
        let running = self.policies.loaded.clone();
        let book = self.policies.book.clone();
        let target = self.started.target.clone();
        self.tasks.spawn(async move {
            let made = async {
                let number = decision.generation;
                let loaded = load_decision(&loader, &decision, &running, &book, &target).await?;
                blocking(move || loader.ready(number, loaded)).await
            };
            let made = made.await.map(Box::new);
            Done::Followed { decision: Box::new(decision), made }
        });
    }

    pub(super) async fn take_followed(&mut self, decision: Decision, made: anyhow::Result<Box<Ready>>) {
        if self.policies.following != Some(decision.id()) {
            // A later one came meanwhile.
            return;
        }
        self.policies.following = None;
        match made {
            Ok(ready) => self.publish(*ready, decision).await,
            Err(problem) => {
                let why = format!("{problem:#}");
                let generation = decision.generation;
                warn!(flow = %self.setting.flow.name, generation, problem = why, "this node stays on the old generation of plugins");
                self.stats.set_error(
                    now_ms(),
                    format!("generation {generation} of the plugins can't run here: {why}"),
                );
                self.report(Report { refused: Some(why), ..self.empty_report(decision.id()) });
            }
        }
    }

    /// From the next batch on, workers edit by this generation.
    async fn publish(&mut self, ready: Ready, decision: Decision) {
        let name = &self.setting.flow.name;
        let number = ready.number;
        info!(flow = %name, generation = number, kind = decision.kind.word(), who = %decision.who, what = decision.what, "plugins change");
        let answers = self.workers.take_chains(ready.chains).await;
        self.stats.set_plugins(ready.loaded.figures(number));
        self.policies.new_hooks = Some(ready.policies);
        self.give_policies();
        // Selection and names may answer otherwise now.
        self.round_due = Some(Instant::now());
        let report = self.empty_report(decision.id());
        self.policies.loaded = ready.loaded;
        self.policies.decision = decision;
        self.policies.is_unwritten = false;
        self.policies.is_changing = true;
        let stats = Arc::clone(&self.stats);
        self.tasks.spawn(async move {
            let taken = taken(answers, &stats, number).await;
            let end = taken.map(|taken| {
                let node = report.node.clone();
                let partition = |(partition, change): (SourcePartition, Changeover)| SwappedPartition {
                    topic: partition.topic.to_string(),
                    partition: partition.partition,
                    first_offset: change.first_offset.map(|offset| offset.0),
                    node: node.clone(),
                };
                Report { partitions: taken.into_iter().map(partition).collect(), ..report.clone() }
            });
            let report = end.unwrap_or_else(|why| Report { refused: Some(why), ..report });
            Done::Taken(Box::new(report))
        });
    }

    /// The workers have taken a generation: whatever slots there are now are under it.
    pub(super) fn take_taken(&mut self, report: Report) {
        self.policies.is_changing = report.decision != self.policies.decision.id();
        let slots = self.empty_report(report.decision.clone()).slots;
        self.report(Report { slots, ..report });
    }

    /// Tells which slots are under the generation that runs here, once it stands in the log.
    pub(super) fn report_slots(&mut self) {
        if !self.policies.is_unwritten && !self.policies.is_changing {
            self.report(self.empty_report(self.policies.decision.id()));
        }
    }

    /// Without its partitions.
    fn empty_report(&self, decision: DecisionId) -> Report {
        Report {
            decision,
            node: self.setting.node.id().to_owned(),
            slots: self.ownership.slots().iter().map(|slot| slot.0).collect(),
            partitions: Vec::new(),
            refused: None,
        }
    }

    /// Tells this node's askers, and the other nodes through the topic.
    pub(super) fn report(&mut self, report: Report) {
        let generation = report.decision.generation;
        self.policies.book.note_report(report.clone());
        self.answer_waiting(generation);
        let key = PluginsKey::Report {
            flow: self.setting.flow.name.to_string(),
            generation,
            node: report.node.clone(),
        };
        let log = Arc::clone(&self.policies.log);
        let flow = self.setting.flow.name.clone();
        self.tasks.spawn(async move {
            let json = match serde_json::to_vec(&report) {
                Ok(json) => Bytes::from(json),
                Err(_) => return Done::Nothing,
            };
            if let Err(problem) = log.lock().await.put(&key, Some(json), now_ms()).await {
                warn!(%flow, generation, problem = format!("{problem:#}"), "a report about plugins could not be written");
            }
            Done::Nothing
        });
    }

    fn answer_waiting(&mut self, generation: u64) {
        let slot_count = self.started.slot_count;
        let reports = self.policies.book.reports(generation);
        if !reports.is_decided(slot_count) {
            return;
        }
        let flow = self.setting.flow.name.to_string();
        for waiting in self.policies.waiting.extract_if(.., |waiting| waiting.id.generation == generation) {
            send(
                waiting.answer,
                Ok(reports.view(&flow, generation, slot_count, elapsed_ms(waiting.started))),
            );
        }
    }

    /// Answers those who have waited long enough with what is known.
    pub(super) fn answer_late(&mut self) {
        let now = Instant::now();
        let (flow, slot_count) = (self.setting.flow.name.to_string(), self.started.slot_count);
        for waiting in self.policies.waiting.extract_if(.., |waiting| waiting.deadline <= now) {
            let generation = waiting.id.generation;
            let reports = self.policies.book.reports(generation);
            send(
                waiting.answer,
                Ok(reports.view(&flow, generation, slot_count, elapsed_ms(waiting.started))),
            );
        }
    }
}

/// What is loaded for a proposal.
enum Loading {
    Plugins(Vec<Wanted>),
    Decision(Box<Decision>, Book),
}

/// A proposal that would rename topics that are copied already.
#[derive(Debug, thiserror::Error)]
#[error("copied topics would be called otherwise: {0}")]
struct Renames(String);

/// A proposal that was made ready while another decision came.
#[derive(Debug, thiserror::Error)]
#[error("generation {0} was decided meanwhile, and this would undo it")]
struct Overtaken(u64);

/// A proposal that changes nothing.
#[derive(Debug, thiserror::Error)]
#[error("the plugins are just so already, so nothing would change")]
struct Nothing;

fn elapsed_ms(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Modules first: a decision whose modules are missing could be read.
async fn write_all(
    log: &mut PluginsLog,
    modules: Modules,
    decisions: &[Decision],
    outdated: Vec<PluginsKey>,
) -> anyhow::Result<()> {
    let at_ms = now_ms();
    for (digest, bytes) in &modules {
        log.put_module(digest, bytes, at_ms).await?;
    }
    for decision in decisions {
        let key = PluginsKey::Decision { flow: decision.flow.clone(), generation: decision.generation };
        log.put(&key, Some(Bytes::from(decision.json()?)), at_ms).await?;
    }
    if !outdated.is_empty() {
        log.put_all(outdated.into_iter().map(|key| (key, None)).collect(), at_ms).await?;
    }
    Ok(())
}

/// Waits until all workers have taken their chain; gives where each partition changes over.
async fn taken(
    answers: Vec<oneshot::Receiver<Vec<(SourcePartition, Changeover)>>>,
    stats: &FlowStats,
    generation: u64,
) -> Result<Vec<(SourcePartition, Changeover)>, String> {
    let deadline = Instant::now() + Duration::from_millis(TAKEN_MS_MAX);
    let mut taken = Vec::new();
    for answer in answers {
        match tokio::time::timeout_at(deadline, answer).await {
            Ok(Ok(partitions)) => taken.extend(partitions),
            Ok(Err(_)) => return Err("a relay worker ended before it took the chain".to_owned()),
            Err(_) => return Err(format!("a relay worker did not take the chain in {TAKEN_MS_MAX} ms")),
        }
    }
    // Partitions that begin just now don't know their offset yet.
    let deadline = Instant::now() + Duration::from_millis(OFFSETS_MS_MAX);
    while taken.iter().any(|(_, change)| change.first_offset.is_none()) && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(OFFSETS_LOOK_MS)).await;
        let partitions = stats.snapshot().partitions;
        for (partition, change) in &mut taken {
            let now = partitions.get(partition).and_then(|stats| stats.changeover());
            if let Some(now) = now.filter(|now| now.generation == generation) {
                *change = now;
            }
        }
    }
    Ok(taken)
}
