/* plugins/left_out.c: an op pack of a build without them (-Dpacks=false): its ops are known by
 * name, and who calls one reads what to do. */
#include <adjoin/abi/core.h>
#include <adjoin/abi/plugin.h>

AJ_PLUGIN_NOTE(LEFT_OUT, "0.1.0", "Adjoin", "Apache-2.0", "ops:" LEFT_OUT, "");

AJ_PLUGIN_INIT {
  const aj_core* core = (const aj_core*)env->query("aj.core", 1);
  return core->status_new(
      AJ_UNAVAILABLE, AJ_STR_LIT("RuntimeError"),
      AJ_STR_LIT("this build has the names of its ops alone; `./run build` adds their code"),
      __FILE__, __LINE__);
}
