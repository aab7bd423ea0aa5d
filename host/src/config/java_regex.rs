//! Java's regular expressions, translated for `fancy-regex` or refused in words.
//!
//! Most of the syntax looks alike and means something else: `\h` is a blank in Java and a hexadecimal digit there, `\w`,
//! `\d` and `(?i)` know ASCII only in Java, `[[:alpha:]]` is a set of letters and a colon. So nothing is handed through:
//! each construct is read as `java.util.regex.Pattern` reads it and written anew, letter cases spelled out, every other
//! sign as `\x{…}`. What has no exact counterpart, or differs between Java versions, is an error that names it.

mod class;
mod escape;

use std::fmt::Write;

use escape::Escape;

/// Repetitions above this are refused: each is unrolled by the engine.
const REPEAT_MAX: u32 = 1_000;

/// Groups may be nested so deep. Topic lists need two or three; a bound keeps a strange file from eating the stack of
/// the engine's own parser.
const NESTING_MAX: usize = 50;

/// A pattern in the other syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Translated {
    /// Matches what the Java pattern matches, anywhere in a text.
    pub(super) pattern: String,
    /// For which texts that holds.
    pub(super) domain: Domain,
}

/// Texts for which a translation is exact. Topic names are always among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Domain {
    /// `$` and `\Z` also match before a last line end in Java.
    pub(super) without_line_ends: bool,
    /// `\b` and `\p{L}` follow the Unicode tables of the Java that runs.
    pub(super) ascii_only: bool,
}

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// In characters from the pattern's start.
    pub(super) at: usize,
    /// In words.
    pub(super) reason: String,
}

/// A character of a pattern; `quoted` between `\Q` and `\E`, where it stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token {
    character: char,
    quoted: bool,
    at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    ignore_case: bool,
    dot_all: bool,
    unix_lines: bool,
}

/// What stands before a quantifier.
enum Last {
    /// Nothing that can be repeated; in words.
    Fixed(&'static str),
    /// An atom that begins here in the output.
    Atom(usize),
}

struct OpenGroup {
    number: Option<usize>,
    output_start: usize,
    flags: Flags,
    kind: GroupKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupKind {
    Plain,
    LookAhead,
    LookBehind,
}

/// Translates `pattern`.
pub(super) fn translate(pattern: &str) -> Result<Translated, Refused> {
    let mut translator = Translator {
        tokens: tokens(pattern),
        next: 0,
        output: String::new(),
        flags: Flags::default(),
        open: Vec::new(),
        closed: vec![true],
        names: Vec::new(),
        last: Last::Fixed("the start of the pattern"),
        domain: Domain::default(),
    };
    translator.run()?;
    Ok(Translated { pattern: translator.output, domain: translator.domain })
}

/// Java resolves `\Q…\E` before all else.
fn tokens(pattern: &str) -> Vec<Token> {
    let characters: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::with_capacity(characters.len());
    let (mut at, mut quoted) = (0, false);
    while let Some(&character) = characters.get(at) {
        let following = characters.get(at + 1);
        match (quoted, character, following) {
            (true, '\\', Some('E')) | (false, '\\', Some('Q')) => {
                quoted = !quoted;
                at += 2;
            }
            (false, '\\', Some(&escaped)) => {
                tokens.push(Token { character, quoted, at });
                tokens.push(Token { character: escaped, quoted, at: at + 1 });
                at += 2;
            }
            _ => {
                tokens.push(Token { character, quoted, at });
                at += 1;
            }
        }
    }
    tokens
}

struct Translator {
    tokens: Vec<Token>,
    next: usize,
    output: String,
    flags: Flags,
    open: Vec<OpenGroup>,
    /// By group number: whether its `)` was read. Number 0 is the whole.
    closed: Vec<bool>,
    names: Vec<(String, usize)>,
    last: Last,
    domain: Domain,
}

impl Translator {
    fn run(&mut self) -> Result<(), Refused> {
        while let Some(token) = self.take() {
            if token.quoted {
                self.literal(token.character);
                continue;
            }
            match token.character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.open_group()?,
                ')' => self.close_group(token)?,
                '|' => {
                    self.output.push('|');
                    self.last = Last::Fixed("the start of an alternative");
                }
                '*' | '+' | '?' | '{' => self.quantifier(token)?,
                '.' => self.dot(),
                '^' => self.anchor(r"\A"),
                '$' => {
                    self.domain.without_line_ends = true;
                    self.anchor(r"\z");
                }
                other => self.literal(other),
            }
        }
        match self.open.last() {
            Some(_) => Err(self.refusal("a group is not closed")),
            None => Ok(()),
        }
    }

