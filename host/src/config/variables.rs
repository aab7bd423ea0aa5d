//! `${provider:path:key}` in values, as Connect's config providers fill them in: environment, files of properties,
//! folders. Once per value, never again in what was filled in. A variable that names nothing stays as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::filter::NameList;
use super::problem::Problem;
use super::properties::{self, Property};
use super::secrets;
use super::values::{list, simple_name};

/// `config.providers`, read and ready.
#[derive(Default)]
pub(super) struct Providers {
    by_name: BTreeMap<String, Provider>,
    pub(super) problems: Vec<Problem>,
}

enum Provider {
    Environment { allowed: Option<NameList>, environment: BTreeMap<String, String> },
    File { allowed: Option<Vec<PathBuf>> },
    Directory { allowed: Option<Vec<PathBuf>> },
}

/// A value with its variables filled in.
pub(super) struct Filled {
    pub(super) value: String,
    /// Variables that named nothing, or could not be read, with the reason.
    pub(super) unfilled: Vec<(String, String)>,
}

impl Providers {
    /// Reads the declarations at the top level.
    pub(super) fn declared(pairs: &[Property], environment: &BTreeMap<String, String>) -> Self {
        let mut providers = Self::default();
        let value = |key: &str| pairs.iter().find(|pair| pair.key == key);
        let Some(names) = value("config.providers") else { return providers };
        for name in list(&names.value) {
            let class_key = format!("config.providers.{name}.class");
            let Some(class) = value(&class_key) else {
                let text = format!("names the provider \"{name}\", but {class_key} is missing");
                providers.problem(names, text);
                continue;
            };
            let parameter = |parameter: &str| value(&format!("config.providers.{name}.param.{parameter}"));
            match Provider::of_class(class.value.trim(), parameter, environment) {
                Ok(provider) => {
                    providers.by_name.insert(name.to_owned(), provider);
                }
                Err(text) => providers.problem(class, text),
            }
        }
        providers
    }

    fn problem(&mut self, pair: &Property, text: String) {
        let hides_user = secrets::holds_user_information(&pair.value);
        self.problems.push(Problem {
            line: Some(pair.line),
            key: Some(pair.key.clone()),
            found: Some(secrets::printable(hides_user, &pair.key, &pair.value)),
            text,
            closest: None,
        });
    }

    /// Fills in the variables of a value.
    pub(super) fn fill(&self, value: &str) -> Filled {
        let mut filled = Filled { value: String::with_capacity(value.len()), unfilled: Vec::new() };
        let mut rest = value;
        while let Some(start) = rest.find("${") {
            let (before, variable) = rest.split_at(start);
            filled.value.push_str(before);
            let Some(length) = variable.find('}') else {
                rest = variable;
                break;
            };
            let (variable, behind) = variable.split_at(length + 1);
            let Some((name, address)) = variable[2..length].split_once(':') else {
                // No provider: Connect goes on behind the `$`, so a variable within this text is still found.
                filled.value.push('$');
                rest = &rest[start + 1..];
                continue;
            };
            let answer = self.by_name.get(name).map(|provider| provider.look_up(address));
            match answer {
                Some(Ok(text)) => filled.value.push_str(&text),
                Some(Err(reason)) => {
                    filled.value.push_str(variable);
                    filled.unfilled.push((variable.to_owned(), reason));
                }
                None => {
                    filled.value.push_str(variable);
                    let reason = format!("config.providers declares no provider {name:?}");
                    filled.unfilled.push((variable.to_owned(), reason));
                }
            }
            rest = behind;
        }
        filled.value.push_str(rest);
        filled
    }
}

impl Provider {
    fn of_class<'a>(
        class: &str,
        parameter: impl Fn(&str) -> Option<&'a Property>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let allowed_paths = || {
            parameter("allowed.paths").map(|pair| list(&pair.value).into_iter().map(PathBuf::from).collect())
        };
        match simple_name(class) {
            "EnvVarConfigProvider" => {
                let allowed = match parameter("allowlist.pattern") {
                    Some(pair) => Some(NameList::parse(&[&pair.value])?),
                    None => None,
                };
                Ok(Self::Environment { allowed, environment: environment.clone() })
            }
            "FileConfigProvider" => Ok(Self::File { allowed: allowed_paths() }),
            "DirectoryConfigProvider" => Ok(Self::Directory { allowed: allowed_paths() }),
            _ => Err("Java classes can't run here; EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider \
                      are built in"
                .into()),
        }
    }

    /// `address` is `[path:]key`.
    fn look_up(&self, address: &str) -> Result<String, String> {
        let (path, key) = address.split_once(':').unwrap_or(("", address));
        match self {
            Self::Environment { allowed, environment } => {
                if !path.is_empty() {
                    return Err("the environment has no paths; write ${provider:NAME}".into());
                }
                let is_allowed = match allowed {
                    Some(pattern) => pattern.matches(key).map_err(|undecided| undecided.to_string())?,
                    None => true,
                };
                let value = environment.get(key).filter(|_| is_allowed);
                value.cloned().ok_or_else(|| {
                    "there is no such variable in the environment, or it is not allowed".into()
                })
            }
            Self::File { allowed } => {
                let bytes = read_allowed(Path::new(path), allowed.as_deref())?;
                let pairs = properties::parse(&java_characters(&bytes)).pairs;
                let value = pairs.into_iter().find(|pair| pair.key == key).map(|pair| pair.value);
                value.ok_or_else(|| "the file has no such key".into())
            }
            Self::Directory { allowed } => {
                if key.contains(['/', '\\']) {
                    return Err("the name behind the folder must be a plain file name".into());
                }
                let bytes = read_allowed(&Path::new(path).join(key), allowed.as_deref())?;
                String::from_utf8(bytes).map_err(|_| "the file is not UTF-8".into())
            }
        }
    }
}

