//! Asks a running Tidegate over HTTP, with the token where one is wanted.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Exit, Failure};
use crate::serve::api::ErrorBody;
use crate::serve::orders::Who;
use crate::serve::token::Token;

/// How long the running process may take, in milliseconds: a large module is compiled, and all nodes report.
const ANSWER_MS_MAX: u64 = 120_000;

/// Longer answers are not read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Where the running process is, and what it wants to be shown.
#[derive(Debug, Args)]
pub(super) struct ClientArguments {
    /// Where the running process serves HTTP.
    #[arg(long, env = "TIDEGATE_HTTP_LISTEN", default_value = "127.0.0.1:8642", value_name = "ADDRESS:PORT")]
    pub(super) http: String,
    /// The file with its token [default: http.token in the cache folder]
    #[arg(long, env = "TIDEGATE_HTTP_TOKEN_FILE", value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
}

/// Asks one process.
pub(super) struct Client {
    address: String,
    agent: ureq::Agent,
    authorization: String,
}

impl ClientArguments {
    /// A client that shows the token, if there is one: looking is often free, so a missing file is no error yet.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        self.client_within(ANSWER_MS_MAX)
    }

    /// A client that waits so long for an answer, in milliseconds.
    pub(super) fn client_within(&self, answer_ms_max: u64) -> Result<Client, Failure> {
        let token = match &self.token_file {
            Some(path) => Some(Token::read(path).map_err(|problem| Exit::NotAllowed.because(problem))?),
            None => {
                default_token_file().filter(|path| path.exists()).and_then(|path| Token::read(&path).ok())
            }
        };
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(Duration::from_millis(answer_ms_max)))
            .http_status_as_error(false)
            .build()
            .into();
        let authorization = token.map(|token| token.authorization()).unwrap_or_default();
        Ok(Client { address: self.http.clone(), agent, authorization })
    }
}

impl Client {
    /// Looks at something of a flow; `path` goes behind the flow's name.
    pub(super) fn get<T: DeserializeOwned>(&self, flow: &str, path: &str) -> Result<T, Failure> {
        self.look(&self.url(flow, path))
    }

    /// Looks at all flows of the process.
    pub(super) fn status<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.look(&format!("http://{}/api/v1/status", self.address))
    }

    fn look<T: DeserializeOwned>(&self, url: &str) -> Result<T, Failure> {
        let mut request = self.agent.get(url);
        if !self.authorization.is_empty() {
            request = request.header("Authorization", &self.authorization);
        }
        self.read(request.call())
    }

    /// Orders something.
    pub(super) fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        flow: &str,
        path: &str,
        body: &B,
    ) -> Result<T, Failure> {
        let mut request = self.agent.post(self.url(flow, path));
        if !self.authorization.is_empty() {
            request = request.header("Authorization", &self.authorization);
        }
        self.read(request.send_json(body))
    }

    fn url(&self, flow: &str, path: &str) -> String {
        format!("http://{}/api/v1/flows/{}/{path}", self.address, encoded(flow))
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<T, Failure> {
        let address = &self.address;
        let mut answer = answer.map_err(|problem| {
            Exit::Unavailable.because(anyhow!(
                "no Tidegate answers at {address}: {problem}; start one with `tidegate run FILE`, or name its \
                 tidegate.http.listen with --http"
            ))
        })?;
        let code = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let body = body.map_err(|problem| {
            Exit::Unavailable.because(anyhow!("the answer from {address} broke off: {problem}"))
        })?;
        let strange = || {
            let words = "what answers there is not Tidegate of this version";
            Exit::Data.because(anyhow!("{words}: {address} answered with {code}"))
        };
        if code == 200 {
            return serde_json::from_slice(&body).map_err(|_| strange());
        }
        let refused: ErrorBody = serde_json::from_slice(&body).map_err(|_| strange())?;
        Err(exit_of(code).because(anyhow!("{}; {}", refused.error, refused.remedy)))
    }
}

/// `uid 1000`, where no name is known.
fn user_id() -> String {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").map_or_else(|_| "?".to_owned(), |own| format!("uid {}", own.uid()))
}

/// The exit code that fits an HTTP code.
fn exit_of(code: u16) -> Exit {
    match code {
        401 => Exit::NotAllowed,
        400 | 404 => Exit::Usage,
        413 | 422 => Exit::Data,
        409 | 503 => Exit::Unavailable,
        _ => Exit::Internal,
    }
}

/// Percent-encoded, so that it is one part of a path.
pub(super) fn encoded(text: &str) -> String {
    let part = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(part).collect()
}

/// Who gives this command.
pub(super) fn who() -> Who {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(user_id);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    Who { user, host: if host.is_empty() { "?".to_owned() } else { host.to_owned() } }
}

/// As the running process chooses it, if it runs in the same environment.
fn default_token_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = std::env::var_os("TIDEGATE_CACHE_DIR").map(PathBuf::from);
    let own = || {
        let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        Some(cache?.join("tidegate"))
    };
    Some(Token::default_path(&cache.or_else(own)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_flow_is_one_part_of_a_path() {
        assert_eq!(encoded("east->west"), "east-%3Ewest");
        assert_eq!(encoded("a/b c%"), "a%2Fb%20c%25");
    }

    #[test]
    fn every_refusal_has_its_exit_code() {
        for (code, exit) in
            [(401, 77), (400, 64), (404, 64), (413, 65), (422, 65), (409, 69), (503, 69), (500, 70)]
        {
            assert_eq!(exit_of(code).code(), exit, "{code}");
        }
    }
}
