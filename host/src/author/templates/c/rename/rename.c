/* Puts a prefix before each topic's name: {"prefix": "copy."}; without settings, the source cluster and a dot. */
#include "tidegate.h"

const tidegate_bytes tidegate_name = TIDEGATE_TEXT("{{name}}"), tidegate_version = TIDEGATE_TEXT("0.1.0");

/* As long as a topic's name may be. */
#define PREFIX_BYTES_MAX 249
static char prefix[PREFIX_BYTES_MAX];
static uint32_t prefix_length;

bool tidegate_init(tidegate_bytes settings, tidegate_bytes *problem) {
  const tidegate_bytes source_and_dot[] = {tidegate_source_cluster(), TIDEGATE_TEXT(".")};
  tidegate_bytes wanted = tidegate_joined(source_and_dot, 2);
  if (!tidegate_one_setting(settings, TIDEGATE_TEXT("prefix"), &wanted, problem)) return false;
  if (wanted.length == 0 || wanted.length > PREFIX_BYTES_MAX) {
    *problem = TIDEGATE_TEXT("prefix must not be empty, nor longer than 249 bytes");
    return false;
  }
  for (uint32_t index = 0; index < wanted.length; index++) prefix[index] = wanted.data[index];
  prefix_length = wanted.length;
  return true;
}

/* False, and a sentence in `name_or_reason`, refuses the topic: it is not copied, and the operator reads why. */
bool tidegate_to_target(tidegate_bytes topic, tidegate_bytes *name_or_reason) {
  const tidegate_bytes parts[] = {{prefix, prefix_length}, topic};
  *name_or_reason = tidegate_joined(parts, 2);
  return true;
}

bool tidegate_to_source(tidegate_bytes topic, tidegate_bytes *name) {
  if (topic.length <= prefix_length) return false;
  if (!tidegate_equal((tidegate_bytes){topic.data, prefix_length}, (tidegate_bytes){prefix, prefix_length})) return false;
  *name = (tidegate_bytes){topic.data + prefix_length, topic.length - prefix_length};
  return true;
}
