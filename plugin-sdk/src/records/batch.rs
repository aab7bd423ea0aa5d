//! Views of a batch as the host sends it: words that point into bytes. The contract says what each word means.

/// So many words of a record are known; the host may send more.
pub(crate) const RECORD_WORD_COUNT: usize = 8;
const HEADER_WORD_COUNT: usize = 4;

/// Bits of a record's second word.
pub(crate) const HAS_KEY: u32 = 1;
pub(crate) const HAS_VALUE: u32 = 2;

/// The records of one call; all of one topic and partition.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) base_offset: i64,
    pub(crate) data: &'a [u8],
    /// How many words a record has; at least `RECORD_WORD_COUNT`.
    pub(crate) rec_words: usize,
    pub(crate) recs: &'a [u32],
    pub(crate) headers: &'a [u32],
    pub(crate) timestamps: &'a [i64],
}

impl<'a> Batch<'a> {
    /// The topic's name on the source.
    pub fn topic(&self) -> &'a str {
        self.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.partition
    }

    /// How many records this call brings.
    pub fn record_count(&self) -> usize {
        self.recs.len() / self.rec_words.max(RECORD_WORD_COUNT)
    }

    /// The records, in the order of their offsets.
    pub fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.recs.chunks_exact(self.rec_words.max(RECORD_WORD_COUNT)).enumerate().filter_map(
            |(index, words)| {
                let words = words.first_chunk()?;
                Some(Record { batch: self, index, words })
            },
        )
    }

    /// The host's spans always lie in the bytes; by `get` no code for a panic comes into the plugin.
    fn bytes(&self, offset: u32, length: u32) -> Option<&'a [u8]> {
        let start = offset as usize;
        self.data.get(start..start.checked_add(length as usize)?)
    }
}

/// One record as the plugin before left it. A part that [`needs`](crate::Records::needs) does not name is not there.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    batch: &'a Batch<'a>,
    index: usize,
    words: &'a [u32; RECORD_WORD_COUNT],
}

impl<'a> Record<'a> {
    /// The topic's name on the source.
    pub fn topic(&self) -> &'a str {
        self.batch.topic
    }

    /// The partition's number.
    pub fn partition(&self) -> i32 {
        self.batch.partition
    }

    /// The offset on the source.
    pub fn offset(&self) -> i64 {
        self.batch.base_offset + i64::from(self.words[0])
    }

    /// Milliseconds since 1970; `None` if the record has no time, or it was not asked for.
    pub fn timestamp_ms(&self) -> Option<i64> {
        self.batch.timestamps.get(self.index).copied().filter(|timestamp| *timestamp >= 0)
    }

    /// The key; `None` if there is none ([`has_key`](Self::has_key) knows), or it was not asked for.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.batch.bytes(self.words[2], self.words[3])
    }

    /// Whether there is a key; known without asking for it.
    pub fn has_key(&self) -> bool {
        self.words[1] & HAS_KEY != 0
    }

    /// The value; `None` if there is none ([`is_tombstone`](Self::is_tombstone) knows), or it was not asked for.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.batch.bytes(self.words[4], self.words[5])
    }

    /// Whether the record has no value, so that it deletes its key in a compacted topic; known without asking for the
    /// value.
    pub fn is_tombstone(&self) -> bool {
        self.words[1] & HAS_VALUE == 0
    }

    /// Names and values in the record's order, duplicates included; a value may be null. Only those that were asked
    /// for. A header whose name is no UTF-8 is not among them, and no edit reaches it: it stays as it is.
    pub fn headers(&self) -> Headers<'a> {
        let first = self.words[6] as usize * HEADER_WORD_COUNT;
        let words = self.words[7] as usize * HEADER_WORD_COUNT;
        let words = self.batch.headers.get(first..first.saturating_add(words)).unwrap_or_default();
        Headers { batch: self.batch, words }
    }

    /// The value of the first header of this name; `None` if there is none
    /// ([`has_header`](Self::has_header) knows), or its value is null, or headers of that name were not asked for.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().raw().find(|(found, _)| *found == name.as_bytes())?.1
    }

    /// As [`header`](Self::header), the last of this name: what Kafka's own clients take when a name stands there
    /// more than once.
    pub fn last_header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().raw().filter(|(found, _)| *found == name.as_bytes()).last()?.1
    }

    /// Whether there is a header of this name, be its value null or not.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers().raw().any(|(found, _)| found == name.as_bytes())
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }
}

/// The headers of a record: names and values.
#[derive(Clone, Debug)]
pub struct Headers<'a> {
    batch: &'a Batch<'a>,
    words: &'a [u32],
}

impl<'a> Headers<'a> {
    /// Names as bytes: comparing needs no check for UTF-8.
    fn raw(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        let Self { batch, words } = self;
        words.chunks_exact(HEADER_WORD_COUNT).filter_map(|words| raw_header(batch, words))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        while let Some((words, rest)) = self.words.split_first_chunk::<HEADER_WORD_COUNT>() {
            self.words = rest;
            if let Some((name, value)) = raw_header(self.batch, words)
                && let Ok(name) = str::from_utf8(name)
            {
                return Some((name, value));
            }
        }
        None
    }
}

fn raw_header<'a>(batch: &Batch<'a>, words: &[u32]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let [name_offset, name_length, value_offset, value_length] = *words.first_chunk()?;
    Some((batch.bytes(name_offset, name_length)?, batch.bytes(value_offset, value_length)))
}
