/* adjoin/abi/program.h: experimental. Programs: what was captured, as a value that is printed, saved and run.
 * Reached by query("x.program", 1), which loads libaj_graph.so.
 *
 * A program is a counted object. Its text is its file format: parse(text(p)) is p again. Values are tensors
 * under a name; each op of the registry is called under its own name. It holds no device, no code and no
 * pickle: load executes nothing.
 *
 * Capture: between begin and end, on one thread, every call is carried out and written down. Its tensors are
 * wrappers of the key "capture" (wrap.h): who asks for their values (item, an if, NumPy) is refused with the
 * line, for a program has no place for a decision of the language that recorded it. Tensors that are neither
 * inputs nor named parameters, nor made by calls, become constants of the program.
 *
 * Inputs and results are flat; `form` is a text of the frontend's own that says how they nest.
 * "out" is owned by who receives it, the rest is borrowed. run may be called from several threads. */
#ifndef ADJOIN_ABI_PROGRAM_H
#define ADJOIN_ABI_PROGRAM_H
#include "base.h"
#include "core.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { AJ_PROGRAM_INPUT = 0, AJ_PROGRAM_RESULT = 1, AJ_PROGRAM_PARAM = 2, AJ_PROGRAM_CONSTANT = 3 };
typedef struct aj_program_value { /* EXTENSIBLE. lives as long as the program */
  uint32_t struct_size, flags;
  aj_str name;                    /* of a parameter: "l.weight"; of an input: what the recorder called it */
  DLTensor type;                  /* dtype, ndim, shape (-1: any); the rest is 0 */
} aj_program_value;

typedef struct aj_program_stats { /* EXTENSIBLE. of the last run that has ended */
  uint32_t struct_size, reserved;
  uint64_t nodes;                 /* calls that the program has */
  uint64_t passes;                /* walks over whole tensors: a call is one, a fused group is one */
  uint64_t groups;                /* fused groups that ran */
  uint64_t fused;                 /* calls that ran inside of them */
} aj_program_stats;

enum { AJ_RUN_NO_FUSION = 1u << 0 };

typedef struct aj_programs { /* EXTENSIBLE. "x.program", 1 */
  uint32_t struct_size, minor;

  /* Capture, of this thread. limit: constants of more bytes are refused; 0: 1 MB. */
  aj_status* (*begin)(aj_str name, uint64_t limit);
  aj_status* (*input)(aj_tensor* t, aj_str name, aj_tensor** traced); /* in order */
  aj_status* (*param)(aj_tensor* t, aj_str name); /* that very tensor is the parameter of this name */
  /* Results may be traced tensors, parameters, constants. */
  aj_status* (*end)(aj_tensor* const* results, uint32_t n, aj_str form_in, aj_str form_out, aj_object** out);
  void (*cancel)(void);                           /* what was captured is dropped; none: nothing */
  int32_t (*capturing)(void);                     /* is this thread? */

  /* Text: without the values of parameters and constants. parse also verifies. */
  aj_status* (*parse)(aj_str text, aj_object** out);
  aj_status* (*text)(aj_object* program, aj_object** out);
  aj_status* (*source)(aj_object* program, uint32_t line, aj_object** out); /* what @line stands for */

  /* An archive: program.ajir, weights.safetensors, source.map, meta.json. */
  aj_status* (*save)(aj_object* program, aj_str path);
  aj_status* (*load)(aj_str path, aj_object** out);

  uint32_t (*count)(const aj_object* program, int32_t what);      /* AJ_PROGRAM_... */
  aj_status* (*at)(const aj_object* program, int32_t what, uint32_t i, aj_program_value* io);
  aj_status* (*form)(const aj_object* program, int32_t what, aj_object** out); /* of inputs, of results */
  /* A parameter or constant, by its place. NULL in out: a program that was parsed has none yet. */
  aj_status* (*weight)(const aj_object* program, int32_t what, uint32_t i, aj_tensor** out);
  aj_status* (*set_weight)(aj_object* program, int32_t what, uint32_t i, aj_tensor* t);

  /* nrets is count(AJ_PROGRAM_RESULT). Recorded by the tape as its calls are. */
  aj_status* (*run)(aj_object* program, aj_tensor* const* args, uint32_t nargs, uint32_t flags,
                    aj_tensor** rets, uint32_t nrets);
  aj_status* (*stats)(const aj_object* program, aj_program_stats* io);

  /* Blocks, while a program is captured. Calls between open and close belong to a block, which is captured by
   * being run once. Two blocks that are closed make a statement, whose results come back traced: branch runs
   * the first or the second, as `decides`, a tensor of one element, says; loop runs the second as long as the
   * first gives true. carry, in a loop's first block, makes an input of both. A block writes nothing from
   * outside in place. */
  aj_status* (*open)(void);
  aj_status* (*carry)(aj_tensor* t, aj_tensor** inside);
  aj_status* (*close)(aj_tensor* const* results, uint32_t n);
  aj_status* (*branch)(aj_tensor* decides, aj_tensor** out, uint32_t n);
  aj_status* (*loop)(aj_tensor* const* carried, uint32_t n, aj_tensor** out);

  /* One program of n, captured of the same function with other sizes: sizes has a row of nsymbols for each.
   * Numbers that differ become sums of products of the symbols. The first 2**nsymbols rows are all choices of
   * two values for each, the rest only checks; what differs otherwise is refused with its line. */
  aj_status* (*generalize)(aj_object* const* programs, uint32_t n, const aj_str* symbols, uint32_t nsymbols,
                           const int64_t* sizes, aj_object** out);

  /* A program that nobody has run is rewritten; its inputs keep their order, new ones come last.
   * number: the next constant that a call has for the parameter of this name, from *call on, an AJ_INT or
   * AJ_FLOAT; *call is UINT32_MAX after the last. *first: the input that the call takes first, as its first
   * argument or in a list; UINT32_MAX: it takes none there.
   * lift: that constant is an input from now on, the i-th or, of i == count(AJ_PROGRAM_INPUT), a new one of
   * the type `int` or `float`: run takes a tensor of one int64 or float64 of the processor.
   * view: input i goes, and what it was is made of the base-th (counted without it) or a new one: base_type
   * lies in C order, and `as` says sizes, strides and, in elements, byte_offset of the view of it. */
  aj_status* (*number)(const aj_object* program, aj_str parameter, uint32_t* call, aj_value* value,
                       uint32_t* first);
  aj_status* (*lift)(aj_object* program, uint32_t call, aj_str parameter, uint32_t i);
  aj_status* (*view)(aj_object* program, uint32_t i, uint32_t base, const DLTensor* base_type,
                     const DLTensor* as);
} aj_programs;

#ifdef __cplusplus
}
#endif
#endif
