//! A plugin's settings: that they are one JSON object, and that they are as the plugin's JSON Schema says. Settings may
//! hold secrets, so no sentence of this file quotes a value of theirs; keys it does quote.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError};
use serde_json::Value;

use super::instance::PROBLEM_COUNT_MAX;
use super::journal::one_line;
use super::load::{LoadError, SettingsProblem};

/// A schema is written by hand; the largest of the shipped ones has 5 KB.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// Steps that a `pattern` of a schema may take on one value, some milliseconds.
const BACKTRACK_STEPS_MAX: usize = 100_000;

/// The contract promises a plugin one JSON object.
pub(super) fn parse(module: &str, settings_json: &str) -> Result<Value, LoadError> {
    let refused = |message: String| LoadError::SettingsSyntax { module: module.to_owned(), message };
    match serde_json::from_str::<Value>(settings_json) {
        Ok(settings) if settings.is_object() => Ok(settings),
        Ok(other) => Err(refused(format!("they are {}", kind_of(&other)))),
        Err(error) => Err(refused(error.to_string())),
    }
}

/// All problems at once, each with its place.
pub(super) fn check(plugin: &str, schema: &str, settings: &Value) -> Result<(), LoadError> {
    let unusable =
        |message: String| LoadError::Schema { plugin: plugin.to_owned(), message: one_line(&message) };
    if schema.len() > SCHEMA_BYTES_MAX {
        return Err(unusable(format!("it has {} bytes, at most {SCHEMA_BYTES_MAX}", schema.len())));
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| unusable(error.to_string()))?;
    let validator = jsonschema::options()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_STEPS_MAX))
        .build(&schema)
        .map_err(|error| unusable(error.to_string()))?;
    let problems: Vec<SettingsProblem> =
        validator.iter_errors(settings).take(PROBLEM_COUNT_MAX).map(|error| problem(&error)).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(LoadError::Settings { plugin: plugin.to_owned(), problems })
}

fn problem(error: &ValidationError<'_>) -> SettingsProblem {
    SettingsProblem {
        at: one_line(error.instance_path().as_str()),
        message: one_line(&sentence(error.kind())),
    }
}

/// The library's own sentences quote the value; these say what is wanted.
fn sentence(kind: &ValidationErrorKind) -> String {
    use ValidationErrorKind as Kind;
    match kind {
        Kind::AdditionalItems { limit } => format!("has more than {limit} items"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("unknown field {}", unexpected.join(", "))
        }
        Kind::Constant { expected_value } => format!("must be {expected_value}"),
        Kind::Enum { options } => format!("must be one of {options}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("must match {pattern}"),
        Kind::Format { format } => format!("must be a {format}"),
        Kind::Required { property } => format!("field {property} is missing"),
        Kind::Type { kind } => format!("must be {}", type_words(kind)),
        Kind::UniqueItems => "has an item twice".to_owned(),
        Kind::PropertyNames { error } => format!("has a field whose name {}", sentence(error.kind())),
        other => format!("is not as the schema's {:?} says", other.keyword()),
    }
}

fn type_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => single.to_string(),
        TypeKind::Multiple(several) => {
            several.iter().map(|single| single.to_string()).collect::<Vec<_>>().join(" or ")
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
