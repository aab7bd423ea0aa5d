//! What a part of a regular expression can match, as far as it is needed to prove an inverse: from which characters,
//! and how many of them. Reads a part of the syntax and refuses the rest in words.

/// Sets of ASCII characters; names of topics have no others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Alphabet(u128);

impl Alphabet {
    /// All that `.` matches.
    const ANY: Self = Self(!(1 << b'\n'));

    pub(crate) fn of(character: char) -> Self {
        Self(if character.is_ascii() { 1 << (character as u32) } else { 0 })
    }

    fn range(first: char, last: char) -> Self {
        (first..=last).map(Self::of).fold(Self::default(), Self::union)
    }

    fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn inverse(self) -> Self {
        Self(!self.0)
    }

    pub(crate) fn has(self, character: char) -> bool {
        self.0 & Self::of(character).0 != 0
    }

    pub(crate) fn is_disjoint(self, other: Self) -> bool {
        self.0 & other.0 == 0
    }
}

/// What some part matches: no other characters than these, and so many of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) alphabet: Alphabet,
    pub(crate) min: usize,
    /// `None` is without end.
    pub(crate) max: Option<usize>,
    /// The one text that it matches, if there is but one.
    pub(crate) only: Option<String>,
}

impl Extent {
    fn text(text: &str) -> Self {
        let alphabet = text.chars().map(Alphabet::of).fold(Alphabet::default(), Alphabet::union);
        Self { alphabet, min: text.len(), max: Some(text.len()), only: Some(text.to_owned()) }
    }

    fn one_of(alphabet: Alphabet) -> Self {
        Self { alphabet, min: 1, max: Some(1), only: None }
    }

    /// A class of one character, such as `[.]`, is that character.
    fn of_class(alphabet: Alphabet) -> Self {
        match char::from_u32(alphabet.0.trailing_zeros()) {
            Some(only) if alphabet == Alphabet::of(only) => Self::text(only.encode_utf8(&mut [0; 4])),
            _ => Self::one_of(alphabet),
        }
    }

    pub(crate) fn is_of_one_length(&self) -> bool {
        self.max == Some(self.min)
    }

    fn then(self, next: &Self) -> Self {
        Self {
            alphabet: self.alphabet.union(next.alphabet),
            min: self.min.saturating_add(next.min),
            max: self.max.zip(next.max).map(|(a, b)| a.saturating_add(b)),
            only: self.only.zip(next.only.as_deref()).map(|(first, next)| first + next),
        }
    }

    fn or(self, other: &Self) -> Self {
        Self {
            alphabet: self.alphabet.union(other.alphabet),
            min: self.min.min(other.min),
            max: self.max.zip(other.max).map(|(a, b)| a.max(b)),
            only: self.only.filter(|only| other.only.as_ref() == Some(only)),
        }
    }

    fn repeated(self, min: usize, max: Option<usize>) -> Self {
        let is_same = (min, max) == (1, Some(1));
        Self {
            alphabet: self.alphabet,
            min: self.min.saturating_mul(min),
            max: self.max.zip(max).map(|(a, b)| a.saturating_mul(b)),
            only: self.only.filter(|_| is_same),
        }
    }
}

/// A part of a whole expression, seen from outside its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Fixed text.
    Text(String),
    /// A group that captures; they are counted from 1.
    Group(Extent),
}

/// The parts of an expression whose text outside of groups is fixed. An error is a sentence for the operator.
pub(crate) fn parts(expression: &str) -> Result<Vec<Part>, String> {
    let mut reader = Reader { expression, rest: expression, depth: 0 };
    let mut parts: Vec<Part> = Vec::new();
    while let Some(next) = reader.peek() {
        if next == '|' {
            return Err(reader.outside("a choice"));
        }
        if reader.begins_capture() {
            reader.skip_group_head();
            let extent = reader.choices()?;
            reader.close()?;
            if reader.quantifier()?.is_some() {
                return Err(format!(
                    "\"{expression}\" repeats a group, which keeps only the last: put the repetition inside of it"
                ));
            }
            parts.push(Part::Group(extent));
            continue;
        }
        let before = reader.rest;
        let extent = reader.item()?;
        let Some(text) = extent.only else {
            let found = before.get(..before.len() - reader.rest.len()).unwrap_or_default();
            return Err(reader.outside(&format!("\"{found}\"")));
        };
        match parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(&text),
            _ => parts.push(Part::Text(text)),
        }
    }
    Ok(parts)
}

