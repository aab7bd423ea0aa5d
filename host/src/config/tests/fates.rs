//! Keys that do something else than in MirrorMaker 2, or nothing, and what is said about them.

use super::*;

fn check(extra: &str, expected: &str) {
    assert_eq!(fates_of(extra), [expected], "{extra}");
}

#[test]
fn scopes_that_mirror_maker_does_not_read_are_ignored() {
    check(
        "A.topics=x",
        "A.topics: ignored MirrorMaker 2 does not read it at a cluster; write topics, or A->B.topics for one flow",
    );
    check(
        "B.tasks.max=9",
        "B.tasks.max: ignored MirrorMaker 2 does not read it at a cluster; write tasks.max, or A->B.tasks.max for one flow",
    );
    check(
        "group.id=x",
        "group.id: ignored MirrorMaker 2 does not read it at the top level; write B.group.id",
    );
    check(
        "A->B.group.id=x",
        "A->B.group.id: ignored MirrorMaker 2 never reads it at a flow; write B.group.id",
    );
    check(
        "consumer.fetch.min.bytes=1",
        "consumer.fetch.min.bytes: ignored MirrorMaker 2 does not read consumer settings at the top level; write \
         A.consumer.fetch.min.bytes",
    );
    check(
        "use.defaults.from=source",
        "use.defaults.from: ignored MirrorMaker 2 does not read it at the top level; write A->B.use.defaults.from for one flow",
    );
    check(
        "A->B.producer.linger.ms=5",
        "A->B.producer.linger.ms: ignored not yet honoured: it is for the writer of offset syncs alone, in MirrorMaker 2 too; for \
         the data write A->B.producer.override.linger.ms, or B.producer.linger.ms",
    );
    check("A.group.id=x", "A.group.id: ignored only flows to A read it, and none runs here");
    check(
        "A->B.clusters=x",
        "A->B.clusters: ignored MirrorMaker 2 reads it at the top level only; write clusters",
    );
    check("A->A.topics=x", "A->A.topics: ignored a flow from a cluster to itself does not exist");
    check("B->A.topics=x", "B->A.topics: ignored B->A does not run: B->A.enabled is not true");
    check("B->A.enabled=false", "B->A.enabled: honoured");
}

#[test]
fn what_is_not_there_yet_is_said() {
    check(
        "groups=x",
        "groups: mapped `tidegate plan` shows which groups they choose; offsets of groups are not synced yet",
    );
    check(
        "A->B.sync.topic.acls.enabled=false",
        "A->B.sync.topic.acls.enabled: ignored not yet honoured: access rules",
    );
    check(
        "emit.offset-syncs.enabled=false",
        "emit.offset-syncs.enabled: ignored not yet honoured: offset syncs",
    );
    check(
        "A.consumer.client.rack=r1",
        "A.consumer.client.rack: ignored not yet honoured: batches are always fetched from the leader",
    );
    check(
        "B.consumer.fetch.min.bytes=1",
        "B.consumer.fetch.min.bytes: ignored not yet honoured: only offset syncs and checkpoints would be read there",
    );
    check("A.ssl.protocol=TLSv1.3", "A.ssl.protocol: ignored not yet honoured: TLS and SASL");
}

#[test]
fn what_has_no_reader_says_why() {
    check(
        "B.client.id=me",
        "B.client.id: ignored a member of the group is called tidegate-ID|S->T after its process, so that what a dead one left \
         can be removed",
    );
    check(
        "A.consumer.retry.backoff.ms=7",
        "A.consumer.retry.backoff.ms: ignored a fetch that was refused is sent again after 100 ms, a partition that can't be \
         read after 10 s",
    );
    check(
        "A->B.admin.retry.backoff.max.ms=7",
        "A->B.admin.retry.backoff.max.ms: ignored the control loop tries again in every round",
    );
}

