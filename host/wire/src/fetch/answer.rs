//! Reads the body of a Fetch answer, version 4 to 12, field by field. Topic names are looked up among those that were asked for, so
//! nothing is allocated per partition but its entry. Pure.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use kafka_protocol::error::ResponseError;

use super::{AbortedTransaction, FetchPartition, FetchedPartition};

/// First version with compact lengths and tagged fields.
const FLEXIBLE_VERSION: i16 = 12;
/// Room that is made ahead for a list, whatever length the wire claims; longer lists grow as they are read.
const ENTRIES_AHEAD_MAX: usize = 1024;

/// What an answer says.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) throttle_ms: i32,
    pub(super) error: Option<ResponseError>,
    pub(super) partitions: Vec<FetchedPartition>,
}

/// Where an answer does not follow the protocol.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) position: usize,
    pub(super) reason: &'static str,
}

/// Reads `body`. `asked` are the partitions of the question.
pub(super) fn read(body: &Bytes, version: i16, asked: &[FetchPartition]) -> Result<Read, Broken> {
    let mut reader = Reader { rest: body.clone(), length: body.len(), version, asked, hint: 0 };
    let throttle_ms = reader.int32()?;
    let mut error = None;
    if version >= 7 {
        error = ResponseError::try_from_code(reader.int16()?);
        let _session_id = reader.int32()?;
    }
    let mut partitions = Vec::with_capacity(asked.len());
    for _ in 0..reader.array()?.unwrap_or(0) {
        reader.topic(&mut partitions)?;
    }
    reader.tagged_fields()?;
    if !reader.rest.is_empty() {
        return Err(reader.broken("bytes are left over behind its last field"));
    }
    Ok(Read { throttle_ms, error, partitions })
}

struct Reader<'a> {
    rest: Bytes,
    length: usize,
    version: i16,
    asked: &'a [FetchPartition],
    /// Where the last topic was found: answers come in the order of the question.
    hint: usize,
}

impl Reader<'_> {
    fn topic(&mut self, partitions: &mut Vec<FetchedPartition>) -> Result<(), Broken> {
        let name = self.string()?;
        let topic = self.asked_topic(&name)?;
        for _ in 0..self.array()?.unwrap_or(0) {
            let partition = self.partition(&topic)?;
            partitions.push(partition);
        }
        self.tagged_fields()
    }

    fn asked_topic(&mut self, name: &[u8]) -> Result<Arc<str>, Broken> {
        let (before, from) = self.asked.split_at(self.hint);
        let found = from.iter().chain(before).position(|asked| asked.topic.as_bytes() == name);
        let found = found.ok_or_else(|| self.broken("it names a topic that was not asked for"))?;
        self.hint = (self.hint + found) % self.asked.len();
        Ok(Arc::clone(&self.asked[self.hint].topic))
    }

    fn partition(&mut self, topic: &Arc<str>) -> Result<FetchedPartition, Broken> {
        let partition = self.int32()?;
        let error = ResponseError::try_from_code(self.int16()?);
        let high_watermark = self.int64()?;
        let last_stable_offset = self.int64()?;
        let log_start_offset = if self.version >= 5 { self.int64()? } else { -1 };
        let aborted = self.aborted()?;
        if self.version >= 11 {
            let _preferred_read_replica = self.int32()?;
        }
        let records = self.records()?;
        self.tagged_fields()?;
        Ok(FetchedPartition {
            topic: Arc::clone(topic),
            partition,
            error,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            aborted,
            records,
        })
    }

    fn aborted(&mut self) -> Result<Vec<AbortedTransaction>, Broken> {
        let count = self.array()?.unwrap_or(0);
        let mut aborted = Vec::with_capacity(count.min(ENTRIES_AHEAD_MAX));
        for _ in 0..count {
            aborted.push(AbortedTransaction { producer_id: self.int64()?, first_offset: self.int64()? });
            self.tagged_fields()?;
        }
        Ok(aborted)
    }

    fn records(&mut self) -> Result<Bytes, Broken> {
        let length = if self.flexible() { self.compact_length()? } else { self.nullable(Self::int32)? };
        self.take(length.unwrap_or(0))
    }

    fn string(&mut self) -> Result<Bytes, Broken> {
        let length = if self.flexible() { self.compact_length()? } else { self.nullable(Self::int16)? };
        let length = length.ok_or_else(|| self.broken("a topic has no name"))?;
        self.take(length)
    }

    fn array(&mut self) -> Result<Option<usize>, Broken> {
        let count = if self.flexible() { self.compact_length()? } else { self.nullable(Self::int32)? };
        if count.is_some_and(|count| count > self.rest.len()) {
            return Err(self.broken("a list has more entries than the answer has bytes"));
        }
        Ok(count)
    }

    /// A length of which −1 means null.
    fn nullable<N: Into<i64>>(
        &mut self,
        number: impl FnOnce(&mut Self) -> Result<N, Broken>,
    ) -> Result<Option<usize>, Broken> {
        match number(self)?.into() {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| self.broken("a length is negative")),
        }
    }

    /// A length plus one, of which 0 means null.
    fn compact_length(&mut self) -> Result<Option<usize>, Broken> {
        Ok((self.varint()? as usize).checked_sub(1))
    }

    fn tagged_fields(&mut self) -> Result<(), Broken> {
        if !self.flexible() {
            return Ok(());
        }
        for _ in 0..self.varint()? {
            let _tag = self.varint()?;
            let length = self.varint()?;
            self.take(length as usize)?;
        }
        Ok(())
    }

    fn flexible(&self) -> bool {
        self.version >= FLEXIBLE_VERSION
    }

    fn take(&mut self, length: usize) -> Result<Bytes, Broken> {
        if length > self.rest.len() {
            return Err(self.broken("a length is more than the answer has bytes"));
        }
        Ok(self.rest.split_to(length))
    }

    fn varint(&mut self) -> Result<u32, Broken> {
        let mut value = 0u32;
        for index in 0..5 {
            let byte = self.rest.try_get_u8().map_err(|_| self.broken("it ends within a field"))?;
            value |= u32::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.broken("a varint has more than 5 bytes"))
    }

    fn int16(&mut self) -> Result<i16, Broken> {
        self.rest.try_get_i16().map_err(|_| self.broken("it ends within a field"))
    }

    fn int32(&mut self) -> Result<i32, Broken> {
        self.rest.try_get_i32().map_err(|_| self.broken("it ends within a field"))
    }

    fn int64(&mut self) -> Result<i64, Broken> {
        self.rest.try_get_i64().map_err(|_| self.broken("it ends within a field"))
    }

    fn broken(&self, reason: &'static str) -> Broken {
        Broken { position: self.length - self.rest.len(), reason }
    }
}
