//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs. Topics have settings that can be changed;
//! brokers have a few that can be read.

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource as ReplacedResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse as ReplacedAnswer;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::incremental_alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DescribeConfigsRequest, DescribeConfigsResponse,
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse,
};
use kafka_protocol::protocol::StrBytes;

use crate::call::{Call, Part, Serve};
use crate::faults::Touched;
use crate::refusal::{Refusal, code_of};
use crate::settings::{Setting, SettingSource, SettingType, TOPIC_SETTINGS, TopicSettings};
use crate::state::State;

const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;
/// Version from which a described setting has a type and documentation (KIP-569).
const TYPED_VERSION: i16 = 3;

fn touch<'a>(resources: impl Iterator<Item = (i8, &'a StrBytes)>) -> Vec<Touched> {
    let topics = resources.filter(|(kind, _)| *kind == RESOURCE_TOPIC);
    topics.map(|(_, name)| Touched { topic: name.to_string(), partition: None }).collect()
}

impl Serve for DescribeConfigsRequest {
    fn touched(&self) -> Vec<Touched> {
        touch(self.resources.iter().map(|resource| (resource.resource_type, &resource.resource_name)))
    }

    async fn serve(self, call: &Call) -> DescribeConfigsResponse {
        let describe = |resource: &DescribeConfigsResource| {
            let outcome = call.attempt(Part::Topic(&resource.resource_name), || {
                let all = described(call, resource.resource_type, &resource.resource_name)?;
                Ok(all.into_iter().filter(|one| is_wanted(resource, one)).collect::<Vec<_>>())
            });
            let answer = DescribeConfigsResult::default()
                .with_resource_type(resource.resource_type)
                .with_resource_name(resource.resource_name.clone())
                .with_error_code(code_of(&outcome));
            match outcome {
                Ok(configs) => {
                    let write = |one: &Described| one.answer(call.version, self.include_synonyms);
                    answer.with_configs(configs.iter().map(write).collect()).with_error_message(None)
                }
                Err(refusal) => answer.with_error_message(refusal.wire_message()),
            }
        };
        DescribeConfigsResponse::default().with_results(self.resources.iter().map(describe).collect())
    }
}

fn is_wanted(resource: &DescribeConfigsResource, one: &Described) -> bool {
    resource.configuration_keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key.as_str() == one.name))
}

/// One setting with its value and where that comes from.
struct Described {
    name: &'static str,
    value: String,
    default: Option<&'static str>,
    source: SettingSource,
    kind: SettingType,
}

fn described(call: &Call, kind: i8, name: &str) -> Result<Vec<Described>, Refusal> {
    let state = call.shared.lock();
    match kind {
        RESOURCE_TOPIC => {
            let topic = state.topics.get(name).ok_or(ResponseError::UnknownTopicOrPartition)?;
            Ok(TOPIC_SETTINGS.iter().map(|setting| topic_setting(&topic.settings, setting)).collect())
        }
        RESOURCE_BROKER if name.parse::<i32>().is_ok_and(|id| state.nodes.contains_key(&id)) => {
            Ok(broker_settings(call))
        }
        _ => Err(unknown_resource(kind, name)),
    }
}

fn unknown_resource(kind: i8, name: &str) -> Refusal {
    Refusal::new(
        ResponseError::InvalidRequest,
        format!("resource type {kind} named {name:?} has no settings here: topics (2) and brokers (4) do"),
    )
}

fn topic_setting(settings: &TopicSettings, setting: &'static Setting) -> Described {
    Described {
        name: setting.name,
        value: settings.get(setting).to_owned(),
        default: Some(setting.default),
        source: settings.source(setting),
        kind: setting.kind,
    }
}

fn broker_settings(call: &Call) -> Vec<Described> {
    let fixed = |name, value: String, kind| Described {
        name,
        value,
        default: None,
        source: SettingSource::StaticBroker,
        kind,
    };
    let factor = call.shared.options.default_replication_factor;
    vec![
        fixed("auto.create.topics.enable", "false".to_owned(), SettingType::Boolean),
        fixed("default.replication.factor", factor.to_string(), SettingType::Int),
        fixed("node.id", call.node.to_string(), SettingType::Int),
        fixed("num.partitions", "1".to_owned(), SettingType::Int),
    ]
}