#[test]
fn what_is_mapped_says_to_what() {
    check(
        "tasks.max=10",
        "tasks.max: mapped nothing: Tidegate shares work by slots, not by tasks; tidegate.workers sets the threads of a process",
    );
    check(
        "B.offset.flush.interval.ms=60000",
        "B.offset.flush.interval.ms: mapped positions are stored at least every 5000 ms",
    );
    check(
        "B.producer.max.request.size=2097152",
        "B.producer.max.request.size: mapped batches larger than this are split, waiting ones are merged up to it",
    );
    check(
        "B.producer.acks=1",
        "B.producer.acks: mapped all: a record counts as written when every in-sync replica has it",
    );
    for value in ["true", "false"] {
        check(
            &format!("sync.topic.configs.enabled={value}"),
            "sync.topic.configs.enabled: mapped settings are copied when a topic is created, as MirrorMaker 2 does in any case; \
             later changes are not synced yet",
        );
    }
    check(
        "B.session.timeout.ms=20000",
        "B.session.timeout.ms: mapped in the classic group protocol alone; a target that serves KIP-848 decides by its own \
         group.consumer.session.timeout.ms",
    );
    check(
        "B.heartbeat.interval.ms=1000",
        "B.heartbeat.interval.ms: mapped in the classic group protocol alone; a target that serves KIP-848 decides by its own \
         group.consumer.heartbeat.interval.ms",
    );
    check(
        "A.admin.bootstrap.servers= a:9092 ",
        "A.admin.bootstrap.servers: mapped the cluster's own list, which is the same",
    );
}

#[test]
fn what_mirror_maker_is_told_by_its_own_defaults_is_honoured() {
    for key in [
        "topic.filter.class=org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "key.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        "B.exactly.once.source.support=disabled",
        "A.security.protocol=plaintext",
        "A->B.exactly.once.support=requested",
    ] {
        let name = key.split_once('=').unwrap().0;
        check(key, &format!("{name}: honoured"));
    }
}

#[test]
fn a_weaker_key_names_the_stronger() {
    assert_eq!(
        fates_of("topics=x\nA->B.topics=y\nA->B.consumer.fetch.min.bytes=1\nA.consumer.fetch.min.bytes=2\n"),
        [
            "topics: ignored A->B.topics on line 7 is stronger",
            "A->B.topics: honoured",
            "A->B.consumer.fetch.min.bytes: ignored A.consumer.fetch.min.bytes on line 9 is stronger",
            "A.consumer.fetch.min.bytes: honoured for A->B",
        ]
    );
}

#[test]
fn an_alias_may_be_the_first_word_of_mirror_makers_own_keys() {
    let text = "clusters=source,target\nsource.bootstrap.servers=a:1\ntarget.bootstrap.servers=b:1\nsource->target.enabled=true\n\
                source.consumer.fetch.min.bytes=5\nsource->target.source.consumer.fetch.max.bytes=9000\n";
    let loaded = read(text);
    assert_eq!(loaded.config.flows[0].source.fetch_min_bytes, 5);
    assert_eq!(loaded.config.flows[0].source.fetch_max_bytes, 9_000);
    assert_eq!(loaded.report.count(Fate::Honoured), 6);
}

#[test]
fn security_is_what_the_strongest_key_of_each_client_says() {
    assert_eq!(
        fates_of("security.protocol=SSL\nA.security.protocol=PLAINTEXT\nB.security.protocol=PLAINTEXT\n"),
        [
            "security.protocol: ignored A.security.protocol on line 7 is stronger",
            "A.security.protocol: honoured",
            "B.security.protocol: honoured",
        ]
    );
    assert_eq!(
        fates_of(
            "A->B.consumer.security.protocol=SSL\nA.security.protocol=PLAINTEXT\nA.admin.security.protocol=plaintext\n\
             consumer.security.protocol=SSL\nA->B.security.protocol=SSL\nB.consumer.security.protocol=SSL\n"
        ),
        [
            "A->B.consumer.security.protocol: ignored A.security.protocol on line 7 is stronger",
            "A.security.protocol: honoured",
            "A.admin.security.protocol: honoured",
            "consumer.security.protocol: ignored MirrorMaker 2 does not read consumer settings at the top level; write \
             A.consumer.security.protocol",
            "A->B.security.protocol: ignored MirrorMaker 2 does not read it at a flow; write it at the clusters",
            "B.consumer.security.protocol: ignored no client that runs here reads it",
        ]
    );
    check("security.protocol=PLAINTEXT", "security.protocol: honoured for A, B");
}

