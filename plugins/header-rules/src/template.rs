//! Values with places: `{topic}`, `{offset}` and so on.

use tidegate_plugin::Link;

/// What a place stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Topic,
    Partition,
    Offset,
    /// Milliseconds since 1970.
    Timestamp,
}

impl Place {
    /// The same for all records of a batch.
    fn is_of_batch(self) -> bool {
        matches!(self, Self::Topic | Self::Partition)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(Place),
}

/// A value of a header before it is known for which record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

/// What the places of a record stand for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: Option<i64>,
}

impl Template {
    /// The flow's places are filled at once. An error is a sentence for the operator.
    pub(crate) fn parse(text: &str, link: &Link) -> Result<Self, String> {
        let mut template = Self { pieces: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            template.push_text(before);
            rest = if let Some(behind) = brace.strip_prefix("{{") {
                template.push_text("{");
                behind
            } else if let Some(behind) = brace.strip_prefix("}}") {
                template.push_text("}");
                behind
            } else {
                let inside = brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
                let Some((name, behind)) = inside else {
                    return Err(format!("\"{text}\" has a lone brace; {{{{ and }}}} stand for braces"));
                };
                template.push_place(text, name, link)?;
                behind
            };
        }
        template.push_text(rest);
        Ok(template)
    }

    fn push_place(&mut self, text: &str, name: &str, link: &Link) -> Result<(), String> {
        let place = match name {
            "topic" => Place::Topic,
            "partition" => Place::Partition,
            "offset" => Place::Offset,
            "timestamp" => Place::Timestamp,
            "flow" => {
                self.push_text(&link.name);
                return Ok(());
            }
            "source_cluster" => {
                self.push_text(&link.source_cluster);
                return Ok(());
            }
            "target_cluster" => {
                self.push_text(&link.target_cluster);
                return Ok(());
            }
            _ => {
                return Err(format!(
                    "\"{text}\" has the place {{{name}}}; there is: {{topic}}, {{partition}}, {{offset}}, {{timestamp}}, \
                     {{flow}}, {{source_cluster}}, {{target_cluster}}"
                ));
            }
        };
        self.pieces.push(Piece::Place(place));
        Ok(())
    }

    fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Place(place) => Some(*place),
            Piece::Text(_) => None,
        })
    }

    pub(crate) fn has_timestamp(&self) -> bool {
        self.places().any(|place| place == Place::Timestamp)
    }

    /// Nothing in it differs from record to record of a batch.
    pub(crate) fn is_of_batch(&self) -> bool {
        self.places().all(Place::is_of_batch)
    }

    /// Writes the value over what `into` holds.
    pub(crate) fn fill(&self, facts: Facts<'_>, into: &mut Vec<u8>) {
        into.clear();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => into.extend_from_slice(text.as_bytes()),
                Piece::Place(Place::Topic) => into.extend_from_slice(facts.topic.as_bytes()),
                Piece::Place(Place::Partition) => write_decimal(facts.partition.into(), into),
                Piece::Place(Place::Offset) => write_decimal(facts.offset, into),
                Piece::Place(Place::Timestamp) => write_decimal(facts.timestamp_ms.unwrap_or(-1), into),
            }
        }
    }
}

/// Without the standard library's formatting, which would double the component.
fn write_decimal(number: i64, into: &mut Vec<u8>) {
    if number < 0 {
        into.push(b'-');
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    let mut rest = number.unsigned_abs();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        *digit = b'0' + (rest % 10) as u8;
        start = index;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    into.extend_from_slice(digits.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> String {
        let template = Template::parse(text, &tidegate_plugin::testing::link()).unwrap();
        let facts = Facts { topic: "orders", partition: 3, offset: 1234, timestamp_ms: Some(5) };
        let mut value = b"old".to_vec();
        template.fill(facts, &mut value);
        String::from_utf8(value).unwrap()
    }

    #[test]
    fn places_are_filled() {
        let check = |text: &str, value: &str| assert_eq!(filled(text), value, "{text}");
        check("", "");
        check("plain", "plain");
        check("{topic}", "orders");
        check("{topic}-{partition}@{offset}", "orders-3@1234");
        check("{source_cluster}->{target_cluster} is {flow}", "east->west is east->west");
        check("{timestamp}", "5");
        check("{{topic}}", "{topic}");
        check("{{{topic}}}", "{orders}");
        check("}}{{", "}{");
    }

    #[test]
    fn wrong_places_are_refused_in_words() {
        let check = |text: &str, message: &str| {
            let link = tidegate_plugin::testing::link();
            assert_eq!(Template::parse(text, &link), Err(message.to_owned()), "{text}");
        };
        check(
            "{tpoic}",
            "\"{tpoic}\" has the place {tpoic}; there is: {topic}, {partition}, {offset}, {timestamp}, {flow}, \
             {source_cluster}, {target_cluster}",
        );
        check("{topic", "\"{topic\" has a lone brace; {{ and }} stand for braces");
        check("a}b", "\"a}b\" has a lone brace; {{ and }} stand for braces");
    }

    #[test]
    fn numbers_are_written_in_full() {
        for number in [0, 7, 10, -1, 1_234_567_890_123, i64::MAX, i64::MIN] {
            let mut into = Vec::new();
            write_decimal(number, &mut into);
            assert_eq!(String::from_utf8(into).unwrap(), number.to_string());
        }
    }
}
