//! The memory that answers are read into. Large buffers go back to a pool when the last slice of them is dropped, so a steady
//! stream of fetches allocates nothing large; the pool is bounded in count and bytes, what is above is freed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Answers below this are allocated by themselves: the allocator is as fast as the pool, and one record that is kept for long
/// pins little.
const POOLED_BYTES_MIN: usize = 64 * 1024;
/// A buffer is not used for an answer of less than 1/4 of it, so that a small batch that waits never pins a large buffer.
const OVERSIZE_MAX: usize = 4;
/// Buffers are rounded up to this, so that answers of about the same size share them.
const ROUND_BYTES: usize = 256 * 1024;

/// Buffers that wait for their next use. Clones share them.
#[derive(Debug, Clone)]
pub struct BufferPool {
    idle: Arc<Idle>,
}

#[derive(Debug)]
struct Idle {
    buffers: Mutex<Vec<Vec<u8>>>,
    count_max: usize,
    bytes_max: usize,
}

impl BufferPool {
    /// Keeps at most `count_max` idle buffers of together at most `bytes_max`.
    pub fn new(count_max: usize, bytes_max: usize) -> Self {
        BufferPool { idle: Arc::new(Idle { buffers: Mutex::default(), count_max, bytes_max }) }
    }

    /// An empty buffer with room for `bytes`. The caller has bounded `bytes`; memory is touched only as it is filled.
    pub fn take(&self, bytes: usize) -> Vec<u8> {
        if bytes < POOLED_BYTES_MIN {
            return Vec::with_capacity(bytes);
        }
        let mut buffers = self.idle.lock();
        let fitting = |buffer: &Vec<u8>| {
            buffer.capacity() >= bytes && buffer.capacity() / OVERSIZE_MAX <= bytes.max(ROUND_BYTES)
        };
        let best = (0..buffers.len())
            .filter(|&index| fitting(&buffers[index]))
            .min_by_key(|&index| buffers[index].capacity());
        match best {
            Some(index) => buffers.swap_remove(index),
            None => {
                drop(buffers);
                Vec::with_capacity(bytes.next_multiple_of(ROUND_BYTES))
            }
        }
    }

    /// The filled buffer as shareable bytes. When the last slice is dropped the buffer comes back here.
    pub fn share(&self, buffer: Vec<u8>) -> Bytes {
        if buffer.capacity() < POOLED_BYTES_MIN {
            return Bytes::from(buffer);
        }
        Bytes::from_owner(Lent { buffer, home: Arc::clone(&self.idle) })
    }

    /// How many buffers wait, and their bytes.
    pub fn idle(&self) -> (usize, usize) {
        let buffers = self.idle.lock();
        (buffers.len(), buffers.iter().map(Vec::capacity).sum())
    }
}

impl Idle {
    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the buffer if the bounds allow it. A full pool lets its smallest go for a larger one, since large ones are what is
    /// dear.
    fn put_back(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut buffers = self.lock();
        let held: usize = buffers.iter().map(Vec::capacity).sum();
        if held + buffer.capacity() > self.bytes_max {
            return;
        }
        if buffers.len() < self.count_max {
            buffers.push(buffer);
            return;
        }
        let smallest = buffers.iter_mut().min_by_key(|held| held.capacity());
        if let Some(smallest) = smallest.filter(|held| held.capacity() < buffer.capacity()) {
            *smallest = buffer;
        }
    }
}

struct Lent {
    buffer: Vec<u8>,
    home: Arc<Idle>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.put_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    fn filled(pool: &BufferPool, bytes: usize) -> Bytes {
        let mut buffer = pool.take(bytes);
        buffer.resize(bytes, 7);
        pool.share(buffer)
    }

    #[test]
    fn a_buffer_comes_back_with_its_last_slice_and_is_used_again() {
        let pool = BufferPool::new(4, 16 * MIB);
        let whole = filled(&pool, MIB);
        let address = whole.as_ptr();
        let slice = whole.slice(100..200);
        drop(whole);
        assert_eq!(pool.idle(), (0, 0));
        assert_eq!(slice[0], 7);
        drop(slice);
        assert_eq!(pool.idle(), (1, MIB));
        let again = pool.take(MIB - 1000);
        assert_eq!((again.as_ptr(), again.len()), (address, 0));
    }

    #[test]
    fn count_and_bytes_are_bounded() {
        let pool = BufferPool::new(2, 3 * MIB);
        let lent: Vec<Bytes> = (0..4).map(|_| filled(&pool, MIB)).collect();
        drop(lent);
        assert_eq!(pool.idle(), (2, 2 * MIB));
        drop(filled(&pool, 8 * MIB));
        assert_eq!(pool.idle(), (2, 2 * MIB));
    }

    #[test]
    fn a_small_answer_never_pins_a_large_buffer() {
        let pool = BufferPool::new(4, 64 * MIB);
        drop(filled(&pool, 32 * MIB));
        assert!(pool.take(MIB).capacity() <= 4 * MIB);
        assert_eq!(pool.take(100).capacity(), 100);
        assert_eq!(pool.idle(), (1, 32 * MIB));
    }
}
