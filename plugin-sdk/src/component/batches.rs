//! `records` in the contract's types: views of the host's lists in, the collected words out.

use super::{INIT_COMES_FIRST, Instance, records};
use crate::records::{Batch, HeaderNeeds, RECORD_WORD_COUNT, Records, edit_batch};

impl<P: Records> Instance<P> {
    pub fn needs(&self) -> records::Needed {
        let needs = self.with(P::needs);
        let mut parts = records::Parts::empty();
        parts.set(records::Parts::KEY, needs.key);
        parts.set(records::Parts::VALUE, needs.value);
        parts.set(records::Parts::HEADERS, needs.headers != HeaderNeeds::None);
        parts.set(records::Parts::TIMESTAMPS, needs.timestamps);
        records::Needed { parts, header_names: needs.headers.into_names() }
    }

    pub fn process(&self, batch: records::Batch) -> Result<records::Edits, String> {
        let rec_words = batch.rec_words as usize;
        if rec_words < RECORD_WORD_COUNT {
            return Err("the host sends fewer words a record than the contract says".to_owned());
        }
        let batch = Batch {
            topic: &batch.topic,
            partition: batch.partition,
            base_offset: batch.base_offset,
            data: &batch.data,
            rec_words,
            recs: &batch.recs,
            headers: &batch.headers,
            timestamps: &batch.timestamps,
        };
        let mut answer = self.answer.borrow_mut();
        edit_batch(self.plugin.borrow_mut().as_mut().expect(INIT_COMES_FIRST), &batch, &mut answer);
        // The lists that leave belong to the host's call and are freed behind it. Copies of the right size cost less
        // than buffers that grow anew in each batch.
        Ok(records::Edits { data: answer.data.to_vec(), ops: answer.ops.to_vec() })
    }
}
