//! Reads Produce answers (versions 3 to 8) where they lie: nothing is allocated unless a batch was refused.

use bytes::Bytes;

/// A record that the broker refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// Position of the record in its batch, from 0.
    pub index: i32,
    /// The broker's words.
    pub message: Option<String>,
}

/// An answer that ends too early or makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("produce answer: {what} at byte {position} of {bytes}")]
pub struct AnswerError {
    /// Where.
    pub position: usize,
    /// Length of the answer.
    pub bytes: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// What the broker says about one partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartitionAnswer<'a> {
    pub(super) topic: &'a [u8],
    pub(super) partition: i32,
    /// 0 is success.
    pub(super) error_code: i16,
    pub(super) base_offset: i64,
    pub(super) record_errors: Vec<RecordError>,
    pub(super) message: Option<String>,
}

/// Calls `each` for every partition of `body` up to its end or its first fault.
pub(super) fn decode_answer(
    body: &Bytes,
    version: i16,
    mut each: impl FnMut(PartitionAnswer<'_>),
) -> Result<(), AnswerError> {
    let mut reader = Reader { body, position: 0 };
    for _ in 0..reader.count()? {
        let topic = reader.string()?.ok_or_else(|| reader.fault("a topic without name"))?;
        for _ in 0..reader.count()? {
            each(read_partition(&mut reader, topic, version)?);
        }
    }
    // throttle_time_ms follows; the connection obeys it.
    Ok(())
}

fn read_partition<'a>(
    reader: &mut Reader<'a>,
    topic: &'a [u8],
    version: i16,
) -> Result<PartitionAnswer<'a>, AnswerError> {
    let partition = reader.i32()?;
    let error_code = reader.i16()?;
    let base_offset = reader.i64()?;
    reader.i64()?; // log append time
    if version >= 5 {
        reader.i64()?; // log start offset
    }
    let (mut record_errors, mut message) = (Vec::new(), None);
    if version >= 8 {
        for _ in 0..reader.count()? {
            record_errors.push(RecordError { index: reader.i32()?, message: reader.text()? });
        }
        message = reader.text()?;
    }
    Ok(PartitionAnswer { topic, partition, error_code, base_offset, record_errors, message })
}

struct Reader<'a> {
    body: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, what: &'static str) -> AnswerError {
        AnswerError { position: self.position, bytes: self.body.len(), what }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], AnswerError> {
        let rest = &self.body[self.position..];
        let taken = rest.get(..bytes).ok_or_else(|| self.fault("cut off"))?;
        self.position += bytes;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], AnswerError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn i16(&mut self) -> Result<i16, AnswerError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, AnswerError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, AnswerError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Elements of an array; a null array has none. Not trusted for allocation.
    fn count(&mut self) -> Result<i32, AnswerError> {
        match self.i32()? {
            count if count >= -1 => Ok(count.max(0)),
            _ => Err(self.fault("a negative count")),
        }
    }

    fn string(&mut self) -> Result<Option<&'a [u8]>, AnswerError> {
        match self.i16()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.take(length).map(Some),
                Err(_) => Err(self.fault("a negative length")),
            },
        }
    }

    fn text(&mut self) -> Result<Option<String>, AnswerError> {
        Ok(self.string()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use kafka_protocol::messages::ProduceResponse;
    use kafka_protocol::messages::produce_response::{
        BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
    };
    use kafka_protocol::protocol::{Encodable, StrBytes};

    type Row = (String, i32, i16, i64, Vec<RecordError>, Option<String>);

    fn sample(version: i16) -> Bytes {
        let refused = PartitionProduceResponse::default()
            .with_index(1)
            .with_error_code(87)
            .with_base_offset(-1)
            .with_record_errors(vec![
                BatchIndexAndErrorMessage::default()
                    .with_batch_index(5)
                    .with_batch_index_error_message(Some(StrBytes::from_static_str("no key"))),
                BatchIndexAndErrorMessage::default().with_batch_index(6),
            ])
            .with_error_message(Some(StrBytes::from_static_str("one or more records refused")));
        let taken = PartitionProduceResponse::default().with_index(0).with_base_offset(42);
        let topic = |name, partitions| {
            TopicProduceResponse::default()
                .with_name(StrBytes::from_static_str(name).into())
                .with_partition_responses(partitions)
        };
        let response = ProduceResponse::default()
            .with_responses(vec![topic("a", vec![taken.clone(), refused]), topic("b", vec![taken])])
            .with_throttle_time_ms(7);
        let mut body = BytesMut::new();
        response.encode(&mut body, version).unwrap();
        body.freeze()
    }

    fn rows(body: &Bytes, version: i16) -> (Vec<Row>, Result<(), AnswerError>) {
        let mut rows = Vec::new();
        let end = decode_answer(body, version, |p| {
            let topic = String::from_utf8_lossy(p.topic).into_owned();
            rows.push((topic, p.partition, p.error_code, p.base_offset, p.record_errors, p.message));
        });
        (rows, end)
    }

    #[test]
    fn answers_of_every_version_are_read() {
        for version in 3..=8 {
            let (rows, end) = rows(&sample(version), version);
            assert_eq!(end, Ok(()), "version {version}");
            let (errors, message) = match version {
                8 => (
                    vec![
                        RecordError { index: 5, message: Some("no key".into()) },
                        RecordError { index: 6, message: None },
                    ],
                    Some("one or more records refused".to_owned()),
                ),
                _ => (Vec::new(), None),
            };
            let expected = vec![
                ("a".to_owned(), 0, 0, 42, Vec::new(), None),
                ("a".to_owned(), 1, 87, -1, errors, message),
                ("b".to_owned(), 0, 0, 42, Vec::new(), None),
            ];
            assert_eq!(rows, expected, "version {version}");
        }
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error_with_its_position() {
        let whole = sample(8);
        let throttle_bytes = 4;
        for end in 0..whole.len() - throttle_bytes {
            let (_, result) = rows(&whole.slice(..end), 8);
            let error = result.unwrap_err();
            assert!(error.position <= end && error.bytes == end, "{error}");
        }
        let (_, result) = rows(&Bytes::from_static(&[0, 0]), 8);
        assert_eq!(result.unwrap_err().to_string(), "produce answer: cut off at byte 0 of 2");
    }

    #[test]
    fn absurd_counts_end_at_the_end_of_the_bytes() {
        let (_, result) = rows(&Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]), 8);
        assert_eq!(result.unwrap_err().what, "cut off");
        let (_, result) = rows(&Bytes::from_static(&[0x80, 0, 0, 0]), 8);
        assert_eq!(result.unwrap_err().what, "a negative count");
    }
}
