//! One running copy of a plugin: a store, its exports, and the calls into it. Each call has its deadline set and its
//! failure told as a [`Fault`]; after one the instance is of no use and must be dropped. What the hooks ask is in a file
//! each; the way in is here.

use std::fmt;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Instance as Bare, InstancePre};

use super::contract::host::{self, Level};
use super::contract::{acl_mapping, lifecycle, records, selection, topic_naming};
use super::fault::{Fault, Scene};
use super::inspect::{Boundary, Interface};
use super::journal::{Journal, one_line};
use super::limits::{Limiter, Limits};
use super::load::{CompiledModule, LoadError, SettingsProblem, misfit};

/// What one call may hand over at most, both ways counted alone, whatever its lists claim: many may point at the same bytes.
const ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;
/// More problems than an operator reads at once.
pub(super) const PROBLEM_COUNT_MAX: usize = 50;

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
    Needs,
    ToTarget(&'a str),
    ToSource(&'a str),
    /// How many.
    Topics(usize),
    Groups(usize),
    Acls(usize),
    Records {
        topic: &'a str,
        partition: i32,
        base_offset: i64,
        count: u32,
    },
}

impl Question<'_> {
    fn limits(&self, limits: Limits) -> Limits {
        match self {
            Self::Start | Self::Describe | Self::Init | Self::SelfTest | Self::Needs => limits.at_start(),
            Self::ToTarget(_)
            | Self::ToSource(_)
            | Self::Topics(_)
            | Self::Groups(_)
            | Self::Acls(_)
            | Self::Records { .. } => limits,
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
            Self::Needs => formatter.write_str("needs"),
            Self::ToTarget(topic) => write!(formatter, "to-target({topic:?})"),
            Self::ToSource(topic) => write!(formatter, "to-source({topic:?})"),
            Self::Topics(count) => write!(formatter, "topics({count} of them)"),
            Self::Groups(count) => write!(formatter, "groups({count} of them)"),
            Self::Acls(count) => write!(formatter, "map-acls({count} of them)"),
            Self::Records { topic, partition, base_offset, count } => {
                write!(
                    formatter,
                    "process({topic}[{partition}], record_count {count} from offset {base_offset})"
                )
            }
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

/// The interfaces that the module exports, all of the same instance.
pub(super) struct Exports {
    lifecycle: lifecycle::Guest,
    naming: Option<topic_naming::Guest>,
    selection: Option<selection::Guest>,
    acl_mapping: Option<acl_mapping::Guest>,
    records: Option<records::Guest>,
}

impl Exports {
    /// Names were looked at before; types are compared here, on an instance.
    fn load(
        boundary: &Boundary,
        pre: &InstancePre<State>,
        store: &mut Store<State>,
        instance: &Bare,
    ) -> wasmtime::Result<Self> {
        let has = |interface| boundary.offers(interface);
        Ok(Self {
            lifecycle: lifecycle::GuestIndices::new(pre)?.load(&mut *store, instance)?,
            naming: has(Interface::TopicNaming)
                .then(|| topic_naming::GuestIndices::new(pre)?.load(&mut *store, instance))
                .transpose()?,
            selection: has(Interface::Selection)
                .then(|| selection::GuestIndices::new(pre)?.load(&mut *store, instance))
                .transpose()?,
            acl_mapping: has(Interface::AclMapping)
                .then(|| acl_mapping::GuestIndices::new(pre)?.load(&mut *store, instance))
                .transpose()?,
            records: has(Interface::Records)
                .then(|| records::GuestIndices::new(pre)?.load(&mut *store, instance))
                .transpose()?,
        })
    }

    pub(super) fn naming(&self) -> wasmtime::Result<&topic_naming::Guest> {
        present(self.naming.as_ref(), Interface::TopicNaming)
    }

    pub(super) fn selection(&self) -> wasmtime::Result<&selection::Guest> {
        present(self.selection.as_ref(), Interface::Selection)
    }

    pub(super) fn acl_mapping(&self) -> wasmtime::Result<&acl_mapping::Guest> {
        present(self.acl_mapping.as_ref(), Interface::AclMapping)
    }

    pub(super) fn records(&self) -> wasmtime::Result<&records::Guest> {
        present(self.records.as_ref(), Interface::Records)
    }
}

/// Asking a plugin for a hook that it lacks is a mistake of the caller; it ends as a fault, never as an answer.
fn present<T>(guest: Option<&T>, interface: Interface) -> wasmtime::Result<&T> {
    guest.ok_or_else(|| wasmtime::Error::msg(format!("it exports no {}", interface.name())))
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
        store.set_hostcall_fuel(ANSWER_BYTES_MAX);
        let pre = &module.compiled.pre;
        let instance = {
            let _clock = module.engine.run_clock();
            store.set_epoch_deadline(Question::Start.limits(limits).deadline_ticks());
            pre.instantiate(&mut store)
        };
        let instance =
            instance.map_err(|error| scene(plugin, Question::Start, limits, &mut store).fault(&error))?;
        let exports = Exports::load(&module.compiled.boundary, pre, &mut store, &instance)
            .map_err(|error| misfit(&module.name, &error))?;
        Ok(Self { module: module.clone(), plugin: plugin.to_owned(), limits, store, exports })
    }

    pub(super) fn rename(&mut self, plugin: &str) {
        plugin.clone_into(&mut self.plugin);
    }

    /// Linear memory that it holds; it never gives any back.
    pub(super) fn memory_bytes(&self) -> usize {
        self.store.data().limiter.memory_bytes
    }

    pub(super) fn describe(&mut self) -> Result<lifecycle::About, Fault> {
        self.ask(Question::Describe, |exports, store| exports.lifecycle.call_describe(store))
    }

    pub(super) fn init(&mut self, link: &Link, settings_json: &str) -> Result<(), LoadError> {
        let link = lifecycle::Link {
            name: &link.name,
            source_cluster: &link.source_cluster,
            target_cluster: &link.target_cluster,
        };
        self.ask(Question::Init, |exports, store| exports.lifecycle.call_init(store, link, settings_json))?
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

    /// The one way in. The deadline counts from when it was set, so it is set before each call.
    pub(super) fn ask<T>(
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

    pub(super) fn bad_answer(&self, question: Question<'_>, message: String) -> Fault {
        Fault::BadAnswer { plugin: self.plugin.clone(), question: question.to_string(), message }
    }

    /// The plugin's own error, for the question as a whole.
    pub(super) fn declined(&self, question: Question<'_>, message: &str) -> Fault {
        Fault::Declined {
            plugin: self.plugin.clone(),
            question: question.to_string(),
            message: one_line(message),
        }
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
