//! Settings as types of serde.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use crate::Problem;

/// Reads settings into a type. There is one problem at most, the first that serde finds, with its JSON pointer. Give
/// the type `#[serde(deny_unknown_fields)]`, so that a misspelt field is told.
pub fn from_json<T: DeserializeOwned>(settings: &str) -> Result<T, Vec<Problem>> {
    let mut reader = serde_json::Deserializer::from_str(settings);
    let read = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let at = pointer(error.path());
        vec![Problem::new(at, wanted(&error.into_inner().to_string()))]
    })?;
    reader.end().map_err(|error| vec![Problem::new("", error.to_string())])?;
    Ok(read)
}

/// What serde says is wanted, without the value that it found: that may be a secret, and problems are shown and logged.
fn wanted(message: &str) -> String {
    const QUOTING: [&str; 3] = ["invalid type: ", "invalid value: ", "unknown variant "];
    if !QUOTING.iter().any(|start| message.starts_with(start)) {
        return message.to_owned();
    }
    // The last one: the value comes before it, whatever it holds.
    match message.rsplit_once(", expected ") {
        Some((_, wanted)) => ["must be ", wanted].concat(),
        None => "is not what is wanted".to_owned(),
    }
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    path.iter().fold(String::new(), |pointer, segment| match segment {
        Segment::Seq { index } => format!("{pointer}/{index}"),
        Segment::Map { key } => format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")),
        // The name of a variant is no field of the settings.
        Segment::Enum { .. } | Segment::Unknown => pointer,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn problems_have_their_place() {
        type Rules = BTreeMap<String, Vec<u32>>;
        let check = |text: &str, at: &str, message: &str| {
            assert_eq!(from_json::<Rules>(text), Err(vec![Problem::new(at, message)]), "{text}");
        };
        assert_eq!(from_json::<Rules>(r#"{"a": [1]}"#), Ok(Rules::from([("a".to_owned(), vec![1])])));
        check(r#"{"a/b": [1, "x"]}"#, "/a~1b/1", "must be u32 at line 1 column 15");
        check("{} x", "", "trailing characters at line 1 column 4");
    }

    #[test]
    fn no_problem_quotes_a_value() {
        let said = |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.message).collect();
        let variants: Vec<String> = said(from_json::<Result<u8, u8>>(r#"{"s3cret": 1}"#).unwrap_err());
        assert_eq!(variants, ["must be `Ok` or `Err` at line 1 column 9"]);
        for secret in [r#""s3cret""#, r#""s3cret, expected s3cret""#, "53267", "-53267.5"] {
            for problems in [
                from_json::<Vec<u8>>(&format!("[{secret}]")).map(|_| ()).unwrap_err(),
                from_json::<Vec<(bool,)>>(&format!("[[{secret}]]")).map(|_| ()).unwrap_err(),
                from_json::<u8>(secret).map(|_| ()).unwrap_err(),
            ] {
                let messages: Vec<String> = said(problems);
                assert!(!messages[0].contains("s3cret") && !messages[0].contains("53267"), "{messages:?}");
            }
        }
    }
}
