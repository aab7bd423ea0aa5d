// What a Tidegate record plugin in JavaScript sees: a batch's records, and what can be done to them. The contract is
// plugin-sdk/wit/0.1.0/plugin.wit; this file hides its words. Bytes are Uint8Array; `null` is Kafka's null.

const NULL_LENGTH = 0xffffffff;
const [DROP, REJECT, SET_HEADER, ADD_HEADER, RENAME_HEADER, REMOVE_HEADER, SET_KEY, SET_VALUE, CLEAR_VALUE, SPLICE_VALUE] =
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

/** UTF-8 bytes of a text. The engine has no TextEncoder. */
export function bytes(text) {
  const escaped = unescape(encodeURIComponent(text));
  return Uint8Array.from(escaped, (character) => character.charCodeAt(0));
}

/** The text of UTF-8 bytes. Throws when they are none. */
export function text(bytes) {
  let escaped = '';
  for (const byte of bytes) escaped += String.fromCharCode(byte);
  return decodeURIComponent(escape(escaped));
}

/** Whether two byte strings are the same; null equals only null. */
export function equal(one, other) {
  if (one === null || other === null) return one === other;
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false;
  return true;
}

/** One record of a batch, and the edits of it. Parts that `needs` did not name are null. */
export class Record {
  constructor(batch, edits) {
    this.batch = batch;
    this.edits = edits;
    this.index = 0;
  }

  get word() {
    return this.index * this.batch.recWords;
  }

  span(offset, length) {
    return length === NULL_LENGTH ? null : this.batch.data.subarray(offset, offset + length);
  }

  get topic() {
    return this.batch.topic;
  }

  get partition() {
    return this.batch.partition;
  }

  get offset() {
    return this.batch.baseOffset + BigInt(this.batch.recs[this.word]);
  }

  get key() {
    return this.span(this.batch.recs[this.word + 2], this.batch.recs[this.word + 3]);
  }

  get value() {
    return this.span(this.batch.recs[this.word + 4], this.batch.recs[this.word + 5]);
  }

  /** The first header of that name (bytes): its value, null for a null value, undefined when there is none. */
  header(name) {
    const { recs, headers } = this.batch;
    const first = recs[this.word + 6];
    const end = first + recs[this.word + 7];
    for (let header = first; header < end; header++) {
      const at = header * 4;
      if (equal(this.span(headers[at], headers[at + 1]), name)) return this.span(headers[at + 2], headers[at + 3]);
    }
    return undefined;
  }

  drop() {
    this.edits.add(this.index, DROP);
  }

  reject(reason) {
    this.edits.add(this.index, REJECT, bytes(reason));
  }

  setHeader(name, value) {
    this.edits.add(this.index, SET_HEADER, name, value);
  }

  addHeader(name, value) {
    this.edits.add(this.index, ADD_HEADER, name, value);
  }

  renameHeader(from, to) {
    this.edits.add(this.index, RENAME_HEADER, from, to);
  }

  removeHeader(name) {
    this.edits.add(this.index, REMOVE_HEADER, name);
  }

  setKey(key) {
    this.edits.add(this.index, SET_KEY, key);
  }

  setValue(value) {
    this.edits.add(this.index, SET_VALUE, value);
  }

  clearValue() {
    this.edits.add(this.index, CLEAR_VALUE);
  }

  /** Puts `replacement` in the place of `length` bytes of the old value from `offset` on. */
  spliceValue(offset, length, replacement) {
    this.edits.addWords(this.index, SPLICE_VALUE, offset, length, ...this.edits.put(replacement));
  }
}

class Edits {
  constructor() {
    this.parts = [];
    this.length = 0;
    this.words = [];
  }

  put(part) {
    if (part === null) return [this.length, NULL_LENGTH];
    const offset = this.length;
    this.parts.push(part);
    this.length += part.length;
    return [offset, part.length];
  }

  add(record, code, a = NOTHING, b = NOTHING) {
    this.addWords(record, code, ...this.put(a), ...this.put(b));
  }

  addWords(...words) {
    this.words.push(...words);
  }

  answer() {
    const data = new Uint8Array(this.length);
    let offset = 0;
    for (const part of this.parts) {
      data.set(part, offset);
      offset += part.length;
    }
    return { data, ops: Uint32Array.from(this.words) };
  }
}

const NOTHING = new Uint8Array(0);

/**
 * The two interfaces of a record plugin.
 * - `init(link, settings)` gets the flow and the settings as an object; it throws a list of `{at, message}`.
 * - `needs` is `{key, value, headers, timestamps}` (true for what is wanted) and `headerNames`, a list of texts.
 * - `edit(record)` is called once a record; `record` is only good until it returns.
 */
export function recordPlugin({ name, version, init, needs, edit }) {
  const parts = { key: false, value: false, headers: false, timestamps: false, ...needs };
  const headerNames = needs.headerNames ?? [];
  delete parts.headerNames;
  return {
    lifecycle: {
      describe: () => ({ name, version, configSchema: undefined }),
      init: (link, config) => init(link, JSON.parse(config)),
      selfTest() {},
    },
    records: {
      needs: () => ({ parts, headerNames }),
      process(batch) {
        const edits = new Edits();
        const record = new Record(batch, edits);
        for (; record.index < batch.count; record.index++) edit(record);
        return edits.answer();
      },
    },
  };
}
