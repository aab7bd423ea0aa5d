/* The binary form of the contract: what the component model's canonical ABI makes of plugin.wit. A plugin's author does
 * not need to read this. */
#include "tidegate.h"

#define NULL_LENGTH 0xffffffffu
#define PAGE_BYTES 65536u

_Static_assert(sizeof(void *) == 4, "this is for 32-bit WebAssembly");

/* ---- Memory: one heap that is emptied when a call has returned ---- */

extern uint8_t __heap_base;
static uint32_t heap_end;

static void *allocate(uint32_t bytes, uint32_t alignment) {
  if (heap_end == 0) heap_end = (uint32_t)&__heap_base;
  uint32_t start = (heap_end + alignment - 1) & ~(alignment - 1);
  uint32_t end = start + bytes;
  if (end < start) __builtin_trap();
  uint32_t have = __builtin_wasm_memory_size(0) * PAGE_BYTES;
  if (end > have) {
    /* By half as much again: the host gives memory page by page, and asking often is slow. */
    uint32_t pages = (end - have + PAGE_BYTES - 1) / PAGE_BYTES;
    uint32_t more = pages + have / PAGE_BYTES / 2;
    if (__builtin_wasm_memory_grow(0, more) == (size_t)-1 && __builtin_wasm_memory_grow(0, pages) == (size_t)-1)
      __builtin_trap();
  }
  heap_end = end;
  return (void *)start;
}

static void empty_heap(void) { heap_end = (uint32_t)&__heap_base; }

static void copy(void *to, const void *from, uint32_t bytes) { __builtin_memcpy(to, from, bytes); }

/* The compiler calls these for what it can't do in place. */
void *memcpy(void *restrict to, const void *restrict from, size_t bytes) {
  uint8_t *out = to;
  const uint8_t *in = from;
  while (bytes--) *out++ = *in++;
  return to;
}

void *memset(void *to, int value, size_t bytes) {
  uint8_t *out = to;
  while (bytes--) *out++ = (uint8_t)value;
  return to;
}

__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, uint32_t old_bytes, uint32_t alignment,
                                                                uint32_t bytes) {
  void *new = allocate(bytes, alignment);
  if (old_bytes > 0) copy(new, old, old_bytes < bytes ? old_bytes : bytes);
  return new;
}

/* ---- What the host offers ---- */

__attribute__((import_module("tidegate:plugin/host@0.1.0"), import_name("log"))) void host_log(uint32_t, const char *,
                                                                                               uint32_t);
__attribute__((import_module("tidegate:plugin/host@0.1.0"), import_name("count"))) void host_count(const char *,
                                                                                                   uint32_t, uint64_t);

void tidegate_log(tidegate_level level, tidegate_bytes message) { host_log(level, message.data, message.length); }
void tidegate_count(tidegate_bytes name, uint64_t by) { host_count(name.data, name.length, by); }

/* ---- Bytes ---- */

static const tidegate_bytes NOTHING = {"", 0};

bool tidegate_equal(tidegate_bytes one, tidegate_bytes other) {
  if (!one.data || !other.data) return !one.data && !other.data;
  if (one.length != other.length) return false;
  for (uint32_t index = 0; index < one.length; index++)
    if (one.data[index] != other.data[index]) return false;
  return true;
}

/* ---- Lists that grow; the host reads them when the call returns ---- */

typedef struct {
  uint8_t *start;
  uint32_t length, capacity;
} list;

static uint8_t *extend(list *list, uint32_t bytes) {
  uint32_t needed = list->length + bytes;
  if (needed > list->capacity) {
    uint32_t capacity = needed * 2 < 256 ? 256 : needed * 2;
    uint8_t *start = allocate(capacity, 8);
    copy(start, list->start, list->length);
    list->start = start;
    list->capacity = capacity;
  }
  uint8_t *end = list->start + list->length;
  list->length = needed;
  return end;
}

tidegate_bytes tidegate_joined(const tidegate_bytes *parts, uint32_t count) {
  list text = {0, 0, 0};
  for (; count > 0; count--, parts++) copy(extend(&text, parts->length), parts->data, parts->length);
  return (tidegate_bytes){(const char *)text.start, text.length};
}

/* ---- Settings ---- */