#[test]
fn mistyped_security_keys_are_told_with_the_closest() {
    assert_eq!(
        warnings_of(
            "A.sasl.jass.config=hunter2\nssl.truststore.locaton=/t\nA.consumer.ssl.keystor.key=hunter2\n"
        ),
        [
            "line 6: A.sasl.jass.config = \"(hidden)\": unknown key of TLS or SASL, which are not yet honoured; did you mean \
             \"A.sasl.jaas.config\"?",
            "line 7: ssl.truststore.locaton = \"(hidden)\": unknown key of TLS or SASL, which are not yet honoured; did you mean \
             \"ssl.truststore.location\"?",
            "line 8: A.consumer.ssl.keystor.key = \"(hidden)\": unknown key of TLS or SASL, which are not yet honoured; did you \
             mean \"A.consumer.ssl.keystore.key\"?",
        ]
    );
}

#[test]
fn what_mirror_maker_does_unasked_is_told_once() {
    let warnings = |extra: &str| -> Vec<String> {
        let text = BASE.replace("emit.heartbeats.enabled=false\n", "B->A.emit.heartbeats.enabled=false\n");
        read(&format!("{text}{extra}")).warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings(""),
        [
            "MirrorMaker 2 does by default what Tidegate does not do yet: no offset syncs are written, so nothing can translate a \
          consumer group's offsets to the target; no checkpoints are written, so the positions that consumer groups need after \
          a failover are missing there; access rules of topics are not copied; topic settings that change after a topic was \
          created are not synced; no heartbeats are written, so whoever watches the flow by them sees it as dead; where that \
          will do, say so with emit.offset-syncs.enabled, emit.checkpoints.enabled, sync.topic.acls.enabled, \
          sync.topic.configs.enabled, emit.heartbeats.enabled = false"
        ]
    );
    assert_eq!(
        warnings(&format!(
            "{SILENCED}emit.heartbeats.interval.seconds=-1\nA->B.sync.topic.acls.enabled=true\n"
        )),
        [
            "MirrorMaker 2 does by default what Tidegate does not do yet: access rules of topics are not copied; where that will do, \
          say so with sync.topic.acls.enabled = false"
        ]
    );
    assert_eq!(warnings(&format!("{SILENCED}emit.heartbeats.enabled=false\n")), Vec::<String>::new());
    let text = "clusters=A,B,C\nbootstrap.servers=x:1\nA->B.enabled=true\nA->C.enabled=true\nemit.heartbeats.enabled=false\n\
                A->C.sync.topic.acls.enabled=true\n";
    let of_two = read(&format!("{text}{SILENCED}")).warnings;
    assert_eq!(
        of_two.last().unwrap().text,
        "MirrorMaker 2 does by default what Tidegate does not do yet: access rules of topics are not copied (for A->C); where \
         that will do, say so with sync.topic.acls.enabled = false"
    );
}

#[test]
fn flows_that_keep_names_into_one_target_are_warned_of() {
    let warnings = |extra: &str| -> Vec<String> {
        let text = format!(
            "clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.bootstrap.servers=c:1\nA->C.enabled=true\n\
             B->C.enabled=true\nemit.heartbeats.enabled=false\n{SILENCED}{extra}"
        );
        read(&text).warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        warnings("replication.policy.class=IdentityReplicationPolicy\n"),
        [
            "A->C and B->C keep topic names, so a topic that exists on more than one of A, B is written by several flows on C, and \
          its records are mixed; part the flows by their topics, or name topics with DefaultReplicationPolicy"
        ]
    );
    assert_eq!(warnings("A->C.replication.policy.class=IdentityReplicationPolicy\n"), Vec::<String>::new());
}

