/* adjoin/abi/lazy.h: experimental. A scope in which calls are written down and carried out later, together.
 * Reached by query("x.lazy", 1), which loads libaj_graph.so.
 *
 * Between enter and leave, on one thread, calls below the tape are not carried out: their results are
 * wrappers of the key "lazy" (wrap.h). A flush carries out what was written down: who asks for a value, the
 * end of the scope, a write to a tensor from outside, another device, a limit, or an op whose sizes depend on
 * values does. The bits are eager's, and so are writes, views and random numbers, which are drawn when they
 * are written down.
 *
 * What was met once is known: a call that equals the one that stood there before costs no look at shapes, and
 * what a flush made ready serves again. Such a memory is an object of its own; a scope without one, or with
 * one that another scope uses now, begins with nothing. Scopes nest: an inner one is a part of the outermost.
 * "out" is owned by who receives it, the rest is borrowed. */
#ifndef ADJOIN_ABI_LAZY_H
#define ADJOIN_ABI_LAZY_H
#include "base.h"
#include "core.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  AJ_LAZY_WHOLE = 1u << 0,    /* a flush before leave is refused, with its reason and line */
  AJ_LAZY_NO_FUSION = 1u << 1, /* calls are carried out one by one */
  AJ_LAZY_KEEP = 1u << 3,      /* what is carried out can be asked for: kept() */
  AJ_LAZY_CHECK = 1u << 2,     /* they are carried out one by one, too: the first difference is an error */
  /* Tensors from outside are written where their turn comes, so a whole step of training is one program. Who
   * reads one without a call meanwhile sees what was there. kept() is empty if a call was made at once. */
  AJ_LAZY_WRITES = 1u << 4,
  /* What a flush carries out is timed before, a few times, fused and call by call: stats tell both. Not with
   * AJ_LAZY_WRITES. */
  AJ_LAZY_TIMED = 1u << 5
};

typedef struct aj_lazy_stats { /* EXTENSIBLE. of a memory, since it was made or forgotten */
  uint32_t struct_size, reserved;
  uint64_t calls;              /* written down */
  uint64_t matched;            /* of these: known already */
  uint64_t flushes;
  uint64_t passes;             /* walks over whole tensors: a call is one, a fused group is one */
  uint64_t groups, fused;      /* fused groups that ran, calls inside of them */
  uint64_t kept;               /* calls that are known now */
  uint64_t program;            /* that was carried out last: a number that it and its constants have alone */
  uint64_t together, apart;    /* with AJ_LAZY_TIMED: nanoseconds of the flushes, fused and call by call */
} aj_lazy_stats;

typedef struct aj_lazy { /* EXTENSIBLE. "x.lazy", 1 */
  uint32_t struct_size, minor;
  aj_status* (*memory)(aj_object** out);
  aj_status* (*enter)(aj_object* memory, uint32_t flags); /* or NULL */
  aj_status* (*leave)(void);                              /* the scope ends, whatever comes back */
  aj_status* (*flush)(void);
  int32_t (*depth)(void);                                 /* scopes that are open on this thread */
  /* Between the two, calls of this thread are carried out as if no scope were open. */
  aj_status* (*pause)(void);
  void (*resume)(void);
  /* Limits of this thread's scopes: calls (0: 4,096) and bytes that they hold (0: 1 GB) before a flush. */
  void (*limits)(uint32_t calls, uint64_t bytes);
  aj_status* (*stats)(aj_object* memory, aj_lazy_stats* io);
  /* JSON: the flushes since the outermost scope was entered last with this memory. */
  aj_status* (*report)(aj_object* memory, aj_object** out);
  aj_status* (*forget)(aj_object* memory);
  /* Of a tensor that this thread's scope has written down: its number; else UINT32_MAX. */
  uint32_t (*value)(const aj_tensor* t);
  /* With AJ_LAZY_KEEP: the program that was carried out last, as text in which values are named by their
   * numbers, and the list of the tensors that it was given. */
  aj_status* (*kept)(aj_object* memory, aj_object** text, aj_object** inputs);
  /* The same as a program, which is the caller's own, and NULL where kept() gives no text. */
  aj_status* (*program)(aj_object* memory, aj_object** out, aj_object** inputs);
} aj_lazy;

#ifdef __cplusplus
}
#endif
#endif