/// A file of secrets is small; a bound keeps a wrong path from filling the memory.
const FILE_BYTES_MAX: u64 = 1_048_576;

fn read_allowed(path: &Path, allowed: Option<&[PathBuf]>) -> Result<Vec<u8>, String> {
    let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
    if let Some(allowed) = allowed
        && !(is_plain && allowed.iter().any(|folder| path.starts_with(folder)))
    {
        return Err("the path is not within allowed.paths".into());
    }
    let size = std::fs::metadata(path).map_err(|error| format!("the file can't be read: {error}"))?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("the file is larger than {FILE_BYTES_MAX} bytes"));
    }
    std::fs::read(path).map_err(|error| format!("the file can't be read: {error}"))
}

/// FileConfigProvider reads UTF-8; characters beyond Latin-1 are handed on as escapes.
fn java_characters(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut latin = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) => latin.push(byte),
            Err(_) => latin.extend(format!("\\u{unit:04x}").into_bytes()),
        }
    }
    latin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn providers(text: &str, environment: &[(&str, &str)]) -> Providers {
        let environment =
            environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Providers::declared(&properties::parse(text.as_bytes()).pairs, &environment)
    }

    const ENVIRONMENT: &str = "config.providers=env\n\
        config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n";

    #[test]
    fn variables_are_filled_in_as_connect_fills_them() {
        let providers = providers(ENVIRONMENT, &[("HOST", "east"), ("PORT", "${env:HOST}")]);
        let check =
            |value: &str, expected: &str| assert_eq!(providers.fill(value).value, expected, "{value}");
        check("${env:HOST}:9092", "east:9092");
        check("${env:HOST},${env:PORT}", "east,${env:HOST}");
        check("${env:GONE}", "${env:GONE}");
        check("${other:HOST}", "${other:HOST}");
        check("${HOST} ${env:HOST}", "${HOST} east");
        check("$5 ${env:HOST", "$5 ${env:HOST");
        assert_eq!(
            providers.fill("${other:HOST}").unfilled,
            [("${other:HOST}".to_owned(), "config.providers declares no provider \"other\"".to_owned())]
        );
        assert_eq!(
            providers.fill("${env:GONE}").unfilled,
            [(
                "${env:GONE}".to_owned(),
                "there is no such variable in the environment, or it is not allowed".to_owned()
            )]
        );
    }

    #[test]
    fn files_and_folders_are_read_within_their_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        std::fs::write(folder.path().join("s.properties"), "password = p\u{e9}\u{20ac}\n").unwrap();
        let providers = providers(
            &format!(
                "config.providers=f,d\nconfig.providers.f.class=FileConfigProvider\n\
                 config.providers.d.class=DirectoryConfigProvider\nconfig.providers.d.param.allowed.paths={path}\n"
            ),
            &[],
        );
        assert_eq!(providers.fill(&format!("${{f:{path}/s.properties:password}}")).value, "p\u{e9}\u{20ac}");
        let reason = |value: String| providers.fill(&value).unfilled.remove(0).1;
        assert_eq!(reason(format!("${{f:{path}/s.properties:user}}")), "the file has no such key");
        assert_eq!(reason(format!("${{d:{path}/..:x}}")), "the path is not within allowed.paths");
        assert_eq!(
            providers.fill(&format!("${{d:{path}:s.properties}}")).value,
            "password = p\u{e9}\u{20ac}\n"
        );
    }

    #[test]
    fn unknown_classes_are_problems() {
        let providers =
            providers("config.providers=a,vault\nconfig.providers.vault.class=com.example.Vault", &[]);
        let texts: Vec<String> = providers.problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "line 1: config.providers = \"a,vault\": names the provider \"a\", but config.providers.a.class is missing",
                "line 2: config.providers.vault.class = \"com.example.Vault\": Java classes can't run here; \
                 EnvVarConfigProvider, FileConfigProvider and DirectoryConfigProvider are built in",
            ]
        );
    }
}
