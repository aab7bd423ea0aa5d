//! Bad files, and the whole text that people see.

use super::*;

#[test]
fn all_problems_of_a_file_are_told_at_once() {
    let text = "clusters = east, west\neast.bootstrap.servers = e1:9092\nwest.bootstrap.servers = w1\n\
                east->west.enabled = yes\nwest->east.enabled = true\ntopics = orders, (pay\n\
                refresh.topics.interval.seconds = 0\nsync.topic.acls.enabled = maybe\nreplication.factor = 0\n\
                east.producer.compression.type = lz5\nbroken = \\u12\n";
    assert_eq!(
        load_with(text, &options()).unwrap_err().to_string(),
        "mm2.properties has 8 problems:\n  \
         line 3: west.bootstrap.servers = \"w1\": \"w1\" has no port; wants host:port, as in kafka1:9092\n  \
         line 4: east->west.enabled = \"yes\": wants true or false\n  \
         line 6: topics = \"orders, (pay\": a group is not closed, in \"orders|(pay\" at character 11\n  \
         line 7: refresh.topics.interval.seconds = \"0\": 0 is no interval: MirrorMaker 2 fails or spins on it; write 1 or more \
         seconds, or -1 for never\n  \
         line 8: sync.topic.acls.enabled = \"maybe\": wants true or false\n  \
         line 9: replication.factor = \"0\": wants the number of copies, or -1 for the broker's default\n  \
         line 10: east.producer.compression.type = \"lz5\": wants one of none, gzip, snappy, lz4, zstd; did you mean \
         \"lz4\"?\n  \
         line 11: broken: malformed \\uxxxx encoding: four hexadecimal digits must follow \\u; write \\\\u for a backslash"
    );
}