/// Groups lie this deep in each other at most; the reader's stack is bounded by it.
const DEPTH_MAX: usize = 32;

struct Reader<'a> {
    expression: &'a str,
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next()?;
        self.rest = characters.as_str();
        Some(next)
    }

    fn outside(&self, what: &str) -> String {
        format!(
            "\"{}\" has {what} outside of its groups, so what it matched would be lost: put it into a group that \
             \"to\" names",
            self.expression
        )
    }

    fn unknown(&self, what: &str) -> String {
        format!("\"{}\" has {what}, for which no inverse can be proven", self.expression)
    }

    fn begins_capture(&self) -> bool {
        self.rest.starts_with('(')
            && (!self.rest.starts_with("(?") || self.rest.starts_with("(?<") || self.rest.starts_with("(?P<"))
    }

    /// `(`, or `(?<name>`: the expression was compiled already, so it is well formed.
    fn skip_group_head(&mut self) {
        if (self.take("(?P<") || self.take("(?<"))
            && let Some((_, rest)) = self.rest.split_once('>')
        {
            self.rest = rest;
            return;
        }
        self.take("(");
    }

    fn close(&mut self) -> Result<(), String> {
        if self.take(")") { Ok(()) } else { Err(self.unknown("a group that does not end")) }
    }

    /// Up to `)` or the end.
    fn choices(&mut self) -> Result<Extent, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.unknown("too many groups within groups"));
        }
        let mut extent = self.sequence()?;
        while self.take("|") {
            extent = extent.or(&self.sequence()?);
        }
        self.depth -= 1;
        Ok(extent)
    }

    fn sequence(&mut self) -> Result<Extent, String> {
        let mut extent = Extent::text("");
        while !matches!(self.peek(), None | Some('|' | ')')) {
            extent = extent.then(&self.item()?);
        }
        Ok(extent)
    }

    fn item(&mut self) -> Result<Extent, String> {
        let atom = self.atom()?;
        Ok(match self.quantifier()? {
            Some((min, max)) => atom.repeated(min, max),
            None => atom,
        })
    }

    fn atom(&mut self) -> Result<Extent, String> {
        if self.take("(?:") {
            let extent = self.choices()?;
            self.close()?;
            return Ok(extent);
        }
        if self.begins_capture() {
            return Err(format!(
                "\"{}\" has a group within a group: write the inner one (?:…)",
                self.expression
            ));
        }
        match self.next() {
            Some('.') => Ok(Extent::one_of(Alphabet::ANY)),
            Some('[') => self.class().map(Extent::of_class),
            Some('\\') => self.escape(),
            Some('(') => Err(self.unknown("flags")),
            Some('^' | '$') => Err(format!(
                "\"{}\" has an anchor: leave it out, a pattern always covers the whole name",
                self.expression
            )),
            Some(character) if character.is_ascii() => Ok(Extent::text(character.encode_utf8(&mut [0; 4]))),
            Some(character) => {
                Err(format!("\"{}\" has '{character}', which no name of a topic can hold", self.expression))
            }
            None => Err(self.unknown("an end where something should be")),
        }
    }

    fn escape(&mut self) -> Result<Extent, String> {
        match self.next() {
            Some(letter) if class_of(letter).is_some() => {
                Ok(Extent::one_of(class_of(letter).unwrap_or_default()))
            }
            Some(character) if character.is_ascii_punctuation() => {
                Ok(Extent::text(character.encode_utf8(&mut [0; 4])))
            }
            other => Err(self.unknown(&format!("\"\\{}\"", other.map(String::from).unwrap_or_default()))),
        }
    }

    /// Behind `[`.
    fn class(&mut self) -> Result<Alphabet, String> {
        let is_inverse = self.take("^");
        let mut alphabet = Alphabet::default();
        let mut is_first = true;
        loop {
            if !is_first && self.take("]") {
                break;
            }
            if self.rest.starts_with("&&") || self.rest.starts_with("--") || self.rest.starts_with("~~") {
                return Err(self.unknown("a class of classes"));
            }
            alphabet = alphabet.union(self.class_item()?);
            is_first = false;
        }
        Ok(if is_inverse { alphabet.inverse() } else { alphabet })
    }

    fn class_item(&mut self) -> Result<Alphabet, String> {
        let first = match self.next() {
            Some('[') => return Err(self.unknown("a class of classes")),
            Some('\\') => match self.next() {
                Some(letter) if class_of(letter).is_some() => return Ok(class_of(letter).unwrap_or_default()),
                Some(character) if character.is_ascii_punctuation() => character,
                _ => return Err(self.unknown("an unusual escape")),
            },
            Some(character) if character.is_ascii() => character,
            _ => return Err(self.unknown("a class with characters that no name of a topic can hold")),
        };
        let has_end = self.rest.starts_with('-') && !self.rest.starts_with("-]");
        if !has_end {
            return Ok(Alphabet::of(first));
        }
        self.take("-");
        self.take("\\");
        match self.next() {
            Some(last) if last.is_ascii() && first <= last => Ok(Alphabet::range(first, last)),
            _ => Err(self.unknown("an unusual range")),
        }
    }

    /// `*`, `+`, `?`, `{2}`, `{2,}` or `{2,5}`, the lazy forms too.
    fn quantifier(&mut self) -> Result<Option<(usize, Option<usize>)>, String> {
        let bounds = if self.take("*") {
            (0, None)
        } else if self.take("+") {
            (1, None)
        } else if self.take("?") {
            (0, Some(1))
        } else if self.take("{") {
            self.bounds().ok_or_else(|| self.unknown("an unusual repetition"))?
        } else {
            return Ok(None);
        };
        self.take("?");
        if matches!(self.peek(), Some('*' | '+' | '?' | '{')) {
            return Err(self.unknown("a repetition of a repetition"));
        }
        Ok(Some(bounds))
    }

    fn bounds(&mut self) -> Option<(usize, Option<usize>)> {
        let (inside, rest) = self.rest.split_once('}')?;
        self.rest = rest;
        let (min, max) = match inside.split_once(',') {
            None => {
                let count = inside.parse().ok()?;
                (count, Some(count))
            }
            Some((min, "")) => (min.parse().ok()?, None),
            Some((min, max)) => (min.parse().ok()?, Some(max.parse().ok()?)),
        };
        Some((min, max))
    }
}

