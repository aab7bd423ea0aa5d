"""What a Tidegate record plugin in Python sees: a batch's records, and what can be done to them.

The contract is plugin-sdk/wit/0.1.0/plugin.wit; this file hides its words. `None` is Kafka's null.
"""

import json
from collections.abc import Callable

from componentize_py_types import Err
from wit_world.exports import lifecycle, records
from wit_world.exports.records import Parts

_NULL = 0xFFFFFFFF
(_DROP, _REJECT, _SET_HEADER, _ADD_HEADER, _RENAME_HEADER, _REMOVE_HEADER, _SET_KEY, _SET_VALUE, _CLEAR_VALUE, _SPLICE) = range(10)


class Edits:
    """What shall be done to a batch's records."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._words: list[int] = []

    def put(self, part: bytes | None) -> tuple[int, int]:
        if part is None:
            return len(self._data), _NULL
        offset = len(self._data)
        self._data += part
        return offset, len(part)

    def add(self, record: int, code: int, a: bytes | None = b"", b: bytes | None = b"") -> None:
        self._words += (record, code, *self.put(a), *self.put(b))

    def splice(self, record: int, offset: int, length: int, replacement: bytes) -> None:
        self._words += (record, _SPLICE, offset, length, *self.put(replacement))

    def answer(self) -> records.Edits:
        return records.Edits(bytes(self._data), self._words)


class Record:
    """One record. Parts that the plugin's `needs` did not name are None."""

    def __init__(self, batch: records.Batch, edits: Edits) -> None:
        self._batch = batch
        self._edits = edits
        self.index = 0

    def _words(self, first: int) -> tuple[int, int]:
        at = self.index * self._batch.rec_words + first
        return self._batch.recs[at], self._batch.recs[at + 1]

    def _span(self, offset: int, length: int) -> bytes | None:
        return None if length == _NULL else self._batch.data[offset : offset + length]

    @property
    def topic(self) -> str:
        return self._batch.topic

    @property
    def partition(self) -> int:
        return self._batch.partition

    @property
    def offset(self) -> int:
        return self._batch.base_offset + self._words(0)[0]

    @property
    def key(self) -> bytes | None:
        return self._span(*self._words(2))

    @property
    def value(self) -> bytes | None:
        return self._span(*self._words(4))

    @property
    def headers(self) -> list[tuple[bytes, bytes | None]]:
        first, count = self._words(6)
        words = self._batch.headers
        return [
            (self._span(words[at], words[at + 1]) or b"", self._span(words[at + 2], words[at + 3]))
            for at in range(first * 4, (first + count) * 4, 4)
        ]

    def drop(self) -> None:
        self._edits.add(self.index, _DROP)

    def reject(self, reason: str) -> None:
        self._edits.add(self.index, _REJECT, reason.encode())

    def set_header(self, name: str, value: bytes | None) -> None:
        self._edits.add(self.index, _SET_HEADER, name.encode(), value)

    def add_header(self, name: str, value: bytes | None) -> None:
        self._edits.add(self.index, _ADD_HEADER, name.encode(), value)

    def rename_header(self, old: str, new: str) -> None:
        self._edits.add(self.index, _RENAME_HEADER, old.encode(), new.encode())

    def remove_header(self, name: str) -> None:
        self._edits.add(self.index, _REMOVE_HEADER, name.encode())

    def set_key(self, key: bytes) -> None:
        self._edits.add(self.index, _SET_KEY, key)

    def set_value(self, value: bytes) -> None:
        self._edits.add(self.index, _SET_VALUE, value)

    def clear_value(self) -> None:
        self._edits.add(self.index, _CLEAR_VALUE)

    def splice_value(self, offset: int, length: int, replacement: bytes) -> None:
        """Puts `replacement` in the place of `length` bytes of the old value from `offset` on."""
        self._edits.splice(self.index, offset, length, replacement)


class Problem(Exception):
    """A setting that can't be used; `at` is a JSON pointer into the settings."""

    def __init__(self, at: str, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


def record_plugin(
    *,
    name: str,
    version: str,
    init: Callable[[dict], None],
    needs: Parts,
    header_names: list[str] = [],
    edit: Callable[[Record], None],
) -> tuple[type, type]:
    """The classes `Lifecycle` and `Records` of a plugin. `edit` is called once a record, which is only good until it
    returns; `init` gets the settings as an object and raises `Problem`."""

    class Lifecycle:
        def describe(self) -> lifecycle.About:
            return lifecycle.About(name, version, None)

        def init(self, link: lifecycle.Link, config: str) -> None:
            try:
                init(json.loads(config))
            except Problem as problem:
                raise Err([lifecycle.Problem(problem.at, problem.message)]) from problem

        def self_test(self) -> None:
            pass

    class Records:
        def needs(self) -> records.Needed:
            return records.Needed(needs, header_names)

        def process(self, batch: records.Batch) -> records.Edits:
            edits = Edits()
            record = Record(batch, edits)
            for record.index in range(batch.count):
                edit(record)
            return edits.answer()

    return Lifecycle, Records
