//! Records in quarantine of a running flow: shown, and played again through the chain that runs now. The topic is only
//! appended to: a record that was played again gets a mark behind it, which holds nothing but its place.

use std::collections::BTreeMap;

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::first::blocking;
use super::moment::rfc3339;
use super::policies::Loaded;
use super::swap::{send, unusable};
use super::{Done, FlowLoop};
use crate::cluster::{Appender, ClusterAdmin, LogReader, LogRecord, NewRecord};
use crate::config::{OnFault, QuarantineSide};
use crate::names::{FlowName, SourcePartition, TopicName};
use crate::offsets::quarantine::QuarantineNote;
use crate::plugin::trial::{TrialBatch, TrialRecord, Verdict, judge};
use crate::serve::orders::{
    Answer, NoAnswer, NoAnswerKind, QuarantineWish, QuarantinedContent, QuarantinedView, ReplayView,
};
use crate::status::now_ms;

/// The header of a mark: the place of the record that was played again, as `partition:offset`.
const REPLAYED: &str = "tidegate.quarantine.replayed";

/// A larger quarantine topic is not read as a whole, in bytes of one partition.
const PARTITION_BYTES_MAX: usize = 512 << 20;

/// So many records are shown at most, the last ones.
const SHOWN_COUNT_MAX: usize = 1_000;

/// A record in quarantine. It may lie there more than once: what was written when its answer was lost, or when the process was
/// killed, is written again.
struct Kept {
    /// Of the first copy.
    id: String,
    /// Of all copies.
    ids: Vec<String>,
    /// Offset of the last copy in the quarantine topic. All copies lie in one partition.
    last_offset: i64,
    note: QuarantineNote,
    at_ms: i64,
    /// As it was on the source.
    original: TrialRecord,
}

/// What the topic holds.
#[derive(Default)]
struct Holdings {
    records: Vec<Kept>,
    /// The last record of each place on the source.
    by_place: BTreeMap<(TopicName, i32, i64), usize>,
    /// Which were played again, and the offset of the mark.
    replayed: BTreeMap<String, i64>,
}

/// Where quarantine is, and where its records would go.
struct Place {
    flow: FlowName,
    admin: ClusterAdmin,
    topic: TopicName,
}

impl FlowLoop {
    pub(super) fn show_quarantine(
        &mut self,
        wish: QuarantineWish,
        with_content: bool,
        answer: Answer<Vec<QuarantinedView>>,
    ) {
        let place = match self.quarantine_place() {
            Ok(place) => place,
            Err(refused) => return send(answer, Err(refused)),
        };
        self.tasks.spawn(async move {
            let end = place.read().await.map_err(|problem| unreadable(&problem));
            send(answer, end.and_then(|holdings| holdings.shown(&wish, with_content)));
            Done::Nothing
        });
    }

    /// Plays quarantined records through new instances of the plugins that run now, and writes what passes to the target.
    pub(super) fn replay_quarantine(&mut self, wish: QuarantineWish, answer: Answer<ReplayView>) {
        let place = match self.quarantine_place() {
            Ok(place) => place,
            Err(refused) => return send(answer, Err(refused)),
        };
        let loaded = self.policies.loaded.clone();
        let number = self.policies.decision.generation;
        let target = self.started.target.clone();
        let names = self.ownership.ready().clone();
        self.tasks.spawn(async move {
            let replay = Replay { loaded, number, target, names };
            let end = replay.run(&place, &wish).await;
            send(answer, end);
            Done::Nothing
        });
    }

    fn quarantine_place(&self) -> Result<Place, NoAnswer> {
        let config = &self.setting.flow.quarantine;
        let admin = match config.side {
            QuarantineSide::Source => self.started.source.clone(),
            QuarantineSide::Target => self.started.target.clone(),
        };
        let topic = TopicName::parse(&config.topic).map_err(|problem| {
            NoAnswer::new(NoAnswerKind::BadRequest, problem.to_string(), "correct tidegate.quarantine.topic")
        })?;
        Ok(Place { flow: self.setting.flow.name.clone(), admin, topic })
    }
}

fn unreadable(problem: &anyhow::Error) -> NoAnswer {
    NoAnswer::new(NoAnswerKind::Unavailable, format!("{problem:#}"), "nothing has changed; try again")
}

