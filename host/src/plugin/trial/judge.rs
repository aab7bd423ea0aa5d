//! Runs a batch of owned records through a chain and tells what became of each.

use super::{TrialBatch, TrialRecord, Verdict};
use crate::plugin::{Chain, Condemned, Place};
use crate::record::{Laid, RecordSet};

/// After so many records that pause the partition, the rest of a batch is not tried any more: a chain that fails always
/// would be asked again and again.
const HALT_COUNT_MAX: usize = 100;

/// What `chain` does to each record of `batch`, in order. A record that would pause its partition is judged, and those
/// behind it are tried as if the partition went on.
pub fn judge(chain: &mut Chain, batch: &TrialBatch) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = Vec::with_capacity(batch.records.len());
    let mut set = RecordSet::default();
    let mut halt_count = 0;
    while verdicts.len() < batch.records.len() {
        let begin = verdicts.len();
        let laid = Laid::of(&batch.records[begin..]);
        laid.fill(&mut set);
        let place = Place { topic: &batch.topic, partition: batch.partition };
        let edited = chain.edit(place, laid.base(), &mut set);
        let end = edited.halt.as_ref().map_or(set.len(), |condemned| condemned.index);
        let records = batch.records[begin..].iter().enumerate().take(end);
        verdicts.extend(records.map(|(index, record)| standing(&set, laid.base(), index, record)));
        for condemned in &edited.quarantined {
            verdicts[begin + condemned.index] = condemnation(condemned);
        }
        let Some(condemned) = edited.halt else { break };
        verdicts.push(condemnation(&condemned));
        halt_count += 1;
        if halt_count == HALT_COUNT_MAX {
            verdicts.resize(batch.records.len(), condemnation(&condemned));
        }
    }
    verdicts
}

/// How a record that no plugin condemned stands at the end of the chain. Edits that change nothing don't count.
fn standing(set: &RecordSet, base: &[u8], index: usize, original: &TrialRecord) -> Verdict {
    let now = set.record(base, index);
    if now.is_dropped {
        return Verdict::Dropped;
    }
    if !now.is_edited {
        return Verdict::Kept;
    }
    let record = TrialRecord {
        offset: now.offset.0,
        timestamp_ms: now.timestamp_ms,
        key: now.key().map(<[u8]>::to_vec),
        value: now.value().map(<[u8]>::to_vec),
        headers: now.headers().map(|(name, value)| (name.to_vec(), value.map(<[u8]>::to_vec))).collect(),
    };
    if record == *original { Verdict::Kept } else { Verdict::Changed(record) }
}

fn condemnation(condemned: &Condemned) -> Verdict {
    let (plugin, reason) = (condemned.plugin.clone(), condemned.reason.clone());
    match condemned.is_reject {
        true => Verdict::Rejected { plugin, reason },
        false => Verdict::Faulted { plugin, reason },
    }
}
