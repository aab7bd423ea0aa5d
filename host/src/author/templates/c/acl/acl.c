/* Says what an access rule of the source becomes on the target: principals get a suffix, {"suffix": "-dr"}, and rules that
 * let write are left out, since nobody but the replicator writes there. */
#include "tidegate.h"

const tidegate_bytes tidegate_name = TIDEGATE_TEXT("{{name}}"), tidegate_version = TIDEGATE_TEXT("0.1.0");

static char suffix[64];
static uint32_t suffix_length;

bool tidegate_init(tidegate_bytes settings, tidegate_bytes *problem) {
  tidegate_bytes wanted = TIDEGATE_TEXT("");
  if (!tidegate_one_setting(settings, TIDEGATE_TEXT("suffix"), &wanted, problem)) return false;
  if (wanted.length > sizeof suffix) {
    *problem = TIDEGATE_TEXT("suffix must not be longer than 64 bytes");
    return false;
  }
  for (uint32_t index = 0; index < wanted.length; index++) suffix[index] = wanted.data[index];
  suffix_length = wanted.length;
  return true;
}

/* Nothing, one rule or several. A rule that allows more than the source's is refused by the host. */
bool tidegate_map_acl(tidegate_acl acl, tidegate_bytes *reason) {
  (void)reason;
  if (tidegate_equal(acl.operation, TIDEGATE_TEXT("WRITE"))) return true;
  const tidegate_bytes parts[] = {acl.principal, {suffix, suffix_length}};
  acl.principal = tidegate_joined(parts, 2);
  tidegate_becomes(acl);
  return true;
}
