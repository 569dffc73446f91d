// frontends/python/src/registry.cpp: walks the core's registry and makes a callable of every name,
// a plugin's like the core's.
#include <adjoin/kit/words.hpp>
#include <map>
#include <set>

#include "op.hpp"

namespace adjoin::py {
namespace {

std::map<std::string, OpEntry, std::less<>>& entries() {
  static auto& m = *new std::map<std::string, OpEntry, std::less<>>;
  return m;
}
uint32_t seen = 0;

// Functions of networks that PyTorch gives inplace as their last argument.
bool is_activation(std::string_view name) {
  static const std::set<std::string_view> names = {
      "relu",           "nn::relu6",     "nn::elu",          "nn::selu",        "nn::celu",
      "nn::leaky_relu", "nn::hardtanh",  "nn::hardswish",    "nn::hardsigmoid", "nn::silu",
      "nn::mish",       "nn::threshold", "nn::alpha_dropout"};
  return names.count(name);
}

std::string_view space_of(std::string_view name) {
  size_t at = name.find("::");
  return at == std::string_view::npos ? std::string_view() : name.substr(0, at);
}

// The name without its overload: "linalg::qr", "max".
std::string_view base_of(std::string_view name) {
  size_t from = name.find("::");
  from = from == std::string_view::npos ? 0 : from + 2;
  return name.substr(0, name.find('.', from));
}

std::string_view bare(std::string_view base) {
  size_t at = base.find("::");
  return at == std::string_view::npos ? base : base.substr(at + 2);
}

std::string home_of(std::string_view base) {
  std::string_view space = space_of(base);
  if (space.empty()) return "adjoin";
  if (space == "nn") return "adjoin.nn.functional";
  for (std::string_view known : {"linalg", "special", "fft", "sparse"})
    if (space == known) return "adjoin." + std::string(space);
  return "adjoin.ops." + std::string(space);
}

bool fill_param(const aj_op* op, uint32_t i, Param& q) {
  auto p = sized<aj_param>();
  if (failed(dispatch->op_param(op, i, &p))) return false;
  q.kind = static_cast<uint8_t>(p.base);
  q.optional = p.flags & AJ_PARAM_OPTIONAL;
  q.keyword_only = p.flags & AJ_PARAM_KEYWORD_ONLY;
  q.written = p.flags & AJ_PARAM_WRITTEN;
  q.list = p.list;
  q.optional_items = p.flags & AJ_PARAM_OPTIONAL_ITEMS;
  PyObject* name = to_python(p.name);
  if (!name) return false;
  PyUnicode_InternInPlace(&name);
  q.name = name;
  q.value = p.value;
  if (!(p.flags & AJ_PARAM_HAS_DEFAULT)) q.value.tag = kMissing;
  return true;
}

// Sizes may be spread over the arguments where they are the last positional parameter, after at
// most the tensor itself; so may what the row tags as varargs.
int8_t varargs_of(const Program& p, std::string_view tags) {
  if (p.npositional == 0) return -1;
  int last = p.npositional - 1;
  const Param& q = p.params[last];
  if (q.list == 0) return -1;
  std::string tag = std::string("varargs:") + PyUnicode_AsUTF8(q.name);
  if (kit::has_word(tags, tag)) return static_cast<int8_t>(last);
  bool ints = q.kind == AJ_PARAM_INT || q.kind == AJ_PARAM_DIM || q.kind == AJ_PARAM_SIZE;
  bool after_self =
      last == 0 || (last == 1 && p.params[0].kind <= AJ_PARAM_OPERAND && p.params[0].list == 0);
  return ints && after_self && q.list == -1 ? static_cast<int8_t>(last) : static_cast<int8_t>(-1);
}

// What the row tags as a tensor takes no number from Python; formulas and C++ may still give one.
void want_tensors(Program& p, std::string_view tags) {
  for (uint8_t i = 0; i < p.nparams; ++i) {
    Param& q = p.params[i];
    if (q.kind == AJ_PARAM_OPERAND &&
        kit::has_word(tags, std::string("tensor:") + PyUnicode_AsUTF8(q.name)))
      q.kind = AJ_PARAM_TENSOR;
  }
}

PyObject* new_op(PyTypeObject* type, Program* first, std::string_view base, bool in_place) {
  auto* o = PyObject_New(OpObject, type);
  if (!o) return nullptr;
  std::string name(bare(base));
  if (in_place) name += "_";
  o->call = call_op;
  o->first = first;
  o->name = PyUnicode_InternFromString(name.c_str());
  o->module = PyUnicode_InternFromString(home_of(base).c_str());
  o->in_place = in_place;
  o->dict = nullptr;
  return reinterpret_cast<PyObject*>(o);
}

// What Tensor defines by itself stays.
int show_method(OpObject* op, PyObject* object) {
  if (PyDict_Contains(tensor_type.tp_dict, op->name)) return 0;
  return PyDict_SetItem(tensor_type.tp_dict, op->name, object);
}

int make_objects(OpEntry& e, std::string_view base) {
  bool in_place = false, method = false;
  for (Program* p = e.first; p; p = p->next) {
    in_place |= p->in_place;
    method |= p->method;
  }
  if (!e.function && !(e.function = new_op(&op_type, e.first, base, false))) return -1;
  if (in_place && !e.function_in_place &&
      !(e.function_in_place = new_op(&op_type, e.first, base, true)))
    return -1;
  if (!method || !space_of(base).empty()) return 0;
  if (!e.method) {
    if (!(e.method = new_op(&op_method_type, e.first, base, false))) return -1;
    if (show_method(reinterpret_cast<OpObject*>(e.method), e.method) < 0) return -1;
  }
  if (in_place && !e.method_in_place) {
    if (!(e.method_in_place = new_op(&op_method_type, e.first, base, true))) return -1;
    if (show_method(reinterpret_cast<OpObject*>(e.method_in_place), e.method_in_place) < 0)
      return -1;
  }
  return 0;
}

// The overload of exactly that name: a plugin that was replaced may have given it another
// signature.
Program* program_of(const OpEntry& e, aj_str name) {
  for (Program* p = e.first; p; p = p->next) {
    auto info = sized<aj_op_info>();
    if (failed(dispatch->op_info(p->op, &info))) return nullptr;
    if (view(info.name) == view(name)) return p;
  }
  return nullptr;
}

int add_op(const aj_op* op) {
  auto info = sized<aj_op_info>();
  if (failed(dispatch->op_info(op, &info))) return -1;
  if (info.nparams > kMaxParams || info.nresults > kMaxResults) return 0;
  Program* p = make_program(op, info);
  if (!p) return -1;
  std::string name(view(info.name));
  std::string base(base_of(name));
  for (const std::string& key : name == base ? std::vector{base} : std::vector{base, name}) {
    OpEntry& e = entries()[key];
    Program* mine = key == base ? p : new Program(*p);
    if (Program* old = program_of(e, info.name)) {
      mine->next = old->next;
      *old = *mine;  // its places hold what is there
    } else {
      (e.first ? e.last->next : e.first) = mine;
      e.last = mine;
    }
    if (make_objects(e, key == base ? base : key) < 0) return -1;
  }
  return 0;
}

}  // namespace

Program* make_program(const aj_op* op, const aj_op_info& info) {
  auto p = std::make_unique<Program>();
  std::string_view tags = view(info.tags);
  p->op = op;
  p->nparams = static_cast<uint8_t>(info.nparams);
  p->nresults = static_cast<uint8_t>(info.nresults);
  p->device = -1;
  for (uint32_t i = 0; i < info.nparams; ++i) {
    Param& q = p->params[i];
    if (!fill_param(op, i, q)) return nullptr;
    if (!q.keyword_only) p->npositional = static_cast<uint8_t>(i + 1);
    if (q.value.tag == kMissing) p->nrequired = static_cast<uint8_t>(i + 1);
    if (q.kind == AJ_PARAM_DEVICE) p->device = static_cast<int8_t>(i);
  }
  if (p->nparams > 0 && p->params[0].kind <= AJ_PARAM_OPERAND)
    p->device = -1;  // zeros_like: where the input is
  for (uint32_t i = 0; i < info.nresults; ++i) {
    auto r = sized<aj_param>();
    if (failed(dispatch->op_result(op, i, &r))) return nullptr;
    if (r.flags & AJ_PARAM_AUX) {
      p->hidden |= 1u << i;
    } else {
      ++p->nvisible;
    }
  }
  p->varargs = varargs_of(*p, tags);
  p->out = info.flags & AJ_INFO_OUT;
  p->in_place = info.flags & AJ_INFO_IN_PLACE;
  p->network = p->nparams > 0 && p->params[0].kind == AJ_PARAM_TENSOR && p->params[0].list == 0 &&
               (p->in_place || space_of(view(info.name)) == "nn");
  p->activation = p->network && is_activation(view(info.name));
  p->factory = kit::has_word(tags, "factory");
  bool internal = kit::has_word(tags, "internal") || space_of(view(info.name)) == "_";
  p->puts = !p->out && !internal && p->nresults == 1 &&
            (p->factory ||
             (p->nparams > 0 && p->params[0].kind == AJ_PARAM_TENSOR && p->params[0].list != 0));
  p->function = !internal && !kit::has_word(tags, "method-only");
  p->method = !internal && !kit::has_word(tags, "function-only") && p->nparams > 0 &&
              p->params[0].kind <= AJ_PARAM_OPERAND && p->params[0].list == 0;
  want_tensors(*p, tags);
  return p.release();
}

int sync_ops() {
  uint32_t n = dispatch->op_count();
  if (n == seen) return 0;
  for (; seen < n; ++seen)
    if (add_op(dispatch->op_at(seen)) < 0) return -1;
  PyType_Modified(&tensor_type);
  return 0;
}

OpEntry* find_entry(std::string_view name, bool* in_place) {
  *in_place = false;
  if (sync_ops() < 0) return nullptr;
  auto& all = entries();
  auto it = all.find(name);
  if (it == all.end() && dispatch->find_op(str(name))) {  // a plugin that provides it was loaded
    if (sync_ops() < 0) return nullptr;
    it = all.find(name);
  }
  if (it != all.end()) return &it->second;
  if (name.size() < 2 || name.back() != '_') return nullptr;
  it = all.find(name.substr(0, name.size() - 1));
  if (it == all.end() || !it->second.function_in_place) return nullptr;
  *in_place = true;
  return &it->second;
}

const Program* find_program(const char* name, bool* in_place) {
  OpEntry* e = find_entry(name, in_place);
  if (e) return e->first;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_NotImplementedError, "%s: the core has no such op", name);
  return nullptr;
}

PyObject* find_function(const char* name) {
  bool in_place;
  OpEntry* e = find_entry(name, &in_place);
  if (e) return in_place ? e->function_in_place : e->function;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_NotImplementedError, "%s: the core has no such op", name);
  return nullptr;
}

PyObject* list_names(bool in_place) {
  if (sync_ops() < 0) return nullptr;
  Ref list(PyList_New(0));
  for (auto& [name, e] : entries()) {
    if (!list) return nullptr;
    Ref text(to_python(name));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
    bool own = name.find('.') != std::string::npos || entries().count(name + "_");
    if (!in_place || !e.function_in_place || own) continue;
    text = Ref(to_python(name + "_"));
    if (!text || PyList_Append(list.get(), text.get()) < 0) return nullptr;
  }
  return list.release();
}

}  // namespace adjoin::py
