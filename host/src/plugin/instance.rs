//! One running copy of a plugin: a store, its exports, and the calls into it. Each call has its deadline set and its
//! failure told as a [`Fault`]; after one the instance is of no use and must be dropped.

use std::fmt;
use std::sync::Arc;

use wasmtime::Store;

use super::contract::host::{self, Level};
use super::contract::{lifecycle, topic_naming};
use super::fault::{Fault, Scene};
use super::journal::{Journal, one_line};
use super::limits::{Limiter, Limits};
use super::load::{CompiledModule, LoadError, SettingsProblem, misfit};

/// Longer answers are no answers; Kafka takes names of 249 bytes.
const NAME_BYTES_MAX: usize = 4096;
/// More problems than an operator reads at once.
const PROBLEM_COUNT_MAX: usize = 50;

/// The flow that an instance works for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The flow's name, `source->target`.
    pub name: String,
    /// Alias of the cluster that is read.
    pub source_cluster: String,
    /// Alias of the cluster that is written.
    pub target_cluster: String,
}

/// What a plugin is asked; for sentences.
#[derive(Clone, Copy, Debug)]
pub(super) enum Question<'a> {
    Start,
    Describe,
    Init,
    SelfTest,
    ToTarget(&'a str),
    ToSource(&'a str),
}

impl Question<'_> {
    fn limits(&self, limits: Limits) -> Limits {
        match self {
            Self::Start | Self::Describe | Self::Init | Self::SelfTest => limits.at_start(),
            Self::ToTarget(_) | Self::ToSource(_) => limits,
        }
    }
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => formatter.write_str("its start"),
            Self::Describe => formatter.write_str("describe"),
            Self::Init => formatter.write_str("init"),
            Self::SelfTest => formatter.write_str("self-test"),
            Self::ToTarget(topic) => write!(formatter, "to-target({topic:?})"),
            Self::ToSource(topic) => write!(formatter, "to-source({topic:?})"),
        }
    }
}

/// The host's side of an instance.
pub(super) struct State {
    limiter: Limiter,
    journal: Arc<Journal>,
    /// The last line of level error in this call: a panic tells of itself by one.
    last_words: Option<String>,
}

impl host::Host for State {
    fn log(&mut self, level: Level, message: String) {
        let line = one_line(&message);
        self.journal.log(level, &line);
        if level == Level::Error {
            self.last_words = Some(line);
        }
    }

    fn count(&mut self, name: String, by: u64) {
        self.journal.count(&name, by);
    }
}

pub(super) struct Instance {
    module: CompiledModule,
    /// As it is called in sentences: the module until it was described.
    plugin: String,
    limits: Limits,
    store: Store<State>,
    exports: Exports,
}

struct Exports {
    lifecycle: lifecycle::Guest,
    naming: topic_naming::Guest,
}

impl Instance {
    pub(super) fn start(
        module: &CompiledModule,
        plugin: &str,
        limits: Limits,
        journal: &Arc<Journal>,
    ) -> Result<Self, LoadError> {
        let state = State { limiter: Limiter::new(&limits), journal: Arc::clone(journal), last_words: None };
        let mut store = Store::new(module.engine.wasmtime(), state);
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_trap();
        let instance = {
            let _clock = module.engine.run_clock();
            store.set_epoch_deadline(Question::Start.limits(limits).deadline_ticks());
            module.compiled.pre.instantiate(&mut store)
        };
        let instance =
            instance.map_err(|error| scene(plugin, Question::Start, limits, &mut store).fault(&error))?;
        // Names were looked at before; types are compared here, on an instance.
        let pre = &module.compiled.pre;
        let lifecycle =
            lifecycle::GuestIndices::new(pre).and_then(|indices| indices.load(&mut store, &instance));
        let naming =
            topic_naming::GuestIndices::new(pre).and_then(|indices| indices.load(&mut store, &instance));
        let exports = Exports {
            lifecycle: lifecycle.map_err(|error| misfit(&module.name, &error))?,
            naming: naming.map_err(|error| misfit(&module.name, &error))?,
        };
        Ok(Self { module: module.clone(), plugin: plugin.to_owned(), limits, store, exports })
    }

    pub(super) fn rename(&mut self, plugin: &str) {
        plugin.clone_into(&mut self.plugin);
    }

    pub(super) fn describe(&mut self) -> Result<lifecycle::About, Fault> {
        self.ask(Question::Describe, |exports, store| exports.lifecycle.call_describe(store))
    }

    pub(super) fn init(&mut self, link: &Link, settings_json: &str) -> Result<(), LoadError> {
        let link = lifecycle::Link {
            name: link.name.clone(),
            source_cluster: link.source_cluster.clone(),
            target_cluster: link.target_cluster.clone(),
        };
        self.ask(Question::Init, |exports, store| exports.lifecycle.call_init(store, &link, settings_json))?
            .map_err(|problems| LoadError::Settings {
                plugin: self.plugin.clone(),
                problems: bounded(problems),
            })
    }

    pub(super) fn self_test(&mut self) -> Result<(), LoadError> {
        self.ask(Question::SelfTest, |exports, store| exports.lifecycle.call_self_test(store))?.map_err(
            |message| LoadError::SelfTest { plugin: self.plugin.clone(), message: one_line(&message) },
        )
    }

    /// The inner error is the plugin's own: it does not want this topic to be replicated.
    pub(super) fn name_on_target(&mut self, topic: &str) -> Result<Result<String, String>, Fault> {
        let question = Question::ToTarget(topic);
        match self.ask(question, |exports, store| exports.naming.call_to_target(store, topic))? {
            Ok(name) => self.checked(question, name).map(Ok),
            Err(message) => Ok(Err(one_line(&message))),
        }
    }

    pub(super) fn name_on_source(&mut self, topic: &str) -> Result<Option<String>, Fault> {
        let question = Question::ToSource(topic);
        let name = self.ask(question, |exports, store| exports.naming.call_to_source(store, topic))?;
        name.map(|name| self.checked(question, name)).transpose()
    }

    /// The one way in. The deadline counts from when it was set, so it is set before each call.
    fn ask<T>(
        &mut self,
        question: Question<'_>,
        call: impl FnOnce(&Exports, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, Fault> {
        self.store.data_mut().last_words = None;
        self.store.data_mut().limiter.memory_denied = false;
        let answer = {
            let _clock = self.module.engine.run_clock();
            self.store.set_epoch_deadline(question.limits(self.limits).deadline_ticks());
            call(&self.exports, &mut self.store)
        };
        answer.map_err(|error| scene(&self.plugin, question, self.limits, &mut self.store).fault(&error))
    }

    fn checked(&self, question: Question<'_>, name: String) -> Result<String, Fault> {
        if name.len() <= NAME_BYTES_MAX {
            return Ok(name);
        }
        Err(Fault::BadAnswer {
            plugin: self.plugin.clone(),
            question: question.to_string(),
            message: format!("a name of {} bytes", name.len()),
        })
    }
}

fn scene<'a>(plugin: &'a str, question: Question<'a>, limits: Limits, store: &mut Store<State>) -> Scene<'a> {
    let state = store.data_mut();
    let memory_denied = state.limiter.memory_denied;
    let limits = question.limits(limits);
    Scene { plugin, question, limits, memory_denied, last_words: state.last_words.take() }
}

fn bounded(problems: Vec<lifecycle::Problem>) -> Vec<SettingsProblem> {
    let problem = |problem: lifecycle::Problem| SettingsProblem {
        at: one_line(&problem.at),
        message: one_line(&problem.message),
    };
    problems.into_iter().take(PROBLEM_COUNT_MAX).map(problem).collect()
}