impl Described {
    fn answer(&self, version: i16, synonyms: bool) -> DescribeConfigsResourceResult {
        let answer = DescribeConfigsResourceResult::default()
            .with_name(StrBytes::from_static_str(self.name))
            .with_value(Some(StrBytes::from_string(self.value.clone())))
            .with_read_only(self.source == SettingSource::StaticBroker)
            .with_config_source(self.source as i8)
            .with_documentation(None)
            .with_synonyms(if synonyms { self.synonyms() } else { Vec::new() });
        if version < TYPED_VERSION { answer } else { answer.with_config_type(self.kind as i8) }
    }

    /// The values that would hold one after the other, the one that holds first.
    fn synonyms(&self) -> Vec<DescribeConfigsSynonym> {
        let synonym = |value: &str, source: SettingSource| {
            DescribeConfigsSynonym::default()
                .with_name(StrBytes::from_static_str(self.name))
                .with_value(Some(StrBytes::from_string(value.to_owned())))
                .with_source(source as i8)
        };
        let own = (self.source != SettingSource::Default).then(|| synonym(&self.value, self.source));
        own.into_iter().chain(self.default.map(|value| synonym(value, SettingSource::Default))).collect()
    }
}

impl Serve for AlterConfigsRequest {
    fn touched(&self) -> Vec<Touched> {
        touch(self.resources.iter().map(|resource| (resource.resource_type, &resource.resource_name)))
    }

    /// Replaces all of a topic's settings.
    async fn serve(self, call: &Call) -> AlterConfigsResponse {
        let alter = |resource: &ReplacedResource| {
            let (kind, name) = (resource.resource_type, &resource.resource_name);
            let outcome = call.attempt(Part::Topic(name), || {
                change(&mut call.shared.lock(), kind, name, self.validate_only, |settings| {
                    *settings = TopicSettings::default();
                    let mut configs = resource.configs.iter();
                    configs.try_for_each(|config| settings.set(&config.name, config.value.as_deref()))
                })
            });
            ReplacedAnswer::default()
                .with_resource_type(kind)
                .with_resource_name(name.clone())
                .with_error_code(code_of(&outcome))
                .with_error_message(outcome.err().and_then(|refusal| refusal.wire_message()))
        };
        AlterConfigsResponse::default().with_responses(self.resources.iter().map(alter).collect())
    }
}

impl Serve for IncrementalAlterConfigsRequest {
    fn touched(&self) -> Vec<Touched> {
        touch(self.resources.iter().map(|resource| (resource.resource_type, &resource.resource_name)))
    }

    async fn serve(self, call: &Call) -> IncrementalAlterConfigsResponse {
        let alter = |resource: &AlterConfigsResource| {
            let (kind, name) = (resource.resource_type, &resource.resource_name);
            let outcome = call.attempt(Part::Topic(name), || {
                change(&mut call.shared.lock(), kind, name, self.validate_only, |settings| {
                    let mut configs = resource.configs.iter();
                    configs.try_for_each(|config| {
                        alter_one(settings, config.config_operation, &config.name, config.value.as_deref())
                    })
                })
            });
            AlterConfigsResourceResponse::default()
                .with_resource_type(kind)
                .with_resource_name(name.clone())
                .with_error_code(code_of(&outcome))
                .with_error_message(outcome.err().and_then(|refusal| refusal.wire_message()))
        };
        IncrementalAlterConfigsResponse::default().with_responses(self.resources.iter().map(alter).collect())
    }
}

/// Operations of KIP-339: set, delete, append, subtract.
fn alter_one(
    settings: &mut TopicSettings,
    operation: i8,
    name: &str,
    value: Option<&str>,
) -> Result<(), Refusal> {
    let missing =
        || Refusal::new(ResponseError::InvalidConfig, format!("null value not supported for: {name}"));
    match operation {
        0 => settings.set(name, Some(value.ok_or_else(missing)?)),
        1 => settings.set(name, None),
        2 => settings.edit_list(name, value.ok_or_else(missing)?, true),
        3 => settings.edit_list(name, value.ok_or_else(missing)?, false),
        other => {
            Err(Refusal::new(ResponseError::InvalidRequest, format!("unknown config operation {other}")))
        }
    }
}

/// All of a resource's changes or none.
fn change(
    state: &mut State,
    kind: i8,
    name: &str,
    validate_only: bool,
    edit: impl FnOnce(&mut TopicSettings) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    if kind != RESOURCE_TOPIC {
        return Err(unknown_resource(kind, name));
    }
    let topic = state.topics.get_mut(name).ok_or(ResponseError::UnknownTopicOrPartition)?;
    let mut settings = topic.settings.clone();
    edit(&mut settings)?;
    if !validate_only {
        topic.settings = settings;
    }
    Ok(())
}
