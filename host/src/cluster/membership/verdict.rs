//! What an error of the group's client means for us.

use std::fmt;

use rdkafka::types::RDKafkaErrorCode;

/// Why a member ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// What the library says, where it says so.
    pub(super) code: Option<RDKafkaErrorCode>,
    /// In words.
    pub(super) reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.reason.trim_end_matches('.'))
    }
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// A new member may do better.
    Again,
    /// The group speaks another protocol: probably MirrorMaker 2.
    OtherProtocol,
    /// It stays so until somebody mends it: how.
    Hopeless(&'static str),
    /// The target does not let us: what to allow.
    NotAllowed(&'static str),
}

/// Whether an error of a running member ends it. The library gets over the others by itself.
pub(super) fn ends_membership(code: RDKafkaErrorCode) -> bool {
    matches!(judge_code(code), Some(Verdict::OtherProtocol | Verdict::Hopeless(_) | Verdict::NotAllowed(_)))
}

/// What a problem that ended a member asks for.
pub(super) fn judge(problem: &Problem) -> Verdict {
    problem.code.and_then(judge_code).unwrap_or(Verdict::Again)
}

fn judge_code(code: RDKafkaErrorCode) -> Option<Verdict> {
    use RDKafkaErrorCode as Code;
    match code {
        // Classic says the first; the new protocol calls a living group of another type "not found".
        Code::InconsistentGroupProtocol | Code::GroupIdNotFound => Some(Verdict::OtherProtocol),
        Code::GroupAuthorizationFailed => Some(Verdict::NotAllowed("allow READ on the group")),
        Code::TopicAuthorizationFailed => {
            Some(Verdict::NotAllowed("allow READ and DESCRIBE on the positions topic"))
        }
        Code::InvalidGroupId => Some(Verdict::Hopeless("correct group.id")),
        Code::InvalidSessionTimeout => Some(Verdict::Hopeless(
            "set session.timeout.ms between the target's group.min.session.timeout.ms and group.max.session.timeout.ms",
        )),
        Code::SaslAuthenticationFailed | Code::Authentication => {
            Some(Verdict::Hopeless("correct the target's security settings"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_judged() {
        let check = |code: RDKafkaErrorCode, verdict: Verdict, ends: bool| {
            assert_eq!(judge(&Problem { code: Some(code), reason: String::new() }), verdict);
            assert_eq!(ends_membership(code), ends, "{code}");
        };
        check(RDKafkaErrorCode::InconsistentGroupProtocol, Verdict::OtherProtocol, true);
        check(RDKafkaErrorCode::GroupIdNotFound, Verdict::OtherProtocol, true);
        check(
            RDKafkaErrorCode::GroupAuthorizationFailed,
            Verdict::NotAllowed("allow READ on the group"),
            true,
        );
        check(RDKafkaErrorCode::InvalidGroupId, Verdict::Hopeless("correct group.id"), true);
        check(RDKafkaErrorCode::AllBrokersDown, Verdict::Again, false);
        check(RDKafkaErrorCode::BrokerTransportFailure, Verdict::Again, false);
        check(RDKafkaErrorCode::UnknownTopicOrPartition, Verdict::Again, false);
    }
}