#[test]
fn unknown_keys_are_warned_of_with_the_closest() {
    assert_eq!(
        warnings_of(
            "A->B.enable=true\nA->B.emit.heartbeats=x\ntpoics=x\nA.consumer.fetch.min.byte=1\nzzz=1\nA.zzz=1\n"
        ),
        [
            "line 6: A->B.enable = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too; did you mean \"A->B.enabled\"?",
            "line 7: A->B.emit.heartbeats = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too; did you mean \
             \"A->B.emit.heartbeats.enabled\"?",
            "line 8: tpoics = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too; did you mean \"topics\"?",
            "line 9: A.consumer.fetch.min.byte = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too; did you mean \
             \"A.consumer.fetch.min.bytes\"?",
            "line 10: zzz = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too",
            "line 11: A.zzz = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too",
        ]
    );
}

#[test]
fn strange_lines_are_warned_of() {
    assert_eq!(
        warnings_of(
            "topics=orders # all\nA->C.topics=x\nC.bootstrap.servers=c:1\nA.sasl.mechanism=PLAIN\ntopics.exclude=a\n\
             topics.exclude=b\nA->B.refresh.topics.interval.seconds=60\n"
        ),
        [
            "line 6: topics = \"orders # all\": comments begin lines only, so all behind '#' is part of the value; give the \
             comment a line of its own",
            "line 7: A->C.topics = \"x\": \"C\" is not among clusters, so MirrorMaker 2 ignores the key too",
            "line 8: C.bootstrap.servers = \"(hidden)\": \"C\" is not among clusters, so MirrorMaker 2 ignores the key too",
            "line 9: A.sasl.mechanism = \"PLAIN\": does nothing while security.protocol is PLAINTEXT, its default; the connection \
             is in plain text",
            "line 11: topics.exclude: stands on line 10 already; the last one wins, remove the other",
        ]
    );
    let text = BASE
        .replace("emit.heartbeats.enabled=false", "A->B.replication.factor=1")
        .replace("b:9092", "A:9092");
    let warnings: Vec<String> = read(&text).warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings[..2],
        [
            "MirrorMaker 2 would run B->A for heartbeats alone; Tidegate writes no heartbeats yet and does not run what is not \
             enabled; set emit.heartbeats.enabled = false where none are wanted",
            "both ends of A->B are reached at a:9092; if they are one cluster, the flow is refused when it starts unless it \
             changes names",
        ]
    );
}

#[test]
fn variables_that_name_nothing_are_warned_of() {
    assert_eq!(
        warnings_of("B.client.id=${env:X}\nmy.password=hunter2${a:b}\nB.group.id=${HOME}\n"),
        [
            "line 6: B.client.id = \"${env:X}\": ${env:X} stays as it is: config.providers declares no provider \"env\"",
            "line 7: my.password = \"(hidden)\": what looks like a variable in it could not be filled in and stays as it is",
            "line 7: my.password = \"(hidden)\": unknown key, which MirrorMaker 2 ignores too",
        ]
    );
}

#[test]
fn clusters_of_other_nodes_are_left_alone() {
    let text = "clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.security.protocol=SSL\nA->B.enabled=true\n\
                A->C.enabled=true\nA->C.topics=x\nemit.heartbeats.enabled=false\n";
    let clusters = Some(vec![ClusterAlias::new("B")]);
    let loaded = load_with(text, &LoadOptions { clusters, ..options() }).unwrap();
    let notes: Vec<&str> = loaded.report.rows.iter().map(|row| row.note.as_str()).collect();
    assert_eq!(
        notes,
        [
            "",
            "",
            "",
            "no flow that runs here has the cluster C",
            "",
            "",
            "A->C does not run here: --clusters leaves C out",
            "not yet honoured: heartbeats",
        ]
    );
}
