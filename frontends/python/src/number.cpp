// frontends/python/src/number.cpp: Python's operators, which fill the frame of their row without a
// program.
#include <cstring>

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

// A row and the methods of Tensor that stand for its operator where __torch_function__ looks on: x
// + y, 1 + x with the operands exchanged, x += y.
struct Operator {
  explicit constexpr Operator(const char* name, const char* method = nullptr,
                              const char* of_reflected = nullptr, const char* of_in_place = nullptr)
      : row(name),
        forward(method ? method : name),
        reflected(of_reflected ? of_reflected : name),
        in_place(of_in_place ? of_in_place : forward) {}
  Row row;
  const char *forward, *reflected, *in_place;
};

PyObject* override_operator(const Operator& op, PyObject* const* args, int n, bool in_place) {
  const bool swapped = n == 2 && !is_tensor(args[0]);
  PyObject* method = PyDict_GetItemString(tensor_type.tp_dict, in_place  ? op.in_place
                                                               : swapped ? op.reflected
                                                                         : op.forward);
  if (!method) return PyErr_Format(PyExc_AttributeError, "Tensor has no method for %s", op.forward);
  PyObject* ordered[] = {args[swapped], n == 2 ? args[!swapped] : nullptr};
  return call_override(method, ordered, n, nullptr);
}

// A call that writes its first operand, whose object is the result.
PyObject* run_in_place(const Program& p, const aj_value* v, uint64_t keys, PyObject* first) {
  aj_value ret = v[0];
  if (!run(p, v, keys, &ret)) return nullptr;
  core->release(ret.v.tensor);
  return Py_NewRef(first);
}

// Subclasses, NumPy's numbers, and what is no operand at all; all while a mode looks on.
PyObject* slow(Operator& op, PyObject* const* args, int n, bool in_place) {
  const Program* p = op.row.get();
  if (!p) return nullptr;
  Frame f;
  f.keys = 0;
  if (mode_on()) return override_operator(op, args, n, in_place);
  for (int i = 0; i < n; ++i) {
    Match m = convert(p->params[i], args[i], &f.values[i], f);
    if (m == Match::Error) return nullptr;
    if (m == Match::Override || (m == Match::No && any_override(args, n)))
      return override_operator(op, args, n, in_place);
    if (m == Match::No || args[i] == Py_None) Py_RETURN_NOTIMPLEMENTED;
  }
  for (int i = n; i < p->nparams; ++i) f.values[i] = p->params[i].value;
  if (f.large && settle_large(*p, f) != Match::Bound) return nullptr;
  if (in_place) return run_in_place(*p, f.values, f.keys, args[0]);
  aj_value made = {};
  return run(*p, f.values, f.keys, &made) ? wrap(made.v.tensor) : nullptr;
}
PyObject* slow(Operator& op, PyObject* a, PyObject* b, bool in_place) {
  PyObject* args[] = {a, b};
  return slow(op, args, 2, in_place);
}

PyObject* binary(Operator& op, PyObject* a, PyObject* b) {
  const Program* p = op.row.get();
  aj_value v[kSlotParams], made = {};
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !quick_operand(a, &v[0], keys) ||
               !quick_operand(b, &v[1], keys)))
    return slow(op, a, b, false);
  for (int i = 2; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run(*p, v, keys, &made) ? wrap(made.v.tensor) : nullptr;
}

PyObject* in_place(Operator& op, PyObject* a, PyObject* b) {
  const Program* p = op.row.get();
  aj_value v[kSlotParams];
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !is_exact_tensor(a) || !quick_operand(a, &v[0], keys) ||
               !quick_operand(b, &v[1], keys)))
    return slow(op, a, b, true);
  for (int i = 2; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run_in_place(*p, v, keys, a);
}

PyObject* unary(Operator& op, PyObject* a) {
  const Program* p = op.row.get();
  aj_value v[kSlotParams], made = {};
  uint64_t keys = 0;
  if (unlikely(!p || modes_entered || !is_exact_tensor(a) || !quick_operand(a, &v[0], keys)))
    return slow(op, &a, 1, false);
  for (int i = 1; i < p->nparams; ++i) v[i] = p->params[i].value;
  return run(*p, v, keys, &made) ? wrap(made.v.tensor) : nullptr;
}

