/* Lets only records of one region pass: those whose header "region" is what the settings say, {"region": "eu"} by
 * default. What has no such header stays. */
#include "tidegate.h"

const tidegate_bytes tidegate_name = TIDEGATE_TEXT("region-only"), tidegate_version = TIDEGATE_TEXT("0.1.0");

static const tidegate_bytes HEADER = TIDEGATE_TEXT("region");
static char region[64] = "eu";
static uint32_t region_length = 2;

bool tidegate_init(tidegate_bytes settings, tidegate_bytes *problem) {
  tidegate_bytes wanted = {region, region_length};
  if (!tidegate_one_setting(settings, HEADER, &wanted, problem)) return false;
  if (wanted.length > sizeof region) {
    *problem = TIDEGATE_TEXT("region must not be longer than 64 bytes");
    return false;
  }
  for (uint32_t index = 0; index < wanted.length; index++) region[index] = wanted.data[index];
  region_length = wanted.length;
  return true;
}

uint32_t tidegate_needs(tidegate_bytes *header) {
  *header = HEADER;
  return TIDEGATE_HEADERS;
}

void tidegate_edit(const tidegate_batch *batch) {
  for (uint32_t record = 0; record < batch->record_count; record++) {
    tidegate_bytes value;
    bool is_told = tidegate_header(batch, record, HEADER, &value);
    if (!is_told || !tidegate_equal(value, (tidegate_bytes){region, region_length})) tidegate_drop(record);
  }
}