#[test]
fn a_file_without_flows_says_what_is_missing() {
    let check = |text: &str, expected: &str| {
        assert_eq!(load_with(text, &options()).unwrap_err().to_string(), expected);
    };
    check(
        "",
        "mm2.properties has 1 problem:\n  clusters: is missing; list the aliases of all clusters, as in clusters = A, B",
    );
    check(
        "clusters=A",
        "mm2.properties has 2 problems:\n  line 1: clusters = \"A\": a flow needs two clusters; list the aliases of all, as in \
         clusters = A, B\n  no flow is enabled; write A->B.enabled = true for each flow that is meant",
    );
    check(
        "clusters=east,west",
        "mm2.properties has 1 problem:\n  no flow is enabled; write east->west.enabled = true for each flow that is meant",
    );
    check(
        "clusters=A,B\nA->B.enabled=true",
        "mm2.properties has 2 problems:\n  A.bootstrap.servers: is missing; A->B needs it, as in host1:9092,host2:9092\n  \
         B.bootstrap.servers: is missing; A->B needs it, as in host1:9092,host2:9092",
    );
    check(
        "clusters=A,B/C\nbootstrap.servers=x:1\nA->B/C.enabled=true",
        "mm2.properties has 1 problem:\n  line 1: clusters = \"A,B/C\": the alias \"B/C\" makes an illegal name for the positions \
         topic: \"mm2-offsets.B/C.internal\" holds '/'; Kafka takes ASCII letters, digits, '.', '_' and '-'",
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = load(Path::new("/nowhere/mm2.properties"), &options()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/nowhere/mm2.properties has 1 problem:\n  the file can't be read: No such file or directory (os error 2)"
    );
}

#[test]
fn targets_of_the_command_line_must_be_clusters() {
    let load = |aliases: &[&str]| {
        let clusters = Some(aliases.iter().map(|alias| ClusterAlias::new(alias)).collect());
        let text = "clusters=east,west\nbootstrap.servers=x:1\neast->west.enabled=true\n";
        load_with(text, &LoadOptions { clusters, ..options() }).unwrap_err().to_string()
    };
    assert_eq!(
        load(&["wset", "west"]),
        "mm2.properties has 1 problem:\n  --clusters = \"wset\": is not among the file's clusters; aliases stand divided by \
         blanks, without commas; did you mean \"west\"?"
    );
    assert_eq!(
        load(&["east"]),
        "mm2.properties has 1 problem:\n  --clusters leaves no flow to run here; the enabled flows have the targets west"
    );
}

#[test]
fn each_bad_value_says_what_is_wanted() {
    const TLS: &str = "TLS and SASL are not yet honoured, and Tidegate never connects in plain text where more was asked for; \
                       name a PLAINTEXT listener, or stay with MirrorMaker 2 for this flow";
    const CLASS: &str = "Java classes can't run here; ";
    let cases: &[(&str, String)] = &[
        ("security.protocol=SSL", format!("line 6: security.protocol = \"SSL\": {TLS}")),
        ("A.security.protocol=sasl_ssl", format!("line 6: A.security.protocol = \"sasl_ssl\": {TLS}")),
        ("B.producer.security.protocol=SSL", format!("line 6: B.producer.security.protocol = \"SSL\": {TLS}")),
        ("A->B.producer.override.security.protocol=SSL", format!("line 6: A->B.producer.override.security.protocol = \"SSL\": {TLS}")),
        ("A->B.source.consumer.security.protocol=SSL", format!("line 6: A->B.source.consumer.security.protocol = \"SSL\": {TLS}")),
        ("A->B.consumer.security.protocol=SSL", format!("line 6: A->B.consumer.security.protocol = \"SSL\": {TLS}")),
        ("security.protocol=SSL\nA.security.protocol=PLAINTEXT", format!("line 6: security.protocol = \"SSL\": {TLS}")),
        (
            "security.protocol=PLAINTXT",
            "line 6: security.protocol = \"PLAINTXT\": wants one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; did you mean \
             \"PLAINTEXT\"?".into(),
        ),
        (
            "replication.policy.class=com.example.Names",
            format!("line 6: replication.policy.class = \"com.example.Names\": {CLASS}write the names as a naming plugin and \
                     set tidegate.naming.module to its file, which MirrorMaker 2 ignores"),
        ),
        (
            "A->B.replication.policy.class=IdentityReplicatonPolicy",
            format!("line 6: A->B.replication.policy.class = \"IdentityReplicatonPolicy\": {CLASS}write the names as a naming \
                     plugin and set tidegate.naming.module to its file, which MirrorMaker 2 ignores; did you mean \
                     \"IdentityReplicationPolicy\"?"),
        ),
        (
            "topic.filter.class=com.example.F",
            format!("line 6: topic.filter.class = \"com.example.F\": {CLASS}write the choice as topics and topics.exclude and \
                     remove the key"),
        ),
        (
            "A->B.transforms=mask",
            "line 6: A->B.transforms = \"mask\": Java transforms can't run here; remove the key, and list a record plugin in \
             tidegate.plugins if records must be edited".into(),
        ),
        (
            "B.exactly.once.source.support=enabled",
            "line 6: B.exactly.once.source.support = \"enabled\": exactly-once is not yet honoured, records come at least once; \
             write disabled if that will do".into(),
        ),
        (
            "enabled=true",
            "line 6: enabled = \"true\": at the top level MirrorMaker 2 would run every flow that has heartbeats; write \
             A->B.enabled = true, and so for each flow that is meant".into(),
        ),
        (
            "A->B.enabled=true ",
            "line 6: A->B.enabled = \"true \": a blank behind the value makes MirrorMaker 2 read it as false in one place and as \
             true in another; remove it".into(),
        ),
        (
            "topics.blacklist=secret.*",
            "line 6: topics.blacklist = \"secret.*\": Kafka 4.0 removed it, so the topics would be copied; write \
             topics.exclude".into(),
        ),
        (
            "key.converter=JsonConverter",
            "line 6: key.converter = \"JsonConverter\": records are copied byte by byte and no converter runs; remove the key".into(),
        ),
        (
            "A.consumer.interceptor.classes=com.example.I",
            "line 6: A.consumer.interceptor.classes = \"com.example.I\": Java classes can't run here, and this one would see every \
             record; remove the key".into(),
        ),
        (
            "A.consumer.bootstrap.servers=other:1",
            "line 6: A.consumer.bootstrap.servers = \"other:1\": Tidegate reaches a cluster at one list of servers; write it as the \
             cluster's bootstrap.servers".into(),
        ),
        ("A.bootstrap.servers=SSL://a:1", "line 6: A.bootstrap.servers = \"SSL://a:1\": \"SSL://a:1\" asks for another protocol than PLAINTEXT, which is not yet honoured".into()),
        ("A.bootstrap.servers=::1:9092", "line 6: A.bootstrap.servers = \"::1:9092\": \"::1:9092\" is an IPv6 address without brackets; write [address]:port".into()),
        ("A.bootstrap.servers=a:0", "line 6: A.bootstrap.servers = \"a:0\": \"a:0\" has no port from 1 to 65535; wants host:port, as in kafka1:9092".into()),
        ("A.bootstrap.servers=a:1;b:1", "line 6: A.bootstrap.servers = \"a:1;b:1\": \"a:1;b:1\" has no host; wants host:port, as in kafka1:9092".into()),
        ("A.bootstrap.servers=,", "line 6: A.bootstrap.servers = \",\": wants at least one host:port".into()),
        ("A.consumer.fetch.min.bytes=1k", "line 6: A.consumer.fetch.min.bytes = \"1k\": wants a whole number from 0 to 2147483647".into()),
        (
            "A.consumer.auto.offset.reset=by_duration:PT1H",
            "line 6: A.consumer.auto.offset.reset = \"by_duration:PT1H\": by_duration is not yet honoured; write earliest, latest \
             or none".into(),
        ),
        (
            "topics=a{1,2}",
            "line 6: topics = \"a{1,2}\": a '{' is not closed, in \"a{1|2}\" at character 3; a list is split at every comma, within \
             braces and brackets too: write the cases one by one, as in a, aa for a{1,2}".into(),
        ),
        ("A.consumer.auto.offset.reset=first", "line 6: A.consumer.auto.offset.reset = \"first\": wants one of earliest, latest, none".into()),
        ("B.heartbeat.interval.ms=10000", "line 6: B.heartbeat.interval.ms = \"10000\": the group's heartbeat every 10000 ms must come sooner than its session of 10000 ms ends".into()),
        ("B.group.id= ", "line 6: B.group.id = \"\": wants a name".into()),
        ("B.offset.storage.partitions=0", "line 6: B.offset.storage.partitions = \"0\": wants the number of partitions, or -1 for the broker's default".into()),
        ("offset.storage.topic=a b", "line 6: offset.storage.topic = \"a b\": \"a b\" holds ' '; Kafka takes ASCII letters, digits, '.', '_' and '-'".into()),
        ("replication.policy.separator=. ", "line 6: replication.policy.separator = \". \": wants letters, digits, '.', '_' and '-' only, since it becomes part of topic names".into()),
        ("emit.heartbeats.interval.seconds=0", "line 6: emit.heartbeats.interval.seconds = \"0\": 0 is no interval: MirrorMaker 2 fails or spins on it; write 1 or more seconds, or -1 for never".into()),
        ("tasks.max=0", "line 6: tasks.max = \"0\": wants a whole number from 1 to 2147483647".into()),
        ("groups=a[", "line 6: groups = \"a[\": a '[' is not closed; write \\[ for the sign, in \"a[\" at character 2".into()),
        ("tidegate.naming.module=gone.wasm", "line 6: tidegate.naming.module = \"gone.wasm\": there is no such file; a relative path starts at the folder of the properties file".into()),
        ("tidegate.naming.module=builtin:identity", "line 6: tidegate.naming.module = \"builtin:identity\": no such built-in plugin; there are builtin:default-policy and builtin:identity-policy".into()),
        ("tidegate.naming.settings=[1]", "line 6: tidegate.naming.settings = \"{…}\": wants one JSON object, as in {\"prefix\":\"eu\"}".into()),
        ("tidegate.naming.settings={\"password\":x}", "line 6: tidegate.naming.settings = \"{…}\": is no JSON at character 13; wants one object".into()),
        ("tidegate.naming.deadline.ms=0", "line 6: tidegate.naming.deadline.ms = \"0\": wants a whole number from 1 to 60000".into()),
        ("A->B.tidegate.naming.modul=x", "line 6: A->B.tidegate.naming.modul = \"(hidden)\": unknown key of Tidegate; did you mean \"A->B.tidegate.naming.module\"?".into()),
        ("A->B.tidegate.workers=2", "line 6: A->B.tidegate.workers = \"2\": is a setting of the process and stands at the top level; did you mean \"tidegate.workers\"?".into()),
        ("A.tidegate.workers=2", "line 6: A.tidegate.workers = \"2\": Tidegate's own keys stand at the top level or at a flow, not at a cluster; did you mean \"tidegate.workers\"?".into()),
        ("A->B.use.defaults.from=sorce", "line 6: A->B.use.defaults.from = \"sorce\": wants one of source, target; did you mean \"source\"?".into()),
    ];
    for (extra, expected) in cases {
        assert_eq!(problems_of(extra), format!("  {expected}"), "{extra}");
    }
}

#[test]
fn flows_that_keep_names_must_not_run_in_a_circle() {
    let check = |flows: &[&str], expected: Option<&str>| {
        let enabled: String = flows.iter().map(|flow| format!("{flow}.enabled=true\n")).collect();
        let text = format!(
            "clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.bootstrap.servers=c:1\n\
             replication.policy.class=IdentityReplicationPolicy\n{enabled}"
        );
        let clusters = Some(vec![ClusterAlias::new("B")]);
        let text =
            load_with(&text, &LoadOptions { clusters, ..options() }).err().map(|error| error.to_string());
        let expected = expected.map(|circle| {
            format!(
                "mm2.properties has 1 problem:\n  line 6: A->B.enabled = \"true\": records would run in a circle, {circle}, because \
                 these flows keep topic names and loops are not yet found by other means; enable one direction only, or name topics \
                 with DefaultReplicationPolicy"
            )
        });
        assert_eq!(text, expected, "{flows:?}");
    };
    check(&["A->B", "B->A"], Some("A->B->A"));
    check(&["A->B", "B->C", "C->A"], Some("A->B->C->A"));
    check(&["A->B", "B->C", "A->C"], None);
}

#[test]
fn flows_to_one_target_must_not_share_their_state() {
    let text = "clusters=A,B,C\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nC.bootstrap.servers=c:1\nA->C.enabled=true\n\
                B->C.enabled=true\nC.group.id=shared\noffset.storage.topic=shared\n";
    assert_eq!(
        load_with(text, &options()).unwrap_err().to_string(),
        "mm2.properties has 2 problems:\n  line 7: C.group.id = \"shared\": A->C and B->C would share it and take each other's \
         work; remove it, and each flow has a group of its own\n  line 8: offset.storage.topic = \"shared\": A->C and B->C would \
         share it and take each other's work; remove it, and each flow has a topic of its own"
    );
}

#[test]
fn a_filled_in_value_is_never_quoted() {
    let text = "clusters=A,B\nA.bootstrap.servers=${env:SERVERS}\nB.bootstrap.servers=b:1\nA->B.enabled=true\n\
                emit.heartbeats.enabled=false\nconfig.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n\
                topics=${env:TOPICS}\n";
    let mut options = options();
    options.environment.insert("SERVERS".into(), "hunter2".into());
    options.environment.insert("TOPICS".into(), "(hunter2".into());
    assert_eq!(
        load_with(text, &options).unwrap_err().to_string(),
        "mm2.properties has 2 problems:\n  line 2: A.bootstrap.servers = \"${env:SERVERS}\": can't be read once its variables are \
         filled in; the value is not shown\n  line 8: topics = \"${env:TOPICS}\": can't be read once its variables are filled in; \
         the value is not shown"
    );
    let topic = format!(
        "{BASE}config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\noffset.storage.topic=${{env:TOPICS}}\n\
                         groups=${{env:TOPICS}}\nreplication.factor=${{env:TOPICS}}\n"
    );
    assert_eq!(
        load_with(&topic, &options).unwrap_err().to_string(),
        "mm2.properties has 3 problems:\n  line 8: offset.storage.topic = \"${env:TOPICS}\": can't be read once its variables are \
         filled in; the value is not shown\n  line 9: groups = \"${env:TOPICS}\": can't be read once its variables are filled in; \
         the value is not shown\n  line 10: replication.factor = \"${env:TOPICS}\": wants the number of copies, or -1 for the \
         broker's default"
    );
    options.environment.insert("SERVERS".into(), "a:1,a2:1".into());
    options.environment.insert("TOPICS".into(), "orders".into());
    let loaded = load_with(text, &options).unwrap();
    assert_eq!(loaded.config.clusters[&ClusterAlias::new("A")].bootstrap_servers, ["a:1", "a2:1"]);
    assert_eq!(loaded.config.flows[0].topics.include.pattern(), "orders");
    assert_eq!(loaded.report.rows[1].value, "${env:SERVERS}");
}

#[test]
fn no_secret_is_ever_printed() {
    let text = format!(
        "{BASE}A.sasl.jaas.config=hunter2\nB.ssl.key.password=hunter2\nB.producer.override.ssl.keystore.key=hunter2\n\
         A->B.source.consumer.sasl.oauthbearer.client.secret=hunter2\nA.security.protocol=SASL_SSL\nsasl.password=hunter2\n\
         A.sasl.jaas.config=hunter2\nmy.token=hunter2\ntidegate.naming.settings={{\"token\":\"hunter2\"\n"
    );
    let error = load_with(&text, &options()).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    let hidden = |value: &str| error.report.rows.iter().filter(|row| row.value == value).count();
    assert_eq!((hidden("(hidden)"), hidden("{…}")), (6, 1));
}

/// A value may come from the environment, from a mistyped key, or as the user of an address.
#[test]
fn no_way_to_write_a_secret_prints_it() {
    const DECLARED: &str = "config.providers=env\nconfig.providers.env.class=EnvVarConfigProvider\n";
    let mut options = options();
    options.environment.insert("MYSECRET".into(), "hunter2(\u{e9}".into());
    let mut keys: Vec<String> = process::keys().map(str::to_owned).collect();
    for table in
        [known::FLOW_OPTIONS, known::GLOBAL, known::WORKER, known::CONSUMER, known::PRODUCER, known::ADMIN]
    {
        for name in table.iter().map(|known| known.name.trim_end_matches('.')) {
            for prefix in [
                "",
                "A.",
                "B.",
                "A->B.",
                "A->B.source.consumer.",
                "A->B.producer.override.",
                "A.admin.",
                "C.",
            ] {
                keys.push(format!("{prefix}{name}"));
            }
        }
    }
    for name in known::TIDEGATE_FLOW.into_iter().chain(known::SECURITY.iter().map(|security| security.name)) {
        keys.extend(["", "A.", "A->B.", "A.consumer."].map(|prefix| format!("{prefix}{name}")));
    }
    // Without these no flow would read the others.
    keys.retain(|key| !key.starts_with("config.providers") && key != "clusters" && key != "A->B.enabled");
    for (end, value) in [
        ("", "${env:MYSECRET}"),
        ("", "https://hunter2@host:1/"),
        ("", "me:hunter2@host:9092"),
        ("x", "hunter2"),
        (".pass", "hunter2"),
    ] {
        let lines: String = keys.iter().map(|key| format!("{key}{end}={value}\n")).collect();
        let error = load_with(&format!("{BASE}{DECLARED}{lines}"), &options).unwrap_err();
        let said = format!("{error} {error:?}");
        let line = said.split(['\n', '{']).find(|line| line.contains("hunter2"));
        assert_eq!(line, None, "{end}={value}");
        assert!(error.problems.len() > 20, "{error}");
    }
    let loaded =
        read(&format!("{BASE}{SILENCED}tidegate.naming.settings={{\"pin\":\"hunter2\"}}\nmy.pass=hunter2\n"));
    let said = format!("{loaded:?}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn the_environment_is_never_printed() {
    let mut options = options();
    options.environment.insert("MYSECRET".into(), "hunter2".into());
    assert_eq!(
        format!("{options:?}"),
        format!(
            "LoadOptions {{ clusters: None, environment: 2 variables, flags: {:?} }}",
            ProcessOverrides::default()
        )
    );
}

#[test]
fn no_file_makes_the_reader_panic_and_every_key_has_one_row() {
    const SEED: u64 = 20_260_919;
    const KEYS: [&str; 24] = [
        "clusters",
        "A.",
        "B.",
        "A->B.",
        "B->A.",
        "->",
        "A->",
        "C->A.",
        "enabled",
        "topics",
        "bootstrap.servers",
        "security.protocol",
        "consumer.",
        "producer.override.",
        "source.",
        "admin.",
        "offset.storage.",
        "replication.policy.class",
        "tidegate.",
        "workers",
        "naming.settings",
        "config.providers",
        "${",
        ".",
    ];
    const VALUES: [&str; 18] = [
        "A",
        "B",
        ",",
        "true",
        "false",
        "0",
        "-1",
        "99999999999999999999",
        "x:1",
        "[",
        "(",
        "${env:",
        "}",
        "{",
        "\u{e9}",
        " # x",
        ".*",
        "SSL",
    ];
    let mut dice = crate::config::java_oracle::Dice::new(SEED);
    for _ in 0..400 {
        let mut text = String::from(if dice.below(4) == 0 { "" } else { BASE });
        for _ in 0..dice.below(12) {
            let (key_parts, value_parts) = (1 + dice.below(3), dice.below(4));
            let key: String = (0..key_parts).map(|_| *dice.pick(&KEYS)).collect();
            let value: String = (0..value_parts).map(|_| *dice.pick(&VALUES)).collect();
            text += &format!("{key}={value}\n");
        }
        let report = match load_with(&text, &options()) {
            Ok(loaded) => loaded.report,
            Err(error) => {
                assert!(!error.problems.is_empty(), "seed {SEED}: {text}");
                error.report
            }
        };
        let keys: std::collections::BTreeSet<&str> = report.rows.iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys.len(), report.rows.len(), "seed {SEED}: {text}");
        assert_eq!(keys.len(), properties::parse(text.as_bytes()).pairs.len(), "seed {SEED}: {text}");
    }
}
