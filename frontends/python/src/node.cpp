// frontends/python/src/node.cpp: what Python sees of a recorded step: its name, its edges, its
// hooks, what it saved.
#include "node.hpp"

#include <cctype>
#include <unordered_map>

#include "collect.hpp"
#include "function.hpp"
#include "hooks.hpp"
#include "line.hpp"
#include "methods.hpp"

namespace adjoin::py {
namespace {

aj_node* node_of(PyObject* self) {
  aj_node* n = reinterpret_cast<NodeObject*>(self)->node;
  if (!n) PyErr_SetString(PyExc_RuntimeError, "grad_fn: this node is gone: its graph was freed");
  return n;
}

// Steps that people know by another word than our row's: that of PyTorch's node of the same layer.
const std::unordered_map<std::string_view, const char*>& known_names() {
  static const auto* all = new std::unordered_map<std::string_view, const char*>{
      {"adaptive_avg_pool1d_forward", "AdaptiveAvgPool1D"},
      {"adaptive_avg_pool2d_forward", "AdaptiveAvgPool2D"},
      {"adaptive_avg_pool3d_forward", "AdaptiveAvgPool3D"},
      {"avg_pool1d_forward", "AvgPool1D"},
      {"avg_pool2d_forward", "AvgPool2D"},
      {"avg_pool3d_forward", "AvgPool3D"},
      {"bag_sums", "EmbeddingBag"},
      {"batch_norm_stats", "NativeBatchNorm"},
      {"bce_each", "BinaryCrossEntropy"},
      {"bce_logits_each", "BinaryCrossEntropyWithLogits"},
      {"cat_same", "Cat"},
      {"embedding_rows", "Embedding"},
      {"group_norm_stats", "NativeGroupNorm"},
      {"index_at", "Index"},
      {"layer_norm_stats", "NativeLayerNorm"},
      {"logsigmoid", "LogSigmoid"},
      {"patches", "Im2Col"},
      {"prelu_each", "PreluKernel"},
      {"reshape", "View"},
      {"softmax_nll", "NllLoss"},
      {"solve_stack", "SolveEx"},
      {"svd_stack", "Svd"},
  };
  return *all;
}

// "mul" becomes MulBackward0, "max_pool2d_with_indices" MaxPool2DWithIndicesBackward0, as people
// know them; names with capitals are somebody's own.
std::string shown_name(std::string_view raw) {
  for (char c : raw)
    if (c >= 'A' && c <= 'Z') return std::string(raw);
  std::string name;
  size_t space = raw.find("::");
  if (raw.starts_with("linalg::")) name = "Linalg";
  if (space != std::string_view::npos) raw.remove_prefix(space + 2);
  raw = raw.substr(0, raw.find('.'));
  if (auto known = known_names().find(raw); known != known_names().end())
    return name + known->second + "Backward0";
  bool up = true;
  for (char c : raw) {
    if (c != '_') name += up && c >= 'a' && c <= 'z' ? char(c - 32) : c;
    up = c == '_' || (c >= '0' && c <= '9');
  }
  bool plain = name == "AccumulateGrad" || name == "CopySlices";
  return plain ? name : name + "Backward0";
}

PyObject* name(PyObject* self, PyObject*) {
  aj_node* n = node_of(self);
  if (!n) return nullptr;
  std::string shown = shown_name(view(autograd->node_name(n)));
  bool plain = shown == "AccumulateGrad" || shown == "CopySlices";  // programs test for these two
  return to_python(plain ? "torch::autograd::" + shown : shown);
}

PyObject* repr(PyObject* self) {
  if (!reinterpret_cast<NodeObject*>(self)->node) return PyUnicode_FromString("<Node, freed>");
  return PyUnicode_FromFormat("<%s object at %p>", Py_TYPE(self)->tp_name, self);
}

PyObject* next_functions(PyObject* self, void*) {
  aj_node* n = node_of(self);
  if (!n) return nullptr;
  uint32_t count = autograd->node_edges(n);
  Ref all(PyTuple_New(count));
  for (uint32_t i = 0; all && i < count; ++i) {
    HeldNode next;
    uint32_t result = 0;
    if (failed(autograd->node_edge(n, i, next.out(), &result))) return nullptr;
    Ref object(node_object(next.release()));
    PyObject* pair = object ? Py_BuildValue("OI", object.get(), result) : nullptr;
    if (!pair) return nullptr;
    PyTuple_SET_ITEM(all.get(), i, pair);
  }
  return all.release();
}

PyObject* variable(PyObject* self, void*) {
  aj_node* n = node_of(self);
  if (!n) return nullptr;
  aj_tensor* t = autograd->node_variable(n);
  if (t) return wrap_borrowed(t);
  PyErr_SetString(PyExc_AttributeError,
                  "variable: only nodes that accumulate into a leaf have one");
  return nullptr;
}

PyObject* line(PyObject* self, void*) {
  aj_node* n = node_of(self);
  return n ? line_text(autograd->node_line(n)) : nullptr;
}

PyObject* sequence(PyObject* self, PyObject*) {
  aj_node* n = node_of(self);
  return n ? PyLong_FromUnsignedLongLong(autograd->node_sequence(n)) : nullptr;
}

PyObject* saved(PyObject* self, void*) {
  aj_node* n = node_of(self);
  if (!n) return nullptr;
  Ref list(PyList_New(0));
  for (uint32_t i = 0; list; ++i) {
    aj_value v{};
    if (aj_status* s = autograd->node_saved(n, i, &v)) {
      bool end = core->status_code(s) == AJ_NOT_FOUND;
      if (!end) return raise(s);
      core->status_free(s);
      break;
    }
    Ref item(take_value(v));
    if (!item || PyList_Append(list.get(), item.get()) < 0) return nullptr;
  }
  return list ? PyList_AsTuple(list.get()) : nullptr;
}

// Nodes that have an object now, which each look at the graph finds again.
std::unordered_map<aj_node*, PyObject*>& objects() {
  static auto* all = new std::unordered_map<aj_node*, PyObject*>;
  return *all;
}

// The same of what stands for a leaf, by the leaf: the core makes it anew for whoever looks.
std::unordered_map<aj_tensor*, PyObject*>& leaves() {
  static auto* all = new std::unordered_map<aj_tensor*, PyObject*>;
  return *all;
}

// What people note about a node lives as long as it does: in a hook that does nothing.
struct Note {
  aj_node* node;
  PyObject* dict;
};

std::unordered_map<aj_node*, Note*>& notes() {
  static auto* all = new std::unordered_map<aj_node*, Note*>;
  return *all;
}

aj_status* do_nothing(void*, aj_tensor**, uint32_t, aj_tensor* const*, uint32_t) { return nullptr; }

void drop_note(void* self) {
  Gil gil;
  auto* note = static_cast<Note*>(self);
  notes().erase(note->node);
  Py_DECREF(note->dict);
  delete note;
}

PyObject* metadata(PyObject* self, void*) {
  aj_node* n = node_of(self);
  if (!n) return nullptr;
  auto found = notes().find(n);
  if (found != notes().end()) return Py_NewRef(found->second->dict);
  Ref dict(PyDict_New());
  if (!dict) return nullptr;
  auto* note = new Note{n, Py_NewRef(dict.get())};
  notes()[n] = note;
  uint64_t id;
  if (failed(autograd->hook_node(n, AJ_HOOK_NODE_PRE, do_nothing, note, drop_note, &id))) {
    notes().erase(n);
    Py_DECREF(note->dict);
    delete note;
    return nullptr;
  }
  return dict.release();
}

PyObject* register_hook(PyObject* self, PyObject* f) {
  aj_node* n = node_of(self);
  return n ? hook_on_node(n, f, AJ_HOOK_NODE_POST) : nullptr;
}

PyObject* register_prehook(PyObject* self, PyObject* f) {
  aj_node* n = node_of(self);
  return n ? hook_on_node(n, f, AJ_HOOK_NODE_PRE) : nullptr;
}

PyObject* compare_nodes(PyObject* a, PyObject* b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, &node_type)) Py_RETURN_NOTIMPLEMENTED;
  bool equal = reinterpret_cast<NodeObject*>(a)->node == reinterpret_cast<NodeObject*>(b)->node;
  return PyBool_FromLong(equal == (op == Py_EQ));
}

