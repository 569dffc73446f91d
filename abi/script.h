/* adjoin/abi/script.h: experimental. Scripted programs (program.h): functions with decisions, loops, lists,
 * dictionaries and classes, called with values and not with tensors alone. Reached by query("x.script", 1),
 * which loads libaj_graph.so.
 *
 * Their text begins with "adjoin.program 1" and "scripted"; parse, text, save, load, weight and set_weight
 * are those of program.h, run calls the first function with tensors. A value is None, a number, a text, a
 * dtype, a device or a tensor, which stand in an aj_value by themselves, or an AJ_OBJECT of the type that
 * value_new makes. Values are copied on their way in and out: what a program does to a list stays its own.
 * "out" is owned by who receives it, the rest is borrowed. Calls of one program that change the attributes of
 * its module are the caller's to order; others may run at once. */
#ifndef ADJOIN_ABI_SCRIPT_H
#define ADJOIN_ABI_SCRIPT_H
#include "base.h"
#include "core.h"
#ifdef __cplusplus
extern "C" {
#endif

/* dict, named and object have keys and values by turns; the name of named and object is their type's. */
enum { AJ_VALUE_LIST = 0, AJ_VALUE_TUPLE = 1, AJ_VALUE_DICT = 2, AJ_VALUE_NAMED = 3, AJ_VALUE_OBJECT = 4 };
enum { AJ_TEXT_BITS = 1u << 0 }; /* all elements of tensors, floats to the last bit */

typedef aj_status* (*aj_script_print)(void* self, const aj_value* items, uint32_t n, aj_str sep, aj_str end);

typedef struct aj_scripts { /* EXTENSIBLE. "x.script", 1 */
  uint32_t struct_size, minor;

  aj_status* (*value_new)(int32_t kind, aj_str name, const aj_value* items, uint32_t n, aj_object** out);
  /* As long as the value. */
  aj_status* (*value_get)(const aj_object* value, int32_t* kind, aj_str* name, const aj_value** items,
                          uint32_t* n);
  /* As Python's repr shows it; a string object. */
  aj_status* (*value_text)(const aj_value* value, uint32_t flags, aj_object** out);

  int32_t (*scripted)(const aj_object* program);
  /* Functions that may be called, a line each: "forward(x: Tensor, n: int = 3) -> Tensor". */
  aj_status* (*functions)(const aj_object* program, aj_object** out);
  /* The last nnames arguments have these names. name: "f"; of a module "forward", "layers.0.forward". */
  aj_status* (*call)(aj_object* program, aj_str name, const aj_value* args, uint32_t nargs,
                     const aj_str* names, uint32_t nnames, aj_value* ret);
  /* Attributes of the module: "training", "layers.0.training". */
  aj_status* (*get)(const aj_object* program, aj_str path, aj_value* ret);
  aj_status* (*set)(aj_object* program, aj_str path, const aj_value* value);

  /* While this thread captures (program.h): the call is carried out, and the capture keeps it with the
   * decisions of the scripted code. callee is what the text of the program that is made calls: "fn:f". */
  aj_status* (*capture)(aj_object* program, aj_str name, aj_str callee, const aj_value* args, uint32_t nargs,
                        const aj_str* names, uint32_t nnames, aj_value* ret);
  /* The text of a function that does what a captured program does: a part of a scripted program's text. */
  aj_status* (*lowered)(const aj_object* program, aj_str name, aj_object** out);

  /* 1.1: where print() writes from now on, in the whole process: items are texts (AJ_STRING) and tensors.
   * NULL: the standard output, as at first. */
  void (*print_to)(aj_script_print print, void* self);
} aj_scripts;

#ifdef __cplusplus
}
#endif
#endif
