//! Names of the settings that reach a cluster by TLS and SASL: `X.ssl.…`, `X.consumer.sasl.…`, `ssl.…` at the top level.

/// A setting of TLS or SASL.
pub(crate) struct Security {
    pub(crate) name: &'static str,
    /// Its value is no secret and may be printed. When in doubt it is one: a Kerberos command or an address may carry one.
    pub(crate) is_harmless: bool,
}

const fn harmless(name: &'static str) -> Security {
    Security { name, is_harmless: true }
}

const fn secret(name: &'static str) -> Security {
    Security { name, is_harmless: false }
}

pub(crate) const SECURITY: &[Security] = &[
    harmless("security.protocol"),
    harmless("ssl.protocol"),
    harmless("ssl.provider"),
    harmless("ssl.cipher.suites"),
    harmless("ssl.client.auth"),
    harmless("ssl.enabled.protocols"),
    harmless("ssl.keystore.type"),
    harmless("ssl.keystore.location"),
    secret("ssl.keystore.password"),
    secret("ssl.keystore.key"),
    secret("ssl.keystore.certificate.chain"),
    secret("ssl.key.password"),
    harmless("ssl.truststore.type"),
    harmless("ssl.truststore.location"),
    secret("ssl.truststore.password"),
    secret("ssl.truststore.certificates"),
    harmless("ssl.keymanager.algorithm"),
    harmless("ssl.trustmanager.algorithm"),
    harmless("ssl.endpoint.identification.algorithm"),
    harmless("ssl.secure.random.implementation"),
    harmless("ssl.engine.factory.class"),
    harmless("sasl.mechanism"),
    secret("sasl.jaas.config"),
    harmless("sasl.client.callback.handler.class"),
    harmless("sasl.login.callback.handler.class"),
    harmless("sasl.login.class"),
    harmless("sasl.kerberos.service.name"),
    secret("sasl.kerberos.kinit.cmd"),
    harmless("sasl.kerberos.ticket.renew.window.factor"),
    harmless("sasl.kerberos.ticket.renew.jitter"),
    harmless("sasl.kerberos.min.time.before.relogin"),
    harmless("sasl.login.refresh.window.factor"),
    harmless("sasl.login.refresh.window.jitter"),
    harmless("sasl.login.refresh.min.period.seconds"),
    harmless("sasl.login.refresh.buffer.seconds"),
    harmless("sasl.login.connect.timeout.ms"),
    harmless("sasl.login.read.timeout.ms"),
    harmless("sasl.login.retry.backoff.ms"),
    harmless("sasl.login.retry.backoff.max.ms"),
    harmless("sasl.oauthbearer.scope.claim.name"),
    harmless("sasl.oauthbearer.sub.claim.name"),
    secret("sasl.oauthbearer.token.endpoint.url"),
    secret("sasl.oauthbearer.jwks.endpoint.url"),
    harmless("sasl.oauthbearer.jwks.endpoint.refresh.ms"),
    harmless("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
    harmless("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"),
    harmless("sasl.oauthbearer.clock.skew.seconds"),
    secret("sasl.oauthbearer.expected.audience"),
    secret("sasl.oauthbearer.expected.issuer"),
    harmless("sasl.oauthbearer.header.urlencode"),
];