impl Place {
    /// All of the topic; nothing where there is none.
    async fn read(&self) -> anyhow::Result<Holdings> {
        let mut holdings = Holdings::default();
        let Some(view) = self.admin.find_topic(&self.topic).await? else { return Ok(holdings) };
        for partition in 0..view.partition_count {
            let client = self.admin.client().with_own_connections();
            let mut reader = LogReader::new(client, &self.topic, partition, 0);
            for record in reader.read_to_end(PARTITION_BYTES_MAX).await? {
                holdings.take(&self.flow, partition, &record);
            }
        }
        Ok(holdings)
    }
}

impl Holdings {
    fn take(&mut self, flow: &FlowName, partition: i32, record: &LogRecord) {
        if let Some(place) = marked(record) {
            self.replayed.insert(String::from_utf8_lossy(place).into_owned(), record.offset);
            return;
        }
        let headers: Vec<(&[u8], Option<&[u8]>)> =
            record.headers.iter().map(|(name, value)| (name.as_ref(), value.as_deref())).collect();
        // What others wrote there is none of ours.
        let Ok((note, own_count)) = QuarantineNote::read(&headers) else { return };
        if note.flow != flow.to_string() {
            return;
        }
        let own = headers[..own_count].iter();
        let original = TrialRecord {
            offset: note.offset.0,
            timestamp_ms: note.timestamp_ms,
            key: record.key.as_deref().map(<[u8]>::to_vec),
            value: record.value.as_deref().map(<[u8]>::to_vec),
            headers: own.map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect(),
        };
        let id = format!("{partition}:{}", record.offset);
        let place = (note.topic.clone(), note.partition, note.offset.0);
        if let Some(known) = self.by_place.get(&place).and_then(|index| self.records.get_mut(*index))
            && known.original == original
        {
            known.ids.push(id);
            known.last_offset = record.offset;
            // The last reason is the one that counts.
            (known.note, known.at_ms) = (note, record.timestamp_ms);
            return;
        }
        self.by_place.insert(place, self.records.len());
        let (ids, last_offset, at_ms) = (vec![id.clone()], record.offset, record.timestamp_ms);
        self.records.push(Kept { id, ids, last_offset, note, at_ms, original });
    }

    /// Whether it was played again since it was put there last.
    fn is_replayed(&self, kept: &Kept) -> bool {
        kept.ids.iter().any(|id| self.replayed.get(id).is_some_and(|mark| *mark > kept.last_offset))
    }

    /// The records that are meant. A name that stands for none is an error.
    fn meant(&self, wish: &QuarantineWish) -> Result<Vec<&Kept>, NoAnswer> {
        for id in &wish.records {
            if !self.records.iter().any(|kept| kept.ids.contains(id)) {
                return Err(NoAnswer::new(
                    NoAnswerKind::Unknown,
                    format!("there is no record {id} in quarantine"),
                    "tidegate quarantine list shows them",
                ));
            }
        }
        let is_named =
            |kept: &Kept| wish.records.is_empty() || wish.records.iter().any(|id| kept.ids.contains(id));
        let is_open = |kept: &Kept| wish.with_replayed || !self.is_replayed(kept);
        Ok(self.records.iter().filter(|kept| is_named(kept) && is_open(kept)).collect())
    }

    fn shown(&self, wish: &QuarantineWish, with_content: bool) -> Result<Vec<QuarantinedView>, NoAnswer> {
        // Whoever names a record sees it, played again or not.
        let with_replayed = wish.with_replayed || !wish.records.is_empty();
        let meant = self.meant(&QuarantineWish { with_replayed, ..wish.clone() })?;
        let count = wish.count_max.unwrap_or(SHOWN_COUNT_MAX).min(SHOWN_COUNT_MAX);
        let last = meant.iter().skip(meant.len().saturating_sub(count));
        Ok(last.map(|kept| self.view(kept, with_content)).collect())
    }

    fn view(&self, kept: &Kept, with_content: bool) -> QuarantinedView {
        QuarantinedView {
            id: kept.id.clone(),
            topic: kept.note.topic.to_string(),
            partition: kept.note.partition,
            offset: kept.note.offset.0,
            at: rfc3339(kept.at_ms),
            plugin: kept.note.plugin.clone(),
            version: kept.note.version.clone(),
            reason: kept.note.reason.clone(),
            is_replayed: self.is_replayed(kept),
            content: with_content.then(|| content(&kept.original)),
        }
    }
}

/// What the record marks as played again. A record in quarantine has ten headers at least, and its own may be called anything,
/// so a mark is known by having nothing but this one.
fn marked(record: &LogRecord) -> Option<&[u8]> {
    let is_mark = record.key.is_none() && record.value.is_none() && record.headers.len() == 1;
    record.header(REPLAYED).filter(|_| is_mark)
}

