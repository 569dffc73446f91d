/* adjoin/abi/memory.h: experimental. What the core's cache of a device's memory has counted, and the pieces
 * that it holds: for statistics, summaries and pictures of memory. Reached by query("x.memory", 1). Of a
 * device whose memory is the host's there is only memory_stats of core.h. */
#ifndef ADJOIN_ABI_MEMORY_H
#define ADJOIN_ABI_MEMORY_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {               /* a number of aj_memory_counts is three */
  AJ_TALLY_NOW = 0,
  AJ_TALLY_PEAK = 1, /* since the process began, or memory_reset_peak of core.h */
  AJ_TALLY_ALL = 2   /* that came; what went is this less what there is now */
};

typedef struct aj_memory_counts { /* EXTENSIBLE. of one device; a reader of less says so by struct_size */
  uint32_t struct_size, reserved;
  uint64_t small_blocks[3], small_bytes[3]; /* given to tensors: at most 1 MiB, as large as they were cut */
  uint64_t large_blocks[3], large_bytes[3];
  uint64_t blocks[3], bytes[3];             /* both; their peaks are not the sum of two */
  uint64_t segments[3], segment_bytes[3];   /* taken from the device, in use or kept for later */
  uint64_t waiting_blocks, waiting_bytes;   /* given back, and another stream may use them still */
  uint64_t retries;                         /* refused; what was free went back to the device */
  uint64_t refusals;                        /* how often nothing helped: out of memory was told */
} aj_memory_counts;

enum { /* aj_memory_piece.state */
  AJ_PIECE_SEGMENT = 0, /* memory as the device gave it; what follows, up to the next one, lies in it */
  AJ_PIECE_USED = 1,
  AJ_PIECE_WAITING = 2, /* given back, and another stream may use it still */
  AJ_PIECE_FREE = 3
};

typedef struct aj_memory_piece { /* EXTENSIBLE */
  uint32_t struct_size;
  uint32_t state; /* AJ_PIECE_... */
  void* data;     /* an address or handle */
  uint64_t bytes;
  DLDevice device;
  void* stream;   /* that its memory belongs to; NULL: the device's own */
  uint64_t pool;  /* of a device graph: a number other than 0 */
  aj_str op;      /* who asked, as far as it was noted: of large pieces in use; "" otherwise */
  uint32_t line;  /* for line_text of core.h; 0: none */
  uint32_t reserved;
} aj_memory_piece;

typedef struct aj_memory { /* EXTENSIBLE. "x.memory", 1 */
  uint32_t struct_size, minor;
  /* AJ_UNIMPLEMENTED of a device whose memory is the host's. */
  aj_status* (*counts)(DLDevice device, aj_memory_counts* io);
  /* The pieces by address, as they are now. `piece` comes on this thread after all was seen, with no lock
   * held; what it gets lives until it returns. */
  aj_status* (*pieces)(DLDevice device, void* self, void (*piece)(void* self, const aj_memory_piece* p));
} aj_memory;

#ifdef __cplusplus
}
#endif
#endif
