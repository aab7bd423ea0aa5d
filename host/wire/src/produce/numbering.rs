//! Under which producer id, epoch and sequence number a lane's next batch goes.

use super::identity::ProducerIdentity;
use super::sequence::sequence_after;

/// A lane's place in its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbering {
    /// Producer id and the lane's own epoch: epochs are counted per partition (KIP-360).
    pub(super) identity: ProducerIdentity,
    /// Sequence number of the next batch that has none yet.
    pub(super) next_sequence: i32,
}

impl Numbering {
    /// The start of `identity`'s first epoch.
    pub(super) fn start(identity: ProducerIdentity) -> Self {
        Self { identity, next_sequence: 0 }
    }

    /// Gives the next batch of `records` its number.
    pub(super) fn take(&mut self, records: i32) -> i32 {
        let sequence = self.next_sequence;
        self.next_sequence = sequence_after(sequence, records);
        sequence
    }

    /// The start of the next epoch. If this id has none left, that of `newest`, the producer's newest identity; `None`
    /// if that one is the same id.
    pub(super) fn bumped(self, newest: ProducerIdentity) -> Option<Self> {
        match self.identity.epoch.checked_add(1) {
            Some(epoch) => Some(Self::start(ProducerIdentity { id: self.identity.id, epoch })),
            None if newest.id != self.identity.id => Some(Self::start(newest)),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: ProducerIdentity = ProducerIdentity { id: 7, epoch: 3 };

    #[test]
    fn batches_are_numbered_without_gaps() {
        let mut numbering = Numbering::start(IDENTITY);
        assert_eq!([numbering.take(10), numbering.take(1), numbering.take(5)], [0, 10, 11]);
        assert_eq!(numbering.next_sequence, 16);
    }

    #[test]
    fn a_bump_begins_the_next_epoch_at_zero() {
        let bumped = Numbering { identity: IDENTITY, next_sequence: 99 }.bumped(IDENTITY).unwrap();
        assert_eq!(bumped, Numbering { identity: ProducerIdentity { id: 7, epoch: 4 }, next_sequence: 0 });
    }

    #[test]
    fn behind_the_last_epoch_only_a_new_identity_helps() {
        let last = Numbering::start(ProducerIdentity { id: 7, epoch: i16::MAX });
        assert_eq!(last.bumped(ProducerIdentity { id: 7, epoch: 0 }), None);
        let newest = ProducerIdentity { id: 8, epoch: 0 };
        assert_eq!(last.bumped(newest), Some(Numbering::start(newest)));
    }
}
