/* Puts a header on each record, as the settings say: {"name": "origin", "value": "east"}. */
#include "tidegate.h"

const tidegate_bytes tidegate_name = TIDEGATE_TEXT("{{name}}"), tidegate_version = TIDEGATE_TEXT("0.1.0");

#define SETTING_BYTES_MAX 256
/* Settings belong to the call of tidegate_init; these stay. */
static char kept[2][SETTING_BYTES_MAX];
static tidegate_bytes header_name, header_value;

static tidegate_bytes keep(char *place, tidegate_bytes bytes) {
  for (uint32_t index = 0; index < bytes.length; index++) place[index] = bytes.data[index];
  return (tidegate_bytes){place, bytes.length};
}

bool tidegate_init(tidegate_bytes settings, tidegate_bytes *problem) {
  const tidegate_bytes names[] = {TIDEGATE_TEXT("name"), TIDEGATE_TEXT("value")};
  tidegate_bytes values[] = {{NULL, 0}, {NULL, 0}};
  if (!tidegate_settings(settings, names, values, 2, problem)) return false;
  if (!values[0].data || !values[1].data || values[0].length == 0) {
    *problem = TIDEGATE_TEXT("name and value must be set, and name must not be empty");
    return false;
  }
  if (values[0].length > SETTING_BYTES_MAX || values[1].length > SETTING_BYTES_MAX) {
    *problem = TIDEGATE_TEXT("name and value must not be longer than 256 bytes");
    return false;
  }
  header_name = keep(kept[0], values[0]);
  header_value = keep(kept[1], values[1]);
  return true;
}

/* It changes headers without looking at anything, so nothing crosses into the plugin. */
uint32_t tidegate_needs(tidegate_bytes *header) {
  (void)header;
  return 0;
}

void tidegate_edit(const tidegate_batch *batch) {
  for (uint32_t record = 0; record < batch->record_count; record++) tidegate_set_header(record, header_name, header_value);
}