static uint32_t skip_blanks(tidegate_bytes text, uint32_t at) {
  while (at < text.length && (text.data[at] == ' ' || text.data[at] == '\n' || text.data[at] == '\r' || text.data[at] == '\t'))
    at++;
  return at;
}

static bool take(tidegate_bytes text, uint32_t *at, char wanted) {
  *at = skip_blanks(text, *at);
  if (*at >= text.length || text.data[*at] != wanted) return false;
  *at += 1;
  return true;
}

static bool take_string(tidegate_bytes text, uint32_t *at, tidegate_bytes *string) {
  if (!take(text, at, '"')) return false;
  uint32_t start = *at;
  while (*at < text.length && text.data[*at] != '"') {
    if (text.data[*at] == '\\' || (uint8_t)text.data[*at] < 0x20) return false;
    *at += 1;
  }
  *string = (tidegate_bytes){text.data + start, *at - start};
  return take(text, at, '"');
}

static bool read_settings(tidegate_bytes settings, const tidegate_bytes *names, tidegate_bytes *values, uint32_t count,
                          tidegate_bytes *unknown) {
  uint32_t at = 0;
  if (!take(settings, &at, '{')) return false;
  bool is_end = take(settings, &at, '}');
  while (!is_end) {
    tidegate_bytes key, value;
    if (!take_string(settings, &at, &key) || !take(settings, &at, ':') || !take_string(settings, &at, &value)) return false;
    uint32_t index = 0;
    while (index < count && !tidegate_equal(names[index], key)) index++;
    if (index < count) values[index] = value;
    else *unknown = key;
    is_end = take(settings, &at, '}');
    if (!is_end && !take(settings, &at, ',')) return false;
  }
  return skip_blanks(settings, at) == settings.length;
}

bool tidegate_settings(tidegate_bytes settings, const tidegate_bytes *names, tidegate_bytes *values, uint32_t count,
                       tidegate_bytes *problem) {
  tidegate_bytes unknown = {NULL, 0};
  if (!read_settings(settings, names, values, count, &unknown)) {
    *problem = TIDEGATE_TEXT("must be one JSON object whose members are strings without escapes");
    return false;
  }
  if (!unknown.data) return true;
  const tidegate_bytes words[] = {TIDEGATE_TEXT("there is no setting "), unknown, TIDEGATE_TEXT("; there is: ")};
  *problem = tidegate_joined(words, 3);
  for (uint32_t index = 0; index < count; index++) {
    const tidegate_bytes more[] = {*problem, index ? TIDEGATE_TEXT(", ") : NOTHING, names[index]};
    *problem = tidegate_joined(more, 3);
  }
  return false;
}

bool tidegate_one_setting(tidegate_bytes settings, tidegate_bytes name, tidegate_bytes *value, tidegate_bytes *problem) {
  return tidegate_settings(settings, &name, value, 1, problem);
}

/* ---- What the host calls ---- */

typedef struct {
  tidegate_bytes name, version;
  uint8_t has_schema;
  tidegate_bytes schema;
} about;

typedef struct {
  tidegate_bytes at, message;
} problem;

typedef struct {
  uint8_t is_error;
  problem *problems;
  uint32_t count;
} init_result;

typedef struct {
  uint8_t is_error;
  tidegate_bytes message;
} text_result;

#define EXPORT(interface, function) __attribute__((export_name("tidegate:plugin/" interface "@0.1.0#" function)))
#define BEHIND(interface, function) __attribute__((export_name("cabi_post_tidegate:plugin/" interface "@0.1.0#" function)))

EXPORT("lifecycle", "describe") about *describe(void) {
  about *answer = allocate(sizeof *answer, 4);
  *answer = (about){tidegate_name, tidegate_version, 0, {NULL, 0}};
  return answer;
}

static tidegate_bytes source_cluster;
tidegate_bytes tidegate_source_cluster(void) { return source_cluster; }