    fn peek(&self) -> Option<char> {
        self.tokens.get(self.next).filter(|token| !token.quoted).map(|token| token.character)
    }

    fn take(&mut self) -> Option<Token> {
        let token = *self.tokens.get(self.next)?;
        self.next += 1;
        Some(token)
    }

    /// Takes the next character if it is `wanted`.
    fn take_if(&mut self, wanted: char) -> bool {
        let is_wanted = self.peek() == Some(wanted);
        self.next += usize::from(is_wanted);
        is_wanted
    }

    fn refusal(&self, reason: impl Into<String>) -> Refused {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        Refused { at: last.map_or(0, |token| token.at), reason: reason.into() }
    }

    fn atom(&mut self, text: &str) {
        self.last = Last::Atom(self.output.len());
        self.output.push_str(text);
    }

    fn anchor(&mut self, text: &str) {
        self.output.push_str(text);
        self.last = Last::Fixed("an anchor");
    }

    fn literal(&mut self, character: char) {
        self.last = Last::Atom(self.output.len());
        if self.flags.ignore_case && character.is_ascii_alphabetic() {
            let (lower, upper) = (character.to_ascii_lowercase(), character.to_ascii_uppercase());
            let _ = write!(self.output, "[{lower}{upper}]");
        } else {
            push_literal(&mut self.output, character);
        }
    }

    fn dot(&mut self) {
        let text = match (self.flags.dot_all, self.flags.unix_lines) {
            (true, _) => r"[\x{0}-\x{10FFFF}]",
            (false, true) => r"[^\n]",
            (false, false) => r"[^\n\r\x{85}\x{2028}\x{2029}]",
        };
        self.atom(text);
    }

