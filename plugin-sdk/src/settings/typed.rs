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
        vec![Problem::new(at, error.into_inner().to_string())]
    })?;
    reader.end().map_err(|error| vec![Problem::new("", error.to_string())])?;
    Ok(read)
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
        check(
            r#"{"a/b": [1, "x"]}"#,
            "/a~1b/1",
            "invalid type: string \"x\", expected u32 at line 1 column 15",
        );
        check("{} x", "", "trailing characters at line 1 column 4");
    }
}