fn content(record: &TrialRecord) -> QuarantinedContent {
    let header = |(name, value): &(Vec<u8>, Option<Vec<u8>>)| (shown(name), value.as_deref().map(shown));
    QuarantinedContent {
        key: record.key.as_deref().map(shown),
        value: record.value.as_deref().map(shown),
        headers: record.headers.iter().map(header).collect(),
    }
}

fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("base64:{}", STANDARD.encode(bytes)),
    }
}

/// What a replay needs.
struct Replay {
    loaded: Loaded,
    number: u64,
    target: ClusterAdmin,
    /// What each source partition that is copied is called on the target.
    names: BTreeMap<SourcePartition, TopicName>,
}

impl Replay {
    async fn run(self, place: &Place, wish: &QuarantineWish) -> Result<ReplayView, NoAnswer> {
        let holdings = place.read().await.map_err(|problem| unreadable(&problem))?;
        let meant: Vec<_> = holdings.meant(wish)?.into_iter().collect();
        let mut view = ReplayView::default();
        if meant.is_empty() {
            return Ok(view);
        }
        let (loaded, number) = (self.loaded.clone(), self.number);
        // It goes on behind a record that fails, and gives the reason.
        let chain = blocking(move || loaded.chain(number, Some(OnFault::Quarantine))).await;
        let mut chain = chain.map_err(|problem| unusable(&problem))?;
        let mut writer = Appender::new(self.target.client().with_own_connections());
        let mut marker = Appender::new(place.admin.client().with_own_connections());
        for kept in meant {
            let batch = TrialBatch {
                topic: kept.note.topic.clone(),
                partition: kept.note.partition,
                records: vec![kept.original.clone()],
            };
            let judged = blocking(move || {
                let verdict = judge(&mut chain, &batch).pop();
                Ok((chain, verdict))
            });
            let (back, verdict) = judged.await.map_err(|problem| unusable(&problem))?;
            chain = back;
            let record = match verdict {
                Some(Verdict::Kept) => Some(kept.original.clone()),
                Some(Verdict::Changed(record)) => Some(record),
                Some(Verdict::Dropped) => None,
                Some(Verdict::Rejected { plugin, reason } | Verdict::Faulted { plugin, reason }) => {
                    view.failed.push((kept.id.clone(), format!("plugin \"{plugin}\": {reason}")));
                    continue;
                }
                None => {
                    view.failed.push((kept.id.clone(), "the chain gave no answer".to_owned()));
                    continue;
                }
            };
            let is_kept = record.is_some();
            match self.settle(kept, record, place, &mut writer, &mut marker).await {
                Ok(()) if is_kept => view.replayed.push(kept.id.clone()),
                Ok(()) => view.dropped.push(kept.id.clone()),
                Err(problem) => view.failed.push((kept.id.clone(), format!("{problem:#}"))),
            }
        }
        Ok(view)
    }

    /// Writes the record, then the mark: if the mark is lost, the record may come twice, and never not at all.
    async fn settle(
        &self,
        kept: &Kept,
        record: Option<TrialRecord>,
        place: &Place,
        writer: &mut Appender,
        marker: &mut Appender,
    ) -> anyhow::Result<()> {
        if let Some(record) = record {
            let source = SourcePartition { topic: kept.note.topic.clone(), partition: kept.note.partition };
            let target = self.names.get(&source).with_context(|| format!("{source} is not copied now"))?;
            writer.append(target, source.partition, &[new_record(record)]).await?;
        }
        let (partition, _) = kept.id.split_once(':').context("a record without a place")?;
        let mark = NewRecord {
            key: None,
            value: None,
            headers: vec![(Bytes::from_static(REPLAYED.as_bytes()), Some(Bytes::from(kept.id.clone())))],
            timestamp_ms: now_ms(),
        };
        marker.append(&place.topic, partition.parse()?, &[mark]).await?;
        Ok(())
    }
}

