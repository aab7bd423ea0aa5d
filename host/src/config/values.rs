//! Values as Kafka's `ConfigDef` parses them: trimmed as Java trims, numbers in range, lists split at commas.

use super::filter::NameList;

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number within bounds.
    Number(i64, i64),
    /// A number of seconds: negative means never, and 0 is illegal, since MirrorMaker 2 fails or spins on it.
    Seconds,
    /// Java regular expressions.
    Expressions,
}

pub(super) const INT: Kind = Kind::Number(i32::MIN as i64, i32::MAX as i64);
pub(super) const LONG: Kind = Kind::Number(i64::MIN, i64::MAX);
/// A replication factor: −1 is the broker's default.
pub(super) const REPLICATION: Kind = Kind::Number(-1, i16::MAX as i64);

/// Java's `String.trim`.
pub(super) fn trim(value: &str) -> &str {
    value.trim_matches(|character: char| character <= ' ')
}

/// `true` or `false`, in any case.
pub(super) fn boolean(value: &str) -> Result<bool, String> {
    match trim(value) {
        word if word.eq_ignore_ascii_case("true") => Ok(true),
        word if word.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err("wants true or false".into()),
    }
}

/// A whole number from `least` to `most`.
pub(super) fn number(value: &str, least: i64, most: i64) -> Result<i64, String> {
    let number = trim(value).parse::<i64>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| match (least, most) {
        (i64::MIN, _) => "wants a whole number".into(),
        (_, i64::MAX) => format!("wants a whole number from {least} up"),
        _ => format!("wants a whole number from {least} to {most}"),
    })
}

/// A number of seconds, None for a negative one: never.
pub(super) fn seconds(value: &str) -> Result<Option<u64>, String> {
    const SECONDS_MAX: i64 = i64::MAX / 1_000;
    match number(value, i64::MIN, SECONDS_MAX) {
        Ok(0) => Err(
            "0 is no interval: MirrorMaker 2 fails or spins on it; write 1 or more seconds, or -1 for never"
                .into(),
        ),
        Ok(seconds) => Ok(u64::try_from(seconds).ok()),
        Err(_) => Err("wants a whole number of seconds, -1 for never".into()),
    }
}

/// A list: split at commas, blanks around them eaten, empty items kept.
pub(super) fn list(value: &str) -> Vec<&str> {
    let is_blank = |character: char| matches!(character, ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r');
    match trim(value) {
        "" => Vec::new(),
        items => items.split(',').map(|item| item.trim_matches(is_blank)).collect(),
    }
}

/// Whether the value can be read as its kind; the error says what is wanted.
pub(super) fn check(kind: Kind, value: &str) -> Result<(), String> {
    match kind {
        Kind::Text => Ok(()),
        Kind::Boolean => boolean(value).map(drop),
        Kind::Number(least, most) => number(value, least, most).map(drop),
        Kind::Seconds => seconds(value).map(drop),
        Kind::Expressions => expressions(value).map(drop),
    }
}

/// A list of Java regular expressions. Commas can't be escaped, so `a{1,2}` falls in two.
pub(super) fn expressions(value: &str) -> Result<NameList, String> {
    let items = list(value);
    NameList::parse(&items).map_err(|text| {
        let count = |item: &str, sign| item.matches(sign).count();
        let is_cut = items.iter().any(|item| count(item, '{') != count(item, '}') || count(item, '[') != count(item, ']'));
        match is_cut && items.len() > 1 {
            true => format!(
                "{text}; a list is split at every comma, within braces and brackets too: write the cases one by one, as in \
                 a, aa for a{{1,2}}"
            ),
            false => text,
        }
    })
}

/// The last part of a Java class name.
pub(super) fn simple_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// The word among `known` that was most likely meant.
pub(super) fn closest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this likeness (0 to 1) a suggestion confuses more than it helps.
    const LIKENESS_MIN: f64 = 0.6;
    let lower = word.to_lowercase();
    let likeness =
        |candidate: &str| strsim::normalized_damerau_levenshtein(&lower, &candidate.to_lowercase());
    known
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_as_kafka_parses_them() {
        assert_eq!(boolean(" TRUE\t"), Ok(true));
        assert_eq!(boolean("yes"), Err("wants true or false".into()));
        assert_eq!(number(" +5 ", 0, 9), Ok(5));
        assert_eq!(number("10", 0, 9), Err("wants a whole number from 0 to 9".into()));
        assert_eq!(number("1e3", i64::MIN, i64::MAX), Err("wants a whole number".into()));
        assert_eq!(number("-2", -1, i64::MAX), Err("wants a whole number from -1 up".into()));
        assert_eq!(seconds("-5"), Ok(None));
        assert_eq!(seconds("600"), Ok(Some(600)));
        assert_eq!(list(" a , b,,c\t"), ["a", "b", "", "c"]);
        assert_eq!(list("  "), Vec::<&str>::new());
    }

    #[test]
    fn the_likeliest_word_is_found() {
        let known = ["enabled", "topics", "topics.exclude", "emit.heartbeats.enabled"];
        let check = |word, expected| assert_eq!(closest(word, known.into_iter()), expected, "{word}");
        check("enable", Some("enabled"));
        check("topics.exlude", Some("topics.exclude"));
        check("emit.heartbeats", Some("emit.heartbeats.enabled"));
        check("zzz", None);
    }
}
