//! A byte string by its place: in the batch's body or in the arena of edits.

/// Set in `start` when the place is in the arena. Bodies and arenas are shorter than 2 GiB.
const IN_ARENA: u32 = 1 << 31;

/// Bodies and arenas must stay below this many bytes.
pub(super) const PLACE_BYTES_MAX: usize = IN_ARENA as usize - 1;

/// The length of a null byte string.
const NULL: u32 = u32::MAX;

/// Where a byte string lies, or that it is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    length: u32,
}

impl Span {
    pub(super) const NULL: Self = Self { start: 0, length: NULL };

    /// `slice` must lie in `base`. None when it does not, or when `base` is too long.
    #[inline]
    pub(super) fn in_base(base: &[u8], slice: &[u8]) -> Option<Self> {
        if slice.is_empty() {
            return Some(Self { start: 0, length: 0 });
        }
        let start = slice.as_ptr().addr().wrapping_sub(base.as_ptr().addr());
        let is_inside = start < base.len() && slice.len() <= base.len() - start;
        // Both fit: `base` is not longer than 31 bits tell.
        (is_inside && base.len() <= PLACE_BYTES_MAX)
            .then_some(Self { start: start as u32, length: slice.len() as u32 })
    }

    /// The caller keeps the arena below [`PLACE_BYTES_MAX`].
    #[inline]
    pub(super) fn in_arena(start: u32, length: u32) -> Self {
        Self { start: start | IN_ARENA, length }
    }

    #[inline]
    pub(super) fn is_null(self) -> bool {
        self.length == NULL
    }

    #[inline]
    pub(super) fn length(self) -> Option<usize> {
        (!self.is_null()).then_some(self.length as usize)
    }

    /// Start in the arena, when it lies there.
    #[inline]
    pub(super) fn arena_start(self) -> Option<usize> {
        (self.start & IN_ARENA != 0).then_some((self.start & !IN_ARENA) as usize)
    }

    #[inline]
    pub(super) fn bytes<'a>(self, base: &'a [u8], arena: &'a [u8]) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (place, start) = match self.arena_start() {
            Some(start) => (arena, start),
            None => (base, self.start as usize),
        };
        Some(&place[start..start + length])
    }
}

/// Name and value of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeaderSpans {
    pub(super) name: Span,
    pub(super) value: Span,
}

/// What edits can change of a record. Its headers lie together in the set's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) key: Span,
    pub(super) value: Span,
    pub(super) headers_start: u32,
    pub(super) header_count: u32,
}
