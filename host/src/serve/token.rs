//! The token that whoever changes something must show: read from a file, made there when there is none.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Random bytes of a token that we make.
const RANDOM_BYTES: usize = 32;

/// More of a token file is not read, in bytes.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// A shorter token is refused, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// Permission bits of a file that its group or everybody may write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The file's name in the cache folder.
const FILE_NAME: &str = "http.token";

/// The token. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// Where the token lies when nothing else is said.
    pub fn default_path(cache_dir: &Path) -> PathBuf {
        cache_dir.join(FILE_NAME)
    }

    /// Reads the token of a file that must be there.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("could not read the token in {}", path.display());
        let mut text = String::new();
        let file = File::open(path).with_context(context)?;
        let mode = file.metadata().with_context(context)?.permissions().mode();
        ensure!(
            mode & WRITABLE_BY_OTHERS == 0,
            "{} can be written by others, who could choose the token; take that from them with chmod go-w",
            path.display()
        );
        file.take(TOKEN_BYTES_MAX).read_to_string(&mut text).with_context(context)?;
        let token = text.trim();
        ensure!(
            token.len() >= TOKEN_BYTES_MIN && token.bytes().all(|byte| byte.is_ascii_graphic()),
            "{} holds no token: it must be one line of at least {TOKEN_BYTES_MIN} visible ASCII characters without spaces",
            path.display()
        );
        Ok(Self(token.to_owned()))
    }

    /// Reads the token, and makes one of random bytes, for its owner's eyes only, if there is no such file.
    pub fn read_or_make(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("could not make a token in {}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).with_context(context)?;
        }
        if !path.exists() {
            make(path).with_context(context)?;
        }
        Self::read(path)
    }

    /// Whether a request's `Authorization` shows it. Takes as long for a wrong one as for the right one.
    pub fn is_shown(&self, authorization: Option<&[u8]>) -> bool {
        let Some(shown) = authorization.and_then(bearer) else { return false };
        let own = self.0.as_bytes();
        let difference = own.iter().zip(shown.iter().chain(std::iter::repeat(&0)));
        let differs = difference.fold(0, |seen, (own, shown)| seen | (own ^ shown));
        (differs == 0) & (own.len() == shown.len())
    }

    /// What goes into `Authorization`.
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

/// Whole or not at all, and the first of several processes that start together wins.
fn make(path: &Path) -> std::io::Result<()> {
    let text = random_text()?;
    let new = path.with_extension(format!("new-{}-{}", std::process::id(), &text[..8]));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let end = file.write_all(format!("{text}\n").as_bytes()).and_then(|()| std::fs::hard_link(&new, path));
    std::fs::remove_file(&new)?;
    match end {
        Err(problem) if problem.kind() != ErrorKind::AlreadyExists => Err(problem),
        _ => Ok(()),
    }
}

fn bearer(authorization: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

fn random_text() -> std::io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_others_can_choose_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        for (mode, is_refused) in [(0o600, false), (0o644, false), (0o660, true), (0o602, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = Token::read(&path).err().map(|problem| problem.to_string());
            let expected = format!(
                "{} can be written by others, who could choose the token; take that from them with chmod go-w",
                path.display()
            );
            assert_eq!(refused, is_refused.then_some(expected), "{mode:o}");
        }
    }

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("http.token");
        let first = Token::read_or_make(&path).unwrap();
        let again = Token::read_or_make(&path).unwrap();
        assert_eq!(first.0, again.0);
        assert_eq!(first.0.len(), 2 * RANDOM_BYTES);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_the_whole_token_will_do() {
        let token = Token("0123456789abcdef".to_owned());
        for (shown, expected) in [
            (Some("Bearer 0123456789abcdef"), true),
            (Some("bearer  0123456789abcdef "), true),
            (Some("Bearer 0123456789abcde"), false),
            (Some("Bearer 0123456789abcdef0"), false),
            (Some("Bearer "), false),
            (Some("Basic 0123456789abcdef"), false),
            (Some(""), false),
            (None, false),
        ] {
            assert_eq!(token.is_shown(shown.map(str::as_bytes)), expected, "{shown:?}");
        }
    }

    #[test]
    fn a_file_without_a_token_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, "short\n").unwrap();
        assert_eq!(
            Token::read(&path).unwrap_err().to_string(),
            format!(
                "{} holds no token: it must be one line of at least 16 visible ASCII characters without spaces",
                path.display()
            )
        );
    }
}