/// `\d`, `\w`, `\s` and what they leave.
fn class_of(letter: char) -> Option<Alphabet> {
    let digits = Alphabet::range('0', '9');
    let words = || {
        let letters = Alphabet::range('a', 'z').union(Alphabet::range('A', 'Z'));
        digits.union(letters).union(Alphabet::of('_'))
    };
    let blanks = || {
        [' ', '\t', '\n', '\r', '\x0b', '\x0c']
            .map(Alphabet::of)
            .into_iter()
            .fold(Alphabet::default(), Alphabet::union)
    };
    Some(match letter {
        'd' => digits,
        'D' => digits.inverse(),
        'w' => words(),
        'W' => words().inverse(),
        's' => blanks(),
        'S' => blanks().inverse(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(expression: &str) -> Extent {
        match parts(&format!("({expression})")).unwrap().as_slice() {
            [Part::Group(extent)] => extent.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn extents_are_known() {
        let check = |expression: &str, min: usize, max: Option<usize>, within: &str, without: &str| {
            let extent = group(expression);
            assert_eq!((extent.min, extent.max), (min, max), "{expression}");
            assert!(within.chars().all(|c| extent.alphabet.has(c)), "{expression} has {within}");
            assert!(!without.chars().any(|c| extent.alphabet.has(c)), "{expression} has none of {without}");
        };
        check(".*", 0, None, "a.-_9", "\n");
        check("abc", 3, Some(3), "abc", "d");
        check("a|bcd", 1, Some(3), "abcd", "e");
        check("a|", 0, Some(1), "a", "b");
        check("[a-c_.-]+", 1, None, "abc_.-", "dA");
        check("[^.]+?", 1, None, "a-_", ".");
        check("[]a]", 1, Some(1), "]a", "[");
        check(r"\d{4}", 4, Some(4), "09", "a");
        check(r"\w{2,}", 2, None, "aZ_9", ".-");
        check(r"[\d.]{1,3}", 1, Some(3), "0.", "a");
        check(r"(?:eu|us)-[0-9]", 4, Some(4), "eus-0", "a");
        check(r"(?:ab)?\.", 1, Some(3), "ab.", "c");
        check(r"\D\W\S", 3, Some(3), "a.", "");
        assert_eq!(group(r"eu\.x").only.as_deref(), Some("eu.x"));
        assert_eq!(group("a|a").only.as_deref(), Some("a"));
        assert_eq!(group("a?").only, None);
    }

    #[test]
    fn text_outside_of_groups_is_fixed() {
        assert_eq!(
            parts(r"eu\.(?:x)(?<team>a)\-y").unwrap(),
            [Part::Text("eu.x".into()), Part::Group(Extent::text("a")), Part::Text("-y".into())]
        );
        assert_eq!(parts("a[.](b)").unwrap(), [Part::Text("a.".into()), Part::Group(Extent::text("b"))]);
        assert_eq!(parts("").unwrap(), []);
    }

    #[test]
    fn what_can_not_be_proven_is_refused_in_words() {
        let check = |expression: &str, message: &str| assert_eq!(parts(expression), Err(message.to_owned()));
        let lost =
            "outside of its groups, so what it matched would be lost: put it into a group that \"to\" names";
        check(".*-(a)", &format!("\".*-(a)\" has \".*\" {lost}"));
        check("(a)x?", &format!("\"(a)x?\" has \"x?\" {lost}"));
        check("[ab](c)", &format!("\"[ab](c)\" has \"[ab]\" {lost}"));
        check("(?:a|b)(c)", &format!("\"(?:a|b)(c)\" has \"(?:a|b)\" {lost}"));
        check("a|b", &format!("\"a|b\" has a choice {lost}"));
        check("(a)*", "\"(a)*\" repeats a group, which keeps only the last: put the repetition inside of it");
        check("(a(b))", "\"(a(b))\" has a group within a group: write the inner one (?:…)");
        check("^(a)", "\"^(a)\" has an anchor: leave it out, a pattern always covers the whole name");
        check("(a)$", "\"(a)$\" has an anchor: leave it out, a pattern always covers the whole name");
        check("(?i)a", "\"(?i)a\" has flags, for which no inverse can be proven");
        check("(?i:a)", "\"(?i:a)\" has flags, for which no inverse can be proven");
        check(r"(\b)", r#""(\b)" has "\b", for which no inverse can be proven"#);
        check(r"(\x41)", r#""(\x41)" has "\x", for which no inverse can be proven"#);
        check("([a&&b])", "\"([a&&b])\" has a class of classes, for which no inverse can be proven");
        check(
            "([[:alpha:]])",
            "\"([[:alpha:]])\" has a class of classes, for which no inverse can be proven",
        );
        check("(é)", "\"(é)\" has 'é', which no name of a topic can hold");
        check("(a**)", "\"(a**)\" has a repetition of a repetition, for which no inverse can be proven");
        let deep = "(?:".repeat(99) + "a" + &")".repeat(99);
        check(
            &deep,
            &format!("\"{deep}\" has too many groups within groups, for which no inverse can be proven"),
        );
    }
}
