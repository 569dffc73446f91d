// frontends/python/src/op.cpp: the callable object of an op: the overloads in turn, the message
// when none fits, its texts.
#include "op.hpp"

#include <algorithm>
#include <iterator>

#include "object.hpp"

namespace adjoin::py {
namespace {

OpObject* cast(PyObject* o) { return reinterpret_cast<OpObject*>(o); }

const char* type_words(const Param& p) {
  constexpr const char* single[] = {"Tensor",
                                    "Tensor or number",
                                    "number",
                                    "int",
                                    "int",
                                    "int",
                                    "float",
                                    "bool",
                                    "str",
                                    "adjoin.dtype",
                                    "adjoin.device",
                                    "adjoin.layout",
                                    "adjoin.memory_format",
                                    "Generator",
                                    "Stream",
                                    "a function",
                                    "an object"};
  constexpr const char* list[] = {"tuple of Tensors", "tuple of Tensors", "tuple of numbers",
                                  "tuple of ints",    "tuple of ints",    "tuple of ints",
                                  "tuple of floats",  "tuple of bools"};
  auto kind = static_cast<size_t>(p.kind);
  if (p.list) return kind < std::size(list) ? list[kind] : "a list of another type";
  return kind < std::size(single) ? single[kind]
                                  : "of another type";  // a type newer than this module
}

// A sequence is described by the element that spoils it.
PyObject* words_of(PyObject* o, const Param& p) {
  if (p.list && (PyTuple_Check(o) || PyList_Check(o)) && PySequence_Fast_GET_SIZE(o) > 0) {
    PyObject* item = PySequence_Fast_ITEMS(o)[0];
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
      PyObject* candidate = PySequence_Fast_ITEMS(o)[i];
      bool tensor_wanted = p.kind == AJ_PARAM_TENSOR;
      if (tensor_wanted ? !is_tensor(candidate) : !PyLong_CheckExact(candidate)) {
        item = candidate;
        break;
      }
    }
    return PyUnicode_FromFormat("%s of %s", Py_TYPE(o)->tp_name, Py_TYPE(item)->tp_name);
  }
  if (aj_object* inside = object_in(o)) {
    if (inside->type == AJ_FUNCTION || inside->type == AJ_STREAM)
      return PyUnicode_FromString(inside->type == AJ_STREAM ? "a stream" : "a function of an op");
    return PyUnicode_FromFormat("an object of type '%s'",
                                std::string(view(core->type_name(inside->type))).c_str());
  }
  return PyUnicode_FromString(is_exact_tensor(o) ? "Tensor" : Py_TYPE(o)->tp_name);
}

// Of an object the type that the signature names.
std::string wanted_words(const Program& p, int at) {
  if (p.params[at].kind == AJ_PARAM_STREAM) return "a stream";
  auto told = sized<aj_param>();
  if (p.params[at].kind != AJ_PARAM_OBJECT) return type_words(p.params[at]);
  if (failed(dispatch->op_param(p.op, static_cast<uint32_t>(at), &told)) || !told.type.len)
    return "an object of a plugin's type";
  return "an object of type '" + std::string(view(told.type)) + "'";
}

// What to do where `o` was given in the place of p.
const char* way_out(PyObject* o, const Param& p) {
  bool sequence = PyTuple_Check(o) || PyList_Check(o), number = PyFloat_Check(o) || PyLong_Check(o);
  bool foreign = PyObject_HasAttrString(o, "__array_interface__");
  switch (p.kind) {
    case AJ_PARAM_TENSOR:
    case AJ_PARAM_OPERAND:
      if (p.list)
        return is_tensor(o) ? "; put the tensors into one list: [a, b]"
               : sequence   ? "; make each a tensor, as with adjoin.tensor()"
                            : "";
      return foreign              ? "; adjoin.from_numpy() makes one of it"
             : sequence || number ? "; adjoin.tensor() makes one of it"
                                  : "";
    case AJ_PARAM_INT:
    case AJ_PARAM_DIM:
    case AJ_PARAM_SIZE:
      return PyFloat_Check(o) || PyUnicode_Check(o) || (sequence && p.list) ? "; use int()" : "";
    case AJ_PARAM_SCALAR:
    case AJ_PARAM_FLOAT:
      return !PyUnicode_Check(o) ? ""
             : p.list            ? "; give a list of numbers"
                                 : "; use float() or int()";
    case AJ_PARAM_DTYPE:
      return PyUnicode_Check(o) ? "; dtypes are given as adjoin.float32" : "";
    default:
      return "";
  }
}

}  // namespace