    fn class(&mut self) -> Result<(), Refused> {
        let text = class::translate(self)?;
        self.atom(&text);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Refused> {
        match escape::read(self)? {
            Escape::Character(character) => self.literal(character),
            Escape::Set(set) => {
                let text = format!("[{}{}]", if set.negated { "^" } else { "" }, set.members);
                self.atom(&text);
            }
            Escape::Anchor(text) => self.anchor(text),
            Escape::Group(number) => {
                if self.flags.ignore_case {
                    return Err(
                        self.refusal("a back-reference under (?i) compares ASCII letters only in Java")
                    );
                }
                self.atom(&format!(r"(?:\{number})"));
            }
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), Refused> {
        if self.open.len() == NESTING_MAX {
            return Err(self.refusal(format!("groups are nested more than {NESTING_MAX} deep")));
        }
        let output_start = self.output.len();
        let outer_flags = self.flags;
        if !self.take_if('?') {
            self.open_capture(output_start, outer_flags);
            return Ok(());
        }
        let kind = match self.take().map(|token| token.character) {
            Some(':') => self.begin("(?:", GroupKind::Plain),
            Some('>') => self.begin("(?>", GroupKind::Plain),
            Some('=') => self.begin("(?=", GroupKind::LookAhead),
            Some('!') => self.begin("(?!", GroupKind::LookAhead),
            Some('<') if self.take_if('=') => self.begin("(?<=", GroupKind::LookBehind),
            Some('<') if self.take_if('!') => self.begin("(?<!", GroupKind::LookBehind),
            Some('<') => {
                let name = self.group_name('>')?;
                if self.names.iter().any(|(known, _)| *known == name) {
                    return Err(self.refusal(format!("the group name \"{name}\" is used twice")));
                }
                self.names.push((name, self.closed.len()));
                self.open_capture(output_start, outer_flags);
                return Ok(());
            }
            _ => {
                self.next -= 1;
                if self.inline_flags()? {
                    self.last = Last::Fixed("a flag");
                    return Ok(());
                }
                self.begin("(?:", GroupKind::Plain)
            }
        };
        self.open.push(OpenGroup { number: None, output_start, flags: outer_flags, kind });
        Ok(())
    }

    fn begin(&mut self, text: &str, kind: GroupKind) -> GroupKind {
        self.output.push_str(text);
        self.last = Last::Fixed("the start of a group");
        kind
    }

    fn open_capture(&mut self, output_start: usize, flags: Flags) {
        let kind = self.begin("(", GroupKind::Plain);
        self.open.push(OpenGroup { number: Some(self.closed.len()), output_start, flags, kind });
        self.closed.push(false);
    }

    fn group_name(&mut self, end: char) -> Result<String, Refused> {
        let mut name = String::new();
        while let Some(Token { character, quoted: false, .. }) = self.take() {
            if character == end && !name.is_empty() {
                return Ok(name);
            }
            let is_legal =
                character.is_ascii_alphabetic() || (character.is_ascii_digit() && !name.is_empty());
            if !is_legal {
                break;
            }
            name.push(character);
        }
        Err(self.refusal("a group name is letters and digits, and begins with a letter"))
    }

    /// True for `(?i)`, which holds to the end of the group around it; false for `(?i:`, which opens one.
    fn inline_flags(&mut self) -> Result<bool, Refused> {
        let mut value = true;
        loop {
            match self.take().filter(|token| !token.quoted).map(|token| token.character) {
                Some('i') => self.flags.ignore_case = value,
                Some('s') => self.flags.dot_all = value,
                Some('d') => self.flags.unix_lines = value,
                Some('-') if value => value = false,
                Some(')') => return Ok(true),
                Some(':') => return Ok(false),
                Some(flag @ ('m' | 'u' | 'U' | 'x')) => {
                    return Err(self.refusal(format!("the flag (?{flag}) is not supported")));
                }
                _ => return Err(self.refusal("this kind of group is unknown to Java")),
            }
        }
    }

    fn close_group(&mut self, token: Token) -> Result<(), Refused> {
        let Some(group) = self.open.pop() else {
            return Err(Refused {
                at: token.at,
                reason: "a ')' closes nothing; write \\) for the sign".into(),
            });
        };
        self.output.push(')');
        self.flags = group.flags;
        if let Some(number) = group.number {
            self.closed[number] = true;
        }
        self.last = match group.kind {
            GroupKind::Plain => Last::Atom(group.output_start),
            GroupKind::LookAhead | GroupKind::LookBehind => Last::Fixed("a look-around"),
        };
        Ok(())
    }

    fn quantifier(&mut self, token: Token) -> Result<(), Refused> {
        let start = match self.last {
            Last::Atom(start) => start,
            Last::Fixed(what) => {
                let sign = token.character;
                return Err(self.refusal(format!("'{sign}' repeats {what}; write \\{sign} for the sign")));
            }
        };
        let (text, unbounded) = match token.character {
            '{' => self.braces()?,
            '?' => ("?".to_owned(), false),
            sign => (sign.to_string(), true),
        };
        if unbounded && self.open.iter().any(|group| group.kind == GroupKind::LookBehind) {
            return Err(self.refusal("a look-behind must have a longest length"));
        }
        if self.take_if('+') {
            self.output.insert_str(start, "(?>");
            self.output.push_str(&text);
            self.output.push(')');
        } else {
            self.output.push_str(&text);
            if self.take_if('?') {
                self.output.push('?');
            }
        }
        self.last = Last::Fixed("a repetition");
        Ok(())
    }

    fn braces(&mut self) -> Result<(String, bool), Refused> {
        let Some(least) = self.number()? else {
            return Err(self.refusal("a '{' needs a number behind it; write \\{ for the sign"));
        };
        let (text, unbounded) = if !self.take_if(',') {
            (format!("{{{least}}}"), false)
        } else if let Some(most) = self.number()? {
            if most < least {
                return Err(self.refusal(format!("{{{least},{most}}} ends below its start")));
            }
            (format!("{{{least},{most}}}"), false)
        } else {
            (format!("{{{least},}}"), true)
        };
        if !self.take_if('}') {
            return Err(self.refusal("a '{' is not closed"));
        }
        Ok((text, unbounded))
    }

    fn number(&mut self) -> Result<Option<u32>, Refused> {
        let mut number = None;
        while let Some(digit) = self.peek().and_then(|character| character.to_digit(10)) {
            self.next += 1;
            let value = number.unwrap_or(0) * 10 + digit;
            if value > REPEAT_MAX {
                return Err(self.refusal(format!("more than {REPEAT_MAX} repetitions")));
            }
            number = Some(value);
        }
        Ok(number)
    }
}

/// Writes a character so that it stands for itself, within and outside of a class.
fn push_literal(output: &mut String, character: char) {
    if character.is_ascii_alphanumeric() {
        output.push(character);
    } else {
        let _ = write!(output, "\\x{{{:X}}}", u32::from(character));
    }
}

#[cfg(test)]
mod tests;
