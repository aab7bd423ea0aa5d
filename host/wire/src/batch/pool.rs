//! Payloads that give their memory back when the last reference is gone, so that a steady stream of built
//! batches allocates nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Free buffers kept: as many as requests can be in flight to one broker, and a few being filled.
const FREE_BUFFERS_MAX: usize = 8;
/// Larger buffers go back to the system: a single huge batch must not pin its memory for ever.
pub(crate) const KEPT_BUFFER_BYTES_MAX: usize = 4 << 20;

/// Free buffers of one builder, shared with the payloads that are on their way.
#[derive(Debug, Clone, Default)]
pub(crate) struct PayloadPool {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl PayloadPool {
    /// An empty buffer, with the memory of an earlier one where there is one.
    pub(crate) fn take(&self) -> Vec<u8> {
        self.free().pop().unwrap_or_default()
    }

    /// Makes `bytes` a payload that comes back here.
    pub(crate) fn payload(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(PooledPayload { bytes, home: self.clone() })
    }

    fn give_back(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() > KEPT_BUFFER_BYTES_MAX {
            return;
        }
        bytes.clear();
        let mut free = self.free();
        if free.len() < FREE_BUFFERS_MAX {
            free.push(bytes);
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct PooledPayload {
    bytes: Vec<u8>,
    home: PayloadPool,
}

impl AsRef<[u8]> for PooledPayload {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for PooledPayload {
    fn drop(&mut self) {
        self.home.give_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_comes_back_with_the_last_reference() {
        let pool = PayloadPool::default();
        let payload = pool.payload(Vec::with_capacity(1000));
        let slice = payload.clone();
        drop(payload);
        assert_eq!(pool.take().capacity(), 0);
        drop(slice);
        assert_eq!(pool.take().capacity(), 1000);
    }

    #[test]
    fn kept_memory_is_bounded() {
        let pool = PayloadPool::default();
        drop(pool.payload(Vec::with_capacity(KEPT_BUFFER_BYTES_MAX + 1)));
        assert_eq!(pool.free().len(), 0);
        let payloads: Vec<Bytes> = (0..FREE_BUFFERS_MAX + 3).map(|_| pool.payload(vec![1])).collect();
        drop(payloads);
        assert_eq!(pool.free().len(), FREE_BUFFERS_MAX);
    }
}