Py_hash_t hash(PyObject* self) {
  return _Py_HashPointer(reinterpret_cast<NodeObject*>(self)->node);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  void* held = reinterpret_cast<NodeObject*>(self)->node;
  return held ? visit_held(&held, 1, visit, arg) : 0;
}

// f(number, name) for each saved value that is an argument or a result, by PyTorch's names, until
// it returns false.
template <class F>
void each_saved_name(aj_node* n, F f) {
  aj_str name;
  int32_t result, results = 0;
  for (uint32_t i = 0, gap = 0; tape() && gap < 8; ++i) {  // between them may be sizes and dtypes
    if (!tape()->saved_name(n, i, &name, &result)) {
      ++gap;
      continue;
    }
    gap = 0;
    std::string shown(view(name) == "input" ? "self" : view(name));
    if (!name.len) shown = results++ ? "result" + std::to_string(results - 1) : "result";
    if (!f(i, "_saved_" + shown)) return;
  }
}

// grad_fn._saved_self and its kin, which programs that draw graphs look for.
PyObject* get_attribute(PyObject* self, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(self, name);
  aj_node* n = reinterpret_cast<NodeObject*>(self)->node;
  if (found || !n || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  const char* asked = PyUnicode_AsUTF8(name);
  if (!asked || !std::string_view(asked).starts_with("_saved_")) return nullptr;
  int64_t place = -1;
  each_saved_name(n, [&](uint32_t i, const std::string& shown) {
    if (shown == asked) place = i;
    return place < 0;
  });
  if (place < 0) return nullptr;
  forget_error();
  aj_value v{};
  return failed(autograd->node_saved(n, static_cast<uint32_t>(place), &v)) ? nullptr
                                                                           : take_value(v);
}

PyObject* list_attributes(PyObject* self, PyObject*) {
  Ref all(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
  aj_node* n = reinterpret_cast<NodeObject*>(self)->node;
  if (!all || !n) return all.release();
  each_saved_name(n, [&](uint32_t, const std::string& shown) {
    Ref text(PyUnicode_FromString(shown.c_str()));
    return text && PyList_Append(all.get(), text.get()) == 0;
  });
  return PyErr_Occurred() ? nullptr : all.release();
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  if (aj_node* n = reinterpret_cast<NodeObject*>(self)->node) {
    auto mine = objects().find(n);
    if (mine != objects().end() && mine->second == self) objects().erase(mine);
    auto leaf = leaves().find(autograd->node_variable(n));
    if (leaf != leaves().end() && leaf->second == self) leaves().erase(leaf);
    core->release(n);
  }
  Py_TYPE(self)->tp_free(self);
}

PyGetSetDef properties[] = {
    {"next_functions", next_functions, nullptr,
     "(node, result number) of each input; None where no gradient goes.", nullptr},
    {"variable", variable, nullptr, "The leaf that gradients are accumulated into.", nullptr},
    {"line", line, nullptr, "Where the user's program recorded this.", nullptr},
    {"saved", saved, nullptr, "What is kept for the derivative.", nullptr},
    {"metadata", metadata, nullptr, "A dict for notes; it lives as long as the node.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"name", name, METH_NOARGS, "The name of the node."},
    {"__dir__", list_attributes, METH_NOARGS, nullptr},
    {"_sequence_nr", sequence, METH_NOARGS, "The order of recording."},
    {"register_hook", register_hook, METH_O,
     "f(grad_inputs, grad_outputs) runs after the node, and may replace grad_inputs."},
    {"register_prehook", register_prehook, METH_O,
     "f(grad_outputs) runs before the node, and may replace them."},
    {},
};

}  // namespace

PyTypeObject node_type = {
    .ob_base = {PyObject_HEAD_INIT(nullptr) 0},
    .tp_name = "adjoin.autograd.graph.Node",
    .tp_basicsize = sizeof(NodeObject),
    .tp_dealloc = dealloc,
    .tp_repr = repr,
    .tp_hash = hash,
    .tp_getattro = get_attribute,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "A recorded step of the graph.",
    .tp_traverse = traverse,
    .tp_richcompare = compare_nodes,
    .tp_methods = methods,
    .tp_getset = properties,
};

namespace {

// A type of the step's name, which is what programs that draw graphs print.
PyTypeObject* type_named(const std::string& name) {
  static auto* known = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& kept = (*known)[name];
  if (!kept)
    kept = reinterpret_cast<PyTypeObject*>(PyObject_CallFunction(
        reinterpret_cast<PyObject*>(&PyType_Type), "s(O){s:(),s:s}", name.c_str(), &node_type,
        "__slots__", "__module__", "adjoin.autograd.graph"));
  return kept;
}

}  // namespace

PyObject* node_object(aj_node* steal) {
  if (!steal) Py_RETURN_NONE;
  HeldNode held(steal);
  if (PyObject* context = context_of(steal)) return Py_NewRef(context);
  if (auto known = objects().find(steal); known != objects().end()) return Py_NewRef(known->second);
  aj_tensor* leaf = autograd->node_variable(steal);
  if (leaf)
    if (auto known = leaves().find(leaf); known != leaves().end()) return Py_NewRef(known->second);
  PyTypeObject* type = type_named(shown_name(view(autograd->node_name(held.get()))));
  auto* o = type ? reinterpret_cast<NodeObject*>(type->tp_alloc(type, 0)) : nullptr;
  if (!o) return nullptr;
  o->node = held.release();
  auto* object = reinterpret_cast<PyObject*>(o);
  objects()[o->node] = object;
  if (leaf) leaves()[leaf] = object;
  return object;
}

int init_node(PyObject* module) { return add_type(module, &node_type, "Node"); }

}  // namespace adjoin::py