fn new_record(record: TrialRecord) -> NewRecord {
    NewRecord {
        key: record.key.map(Bytes::from),
        value: record.value.map(Bytes::from),
        headers: record
            .headers
            .into_iter()
            .map(|(name, value)| (Bytes::from(name), value.map(Bytes::from)))
            .collect(),
        timestamp_ms: record.timestamp_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::decision::tests::flow;
    use crate::names::SourceOffset;
    use crate::offsets::quarantine::HEADERS;

    fn quarantined(offset: i64, source_offset: i64, flow: &str) -> LogRecord {
        let note = QuarantineNote {
            flow: flow.to_owned(),
            topic: TopicName::parse("orders").unwrap(),
            partition: 3,
            offset: SourceOffset(source_offset),
            timestamp_ms: 5,
            plugin: "mask".to_owned(),
            version: "0.1.0".to_owned(),
            digest: "ab".to_owned(),
            generation: 7,
            reason: "is no JSON".to_owned(),
        };
        let mut headers = vec![(Bytes::from_static(b"own"), None)];
        let ours = HEADERS.iter().zip(note.values());
        headers.extend(
            ours.map(|(name, value)| (Bytes::from_static(name.as_bytes()), Some(Bytes::from(value)))),
        );
        LogRecord {
            offset,
            timestamp_ms: 1_000,
            key: None,
            value: Some(Bytes::from_static(&[0xff])),
            headers,
        }
    }

    fn mark(offset: i64, of: &'static str) -> LogRecord {
        let headers =
            vec![(Bytes::from_static(REPLAYED.as_bytes()), Some(Bytes::from_static(of.as_bytes())))];
        LogRecord { offset, timestamp_ms: 0, key: None, value: None, headers }
    }

    #[test]
    fn what_was_played_again_is_shown_on_demand_only() {
        let mut holdings = Holdings::default();
        holdings.take(&flow(), 0, &quarantined(10, 812, "east->west"));
        holdings.take(&flow(), 0, &quarantined(11, 813, "east->west"));
        holdings.take(&flow(), 0, &quarantined(12, 814, "east->north"));
        holdings.take(&flow(), 0, &mark(13, "0:10"));
        let ids = |wish: QuarantineWish| -> Vec<String> {
            holdings.shown(&wish, false).unwrap().into_iter().map(|view| view.id).collect()
        };
        assert_eq!(ids(QuarantineWish::default()), ["0:11"]);
        assert_eq!(ids(QuarantineWish { with_replayed: true, ..Default::default() }), ["0:10", "0:11"]);
        assert_eq!(ids(QuarantineWish { records: vec!["0:10".to_owned()], ..Default::default() }), ["0:10"]);
        // One whose own header is called as that of a mark is none.
        let mut disguised = quarantined(14, 815, "east->west");
        let name = Bytes::from_static(REPLAYED.as_bytes());
        disguised.headers.insert(0, (name, Some(Bytes::from_static(b"0:11"))));
        holdings.take(&flow(), 0, &disguised);
        let ids = |wish: QuarantineWish| -> Vec<String> {
            holdings.shown(&wish, false).unwrap().into_iter().map(|view| view.id).collect()
        };
        assert_eq!(ids(QuarantineWish::default()), ["0:11", "0:14"]);
        let strange = QuarantineWish { records: vec!["0:12".to_owned()], ..Default::default() };
        assert_eq!(
            holdings.shown(&strange, false).unwrap_err().to_string(),
            "there is no record 0:12 in quarantine; tidegate quarantine list shows them"
        );
        let shown = holdings.shown(&QuarantineWish::default(), true).unwrap();
        let content = shown[0].content.clone().unwrap();
        assert_eq!((content.key, content.value.as_deref()), (None, Some("base64:/w==")));
        assert_eq!(content.headers, [("own".to_owned(), None)]);
    }

    #[test]
    fn a_record_that_was_written_twice_is_one_and_comes_back_when_it_is_written_after_its_mark() {
        let mut holdings = Holdings::default();
        holdings.take(&flow(), 0, &quarantined(10, 812, "east->west"));
        holdings.take(&flow(), 0, &quarantined(11, 812, "east->west"));
        let ids = |holdings: &Holdings| -> Vec<String> {
            let shown = holdings.shown(&QuarantineWish::default(), false).unwrap();
            shown.into_iter().map(|view| view.id).collect()
        };
        assert_eq!(ids(&holdings), ["0:10"]);
        holdings.take(&flow(), 0, &mark(12, "0:10"));
        assert!(ids(&holdings).is_empty(), "both copies are done with");
        holdings.take(&flow(), 0, &quarantined(13, 812, "east->west"));
        assert_eq!(ids(&holdings), ["0:10"]);
        holdings.take(&flow(), 0, &mark(14, "0:10"));
        assert!(ids(&holdings).is_empty());
    }
}
