// adjoin/kit/experimental.hpp: interfaces outside the contract, which may change or go:
// "x.plugins".
#ifndef ADJOIN_KIT_EXPERIMENTAL_HPP
#define ADJOIN_KIT_EXPERIMENTAL_HPP
#include <adjoin/abi/plugin.h>

// Definitions that come while a process runs. Both are transactions, like a plugin's init.
struct aj_x_plugins {
  uint32_t struct_size, minor;
  // Loads a file; where a plugin of its name is loaded from another file, in that one's place.
  // Calls that begin afterwards meet the new functions. An op keeps its identity while its schema
  // stays; one whose schema changed is a new op under the old name. The old file stays mapped: a
  // tape may need it. After an error everything is as before. out: a string object, the plugin's
  // name.
  aj_status* (*replace)(aj_str path, aj_object** out_name);
  // What a frontend defines without a file, by a name of its own, which a later call replaces.
  aj_status* (*define)(aj_str name, aj_status* (*init)(void* self, const aj_plugin_env* env),
                       void* self);
};
#endif
