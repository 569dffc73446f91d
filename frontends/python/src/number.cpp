// frontends/python/src/number.cpp: Python's operators, which fill the frame of their row without a
// program.
#include <cstring>
#include <string>

#include "line.hpp"
#include "methods.hpp"
#include "op.hpp"
#include "value.hpp"

namespace adjoin::py {
namespace {

constexpr int kSlotParams = 8;

bool quick_operand(PyObject* o, aj_value* v, uint64_t& keys) {
  if (unlikely(!is_exact_tensor(o))) return plain_number(o, v);
  aj_tensor* t = tensor_of(o);
  *v = {AJ_TENSOR, 0, {.tensor = t}};
  keys |= t->keys;
  return true;
}

// The row's call; false with an error set.
bool run(const Program& p, const aj_value* v, uint64_t keys, aj_value* ret) {
  if (wants_line(keys)) note_line();
  return !failed(dispatch->call(p.op, v, p.nparams, ret, 1));
}

// What those who override see: the op, or the method that writes its first argument.
PyObject* override_operator(const char* name, PyObject* const* args, int n, bool in_place) {
  PyObject* function =
      in_place ? PyDict_GetItemString(tensor_type.tp_dict, (std::string(name) + "_").c_str())
               : nullptr;
  if (!function) function = find_function(name);
  return function ? call_override(function, args, n, nullptr) : nullptr;
}

// A call that writes its first operand, whose object is the result.
PyObject* run_in_place(const Program& p, const aj_value* v, uint64_t keys, PyObject* first) {
  aj_value ret = v[0];
  if (!run(p, v, keys, &ret)) return nullptr;
  core->release(ret.v.tensor);
  return Py_NewRef(first);
}

// Subclasses, NumPy's numbers, and what is no operand at all; all while a mode looks on.
PyObject* slow(Row& row, PyObject* const* args, int n, bool in_place) {
  const Program* p = row.get();
  if (!p) return nullptr;
  Frame f;
  f.keys = 0;
  if (mode_on()) return override_operator(row.name(), args, n, in_place);
  for (int i = 0; i < n; ++i) {
    Match m = convert(p->params[i], args[i], &f.values[i], f);
    if (m == Match::Error) return nullptr;
    if (m == Match::Override || (m == Match::No && any_override(args, n)))
      return override_operator(row.name(), args, n, in_place);
    if (m == Match::No || args[i] == Py_None) Py_RETURN_NOTIMPLEMENTED;
  }
  for (int i = n; i < p->nparams; ++i) f.values[i] = p->params[i].value;
  if (f.large && settle_large(*p, f) != Match::Bound) return nullptr;
  if (in_place) return run_in_place(*p, f.values, f.keys, args[0]);
  aj_value made = {};
  return run(*p, f.values, f.keys, &made) ? wrap(made.v.tensor) : nullptr;
}
PyObject* slow(Row& row, PyObject* a, PyObject* b, bool in_place) {
  PyObject* args[] = {a, b};
  return slow(row, args, 2, in_place);
}

PyObject* binary(Row& row, PyObject* a, PyObject* b) {
  const Program* p = row.get();
  aj_value v[kSlotParams], made = {};
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !quick_operand(a, &v[0], keys) ||
               !quick_operand(b, &v[1], keys)))
    return slow(row, a, b, false);
  for (int i = 2; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run(*p, v, keys, &made) ? wrap(made.v.tensor) : nullptr;
}

PyObject* in_place(Row& row, PyObject* a, PyObject* b) {
  const Program* p = row.get();
  aj_value v[kSlotParams];
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !is_exact_tensor(a) || !quick_operand(a, &v[0], keys) ||
               !quick_operand(b, &v[1], keys)))
    return slow(row, a, b, true);
  for (int i = 2; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run_in_place(*p, v, keys, a);
}

PyObject* unary(Row& row, PyObject* a) {
  const Program* p = row.get();
  aj_value v[kSlotParams], made = {};
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !is_exact_tensor(a) || !quick_operand(a, &v[0], keys)))
    return slow(row, &a, 1, false);
  for (int i = 1; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run(*p, v, keys, &made) ? wrap(made.v.tensor) : nullptr;
}