EXPORT("lifecycle", "init")
init_result *init(const char *flow, uint32_t flow_length, const char *source, uint32_t source_length, const char *target,
                  uint32_t target_length, const char *settings, uint32_t settings_length) {
  (void)flow, (void)flow_length, (void)target, (void)target_length;
  source_cluster = (tidegate_bytes){source, source_length};
  init_result *answer = allocate(sizeof *answer, 4);
  problem *found = allocate(sizeof *found, 4);
  *found = (problem){NOTHING, NOTHING};
  bool is_good = tidegate_init((tidegate_bytes){settings, settings_length}, &found->message);
  *answer = (init_result){!is_good, found, is_good ? 0 : 1};
  return answer;
}

EXPORT("lifecycle", "self-test") text_result *self_test(void) {
  text_result *answer = allocate(sizeof *answer, 4);
  *answer = (text_result){0, NOTHING};
  return answer;
}

BEHIND("lifecycle", "describe") void after_describe(about *answer) { (void)answer, empty_heap(); }
BEHIND("lifecycle", "init") void after_init(init_result *answer) { (void)answer, empty_heap(); }
BEHIND("lifecycle", "self-test") void after_self_test(text_result *answer) { (void)answer, empty_heap(); }

#if defined TIDEGATE_TOPIC_NAMING

/* ---- Names of topics ---- */

typedef struct {
  uint8_t is_some;
  tidegate_bytes text;
} optional_text;

EXPORT("topic-naming", "to-target") text_result *to_target(const char *topic, uint32_t topic_length) {
  text_result *answer = allocate(sizeof *answer, 4);
  answer->message = NOTHING;
  answer->is_error = !tidegate_to_target((tidegate_bytes){topic, topic_length}, &answer->message);
  return answer;
}

EXPORT("topic-naming", "to-source") optional_text *to_source(const char *topic, uint32_t topic_length) {
  optional_text *answer = allocate(sizeof *answer, 4);
  answer->text = NOTHING;
  answer->is_some = tidegate_to_source((tidegate_bytes){topic, topic_length}, &answer->text);
  return answer;
}

BEHIND("topic-naming", "to-target") void after_to_target(text_result *answer) { (void)answer, empty_heap(); }
BEHIND("topic-naming", "to-source") void after_to_source(optional_text *answer) { (void)answer, empty_heap(); }

#elif defined TIDEGATE_ACL_MAPPING

/* ---- Access rules ---- */

_Static_assert(sizeof(tidegate_acl) == 44, "the contract's layout");

typedef struct {
  tidegate_acl *rules;
  uint32_t count;
} acl_list;

typedef struct {
  uint8_t is_error;
  /* The lists and their count, or the reason. */
  const void *start;
  uint32_t length;
} acls_result;

static list mapped;

void tidegate_becomes(tidegate_acl acl) { copy(extend(&mapped, sizeof acl), &acl, sizeof acl); }

EXPORT("acl-mapping", "map-acls") acls_result *map_acls(const tidegate_acl *acls, uint32_t count) {
  acls_result *answer = allocate(sizeof *answer, 4);
  list lists = {0, 0, 0};
  for (uint32_t index = 0; index < count; index++) {
    tidegate_bytes reason = NOTHING;
    mapped = (list){0, 0, 0};
    if (!tidegate_map_acl(acls[index], &reason)) {
      *answer = (acls_result){1, reason.data, reason.length};
      return answer;
    }
    acl_list own = {(tidegate_acl *)mapped.start, mapped.length / sizeof(tidegate_acl)};
    copy(extend(&lists, sizeof own), &own, sizeof own);
  }
  *answer = (acls_result){0, lists.start, count};
  return answer;
}

BEHIND("acl-mapping", "map-acls") void after_map_acls(acls_result *answer) { (void)answer, empty_heap(); }

#else

/* ---- Looking at records ---- */

static tidegate_bytes span(const tidegate_batch *batch, uint32_t offset, uint32_t length) {
  if (length == NULL_LENGTH) return (tidegate_bytes){NULL, 0};
  return (tidegate_bytes){(const char *)batch->data + offset, length};
}

static const uint32_t *words(const tidegate_batch *batch, uint32_t record) {
  return batch->records + (size_t)record * batch->words_per_record;
}

tidegate_bytes tidegate_key(const tidegate_batch *batch, uint32_t record) {
  return span(batch, words(batch, record)[2], words(batch, record)[3]);
}

tidegate_bytes tidegate_value(const tidegate_batch *batch, uint32_t record) {
  return span(batch, words(batch, record)[4], words(batch, record)[5]);
}

