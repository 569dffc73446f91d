/* adjoin/abi/compiler.h: experimental. Compilers of parts of programs: what a plugin offers as the
 * service "aj.compiler/DEVICE".
 *
 * When a program (program.h) is made ready for a device, each compiler of the device is asked, by
 * priority, which calls it claims. Claimed calls of one number become parts: no call outside stands
 * between two of a part, and none of it writes or is moved over one that writes. The compiler makes
 * a program of each part, once, and runs it in place of its calls. A status from compile or run is
 * no error: the calls are made one by one then, with the same results. AJ_UNIMPLEMENTED says so
 * silently ("not these layouts"), any other status is logged once. Who returns a status from run
 * has written to `out` at most.
 *
 * A part runs where nobody else wants to see its calls: without a tape, a transform, autocast. It
 * promises eager's bits. Values are numbers below value_count, the same in the whole program and
 * its parts. A graph and what its functions give live until claim or compile returns. Functions of
 * a compiler are called from any thread, run from several at once. */
#ifndef ADJOIN_ABI_COMPILER_H
#define ADJOIN_ABI_COMPILER_H
#include "base.h"
#include "op.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct aj_graph aj_graph; /* OPAQUE */

#define AJ_GRAPH_CONSTANT 0u
#define AJ_GRAPH_OTHER 0xffffffffu
typedef struct aj_graph_node { /* EXTENSIBLE */
  uint32_t struct_size;
  uint32_t flags;       /* AJ_NODE_... */
  const aj_op* op;      /* NULL: a branch, a loop; nothing to claim */
  aj_str name;          /* of the op, as "max.dim" */
  const aj_value* args; /* by parameter of the schema; defaults stand there too */
  const uint32_t* refs; /* by parameter: value + 1; AJ_GRAPH_CONSTANT: args has it; AJ_GRAPH_OTHER:
                           a list of values, a number made of sizes, the program's generator */
  const uint32_t* results; /* by result: value + 1; 0: none, or a list */
  uint32_t nargs, nresults;
  uint32_t line, reserved;
} aj_graph_node;
enum { AJ_NODE_EFFECT = 1u << 0 /* it writes or draws: it cannot be claimed */ };

typedef struct aj_graphs { /* EXTENSIBLE. query("x.graphs", 1): how a compiler reads */
  uint32_t struct_size, minor;
  uint32_t (*count)(const aj_graph* g); /* calls, each after those that it needs */
  aj_status* (*node)(const aj_graph* g, uint32_t i, aj_graph_node* io);
  uint32_t (*value_count)(const aj_graph* g);
  /* dtype, ndim, shape: -1 where a size is known only when the program runs. symbols, by dimension:
   * number + 1 of such a size, equal ones have one number; 0: the shape has it. */
  aj_status* (*type)(const aj_graph* g, uint32_t value, DLTensor* io, const uint32_t** symbols);
  const uint32_t* (*inputs)(const aj_graph* g, uint32_t* n);  /* values that calls outside make */
  const uint32_t* (*outputs)(const aj_graph* g, uint32_t* n); /* values that others read */
} aj_graphs;

typedef struct aj_compiler { /* EXTENSIBLE. slot "aj.compiler/DEVICE" */
  uint32_t struct_size, minor;
  void* self;
  /* cluster[i], zero at first: 0, or a number that calls of one part share. */
  aj_status* (*claim)(void* self, const aj_graph* g, uint32_t* cluster);
  aj_status* (*compile)(void* self, const aj_graph* part, aj_object** program);
  /* `in` and `out` stand as inputs() and outputs() of the part. `in` have the types of the graph
   * and any strides that descend (C order, maybe with gaps); `out` are dense in C order. sizes: by
   * number, what symbols stand for. stream: the device's current one. */
  aj_status* (*run)(void* self, aj_object* program, aj_tensor* const* in, aj_tensor* const* out,
                    const int64_t* sizes, void* stream);
} aj_compiler;

#ifdef __cplusplus
}
#endif
#endif
