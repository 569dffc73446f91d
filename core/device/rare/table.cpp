// core/device/rare/table.cpp: every function of a device's table as others call it: while it runs,
// its thread says so, for who looks whether it comes back (core/plugin/hot/watch.cpp).
#include <cstddef>
#include <type_traits>

#include "core/base/tls.hpp"
#include "core/device/registry.hpp"
#include "core/guest/caught.hpp"

namespace adjoin {
namespace {

// What the thread says while a function runs; a function that calls back is named again after it.
struct Said {
  const char *plugin = tls.device_plugin, *function = tls.device_call;
  Said(const char* now_plugin, const char* now_function) { say(now_plugin, now_function); }
  ~Said() { say(plugin, function); }
  static void say(const char* plugin, const char* function) {
    __atomic_store_n(&tls.device_plugin, plugin, __ATOMIC_RELAXED);
    __atomic_store_n(&tls.device_call, function, __ATOMIC_RELEASE);
  }
};

template <size_t n>
struct Word {
  char text[n];
  consteval Word(const char (&from)[n]) {
    for (size_t i = 0; i < n; i++) text[i] = from[i];
  }
};

template <auto F, Word name, class R, class... A>
R watched(void* self, A... args) {
  auto* p = static_cast<const Provider*>(self);
  __atomic_store_n(&tls.kernels, tls.kernels + 1, __ATOMIC_RELAXED);
  Said said(p->plugin.c_str(), name.text);
  if constexpr (std::is_same_v<R, aj_status*>) {
    aj_status* s = (p->own.*F)(p->own.self, args...);
    if (__builtin_expect(s != nullptr, 0))
      look_at_returned(s, reinterpret_cast<const void*>(p->own.*F));
    return s;
  } else {
    return (p->own.*F)(p->own.self, args...);
  }
}

template <auto F, Word name, class R, class... A>
void watch_one(Provider* p, R (*own)(void* self, A...)) {
  if (own) p->vtbl.*F = watched<F, name, R, A...>;
}

}  // namespace

void watch_table(Provider* p) {
  p->vtbl = p->own;
  p->vtbl.name = str(p->name);
  p->vtbl.self = p;
#define WATCH(f) watch_one<&aj_device_vtbl::f, #f>(p, p->own.f)
  WATCH(count), WATCH(props), WATCH(mem_alloc), WATCH(mem_free), WATCH(mem_info), WATCH(mem_idle);
  WATCH(stream_new), WATCH(stream_free), WATCH(stream_sync), WATCH(stream_query),
      WATCH(stream_wait), WATCH(stream_host_fn);
  WATCH(event_new), WATCH(event_free), WATCH(event_record), WATCH(event_query), WATCH(event_sync),
      WATCH(event_elapsed);
  WATCH(copy), WATCH(fill), WATCH(ipc_export), WATCH(ipc_open), WATCH(ipc_close);
  WATCH(fork_prepare), WATCH(fork_parent), WATCH(fork_child);
  WATCH(capture_begin), WATCH(capture_end), WATCH(graph_launch), WATCH(graph_free);
#undef WATCH
}

}  // namespace adjoin
