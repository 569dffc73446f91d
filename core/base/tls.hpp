// core/base/tls.hpp: everything a thread keeps, in one struct, reached without a call (initial-exec
// TLS).
#pragma once
#include <cstdint>

#include "core/base/status.hpp"

namespace adjoin {

constexpr int kSmallClasses = 8;  // 64 128 192 256 384 512 768 1024 bytes

struct FreeList {
  void* head;
  uint32_t count;
  uint32_t limit;  // above it half is given back; 0 until the thread is registered, so the first
                   // free registers it
};

struct SavedHooks;     // a stack, core/tape
struct AutocastState;  // core/op
struct Kernel;         // core/op
struct Open;           // core/profile

struct Tls {
  FreeList small[kSmallClasses];
  uint64_t include, exclude;  // dispatch keys added to and removed from each call
  uint64_t seq, seq_end;      // recording order, taken in blocks
  uint32_t line, site;        // the user's place for the next recorded node
  uint8_t grad_off, inference, in_backward,
      awaited;  // zero-initialised: recording is on by default; awaited: core/thread/quiet.cpp
  int32_t thread_index;  // 0 for any thread that is not a worker of the pool
  void* node_free_head;  // chains freed without recursion, core/tape
  uint8_t node_freeing, in_parallel, registered,
      settling;    // settling: how deep, core/tape/wrap.cpp
  uint32_t depth;  // calls inside calls: a body that calls itself is stopped before the stack ends
  SavedHooks* saved_hooks;
  AutocastState* autocast;  // NULL until it is asked for
  void* memory_cache;       // the thread's cache of medium blocks, core/memory
  DLDevice stream_device;   // the one device whose current stream is cached in `stream`
  void* stream;
  void* current_node;            // while a node runs: for messages and anomaly mode
  const Kernel* running_kernel;  // whose code is being run; kernels live as long as the process
  uint32_t kernels;              // how many have been run: tells one that takes long from many
  const aj_op* running_op;  // the op whose results are allocated: for the report of who owns memory
  const char *device_call,
      *device_plugin;  // the function of a device's table that is running, and whose it is
  uint64_t event;      // the innermost one that was begun and is told, core/profile; 0: none
  Open* open;          // the innermost one of this thread
  uint32_t thread_id,
      telling;  // the system's number, once it was asked for; a listener is being told
  uint64_t stack_low,
      stack_room;  // where on the thread's stack there is room for more, once it was asked for
};
static_assert(sizeof(Tls) <= 512, "must fit glibc's static TLS surplus");

// constinit: no access asks whether the struct was initialised.
extern constinit thread_local Tls tls __attribute__((tls_model("initial-exec")));

// The name of running_op, and of others; core/op/schema.cpp has it.
std::string_view op_name(const aj_op* op);

// core/interfaces/threads.cpp has it, which knows all that threads keep.
// Called once per thread before its first use of a free list or a cache: arranges that they are
// given back at its end.
void register_thread();

// Is the stack of this thread nearly used up? Of another stack that somebody has put in its place
// nothing is known.
bool stack_ends();
inline bool stack_is_short() {
  auto at = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  return __builtin_expect(at - tls.stack_low >= tls.stack_room, 0) && stack_ends();
}

}  // namespace adjoin