Row add_row("add"), sub_row("sub"), mul_row("mul"), div_row("div"), floor_row("floor_divide"),
    rem_row("remainder"), pow_row("pow"), matmul_row("matmul"), and_row("bitwise_and"),
    or_row("bitwise_or"), xor_row("bitwise_xor"), shl_row("bitwise_left_shift"),
    shr_row("bitwise_right_shift"), neg_row("neg"), pos_row("positive"), abs_row("abs"),
    not_row("bitwise_not");
Row compare_rows[] = {Row("lt"), Row("le"), Row("eq"),
                      Row("ne"), Row("gt"), Row("ge")};  // in the order of Py_LT ...

template <Row& row>
constexpr binaryfunc binary_slot = [](PyObject* a, PyObject* b) { return binary(row, a, b); };
template <Row& row>
constexpr binaryfunc in_place_slot = [](PyObject* a, PyObject* b) { return in_place(row, a, b); };
template <Row& row>
constexpr unaryfunc unary_slot = [](PyObject* a) { return unary(row, a); };

// An array that meets a tensor leaves / and == to us, and we leave them to NumPy, which gives the
// tensor's type.
PyObject* by_numpy(const char* name, PyObject* a, PyObject* b) {
  auto is_array = [](PyObject* o) { return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0; };
  if (!is_array(a) && !is_array(b)) Py_RETURN_NOTIMPLEMENTED;
  Ref numpy(PyImport_ImportModule("numpy"));
  return numpy ? PyObject_CallMethod(numpy.get(), name, "OO", a, b) : nullptr;
}

PyObject* divide(PyObject* a, PyObject* b) {
  PyObject* made = binary(div_row, a, b);
  if (likely(made != Py_NotImplemented) || is_tensor(a)) return made;
  Py_DECREF(made);
  return by_numpy("true_divide", a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) { return binary(pow_row, a, b); }
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place(pow_row, a, b); }

// matmul has no in-place form: a new tensor takes the name.
PyObject* div_mod(PyObject* a, PyObject* b) {
  Ref quotient(binary(floor_row, a, b));
  if (!quotient || quotient.get() == Py_NotImplemented) return quotient.release();
  Ref rest(binary(rem_row, a, b));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

}  // namespace

PyNumberMethods number_methods = {
    .nb_add = binary_slot<add_row>,
    .nb_subtract = binary_slot<sub_row>,
    .nb_multiply = binary_slot<mul_row>,
    .nb_remainder = binary_slot<rem_row>,
    .nb_divmod = div_mod,
    .nb_power = power,
    .nb_negative = unary_slot<neg_row>,
    .nb_positive = unary_slot<pos_row>,
    .nb_absolute = unary_slot<abs_row>,
    .nb_bool = tensor_bool,
    .nb_invert = unary_slot<not_row>,
    .nb_lshift = binary_slot<shl_row>,
    .nb_rshift = binary_slot<shr_row>,
    .nb_and = binary_slot<and_row>,
    .nb_xor = binary_slot<xor_row>,
    .nb_or = binary_slot<or_row>,
    .nb_int = tensor_int,
    .nb_float = tensor_float,
    .nb_inplace_add = in_place_slot<add_row>,
    .nb_inplace_subtract = in_place_slot<sub_row>,
    .nb_inplace_multiply = in_place_slot<mul_row>,
    .nb_inplace_remainder = in_place_slot<rem_row>,
    .nb_inplace_power = in_place_power,
    .nb_inplace_lshift = in_place_slot<shl_row>,
    .nb_inplace_rshift = in_place_slot<shr_row>,
    .nb_inplace_and = in_place_slot<and_row>,
    .nb_inplace_xor = in_place_slot<xor_row>,
    .nb_inplace_or = in_place_slot<or_row>,
    .nb_floor_divide = binary_slot<floor_row>,
    .nb_true_divide = divide,
    .nb_inplace_floor_divide = in_place_slot<floor_row>,
    .nb_inplace_true_divide = in_place_slot<div_row>,
    .nb_index = tensor_index,
    .nb_matrix_multiply = binary_slot<matmul_row>,
};

PyObject* compare(PyObject* a, PyObject* b, int op) {
  PyObject* made = binary(compare_rows[op], a, b);
  if (likely(made != Py_NotImplemented) || (op != Py_EQ && op != Py_NE)) return made;
  Py_DECREF(made);
  return by_numpy(op == Py_EQ ? "equal" : "not_equal", a, b);
}

int init_numbers(PyObject*) { return 0; }

}  // namespace adjoin::py
