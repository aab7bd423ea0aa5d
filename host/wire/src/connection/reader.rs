//! Cuts a broker's byte stream into answers. Small answers come several to a system call through a scratch buffer; of a large one
//! the scratch holds only the beginning, the rest is read straight into its own buffer, without zeroing it first.

use std::io;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::buffer::BufferPool;

/// What is read ahead of knowing an answer's size; at most this much of an answer is copied once.
const SCRATCH_BYTES: usize = 8 * 1024;
const SIZE_BYTES: usize = 4;
/// The shortest answer is its correlation id.
const ANSWER_BYTES_MIN: usize = 4;

/// What ended the stream of answers.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// Closed by the broker between two answers.
    Closed,
    /// Closed by the broker in the middle of an answer.
    Cut { received: usize, size: usize },
    /// The system's word.
    Io(io::Error),
    /// A size that no answer has.
    Size { size: i32, size_max: usize },
}

/// Reading state between two calls. [`AnswerReader::next`] may be dropped at any await and called again: nothing is lost.
#[derive(Debug)]
pub(crate) struct AnswerReader {
    pool: BufferPool,
    answer_bytes_max: usize,
    scratch: BytesMut,
    begun: Option<Begun>,
}

/// An answer whose size is known and whose bytes are not all here.
#[derive(Debug)]
struct Begun {
    size: usize,
    buffer: Vec<u8>,
}

impl AnswerReader {
    pub(crate) fn new(pool: BufferPool, answer_bytes_max: usize) -> Self {
        AnswerReader { pool, answer_bytes_max, scratch: BytesMut::with_capacity(SCRATCH_BYTES), begun: None }
    }

    /// The next whole answer without its size, header included.
    pub(crate) async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, ReadError> {
        loop {
            self.begin()?;
            let received = match &mut self.begun {
                Some(begun) if begun.buffer.len() == begun.size => return Ok(self.finish()),
                Some(begun) => {
                    let missing = begun.size - begun.buffer.len();
                    stream.read_buf(&mut (&mut begun.buffer).limit(missing)).await
                }
                None => {
                    self.scratch.reserve(SCRATCH_BYTES);
                    stream.read_buf(&mut (&mut self.scratch).limit(SCRATCH_BYTES)).await
                }
            };
            match received {
                Ok(0) => return Err(self.end()),
                Ok(_) => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
        }
    }

    /// Starts the next answer once its size is here, with as much of it as was read ahead.
    fn begin(&mut self) -> Result<(), ReadError> {
        if self.begun.is_some() || self.scratch.len() < SIZE_BYTES {
            return Ok(());
        }
        let claimed = self.scratch.get_i32();
        let size = usize::try_from(claimed)
            .ok()
            .filter(|size| (ANSWER_BYTES_MIN..=self.answer_bytes_max).contains(size))
            .ok_or(ReadError::Size { size: claimed, size_max: self.answer_bytes_max })?;
        let mut buffer = self.pool.take(size);
        let ahead = self.scratch.len().min(size);
        buffer.put_slice(&self.scratch[..ahead]);
        self.scratch.advance(ahead);
        self.begun = Some(Begun { size, buffer });
        Ok(())
    }

    fn finish(&mut self) -> Bytes {
        let buffer = self.begun.take().map_or_else(Vec::new, |begun| begun.buffer);
        self.pool.share(buffer)
    }

    fn end(&self) -> ReadError {
        match &self.begun {
            Some(begun) => ReadError::Cut { received: begun.buffer.len(), size: begun.size },
            None if !self.scratch.is_empty() => ReadError::Cut { received: 0, size: SIZE_BYTES },
            None => ReadError::Closed,
        }
    }
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Closed => formatter.write_str("the broker closed it"),
            ReadError::Cut { received, size } => {
                write!(formatter, "the broker closed it after {received} of an answer's {size} bytes")
            }
            ReadError::Io(error) => write!(formatter, "{error}"),
            ReadError::Size { size, size_max } => {
                write!(
                    formatter,
                    "it announced an answer of {size} bytes, at most {size_max} are taken; is this a Kafka broker without TLS?"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(answers: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for answer in answers {
            bytes.put_i32(answer.len() as i32);
            bytes.extend_from_slice(answer);
        }
        bytes
    }

    fn reader() -> AnswerReader {
        AnswerReader::new(BufferPool::new(4, 1 << 20), 1 << 20)
    }

    #[tokio::test]
    async fn answers_of_all_sizes_come_whole_and_in_order() {
        let answers: Vec<Vec<u8>> = [4, 5, 8187, 8188, 8189, 8192, 8193, 200_000, 4, 70_000, 6]
            .into_iter()
            .enumerate()
            .map(|(index, size)| vec![index as u8; size])
            .collect();
        let bytes = stream(&answers);
        let mut input = bytes.as_slice();
        let mut reader = reader();
        for answer in &answers {
            assert_eq!(reader.next(&mut input).await.unwrap(), answer);
        }
        assert!(matches!(reader.next(&mut input).await, Err(ReadError::Closed)));
    }

    #[tokio::test]
    async fn a_stream_cut_anywhere_is_told() {
        let bytes = stream(&[vec![1; 20]]);
        for length in 1..bytes.len() {
            let error = reader().next(&mut &bytes[..length]).await.unwrap_err();
            let wanted = match length {
                1..4 => "the broker closed it after 0 of an answer's 4 bytes".to_owned(),
                _ => format!("the broker closed it after {} of an answer's 20 bytes", length - 4),
            };
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[tokio::test]
    async fn sizes_outside_the_bounds_are_refused_before_memory_is_taken() {
        for size in [i32::MIN, -1, 0, 3, (1 << 20) + 1, i32::MAX] {
            let bytes = size.to_be_bytes();
            let error = reader().next(&mut &bytes[..]).await.unwrap_err();
            assert!(matches!(error, ReadError::Size { size: told, .. } if told == size), "{size}");
        }
    }

    #[tokio::test]
    async fn a_dropped_read_loses_nothing() {
        let (mut far, mut near) = tokio::io::duplex(3);
        let answers = vec![vec![1; 10], vec![2; 9000], vec![3; 4]];
        let bytes = stream(&answers);
        let writing = tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            for byte in bytes {
                far.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            far
        });
        let mut reader = reader();
        let mut received = Vec::new();
        while received.len() < answers.len() {
            tokio::select! {
                biased;
                answer = reader.next(&mut near) => received.push(answer.unwrap().to_vec()),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(received, answers);
        drop(writing.await.unwrap());
    }
}