PyObject* unknown_keyword(PyObject* function, PyObject* keyword, PyObject* const* known, int n) {
  Ref names(PyList_New(n));
  for (int i = 0; names && i < n; ++i) PyList_SET_ITEM(names.get(), i, Py_NewRef(known[i]));
  PyObject* args[] = {keyword, names.get()};
  Ref hint(names ? call_helper("adjoin._hints", "keyword_hint", args, 2) : nullptr);
  if (!hint) return nullptr;
  return PyErr_Format(PyExc_TypeError, "%U() got an unexpected keyword argument '%U'%U", function,
                      keyword, hint.get());
}

namespace {

PyObject* complain(OpObject* op, const Program& p, const Frame& f, Py_ssize_t n) {
  PyObject* name = op->name;
  PyObject* param = f.at >= 0 ? p.params[f.at].name : nullptr;
  switch (f.why) {
    case kTooMany: {
      const char* some = p.npositional == p.nrequired ? "" : "up to ";
      return PyErr_Format(PyExc_TypeError,
                          "%U() takes %s%d positional argument%s but %zd were given", name, some,
                          p.npositional, p.npositional == 1 ? "" : "s", n);
    }
    case kMissingArgument:
      return PyErr_Format(PyExc_TypeError, "%U() missing 1 required argument: '%U'", name, param);
    case kUnknownKeyword: {
      std::vector<PyObject*> names;
      for (int i = 0; i < p.nparams; ++i) names.push_back(p.params[i].name);
      for (const char* more : {"requires_grad", "pin_memory", "out"})
        if (p.factory) names.push_back(PyUnicode_InternFromString(more));
      if (std::find(names.begin(), names.end(), nullptr) != names.end()) return nullptr;
      return unknown_keyword(name, f.what, names.data(), static_cast<int>(names.size()));
    }
    case kTwice:
      return PyErr_Format(PyExc_TypeError, "%U() got multiple values for argument '%U'", name,
                          param);
    default:
      break;
  }
  Ref got(words_of(f.what, p.params[f.at]));
  if (!got) return nullptr;
  // PyTorch has overloads of some functions for such tensors, which then raise a RuntimeError.
  PyObject* kind = is_tensor(f.what) ? tensor_argument_error() : PyExc_TypeError;
  return PyErr_Format(kind, "%U(): argument '%U' must be %s, not %U%s", name, param,
                      wanted_words(p, f.at).c_str(), got.get(), way_out(f.what, p.params[f.at]));
}

PyObject* repr(PyObject* self) {
  bool method = Py_TYPE(self) == &op_method_type;
  if (method)
    return PyUnicode_FromFormat("<method '%U' of 'adjoin.Tensor' objects>", cast(self)->name);
  return PyUnicode_FromFormat("<op %U of %U>", cast(self)->name, cast(self)->module);
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
  return object ? PyMethod_New(self, object) : Py_NewRef(self);
}

PyObject* get_name(PyObject* self, void*) { return Py_NewRef(cast(self)->name); }
PyObject* get_qualname(PyObject* self, void*) {
  if (Py_TYPE(self) == &op_method_type) return PyUnicode_FromFormat("Tensor.%U", cast(self)->name);
  return Py_NewRef(cast(self)->name);
}
PyObject* get_module(PyObject* self, void*) { return Py_NewRef(cast(self)->module); }

std::string default_text(const Param& p) {
  switch (p.value.tag) {
    case AJ_NONE:
      return "None";
    case AJ_BOOL:
      return p.value.v.i ? "True" : "False";
    case AJ_INT:
      return std::to_string(p.value.v.i);
    case AJ_STRING:
      return "'" + std::string(p.value.v.str, p.value.aux) + "'";
    default:
      break;
  }
  if (p.value.tag == AJ_INTS || p.value.tag == AJ_FLOATS || p.value.tag == AJ_FLOAT) {
    Ref o(p.value.tag == AJ_FLOAT ? PyFloat_FromDouble(p.value.v.f) : plain_value(p.value));
    Ref text(o ? PyObject_Repr(o.get()) : nullptr);
    const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (words) return words;
    forget_error();
  }
  return "...";
}

// "(input, other, *, alpha=1)": inspect makes a signature of it.
std::string signature_of(const Program& p) {
  std::string text = "(";
  bool keyword_only = false;
  for (int i = 0; i < p.nparams; ++i) {
    const Param& q = p.params[i];
    if (i) text += ", ";
    if (q.keyword_only && !keyword_only) {
      text += "*, ";
      keyword_only = true;
    }
    text += PyUnicode_AsUTF8(q.name);
    if (q.value.tag != kMissing) text += "=" + default_text(q);
  }
  if (p.out || p.puts)
    text += keyword_only ? ", out=None" : p.nparams ? ", *, out=None" : "*, out=None";
  return text + ")";
}

PyObject* get_signature(PyObject* self, void*) {
  return to_python(signature_of(*cast(self)->first));
}

PyObject* get_signature_object(PyObject* self, void*) {
  return call_helper("adjoin._signature", "signature_of", &self, 1);
}

PyObject* get_doc(PyObject* self, void*) {
  std::string text;
  for (Program* p = cast(self)->first; p; p = p->next) {
    auto info = sized<aj_op_info>();
    if (failed(dispatch->op_info(p->op, &info))) return nullptr;
    if (!text.empty()) text += "\n\n";
    text += std::string(view(info.schema)) + "\n\n" + std::string(view(info.doc));
  }
  return to_python(text);
}

PyObject* get_schemas(PyObject* self, void*) {
  Ref list(PyList_New(0));
  for (Program* p = cast(self)->first; list && p; p = p->next) {
    auto info = sized<aj_op_info>();
    if (failed(dispatch->op_info(p->op, &info))) return nullptr;
    Ref text(to_python(info.schema));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

PyObject* reduce(PyObject* self, PyObject*) { return get_qualname(self, nullptr); }

void dealloc(PyObject* self) {
  Py_XDECREF(cast(self)->name);
  Py_XDECREF(cast(self)->module);
  Py_XDECREF(cast(self)->dict);
  PyObject_Free(self);
}

PyGetSetDef properties[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__text_signature__", get_signature, nullptr, nullptr, nullptr},
    {"__signature__", get_signature_object, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"schemas", get_schemas, nullptr, "The schema of each overload.", nullptr},
    {},
};
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};

}  // namespace

PyTypeObject op_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.Op",
    .tp_basicsize = sizeof(OpObject),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(OpObject, call),
    .tp_repr = repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_dictoffset = offsetof(OpObject, dict),
};