Operator add_op("add", "add", "add", "add_"), sub_op("sub", "sub", "__rsub__", "sub_"),
    mul_op("mul", "mul", "mul", "mul_"), div_op("div", "div", "__rdiv__", "div_"),
    floor_op("floor_divide", "__floordiv__", "__rfloordiv__", "floor_divide_"),
    rem_op("remainder", "remainder", "__rmod__", "remainder_"),
    pow_op("pow", "pow", "__rpow__", "pow_"), matmul_op("matmul", "matmul", "__rmatmul__"),
    and_op("bitwise_and", "__and__", "bitwise_and", "__iand__"),
    or_op("bitwise_or", "__or__", "bitwise_or", "__ior__"),
    xor_op("bitwise_xor", "__xor__", "bitwise_xor", "__ixor__"),
    shl_op("bitwise_left_shift", "__lshift__", "__rlshift__", "__ilshift__"),
    shr_op("bitwise_right_shift", "__rshift__", "__rrshift__", "__irshift__"), neg_op("neg"),
    pos_op("positive"), abs_op("abs"), not_op("bitwise_not", "__invert__");
Operator compare_ops[] = {Operator("lt"), Operator("le"), Operator("eq", "__eq__"),
                          Operator("ne"), Operator("gt"), Operator("ge")};  // as Py_LT ...

template <Operator& op>
constexpr binaryfunc binary_slot = [](PyObject* a, PyObject* b) { return binary(op, a, b); };
template <Operator& op>
constexpr binaryfunc in_place_slot = [](PyObject* a, PyObject* b) { return in_place(op, a, b); };
template <Operator& op>
constexpr unaryfunc unary_slot = [](PyObject* a) { return unary(op, a); };

// An array that meets a tensor leaves / and == to us, and we leave them to NumPy, which gives the
// tensor's type.
PyObject* by_numpy(const char* name, PyObject* a, PyObject* b) {
  auto is_array = [](PyObject* o) { return strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") == 0; };
  if (!is_array(a) && !is_array(b)) Py_RETURN_NOTIMPLEMENTED;
  Ref numpy(PyImport_ImportModule("numpy"));
  return numpy ? PyObject_CallMethod(numpy.get(), name, "OO", a, b) : nullptr;
}

PyObject* divide(PyObject* a, PyObject* b) {
  PyObject* made = binary(div_op, a, b);
  if (likely(made != Py_NotImplemented) || is_tensor(a)) return made;
  Py_DECREF(made);
  return by_numpy("true_divide", a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject*) { return binary(pow_op, a, b); }
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place(pow_op, a, b); }

// matmul has no in-place form: a new tensor takes the name.
PyObject* div_mod(PyObject* a, PyObject* b) {
  Ref quotient(binary(floor_op, a, b));
  if (!quotient || quotient.get() == Py_NotImplemented) return quotient.release();
  Ref rest(binary(rem_op, a, b));
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

}  // namespace

PyNumberMethods number_methods = {
    .nb_add = binary_slot<add_op>,
    .nb_subtract = binary_slot<sub_op>,
    .nb_multiply = binary_slot<mul_op>,
    .nb_remainder = binary_slot<rem_op>,
    .nb_divmod = div_mod,
    .nb_power = power,
    .nb_negative = unary_slot<neg_op>,
    .nb_positive = unary_slot<pos_op>,
    .nb_absolute = unary_slot<abs_op>,
    .nb_bool = tensor_bool,
    .nb_invert = unary_slot<not_op>,
    .nb_lshift = binary_slot<shl_op>,
    .nb_rshift = binary_slot<shr_op>,
    .nb_and = binary_slot<and_op>,
    .nb_xor = binary_slot<xor_op>,
    .nb_or = binary_slot<or_op>,
    .nb_int = tensor_int,
    .nb_float = tensor_float,
    .nb_inplace_add = in_place_slot<add_op>,
    .nb_inplace_subtract = in_place_slot<sub_op>,
    .nb_inplace_multiply = in_place_slot<mul_op>,
    .nb_inplace_remainder = in_place_slot<rem_op>,
    .nb_inplace_power = in_place_power,
    .nb_inplace_lshift = in_place_slot<shl_op>,
    .nb_inplace_rshift = in_place_slot<shr_op>,
    .nb_inplace_and = in_place_slot<and_op>,
    .nb_inplace_xor = in_place_slot<xor_op>,
    .nb_inplace_or = in_place_slot<or_op>,
    .nb_floor_divide = binary_slot<floor_op>,
    .nb_true_divide = divide,
    .nb_inplace_floor_divide = in_place_slot<floor_op>,
    .nb_inplace_true_divide = in_place_slot<div_op>,
    .nb_index = tensor_index,
    .nb_matrix_multiply = binary_slot<matmul_op>,
};

PyObject* compare(PyObject* a, PyObject* b, int op) {
  PyObject* made = binary(compare_ops[op], a, b);
  if (likely(made != Py_NotImplemented) || (op != Py_EQ && op != Py_NE)) return made;
  Py_DECREF(made);
  return by_numpy(op == Py_EQ ? "equal" : "not_equal", a, b);
}

int init_numbers(PyObject*) { return 0; }

}  // namespace adjoin::py
