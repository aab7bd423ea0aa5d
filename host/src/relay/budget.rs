//! How much a worker may hold: bytes that were fetched and are not settled yet, and what running fetches may bring.
//! Without it a reader that outruns the writer grows without end (measured: 2.5 GB).

/// A fetch is not started for less than this, unless nothing else runs: tiny fetches cost more than they bring.
pub const FETCH_BYTES_MIN: usize = 64 * 1024;

/// One fetch asks for at most this many bytes, so that several run side by side and an answer stays in the
/// processor's cache on its way through.
pub const FETCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The byte budget of one worker.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    held: usize,
    reserved: usize,
}

impl Budget {
    /// A worker that may hold `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, held: 0, reserved: 0 }
    }

    /// Reserves room for a fetch among `fetch_count_max` that may run at once. None: wait until something settles.
    pub fn reserve(&mut self, fetch_count_max: usize) -> Option<usize> {
        let free = self.bytes_max.saturating_sub(self.held + self.reserved);
        let share = (self.bytes_max / fetch_count_max.max(1)).clamp(FETCH_BYTES_MIN, FETCH_BYTES_MAX);
        let is_idle = self.held == 0 && self.reserved == 0;
        if free < FETCH_BYTES_MIN && !is_idle {
            return None;
        }
        let bytes = share.min(free.max(FETCH_BYTES_MIN));
        self.reserved += bytes;
        Some(bytes)
    }

    /// Gives a reservation back when its fetch has come back.
    pub fn release_reservation(&mut self, bytes: usize) {
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Counts bytes that were fetched.
    pub fn hold(&mut self, bytes: usize) {
        self.held += bytes;
    }

    /// Counts bytes that are settled or thrown away.
    pub fn free(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.held, "freed more than was held");
        self.held = self.held.saturating_sub(bytes);
    }

    /// How many bytes one of `lane_count` partitions may hold and still be fetched: its fair share.
    pub fn share(&self, lane_count: usize) -> usize {
        self.bytes_max / lane_count.max(1)
    }

    /// Bytes that are fetched and not settled.
    pub fn held(&self) -> usize {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_obeyed() {
        let mut budget = Budget::new(1024 * 1024);
        let first = budget.reserve(2).unwrap();
        assert_eq!(first, 512 * 1024);
        let second = budget.reserve(2).unwrap();
        assert_eq!(second, 512 * 1024);
        assert_eq!(budget.reserve(2), None);
        budget.release_reservation(first);
        budget.hold(first);
        assert_eq!(budget.reserve(2), None);
        budget.free(first);
        assert_eq!(budget.reserve(2), Some(512 * 1024));
    }

    #[test]
    fn an_idle_worker_may_always_fetch() {
        let mut budget = Budget::new(1);
        assert_eq!(budget.reserve(4), Some(FETCH_BYTES_MIN));
        assert_eq!(budget.reserve(4), None);
    }
}
