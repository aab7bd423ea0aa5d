//! What follows a backslash.

use super::{Refused, Token, Translator, push_literal};

/// What an escape stands for.
pub(super) enum Escape {
    /// One character.
    Character(char),
    /// A set of characters.
    Set(Set),
    /// A place between characters; how to write it.
    Anchor(&'static str),
    /// What a group matched.
    Group(usize),
}

/// Members of a class, already in the other syntax.
pub(super) struct Set {
    pub(super) negated: bool,
    pub(super) members: String,
}

const DIGIT: &str = "0-9";
const WORD: &str = r"0-9A-Za-z\x{5F}";
const SPACE: &str = r"\x{9}-\x{D}\x{20}";
const HORIZONTAL: &str = r"\x{9}\x{20}\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\x{A}-\x{D}\x{85}\x{2028}\x{2029}";

/// Reads an escape; the backslash is taken.
pub(super) fn read(translator: &mut Translator) -> Result<Escape, Refused> {
    let Some(Token { character, quoted: false, .. }) = translator.take() else {
        return Err(translator.refusal("a backslash stands before nothing"));
    };
    let set = |negated, members: &str| Ok(Escape::Set(Set { negated, members: members.to_owned() }));
    match character {
        'd' => set(false, DIGIT),
        'D' => set(true, DIGIT),
        'w' => set(false, WORD),
        'W' => set(true, WORD),
        's' => set(false, SPACE),
        'S' => set(true, SPACE),
        'h' => set(false, HORIZONTAL),
        'H' => set(true, HORIZONTAL),
        'v' => set(false, VERTICAL),
        'V' => set(true, VERTICAL),
        'p' => property(translator, false).map(Escape::Set),
        'P' => property(translator, true).map(Escape::Set),
        'A' => Ok(Escape::Anchor(r"\A")),
        'z' => Ok(Escape::Anchor(r"\z")),
        'Z' => {
            translator.domain.without_line_ends = true;
            Ok(Escape::Anchor(r"\z"))
        }
        'b' | 'B' => boundary(translator, character),
        't' => Ok(Escape::Character('\t')),
        'n' => Ok(Escape::Character('\n')),
        'r' => Ok(Escape::Character('\r')),
        'f' => Ok(Escape::Character('\u{c}')),
        'a' => Ok(Escape::Character('\u{7}')),
        'e' => Ok(Escape::Character('\u{1b}')),
        'c' => control(translator).map(Escape::Character),
        '0' => octal(translator).map(Escape::Character),
        'x' => hexadecimal(translator).map(Escape::Character),
        'u' => unicode(translator).map(Escape::Character),
        'k' => named_group(translator),
        '1'..='9' => numbered_group(translator, character as usize - '0' as usize),
        'G' | 'N' | 'R' | 'X' => Err(translator.refusal(format!("\\{character} is not supported"))),
        letter if letter.is_ascii_alphabetic() => {
            Err(translator.refusal(format!("\\{letter} is unknown to Java; write {letter} for the letter")))
        }
        sign => Ok(Escape::Character(sign)),
    }
}

fn boundary(translator: &mut Translator, character: char) -> Result<Escape, Refused> {
    if translator.peek() == Some('{') {
        return Err(translator.refusal(format!("\\{character}{{…}} is not supported")));
    }
    translator.domain.ascii_only = true;
    Ok(Escape::Anchor(if character == 'b' { r"\b" } else { r"\B" }))
}

fn control(translator: &mut Translator) -> Result<char, Refused> {
    match translator.take() {
        Some(Token { character, .. }) if character.is_ascii() => Ok(char::from(character as u8 ^ 64)),
        _ => Err(translator.refusal("\\c needs an ASCII character behind it")),
    }
}

/// `\0n`, `\0nn` or `\0mnn` with m up to 3.
fn octal(translator: &mut Translator) -> Result<char, Refused> {
    let mut value = 0;
    for place in 0..3 {
        let Some(digit) = translator.peek().and_then(|character| character.to_digit(8)) else {
            if place == 0 {
                return Err(translator.refusal("\\0 needs octal digits behind it"));
            }
            break;
        };
        if place == 2 && value > 0o37 {
            break;
        }
        value = value * 8 + digit;
        translator.next += 1;
    }
    char::from_u32(value).ok_or_else(|| translator.refusal("\\0 names no character"))
}

fn digits(translator: &mut Translator, count: usize, what: &str) -> Result<u32, Refused> {
    let mut value = 0;
    for _ in 0..count {
        let Some(digit) = translator.peek().and_then(|character| character.to_digit(16)) else {
            return Err(translator.refusal(format!("{what} needs {count} hexadecimal digits")));
        };
        translator.next += 1;
        value = value * 16 + digit;
    }
    Ok(value)
}

fn hexadecimal(translator: &mut Translator) -> Result<char, Refused> {
    let value = if translator.take_if('{') {
        let mut value = None;
        while let Some(digit) = translator.peek().and_then(|character| character.to_digit(16)) {
            translator.next += 1;
            let larger = value.unwrap_or(0) * 16 + digit;
            if larger > u32::from(char::MAX) {
                return Err(translator.refusal("\\x{…} names no character"));
            }
            value = Some(larger);
        }
        if !translator.take_if('}') {
            return Err(translator.refusal("\\x{…} is not closed"));
        }
        value
    } else {
        Some(digits(translator, 2, "\\x")?)
    };
    value.and_then(char::from_u32).ok_or_else(|| translator.refusal("\\x{…} names no character"))
}

fn unicode(translator: &mut Translator) -> Result<char, Refused> {
    let first = digits(translator, 4, "\\u")?;
    if let Some(character) = char::from_u32(first) {
        return Ok(character);
    }
    if first < 0xdc00 && translator.take_if('\\') && translator.take_if('u') {
        let second = digits(translator, 4, "\\u")?;
        if (0xdc00..0xe000).contains(&second)
            && let Some(character) = char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
        {
            return Ok(character);
        }
    }
    Err(translator.refusal("\\u names half of a surrogate pair"))
}

fn named_group(translator: &mut Translator) -> Result<Escape, Refused> {
    if !translator.take_if('<') {
        return Err(translator.refusal("\\k needs a group name in <> behind it"));
    }
    let name = translator.group_name('>')?;
    match translator.names.iter().find(|(known, _)| *known == name) {
        Some(&(_, number)) => group(translator, number),
        None => Err(translator.refusal(format!("there is no group \"{name}\" before this place"))),
    }
}

/// Java takes further digits as long as such a group was opened.
fn numbered_group(translator: &mut Translator, first: usize) -> Result<Escape, Refused> {
    let mut number = first;
    while let Some(digit) = translator.peek().and_then(|character| character.to_digit(10)) {
        let longer = number * 10 + digit as usize;
        if longer >= translator.closed.len() {
            break;
        }
        number = longer;
        translator.next += 1;
    }
    group(translator, number)
}

fn group(translator: &Translator, number: usize) -> Result<Escape, Refused> {
    match translator.closed.get(number) {
        Some(true) => Ok(Escape::Group(number)),
        _ => Err(translator.refusal(format!("group {number} is not closed before this place"))),
    }
}

/// `\p{Alpha}`, `\pL`: Java's POSIX names are ASCII; of Unicode's only the general categories are taken.
fn property(translator: &mut Translator, negated: bool) -> Result<Set, Refused> {
    let mut name = String::new();
    if translator.take_if('{') {
        while let Some(Token { character, .. }) = translator.take() {
            if character == '}' {
                return property_named(translator, negated, &name);
            }
            name.push(character);
        }
        return Err(translator.refusal("\\p{…} is not closed"));
    }
    match translator.take() {
        Some(token) => property_named(translator, negated, &token.character.to_string()),
        None => Err(translator.refusal("\\p needs a name behind it")),
    }
}

fn property_named(translator: &mut Translator, negated: bool, name: &str) -> Result<Set, Refused> {
    const CATEGORIES: [&str; 36] = [
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd",
        "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C", "Cc", "Cf",
        "Co", "Cn",
    ];
    let members = match name {
        "Lower" => "a-z",
        "Upper" => "A-Z",
        "ASCII" => r"\x{0}-\x{7F}",
        "Alpha" => "A-Za-z",
        "Digit" => DIGIT,
        "Alnum" => "0-9A-Za-z",
        "Punct" => r"\x{21}-\x{2F}\x{3A}-\x{40}\x{5B}-\x{60}\x{7B}-\x{7E}",
        "Graph" => r"\x{21}-\x{7E}",
        "Print" => r"\x{20}-\x{7E}",
        "Blank" => r"\x{9}\x{20}",
        "Cntrl" => r"\x{0}-\x{1F}\x{7F}",
        "XDigit" => "0-9A-Fa-f",
        "Space" => SPACE,
        category if CATEGORIES.contains(&category) => {
            translator.domain.ascii_only = true;
            &format!("\\p{{{category}}}")
        }
        _ => return Err(translator.refusal(format!("the property {name:?} is not supported"))),
    };
    if translator.flags.ignore_case && matches!(name, "Lower" | "Upper" | "Lu" | "Ll" | "Lt") {
        return Err(translator.refusal(format!("\\p{{{name}}} under (?i) differs between Java versions")));
    }
    Ok(Set { negated, members: members.to_owned() })
}

impl Set {
    /// As a member of a class around it.
    pub(super) fn as_member(&self) -> String {
        match self.negated {
            true => format!("[^{}]", self.members),
            false => self.members.clone(),
        }
    }
}

/// As [`push_literal`], for a class under `(?i)`: both cases of an ASCII letter.
pub(super) fn push_member(output: &mut String, character: char, ignore_case: bool) {
    push_literal(output, character);
    if ignore_case && character.is_ascii_alphabetic() {
        let is_lower = character.is_ascii_lowercase();
        output.push(if is_lower { character.to_ascii_uppercase() } else { character.to_ascii_lowercase() });
    }
}
