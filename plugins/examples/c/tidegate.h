/* What a Tidegate plugin in C sees: a batch's records, and what can be done to them; or names of topics; or access rules.
 *
 * The contract is plugin-sdk/wit/0.1.0/plugin.wit; tidegate.c speaks its binary form (the component model's canonical
 * ABI), so that a plugin needs no generated code. A plugin defines what stands at the end: for records, unless the build
 * says -DTIDEGATE_TOPIC_NAMING or -DTIDEGATE_ACL_MAPPING.
 *
 * All bytes belong to the call: they are gone when the function returns. What must stay longer is copied into memory of
 * the plugin's own. There is no C library: no malloc, no stdio. */
#ifndef TIDEGATE_H
#define TIDEGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes with a length; not ended by a zero. `data` is NULL for Kafka's null, which is not the same as empty. */
typedef struct {
  const char *data;
  uint32_t length;
} tidegate_bytes;

#define TIDEGATE_TEXT(literal) ((tidegate_bytes){(literal), sizeof(literal) - 1})

/* True for two equal byte strings; null equals only null. */
bool tidegate_equal(tidegate_bytes one, tidegate_bytes other);

typedef enum { TIDEGATE_DEBUG, TIDEGATE_INFO, TIDEGATE_WARN, TIDEGATE_ERROR } tidegate_level;

/* Writes a line to the host's log, which adds plugin and flow. */
void tidegate_log(tidegate_level level, tidegate_bytes message);

/* Adds to a counter that the host shows as a metric; at most 64 names. */
void tidegate_count(tidegate_bytes name, uint64_t by);

/* The parts one behind the other. */
tidegate_bytes tidegate_joined(const tidegate_bytes *parts, uint32_t count);

/* The cluster that is copied from. Only for `tidegate_init`. */
tidegate_bytes tidegate_source_cluster(void);

/* The string members of a settings object such as {"name": "origin", "value": "east"}: true and their bytes, or false with
 * what is wrong. Escapes are not understood; they are a problem, not a guess. An absent member leaves its value as it is. */
bool tidegate_settings(tidegate_bytes settings, const tidegate_bytes *names, tidegate_bytes *values, uint32_t count,
                       tidegate_bytes *problem);
/* The same for an object of one member. */
bool tidegate_one_setting(tidegate_bytes settings, tidegate_bytes name, tidegate_bytes *value, tidegate_bytes *problem);

#if !defined TIDEGATE_TOPIC_NAMING && !defined TIDEGATE_ACL_MAPPING
/* The batch that is being looked at. */
typedef struct {
  tidegate_bytes topic;
  int32_t partition;
  int64_t base_offset;
  uint32_t record_count;
  const uint8_t *data;
  uint32_t words_per_record;
  const uint32_t *records;
  const uint32_t *headers;
  const int64_t *timestamps;
} tidegate_batch;

/* Looks at a record; `record` is its index in the batch. Parts that were not asked for are null. */
tidegate_bytes tidegate_key(const tidegate_batch *batch, uint32_t record);
tidegate_bytes tidegate_value(const tidegate_batch *batch, uint32_t record);
/* The first header of that name. */
bool tidegate_header(const tidegate_batch *batch, uint32_t record, tidegate_bytes name, tidegate_bytes *value);

/* Edits. Those of one record lie together, and records come in rising order. */
void tidegate_drop(uint32_t record);
void tidegate_reject(uint32_t record, tidegate_bytes reason);
void tidegate_set_header(uint32_t record, tidegate_bytes name, tidegate_bytes value);
void tidegate_add_header(uint32_t record, tidegate_bytes name, tidegate_bytes value);
void tidegate_rename_header(uint32_t record, tidegate_bytes from, tidegate_bytes to);
void tidegate_remove_header(uint32_t record, tidegate_bytes name);
void tidegate_set_key(uint32_t record, tidegate_bytes key);
void tidegate_set_value(uint32_t record, tidegate_bytes value);
void tidegate_clear_value(uint32_t record);
/* Puts `with` in the place of `length` bytes of the old value from `offset` on. */
void tidegate_splice_value(uint32_t record, uint32_t offset, uint32_t length, tidegate_bytes with);

/* Parts that a plugin may ask for. */
enum { TIDEGATE_KEY = 1, TIDEGATE_VALUE = 2, TIDEGATE_HEADERS = 4, TIDEGATE_TIMESTAMPS = 8 };
#endif

#ifdef TIDEGATE_ACL_MAPPING
enum {
  TIDEGATE_TOPIC,
  TIDEGATE_GROUP,
  TIDEGATE_TRANSACTIONAL_ID,
  TIDEGATE_CLUSTER,
  TIDEGATE_DELEGATION_TOKEN,
  TIDEGATE_USER
};
enum { TIDEGATE_LITERAL, TIDEGATE_PREFIXED };
enum { TIDEGATE_ALLOW, TIDEGATE_DENY };

/* An access rule, as the contract lays it out. */
typedef struct {
  uint8_t kind;
  tidegate_bytes name;
  uint8_t pattern;
  tidegate_bytes principal, client_host;
  /* Kafka's names: READ, WRITE, DESCRIBE, ... */
  tidegate_bytes operation;
  uint8_t permission;
} tidegate_acl;

/* Says that the rule which is being looked at becomes this one, too. */
void tidegate_becomes(tidegate_acl acl);
#endif

/* ---- What a plugin defines ---- */

/* Its name and version. */
extern const tidegate_bytes tidegate_name, tidegate_version;
/* Reads the settings, one JSON object; false and a sentence when they can't be used. */
bool tidegate_init(tidegate_bytes settings, tidegate_bytes *problem);

#if defined TIDEGATE_TOPIC_NAMING
/* The name on the target; or false, and why the topic is not copied. */
bool tidegate_to_target(tidegate_bytes topic, tidegate_bytes *name_or_reason);
/* The inverse; false for names that `tidegate_to_target` never makes. Loops are found by it. */
bool tidegate_to_source(tidegate_bytes topic, tidegate_bytes *name);
#elif defined TIDEGATE_ACL_MAPPING
/* Called once a rule; what `tidegate_becomes` is not called for is dropped. False, and a sentence, is a fault. */
bool tidegate_map_acl(tidegate_acl acl, tidegate_bytes *reason);
#else
/* The parts that `tidegate_edit` looks at; with TIDEGATE_HEADERS, `header` is the one that is wanted, or null for all. */
uint32_t tidegate_needs(tidegate_bytes *header);
/* Called once a batch. */
void tidegate_edit(const tidegate_batch *batch);
#endif

#endif
