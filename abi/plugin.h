/* adjoin/abi/plugin.h: the note that libadjoin reads from the file before any code of a plugin runs, and what
 * init receives.
 * A plugin is libaj_NAME.so. It exports aj_plugin_note_v1 (data), aj_plugin_init_v1, optionally
 * aj_plugin_drain_v1, and nothing else, and has no undefined symbol of ours. init and drain are never called
 * twice at once. init is a transaction: a status from it takes back all that it defined, types, dtypes and
 * frontends too, and is told to whoever asks for the plugin. Nothing may be thrown out of a callback.
 * drain comes before a plugin is disabled or unloaded. NULL from it promises: its threads have ended, none of
 * its code runs or will be called by work that it queued, and init may come again. The core unmaps the file
 * only then, and only when nothing alive points into it: kernels that run, objects of its types, functions,
 * hooks, custom nodes, memory that it drops, frontends, tables that it handed out, derivatives of ops (which
 * a tape may hold: who defines one stays mapped). What keeps a file mapped
 * is told by adjoin plugins and `unload`. One process should have one libadjoin: a second copy runs init of
 * the same file again, over the same variables. */
#ifndef ADJOIN_ABI_PLUGIN_H
#define ADJOIN_ABI_PLUGIN_H
#include "autograd.h"
#include "base.h"
#include "core.h"
#include "device.h"
#include "op.h"
#include "service.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_plugin_note { /* EXTENSIBLE at its end: a host reads what it knows of any longer one */
  char magic[8];                /* "AJPLUG1"; no pointers, so no relocations */
  uint32_t struct_size;
  uint16_t abi_major;
  uint16_t minor_min;           /* ADJOIN_TARGET_MINOR */
  uint16_t minor_built;
  uint16_t machine;             /* ELF e_machine, 0 any */
  uint32_t build_flags;         /* AJ_BUILD_...: a sanitizer build is refused by a plain host */
  char name[64];                /* [a-z][a-z0-9_-]*; all texts are UTF-8 that ends inside its field */
  char version[32], vendor[64], license[32];
  char provides[1024];          /* "device:acme;ops:acme;key:acme;service:aj.blas/cpu;kernel:cpu/relu":
                                   what makes libadjoin load it */
  char requires_[256];          /* "iface:aj.autograd>=0;plugin:cpu": interfaces with their least minor,
                                   plugins to load before */
} aj_plugin_note;
enum { AJ_BUILD_ASAN = 1u << 0, AJ_BUILD_TSAN = 1u << 1, AJ_BUILD_MSAN = 1u << 2, AJ_BUILD_DEBUG = 1u << 16 };
#define AJ_PLUGIN_MAGIC "AJPLUG1"
#ifdef __APPLE__
#define AJ_PLUGIN_SECTION "__DATA,__ajplugin"
#define AJ_OPS_SECTION "__DATA,__ajops"
#else
#define AJ_PLUGIN_SECTION ".adjoin.plugin"
#define AJ_OPS_SECTION ".adjoin.ops"
#endif

typedef struct aj_plugin_env { /* EXTENSIBLE. valid during init only; what query returns lives on */
  uint32_t struct_size, minor; /* the core's minor */
  const aj_core* core;
  const void* (*query)(const char* interface_name, uint32_t major); /* "aj.op", "x.thing": NULL if absent */
  struct aj_registrar* registrar;
  aj_status* (*def_device)(struct aj_registrar* r, const aj_device_vtbl* v);
  aj_status* (*def_service)(struct aj_registrar* r, const aj_service_def* d);
  aj_str path;    /* where it was loaded from */
  aj_str options; /* the user's, "key=value" lines from ADJOIN_OPTIONS_NAME or a config file; "" if none */
} aj_plugin_env;

typedef aj_status* (*aj_plugin_init_fn)(const aj_plugin_env* env);
typedef aj_status* (*aj_plugin_drain_fn)(void);

#if defined(__SANITIZE_ADDRESS__)
#define AJ_BUILD_FLAGS_ ((uint32_t)AJ_BUILD_ASAN)
#elif defined(__SANITIZE_THREAD__)
#define AJ_BUILD_FLAGS_ ((uint32_t)AJ_BUILD_TSAN)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AJ_BUILD_FLAGS_ ((uint32_t)AJ_BUILD_ASAN)
#elif __has_feature(thread_sanitizer)
#define AJ_BUILD_FLAGS_ ((uint32_t)AJ_BUILD_TSAN)
#endif
#endif
#ifndef AJ_BUILD_FLAGS_
#define AJ_BUILD_FLAGS_ 0u
#endif
#ifdef __cplusplus
#define AJ_EXTERN_C_ extern "C"
#else
#define AJ_EXTERN_C_
#endif
#define AJ_EXPORT __attribute__((visibility("default")))

/* Once in a plugin, at file scope: AJ_PLUGIN_NOTE("acme", "0.1.0", "Acme Corp", "Apache-2.0", "ops:acme",
 * "") */
#define AJ_PLUGIN_NOTE(name_, version_, vendor_, license_, provides_, needs_)                           \
  AJ_EXTERN_C_ AJ_EXPORT const aj_plugin_note aj_plugin_note_v1;                                        \
  __attribute__((section(AJ_PLUGIN_SECTION), used)) const aj_plugin_note aj_plugin_note_v1 = {          \
      AJ_PLUGIN_MAGIC, (uint32_t)sizeof(aj_plugin_note), AJ_ABI_MAJOR, ADJOIN_TARGET_MINOR, AJ_ABI_MINOR, \
      0, AJ_BUILD_FLAGS_, name_, version_, vendor_, license_, provides_, needs_}
/* (optional) The schemas of its ops, a line each: they are known without the file being loaded, and the first
 * look-up of one of them loads it, whatever `provides` says: AJ_PLUGIN_OPS("acme::squash(Tensor input) ->
 * Tensor\n").
 * An op pack, a plugin whose name begins with ops_, says all that callers see in a line of five fields:
 * "SCHEMA\tKIND\tTAGS\tWORDS\tDOC\n". Its ops are listed and bound at once, in any space, and the first
 * call loads the file. KIND, TAGS and DOC are those of aj_op_def (DOC in ASCII, without tabs). WORDS tell
 * what else the definition has: allocates no-in-place body-records (its flags), infer, body, vjp, no-grad.
 * init must define the same. */
#define AJ_PLUGIN_OPS(schemas_)                                                                         \
  AJ_EXTERN_C_ __attribute__((visibility("hidden"))) const char aj_plugin_ops_v1[];                     \
  __attribute__((section(AJ_OPS_SECTION), used)) const char aj_plugin_ops_v1[] = schemas_
/* The function that init is: AJ_PLUGIN_INIT { return NULL; } with `env` in scope. */
#define AJ_PLUGIN_INIT                                                \
  AJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_init_v1(const aj_plugin_env* env); \
  AJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_init_v1(const aj_plugin_env* env)
/* (optional) AJ_PLUGIN_DRAIN { return NULL; } */
#define AJ_PLUGIN_DRAIN                                 \
  AJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_drain_v1(void); \
  AJ_EXTERN_C_ AJ_EXPORT aj_status* aj_plugin_drain_v1(void)

#ifdef __cplusplus
}
#endif
#endif
