// plugins/vector/clones.hpp: a function compiled for several instruction sets; the loader picks one
// when the library is opened.
#ifndef ADJOIN_PLUGINS_VECTOR_CLONES_HPP
#define ADJOIN_PLUGINS_VECTOR_CLONES_HPP

// Sanitizers are not ready yet when such a choice is made, and clang needs a newer version than the
// oldest that we build with.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AJ_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define AJ_CLONES
#endif
#endif
