//! What is put in the place of a text: a mask, a hash, or nothing.

use crate::hash::Hash;

/// What becomes of what is found.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A fixed text and, behind it, the last characters.
    Mask { with: String, keep_last: usize },
    /// 64 hexadecimal digits.
    Hash(Hash),
    /// It goes, its name too.
    Remove,
}

impl Action {
    /// Appends what stands for `text`, plain. A text that is no UTF-8 keeps no characters.
    pub(crate) fn replace(&self, text: &[u8], into: &mut Vec<u8>) {
        match self {
            Self::Mask { with, keep_last } => {
                into.extend_from_slice(with.as_bytes());
                into.extend_from_slice(last_characters(text, *keep_last));
            }
            Self::Hash(hash) => hash.write_hex(text, into),
            Self::Remove => {}
        }
    }

    /// The same for every text.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Self::Mask { keep_last: 0, .. } | Self::Remove)
    }
}

/// The last `count` characters, but never more than half of the text: four of sixteen digits say little, four of five
/// say nearly all.
fn last_characters(text: &[u8], count: usize) -> &[u8] {
    let Ok(characters) = std::str::from_utf8(text) else { return &[] };
    if count == 0 {
        return &[];
    }
    let shown = count.min(characters.chars().count() / 2);
    let start = match shown {
        0 => text.len(),
        _ => characters.char_indices().rev().nth(shown - 1).map_or(text.len(), |(start, _)| start),
    };
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(text: &[u8], keep_last: usize) -> String {
        let mut into = Vec::new();
        Action::Mask { with: "***".to_owned(), keep_last }.replace(text, &mut into);
        String::from_utf8(into).unwrap()
    }

    #[test]
    fn a_mask_shows_the_last_characters_and_never_more_than_half() {
        let check =
            |text: &str, keep_last: usize, mask: &str| assert_eq!(masked(text.as_bytes(), keep_last), mask);
        check("4111111111111234", 0, "***");
        check("4111111111111234", 4, "***1234");
        check("12345678", 4, "***5678");
        check("1234567", 4, "***567");
        check("12", 4, "***2");
        check("1", 4, "***");
        check("", 4, "***");
        check("größe", 2, "***ße");
        check("😀😀😀😀", 1, "***😀");
        check("abcd", usize::MAX, "***cd");
    }

    #[test]
    fn a_text_that_is_no_utf_8_shows_nothing() {
        assert_eq!(masked(b"abcd\xff", 2), "***");
    }

    #[test]
    fn what_is_removed_leaves_nothing() {
        let mut into = Vec::new();
        Action::Remove.replace(b"secret", &mut into);
        assert!(into.is_empty() && Action::Remove.is_constant());
    }
}
