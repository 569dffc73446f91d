/* adjoin/abi/profile.h: experimental. Events of calls, kernels, memory and labels while they happen: for
 * profilers, traces, the ranges of vendors' tools. Reached by query("x.profile", 1).
 *
 * While nobody listens a call runs through the functions that it always has, and pays nothing. Every function
 * may be called from any thread. Times are nanoseconds of CLOCK_MONOTONIC, of now_ns(). A kernel of a device
 * with streams ends when it is queued: who wants the device's own time listens with AJ_LISTEN_BEGIN, and
 * records events (device.h) on `stream` at both ends. */
#ifndef ADJOIN_ABI_PROFILE_H
#define ADJOIN_ABI_PROFILE_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { /* aj_event.kind, and what a listener asks for */
  AJ_EVENT_CALL = 1u << 0,   /* an op ran: its results were made and computed. In its time: the calls of its
                                body, its kernels. A call inside of a backward pass is one as any other */
  AJ_EVENT_KERNEL = 1u << 1, /* a kernel of a device, or of a key below the tape, ran. A call that is cut into
                                parts has one for each, on its thread; a body and most views have none */
  AJ_EVENT_MEMORY = 1u << 2, /* the core gave memory of a device to a tensor, or took it back. A tensor of
                                some hundred bytes on the host has none of its own: only in_use counts it */
  AJ_EVENT_LABEL = 1u << 3   /* a range with a name, see label_begin */
};

typedef struct aj_event { /* EXTENSIBLE. it and its texts live until the listener's function returns */
  uint32_t struct_size;
  uint32_t kind;       /* one of AJ_EVENT_... */
  uint64_t id;         /* of this event; ids count up in the order in which events began. Never 0 */
  uint64_t parent;     /* the call, kernel or label that it is part of, which ends later; of a kind that
                          somebody listens to. Parts on other threads have it too. 0: none */
  aj_str name;         /* the op; a label's text; memory: the op that runs, "" outside of calls */
  aj_str provider;     /* the plugin that served, or that has the memory; "": libadjoin, or a label */
  DLDevice device;     /* where; of a label {0, 0} */
  void* stream;        /* kernels, and calls that ran one: what aj_call has; else NULL */
  uint32_t thread;     /* the system's number of the thread (gettid) that began it */
  uint32_t line;       /* the user's line, for line_text of core.h: the last that a frontend has noted on the
                          thread, in a backward pass the recorded one. 0: none */
  uint64_t begin_ns;
  uint64_t end_ns;     /* memory: equal to begin_ns. 0: it begins now, see AJ_LISTEN_BEGIN */
  int64_t bytes;       /* kernels: of operands read and written. memory: + given out, - taken back; what was
                          reserved, never less than asked for. else 0 */
  uint64_t in_use;     /* memory: in_use of memory_stats, just afterwards; else 0 */
  void* data;          /* memory: the address or handle; else NULL */
  int32_t code;        /* calls and kernels: 0, or the status code (AJ_UNIMPLEMENTED: it declined) */
  uint32_t reserved;   /* 0 */
} aj_event;

enum { /* aj_listener.flags */
  AJ_LISTEN_BEGIN = 1u << 0 /* calls, kernels and labels come twice: as they begin, with end_ns 0 and what is
                               known by then of provider and stream, and as they end, with the same id */
};

typedef struct aj_listener { /* EXTENSIBLE. copied */
  uint32_t struct_size;
  uint32_t flags;  /* AJ_LISTEN_... */
  uint64_t kinds;  /* mask of AJ_EVENT_...; an unknown bit is refused */
  void* self;
  /* Comes on the thread of the event, on several at once, perhaps with a frontend's lock held. It calls no op
   * and makes or releases no tensor; what of that happens all the same is not told. It may wait for its own
   * locks alone, and release what `listen` gave. Nothing may be thrown: who throws hears no more. */
  void (*event)(void* self, const aj_event* e);
  /* (optional) The last call of `event` has returned, there will be none: on whatever thread was last. */
  void (*drop)(void* self);
} aj_listener;

typedef struct aj_profile { /* EXTENSIBLE. "x.profile", 1 */
  uint32_t struct_size;
  uint32_t minor;
  /* What begins from now on is told until the object is released. A call of `event` may still run on another
   * thread then; `drop` says when none does. The file of the functions stays mapped so long: unloading its
   * plugin merely disables it. Refused: kinds of 0 or unknown, flags unknown, no `event`, a struct_size that
   * ends before `drop`. Any number may listen. Each begin and end has every op look for its kernel again. */
  aj_status* (*listen)(const aj_listener* l, aj_object** out);

  /* A range of a program: events that begin on this thread before its end are parts of it. *out is its
   * number, or 0 while nobody listens to labels, which label_end takes too. */
  aj_status* (*label_begin)(aj_str name, uint64_t* out);
  /* On the thread that began it, in any order, but inside of the call or kernel in which it began: else it is
   * AJ_NOT_FOUND. What is left open there ends without an event. */
  aj_status* (*label_end)(uint64_t label);
  uint64_t (*now_ns)(void);
  /* For frontends: a mask of keys, to be read relaxed. Before a call with a tensor that has one of them, or
   * with none where "cpu" is among them, set_line is worth its time even when nothing is recorded. */
  const uint64_t* line_keys;
} aj_profile;

#ifdef __cplusplus
}
#endif
#endif
