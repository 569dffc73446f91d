/* adjoin/abi/capi.h: the four symbols of libadjoin.so, for frontends. All else is reached through
 * aj_get_interface. Any thread may call any function here; those that load, drain or look for plugins wait
 * for each other, and a callback of theirs (init, drain, visit) may call them again. */
#ifndef ADJOIN_ABI_CAPI_H
#define ADJOIN_ABI_CAPI_H
#include "plugin.h"
#ifdef __cplusplus
extern "C" {
#endif

/* "aj.core", "aj.op", "aj.autograd", "aj.service", "aj.plugins" with major 1; "x.NAME" for what may change.
 * NULL: there is none. Lives as long as the process. The first call reads notes of plugins, and runs none. */
AJ_EXPORT const void* aj_get_interface(const char* name, uint32_t major);

/* (major << 16) | minor. */
AJ_EXPORT uint32_t aj_abi_version(void);

/* Loads a file now, whatever search path and the policy "only:" say; of a place others write to it warns. */
AJ_EXPORT aj_status* aj_load_plugin(const char* path);

typedef struct aj_plugin_info { /* EXTENSIBLE. strings live as long as the process */
  uint32_t struct_size;
  uint32_t state; /* AJ_PLUGIN_... */
  aj_str name, version, vendor, license, path, provides;
  aj_str reason;  /* why it was refused, failed, is shadowed or disabled; else empty */
  uint16_t abi_major, minor_min, minor_built, reserved;
  uint32_t build_flags, reserved2;
  aj_str ops;     /* the schemas of its section .adjoin.ops, a line each; "" if there is none */
} aj_plugin_info;
enum {
  AJ_PLUGIN_FOUND = 0, AJ_PLUGIN_LOADED = 1, AJ_PLUGIN_REFUSED = 2,
  AJ_PLUGIN_FAILED = 3, AJ_PLUGIN_SHADOWED = 4, AJ_PLUGIN_DISABLED = 5
};

/* Calls visit for every plugin known, in search order, until it returns non-zero. */
AJ_EXPORT aj_status* aj_list_plugins(int32_t (*visit)(void* self, const aj_plugin_info* info), void* self);

/* Interface "aj.plugins", for tools. */
typedef struct aj_plugins { /* EXTENSIBLE */
  uint32_t struct_size, minor;
  aj_status* (*inspect)(aj_str path, aj_plugin_info* io); /* reads the note, decides, runs nothing */
  aj_status* (*why)(aj_str name_or_provides, aj_object** out); /* a string: what was found, and decided */
  aj_status* (*disable)(aj_str name);         /* drains it; its kernels are not chosen any more */
  aj_status* (*search_path)(aj_object** out); /* a string object, one folder a line */
  aj_status* (*add_folder)(aj_str path);      /* a frontend's own; it comes after ADJOIN_PLUGIN_PATH */
  aj_status* (*lint)(aj_str path, aj_object** out); /* a string: a broken rule a line, or "" */
  /* What the device's active provider filled in, for tools that try it; what it lacks is NULL. */
  aj_status* (*device_table)(DLDevice device, const aj_device_vtbl** out);
  aj_status* (*enable)(aj_str name); /* undoes disable and unload: init runs again, in the file of now */
  aj_status* (*unload)(aj_str name, aj_object** out); /* a string: what keeps it mapped, or "" */
  aj_status* (*lock)(aj_object** out); /* a string: what is loaded now, as a file for ADJOIN_PLUGINS=lock: */
  aj_status* (*verify)(aj_str path, aj_object** out); /* a string: a difference a line, or "" */
  /* For plugins: dlopen, now and local, noted for lock(); refused where the lock says otherwise. */
  aj_status* (*library_open)(aj_str plugin, aj_str file, void** out_handle);
  /* on: counts from now who serves which op. out (or NULL): a string, the counts, a line of names first. */
  aj_status* (*trace)(int32_t on, aj_object** out);
} aj_plugins;

#ifdef __cplusplus
}
#endif
#endif