bool tidegate_header(const tidegate_batch *batch, uint32_t record, tidegate_bytes name, tidegate_bytes *value) {
  const uint32_t *header = batch->headers + (size_t)words(batch, record)[6] * 4;
  for (uint32_t count = words(batch, record)[7]; count > 0; count--, header += 4) {
    if (tidegate_equal(span(batch, header[0], header[1]), name)) {
      *value = span(batch, header[2], header[3]);
      return true;
    }
  }
  return false;
}

/* ---- Edits: two growing lists ---- */

static list edit_data, edit_words;

static void put(uint32_t word) { copy(extend(&edit_words, 4), &word, 4); }

static void put_bytes(tidegate_bytes bytes) {
  put(edit_data.length);
  put(bytes.data ? bytes.length : NULL_LENGTH);
  if (bytes.data) copy(extend(&edit_data, bytes.length), bytes.data, bytes.length);
}

static void edit(uint32_t record, uint32_t code, tidegate_bytes a, tidegate_bytes b) {
  put(record);
  put(code);
  put_bytes(a);
  put_bytes(b);
}

void tidegate_drop(uint32_t record) { edit(record, 0, NOTHING, NOTHING); }
void tidegate_reject(uint32_t record, tidegate_bytes reason) { edit(record, 1, reason, NOTHING); }
void tidegate_set_header(uint32_t record, tidegate_bytes name, tidegate_bytes value) { edit(record, 2, name, value); }
void tidegate_add_header(uint32_t record, tidegate_bytes name, tidegate_bytes value) { edit(record, 3, name, value); }
void tidegate_rename_header(uint32_t record, tidegate_bytes from, tidegate_bytes to) { edit(record, 4, from, to); }
void tidegate_remove_header(uint32_t record, tidegate_bytes name) { edit(record, 5, name, NOTHING); }
void tidegate_set_key(uint32_t record, tidegate_bytes key) { edit(record, 6, key, NOTHING); }
void tidegate_set_value(uint32_t record, tidegate_bytes value) { edit(record, 7, value, NOTHING); }
void tidegate_clear_value(uint32_t record) { edit(record, 8, NOTHING, NOTHING); }

void tidegate_splice_value(uint32_t record, uint32_t offset, uint32_t length, tidegate_bytes with) {
  put(record);
  put(9);
  put(offset);
  put(length);
  put_bytes(with);
}

/* ---- What the host calls about records ---- */

typedef struct {
  uint8_t parts;
  tidegate_bytes *names;
  uint32_t count;
} needed;

typedef struct {
  uint8_t is_error;
  uint8_t *data;
  uint32_t data_length;
  uint8_t *words;
  uint32_t word_count;
} edits_result;

EXPORT("records", "needs") needed *needs(void) {
  needed *answer = allocate(sizeof *answer, 4);
  tidegate_bytes *header = allocate(sizeof *header, 4);
  *header = (tidegate_bytes){NULL, 0};
  uint8_t parts = (uint8_t)tidegate_needs(header);
  *answer = (needed){parts, header, header->data ? 1 : 0};
  return answer;
}

EXPORT("records", "process")
edits_result *process(const char *topic, uint32_t topic_length, int32_t partition, int64_t base_offset, uint32_t count,
                      const uint8_t *data, uint32_t data_length, uint32_t words_per_record, const uint32_t *records,
                      uint32_t records_length, const uint32_t *headers, uint32_t headers_length,
                      const int64_t *timestamps, uint32_t timestamps_length) {
  (void)data_length, (void)records_length, (void)headers_length, (void)timestamps_length;
  edit_data = edit_words = (list){0, 0, 0};
  tidegate_batch batch = {{topic, topic_length}, partition, base_offset, count, data, words_per_record,
                          records,               headers,   timestamps};
  tidegate_edit(&batch);
  edits_result *answer = allocate(sizeof *answer, 4);
  *answer = (edits_result){0, edit_data.start, edit_data.length, edit_words.start, edit_words.length / 4};
  return answer;
}

BEHIND("records", "needs") void after_needs(needed *answer) { (void)answer, empty_heap(); }
BEHIND("records", "process") void after_process(edits_result *answer) { (void)answer, empty_heap(); }

#endif
