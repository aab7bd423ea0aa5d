//! What becomes of a partition that can't go on: it rests a moment, pauses and says why, or goes on elsewhere in the log.

use std::sync::Arc;

use tidegate_wire::client::OffsetAt;
use tidegate_wire::error::WireError;
use tidegate_wire::list_offsets::ListedOffset;
use tidegate_wire::produce::Lane;
use tokio::time::{Duration, Instant};
use tracing::{info, warn};

use super::lane::{Condition, RelayLane};
use super::range::{self, OutOfRange};
use super::worker::{Bounds, Event, LaneKey, Occupant, WorkerState};
use crate::config::OffsetReset;
use crate::names::SourceOffset;
use crate::status::now_ms;

/// Pause before a partition is fetched again after its broker refused, in milliseconds, doubled up to
/// [`FETCH_RETRY_MS_MAX`]; leaders move in some hundred.
const FETCH_RETRY_MS: u64 = 50;

/// The longest such pause.
const FETCH_RETRY_MS_MAX: u64 = 1_000;

/// Pause before a partition that can't be read or written is tried again, in milliseconds. Long enough not to fill
/// logs, short enough that a mended topic goes on by itself.
const PAUSE_MS: u64 = 10_000;

impl WorkerState {
    /// Lets a partition rest after a refusal that a new leader will mend.
    pub(super) fn quieten(&mut self, lane: Lane, fetch: u64, problem: &str, now: Instant) {
        let Some(relay) = self.relay_lane_mut(lane).filter(|relay| relay.fetching == Some(fetch)) else {
            return;
        };
        let doubled = FETCH_RETRY_MS << relay.refused_fetches.min(10);
        relay.refused_fetches += 1;
        let until = now + Duration::from_millis(doubled.min(FETCH_RETRY_MS_MAX));
        relay.quiet_until = Some(until);
        relay.stats.set_error(now_ms(), problem.to_owned());
        self.wake_at(until);
    }

    /// Stops a partition because of something that it can't mend itself, and says so. What waits is thrown away, so that
    /// it takes nothing from the others; it is fetched again when the pause is over.
    pub(super) fn pause(&mut self, lane: Lane, problem: String, now: Instant) {
        let until = now + Duration::from_millis(PAUSE_MS);
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        warn!(%flow, partition = %relay.source, %problem, retry_ms = PAUSE_MS, "partition paused");
        relay.stats.set_error(now_ms(), problem);
        // A move that has not happened yet is worked out again afterwards.
        relay.needs_location |= matches!(relay.condition, Condition::Jumping { .. } | Condition::Locating);
        if relay.condition != Condition::Draining {
            relay.condition = Condition::Paused { until };
        }
        let freed = relay.clear_queue();
        self.budget.free(freed);
        self.wake_at(until);
    }

    /// Asks where a partition's log begins and ends.
    pub(super) fn locate(&mut self, lane: Lane) {
        let client = self.source.control.clone();
        let isolation = self.settings.isolation;
        let Some(relay) = self.relay_lane_mut(lane).filter(|relay| relay.condition != Condition::Draining)
        else {
            return;
        };
        relay.condition = Condition::Locating;
        let key = LaneKey { lane, number: relay.number };
        let partition = [(Arc::clone(&relay.topic), relay.source.partition)];
        self.tasks.spawn(async move {
            let earliest = client.list_offsets(&partition, OffsetAt::Earliest, isolation).await;
            let latest = client.list_offsets(&partition, OffsetAt::Latest, isolation).await;
            Event::Located { key, bounds: bounds(earliest, latest) }
        });
    }

    pub(super) fn take_located(&mut self, key: LaneKey, bounds: Result<Bounds, String>, now: Instant) {
        let LaneKey { lane, .. } = key;
        if self.lane_of(key).is_none_or(|relay| relay.condition != Condition::Locating) {
            return;
        }
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        let bounds = match bounds {
            Ok(bounds) => bounds,
            Err(problem) => {
                relay.needs_location = true;
                return self.pause(lane, format!("could not learn the partition's offsets: {problem}"), now);
            }
        };
        if relay.is_placed { self.move_into_range(lane, bounds, now) } else { self.place(lane, bounds, now) }
    }

    /// A partition whose position lies outside the log goes on where `auto.offset.reset` says.
    fn move_into_range(&mut self, lane: Lane, bounds: Bounds, now: Instant) {
        let reset = self.settings.offset_reset;
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        match range::decide(relay.fetch_offset, bounds.earliest, bounds.latest, reset) {
            OutOfRange::GoOn { at, because } => {
                warn!(%flow, partition = %relay.source, %because, "position out of range");
                relay.stats.set_error(now_ms(), because);
                relay.condition = Condition::Jumping { to: at };
                self.jumping.push(lane);
            }
            OutOfRange::Stay { because } => {
                relay.needs_location = true;
                self.pause(lane, because, now);
            }
        }
    }