PyTypeObject op_method_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.OpMethod",
    .tp_basicsize = sizeof(OpObject),
    .tp_dealloc = dealloc,
    .tp_vectorcall_offset = offsetof(OpObject, call),
    .tp_repr = repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_descr_get = bind_to,
    .tp_dictoffset = offsetof(OpObject, dict),
};

PyObject* call_op(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  OpObject* op = cast(self);
  Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (mode_on()) return call_override(self, args, n, kwnames);
  Frame f;
  for (const Program* p = op->first; p; p = p->next) {
    switch (bind(*p, args, n, kwnames, f)) {
      case Match::Bound:
        if (unlikely(f.in_place))
          return run_in_place(*p, f, n > 0 ? args[0] : wrap_borrowed(f.values[0].v.tensor));
        if (likely(!op->in_place)) return run(*p, f, nullptr);
        if (p->in_place && n > 0 && is_tensor(args[0])) return run(*p, f, args[0]);
        break;
      case Match::Override:
        return call_override(self, args, n, kwnames);
      case Match::Error:
        return nullptr;
      case Match::No:
        break;
    }
  }
  return explain_mismatch(op, args, n, kwnames);
}

namespace {

// What a call means that no schema takes, as programs of before have them; NotImplemented: nothing.
PyObject* in_other_form(OpObject* op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Ref given(PyTuple_New(n)), named(PyDict_New());
  for (Py_ssize_t i = 0; given && i < n; ++i) PyTuple_SET_ITEM(given.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; named && kwnames && i < PyTuple_GET_SIZE(kwnames); ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[n + i]) < 0) return nullptr;
  if (!given || !named) return nullptr;
  PyObject* three[] = {reinterpret_cast<PyObject*>(op), given.get(), named.get()};
  return call_helper("adjoin._other_forms", "call", three, 3);
}

}  // namespace

// The overload that understood most of the arguments says what is wrong.
PyObject* explain_mismatch(OpObject* op, PyObject* const* args, Py_ssize_t n, PyObject* kwnames) {
  Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (any_override(args, n + nkw))
    return call_override(reinterpret_cast<PyObject*>(op), args, n, kwnames);
  const Program* best = nullptr;
  int most = -1;
  Frame f;
  for (const Program* p = op->first; p; p = p->next) {
    if (bind(*p, args, n, kwnames, f) != Match::No) continue;
    int score = f.why == kTooMany
                    ? 0
                    : 2 * f.converted +
                          (f.why == kWrongType);  // it was not meant if it cannot take so many
    if (score <= most) continue;
    most = score;
    best = p;
  }
  if (!best) {
    return PyErr_Format(PyExc_TypeError, "%U(): argument 'input' must be Tensor, not %s", op->name,
                        n ? Py_TYPE(args[0])->tp_name : "nothing");
  }
  bind(*best, args, n, kwnames, f);
  if (f.why == kTooMany || f.why == kWrongType) {
    Ref answer(in_other_form(op, args, n, kwnames));
    if (answer.get() != Py_NotImplemented) return answer.release();
    bind(*best, args, n, kwnames, f);
  }
  return complain(op, *best, f, n);
}

}  // namespace adjoin::py
