//! MirrorMaker 2's precedence: which keys may hold a setting, the strongest first. The surprises are its own:
//! a cluster's `S.consumer.x` beats the flow's `S->T.consumer.x`, `S->T.producer.x` never reaches the producer of the
//! data, and the top level's `offset.storage.x` beats the cluster's.

use super::known::WORKER_PREFIXES_AT_TOP;
use super::settings::{Found, Settings};
use super::values;
use crate::names::{ClusterAlias, FlowName};

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source,
    Target,
}

impl End {
    pub(super) fn alias(self, flow: &FlowName) -> &ClusterAlias {
        match self {
            Self::Source => &flow.source,
            Self::Target => &flow.target,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Target => "target",
        }
    }
}

/// A kind of setting, with its own precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    /// An option of MirrorMaker 2: the flow, else the top level.
    Option,
    /// The flow alone (`use.defaults.from`, dropped at the top level without a word).
    FlowOnly,
    /// The reader of the data.
    Consumer,
    /// The writer of the data, Connect's producer.
    Producer,
    /// A control client.
    Admin(End),
    /// The worker of the target, its group and its positions.
    Worker,
}

impl Layer {
    /// The keys, the strongest first.
    pub(super) fn keys(self, flow: &FlowName, name: &str) -> Vec<String> {
        let (source, target) = (&flow.source, &flow.target);
        match self {
            Self::Option => vec![format!("{flow}.{name}"), name.to_owned()],
            Self::FlowOnly => vec![format!("{flow}.{name}")],
            Self::Consumer => vec![
                format!("{flow}.source.consumer.{name}"),
                format!("{source}.consumer.{name}"),
                format!("{flow}.consumer.{name}"),
            ],
            Self::Producer => {
                vec![format!("{flow}.producer.override.{name}"), format!("{target}.producer.{name}")]
            }
            Self::Admin(end) => vec![
                format!("{flow}.{}.admin.{name}", end.word()),
                format!("{}.admin.{name}", end.alias(flow)),
                format!("{flow}.admin.{name}"),
            ],
            Self::Worker => {
                let at_top = WORKER_PREFIXES_AT_TOP.iter().any(|prefix| name.starts_with(prefix));
                let top = at_top.then(|| name.to_owned());
                top.into_iter().chain([format!("{target}.{name}")]).collect()
            }
        }
    }
}

/// Reads the settings of one flow.
pub(super) struct FlowReader<'a> {
    pub(super) settings: &'a mut Settings,
    pub(super) flow: FlowName,
}

impl FlowReader<'_> {
    /// The strongest value; its key is honoured from now on.
    pub(super) fn find(&mut self, layer: Layer, name: &str) -> Option<Found> {
        let keys = layer.keys(&self.flow, name);
        self.settings.strongest(&keys, &self.flow.to_string())
    }

    /// The strongest value, parsed; what can't be parsed is a problem and counts as not there. The parser's text may quote
    /// the value.
    pub(super) fn parsed<T>(
        &mut self,
        layer: Layer,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let found = self.find(layer, name)?;
        parse(&found.value).map_err(|text| self.settings.refuse_quoting(&found.key, text)).ok()
    }

    /// As [`FlowReader::parsed`], for a parser whose text says what is wanted and never quotes the value, so it is told
    /// even where the value must not be printed.
    pub(super) fn parsed_unquoted<T>(
        &mut self,
        layer: Layer,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let found = self.find(layer, name)?;
        parse(&found.value).map_err(|text| self.settings.refuse(&found.key, text)).ok()
    }

    pub(super) fn boolean(&mut self, layer: Layer, name: &str, default: bool) -> bool {
        self.parsed_unquoted(layer, name, values::boolean).unwrap_or(default)
    }

    pub(super) fn number(&mut self, layer: Layer, name: &str, least: i64, most: i64) -> Option<i64> {
        self.parsed_unquoted(layer, name, |value| values::number(value, least, most))
    }

    /// A number that fits an `int` by its bounds.
    pub(super) fn int(&mut self, layer: Layer, name: &str, least: i32, default: i32) -> i32 {
        let number = self.number(layer, name, least.into(), i32::MAX.into());
        number.and_then(|number| i32::try_from(number).ok()).unwrap_or(default)
    }

    pub(super) fn replication_factor(&mut self, layer: Layer, name: &str, default: i16) -> i16 {
        let parse = |value: &str| match values::check(values::REPLICATION, value) {
            Ok(()) if values::trim(value) != "0" => Ok(values::number(value, -1, i16::MAX.into())?),
            _ => Err("wants the number of copies, or -1 for the broker's default".into()),
        };
        self.parsed_unquoted(layer, name, parse)
            .and_then(|number| i16::try_from(number).ok())
            .unwrap_or(default)
    }

    /// One of a few words, in any case.
    pub(super) fn word<T: Copy>(&mut self, layer: Layer, name: &str, words: &[(&str, T)], default: T) -> T {
        let Some(found) = self.find(layer, name) else { return default };
        let value = values::trim(&found.value);
        if let Some((_, meaning)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(value)) {
            return *meaning;
        }
        let all = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let closest = values::closest(value, words.iter().map(|(word, _)| *word)).map(str::to_owned);
        self.settings.refuse_with(&found.key, format!("wants one of {all}"), closest);
        default
    }

    /// `<name>.enabled` and `<name>.interval.seconds`: None is never.
    pub(super) fn interval(&mut self, name: &str, default_seconds: u64) -> Option<std::time::Duration> {
        let enabled = self.boolean(Layer::Option, &format!("{name}.enabled"), true);
        let seconds = self
            .parsed_unquoted(Layer::Option, &format!("{name}.interval.seconds"), values::seconds)
            .unwrap_or(Some(default_seconds));
        seconds.filter(|_| enabled).map(std::time::Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_mirror_makers() {
        let flow = FlowName { source: ClusterAlias::new("S"), target: ClusterAlias::new("T") };
        let check = |layer: Layer, name: &str, expected: &[&str]| {
            assert_eq!(layer.keys(&flow, name), expected, "{layer:?} {name}");
        };
        check(Layer::Option, "topics", &["S->T.topics", "topics"]);
        check(Layer::FlowOnly, "use.defaults.from", &["S->T.use.defaults.from"]);
        check(Layer::Consumer, "x", &["S->T.source.consumer.x", "S.consumer.x", "S->T.consumer.x"]);
        check(Layer::Producer, "x", &["S->T.producer.override.x", "T.producer.x"]);
        check(Layer::Admin(End::Source), "x", &["S->T.source.admin.x", "S.admin.x", "S->T.admin.x"]);
        check(Layer::Admin(End::Target), "x", &["S->T.target.admin.x", "T.admin.x", "S->T.admin.x"]);
        check(Layer::Worker, "offset.storage.topic", &["offset.storage.topic", "T.offset.storage.topic"]);
        check(Layer::Worker, "group.id", &["T.group.id"]);
    }
}