    /// Starts a partition that has no stored position.
    fn place(&mut self, lane: Lane, bounds: Bounds, now: Instant) {
        let reset = self.settings.offset_reset;
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        let at = match reset {
            // Of a topic that was made anew while we read it, nothing may be left out.
            _ if relay.is_made_anew => bounds.earliest,
            OffsetReset::Earliest => bounds.earliest,
            OffsetReset::Latest => bounds.latest,
            OffsetReset::None => {
                relay.needs_location = true;
                let problem =
                    "no position is stored and auto.offset.reset=none: set it to earliest or latest";
                return self.pause(lane, problem.to_owned(), now);
            }
        };
        info!(%flow, partition = %relay.source, offset = %at, "partition starts without a stored position");
        relay.condition = Condition::Jumping { to: at };
        self.jumping.push(lane);
    }

    /// The source topic was deleted and another one has its name: its first record comes next.
    pub(super) fn start_anew(&mut self, lane: Lane) {
        let flow = self.settings.flow.clone();
        let Some(relay) = self.relay_lane_mut(lane).filter(|relay| relay.condition != Condition::Draining)
        else {
            return;
        };
        let position = relay.progress.safe_offset();
        let because = format!(
            "the source topic was deleted and made anew; position {position} belongs to the old one, the new one is \
             copied from its first record, behind the old one's"
        );
        warn!(%flow, partition = %relay.source, %because, "topic made anew");
        relay.stats.set_error(now_ms(), because);
        relay.is_placed = false;
        relay.is_made_anew = true;
        let freed = relay.clear_queue();
        self.budget.free(freed);
        self.locate(lane);
    }

    /// Partitions that shall go on elsewhere do so once nothing of them is in flight.
    pub(super) fn jump_lanes(&mut self) {
        for lane in std::mem::take(&mut self.jumping) {
            let Some(Occupant::Relay(relay)) = self.occupants.get_mut(&lane) else { continue };
            let Condition::Jumping { to } = relay.condition else { continue };
            if !relay.is_idle() || relay.has_waiting() {
                self.jumping.push(lane);
                continue;
            }
            let freed = relay.start_at(to);
            relay.publish_position();
            self.budget.free(freed);
        }
    }

    /// Lets partitions go on whose pause is over.
    pub(super) fn wake_lanes(&mut self, now: Instant) {
        if self.lane_wake.is_none_or(|wake| wake > now) {
            return;
        }
        self.lane_wake = None;
        let lanes: Vec<Lane> = self.occupants.keys().copied().collect();
        for lane in lanes {
            let wake = match self.occupants.get_mut(&lane) {
                Some(Occupant::Relay(relay)) => relay.next_wake(),
                Some(Occupant::Positions(ledger)) => ledger.next_wake(),
                None => None,
            };
            match wake {
                Some(wake) if wake > now => self.wake_at(wake),
                Some(_) => self.resume(lane, now),
                None => {}
            }
        }
    }

    fn resume(&mut self, lane: Lane, now: Instant) {
        let Some(relay) = self.relay_lane_mut(lane) else { return };
        if relay.quiet_until.is_some_and(|until| until <= now) {
            relay.quiet_until = None;
        }
        let is_over = matches!(relay.condition, Condition::Paused { until } if until <= now);
        if !is_over {
            return;
        }
        relay.condition = Condition::Moving;
        let needs_location = std::mem::take(&mut relay.needs_location);
        self.retry_held(lane);
        if needs_location {
            self.locate(lane);
        }
    }
}

impl RelayLane {
    /// When a rest or pause ends.
    fn next_wake(&self) -> Option<Instant> {
        let paused = match self.condition {
            Condition::Paused { until } => Some(until),
            _ => None,
        };
        paused.into_iter().chain(self.quiet_until).min()
    }
}

type Listed = Result<Vec<ListedOffset>, WireError>;

fn bounds(earliest: Listed, latest: Listed) -> Result<Bounds, String> {
    let one = |listed: Listed| {
        let listed = listed.map_err(|error| error.to_string())?;
        let first = listed.into_iter().next().ok_or_else(|| "the source told no offset".to_owned())?;
        match (first.offset, first.error) {
            (Some(offset), None) => Ok(SourceOffset(offset)),
            (_, Some(error)) => Err(format!("the source answered {error:?}")),
            (None, None) => Err("the source told no offset".to_owned()),
        }
    };
    Ok(Bounds { earliest: one(earliest)?, latest: one(latest)? })
}
