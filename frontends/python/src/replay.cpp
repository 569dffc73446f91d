// frontends/python/src/replay.cpp: guards of recorded calls. None of them runs Python code.
#include "replay.hpp"

#include <adjoin/abi/program.h>

#include <algorithm>
#include <cstring>

#include "dtype.hpp"
#include "graphs.hpp"
#include "program.hpp"

namespace adjoin::py {
namespace {

constexpr uint32_t kLooked =
    AJ_TENSOR_STRIDED | AJ_TENSOR_REQUIRES_GRAD | AJ_TENSOR_READ_ONLY | AJ_TENSOR_DENSE;

const aj_programs* table() {
  static const auto* found = static_cast<const aj_programs*>(aj_get_interface("x.program", 1));
  return found;
}
aj_object* handle(PyObject* capsule) {
  return static_cast<aj_object*>(PyCapsule_GetPointer(capsule, kProgramCapsule));
}

bool want(PyObject* o, Wanted* w, size_t* leaves) {
  if (is_tensor(o)) {
    const aj_tensor* t = tensor_of(o);
    w->kind = Wanted::Kind::tensor;
    w->object = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    w->keys = t->keys, w->flags = t->obj.flags & kLooked;
    w->dtype = t->dl.dtype, w->device = t->dl.device;
    w->shape.assign(t->dl.shape, t->dl.shape + t->dl.ndim);
    ++*leaves;
    return true;
  }
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    w->kind = PyTuple_CheckExact(o) ? Wanted::Kind::tuple : Wanted::Kind::list;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (!want(PySequence_Fast_GET_ITEM(o, i), &w->items.emplace_back(), leaves)) return false;
    return true;
  }
  if (PyDict_CheckExact(o)) {
    w->kind = Wanted::Kind::dict;
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &item);) {
      w->names.push_back(Ref::borrow(key));
      if (!want(item, &w->items.emplace_back(), leaves)) return false;
    }
    return true;
  }
  w->object = Ref::borrow(o);
  return true;
}

// Itself, or as good: a number of the same bits, the same text.
bool same_object(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyLong_CheckExact(a) || PyUnicode_CheckExact(a))
    return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  return false;
}

// Sizes that may be others: [(leaf, dimension, symbol), ...].
bool loosen(Wanted* w, size_t* leaf, PyObject* sizes, size_t* symbols) {
  for (Wanted& item : w->items)
    if (!loosen(&item, leaf, sizes, symbols)) return false;
  if (w->kind != Wanted::Kind::tensor) return true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes); ++i) {
    Py_ssize_t at, dim, symbol;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(sizes, i), "nnn", &at, &dim, &symbol)) return false;
    if (size_t(at) != *leaf) continue;
    w->shape.at(size_t(dim)) = -1 - symbol;
    *symbols = std::max(*symbols, size_t(symbol) + 1);
  }
  ++*leaf;
  return true;
}

void hold(PyObject* o, std::vector<PyObject*>* held) { held->push_back(Py_NewRef(o)); }

}  // namespace

bool watch(PyObject* what, Watched* w) {
  if (PyTuple_CheckExact(what) && PyTuple_GET_SIZE(what) == 2) {  // (dictionary, key)
    w->container = Ref::borrow(PyTuple_GET_ITEM(what, 0));
    w->key = Ref::borrow(PyTuple_GET_ITEM(what, 1));
    PyObject* now = PyDict_GetItemWithError(w->container.get(), w->key.get());
    if (!now) return false;
    hold(now, &w->held);
    return true;
  }
  w->container = Ref::borrow(what);
  if (PyDict_Check(what)) {
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(what, &at, &key, &item);)
      hold(key, &w->held), hold(item, &w->held);
    return true;
  }
  if (PyList_Check(what)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(what); ++i) hold(PyList_GET_ITEM(what, i), &w->held);
    return true;
  }
  if (!PyCell_Check(what)) {
    PyErr_Format(PyExc_TypeError, "replay: %s cannot be watched", Py_TYPE(what)->tp_name);
    return false;
  }
  if (PyObject* now = PyCell_GET(what)) hold(now, &w->held);
  return true;
}

bool stands(const Watched& w) {
  PyObject* c = w.container.get();
  if (w.key) {
    PyObject* now = PyDict_GetItemWithError(c, w.key.get());
    return now && same_object(now, w.held[0]);
  }
  if (PyDict_Check(c)) {
    if (PyDict_GET_SIZE(c) * 2 != Py_ssize_t(w.held.size())) return false;
    PyObject *key, *item;
    size_t i = 0;
    for (Py_ssize_t at = 0; PyDict_Next(c, &at, &key, &item); i += 2)
      if (key != w.held[i] || !same_object(item, w.held[i + 1])) return false;
    return true;
  }
  if (PyList_Check(c)) {
    if (PyList_GET_SIZE(c) != Py_ssize_t(w.held.size())) return false;
    for (size_t i = 0; i < w.held.size(); ++i)
      if (!same_object(PyList_GET_ITEM(c, Py_ssize_t(i)), w.held[i])) return false;
    return true;
  }
  PyObject* now = PyCell_GET(c);
  return now ? w.held.size() == 1 && same_object(now, w.held[0]) : w.held.empty();
}

bool capturing() { return table() && table()->capturing(); }

std::unique_ptr<Plan> Plan::make(PyObject* program, PyObject* args, PyObject* kwargs,
                                 PyObject* watched, PyObject* together, bool writes,
                                 PyObject* sizes) {
  std::unique_ptr<Plan> p(new Plan);
  aj_object* handle_of = table() && program != Py_None ? handle(program) : nullptr;
  if (!handle_of && program != Py_None) return nullptr;
  if (handle_of) p->program_ = Ref::borrow(program);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (!want(PyTuple_GET_ITEM(args, i), &p->args_.emplace_back(), &p->count_)) return nullptr;
  Ref names(PyList_New(0));
  PyObject *key, *item;
  for (Py_ssize_t at = 0; names && PyDict_Next(kwargs, &at, &key, &item);)
    if (PyList_Append(names.get(), key) < 0 || !want(item, &p->args_.emplace_back(), &p->count_))
      return nullptr;
  p->kwnames_ = Ref(names ? PyList_AsTuple(names.get()) : nullptr);
  if (!p->kwnames_) return nullptr;
  size_t leaf = 0, symbols = 0;
  for (Wanted& w : p->args_)
    if (!loosen(&w, &leaf, sizes, &symbols)) return nullptr;
  p->sizes_.resize(symbols);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(watched); ++i)
    if (!watch(PyList_GET_ITEM(watched, i), &p->watched_.emplace_back())) return nullptr;
  if (handle_of && p->count_ != table()->count(handle_of, AJ_PROGRAM_INPUT)) {
    PyErr_SetString(PyExc_RuntimeError, "replay: the program has other inputs than the call");
    return nullptr;
  }
  if (handle_of) p->results_ = table()->count(handle_of, AJ_PROGRAM_RESULT);
  p->together_ = Ref::borrow(together);
  p->writes_ = writes;
  dispatch->thread_keys(&p->include_, &p->exclude_);
  p->grad_ = autograd->grad_mode();
  p->default_dtype_ = core->default_dtype();
  return p;
}

int Plan::visit(visitproc visit, void* arg) const {
  Py_VISIT(together_.get());
  Py_VISIT(token.get());
  for (const Watched& w : watched_) {
    Py_VISIT(w.container.get());
    for (PyObject* o : w.held) Py_VISIT(o);
  }
  return 0;
}

bool Plan::fits(const Wanted& w, PyObject* o) {
  switch (w.kind) {
    case Wanted::Kind::tensor: {
      if (reinterpret_cast<PyObject*>(Py_TYPE(o)) != w.object.get()) return false;
      aj_tensor* t = tensor_of(o);
      if (t->keys != w.keys || (t->obj.flags & kLooked) != w.flags || !same(t->dl.dtype, w.dtype) ||
          t->dl.device.device_type != w.device.device_type ||
          t->dl.device.device_id != w.device.device_id || t->dl.ndim != int32_t(w.shape.size()))
        return false;
      for (size_t d = 0; d < w.shape.size(); ++d) {
        const int64_t n = t->dl.shape[d];
        int64_t wanted = w.shape[d];
        if (wanted < 0) {
          int64_t& known = sizes_[size_t(-1 - wanted)];
          if (!known && n > 1) known = n;
          wanted = known;
        }
        if (n != wanted) return false;
      }
      leaves_.push_back(t);
      return true;
    }
    case Wanted::Kind::tuple:
    case Wanted::Kind::list: {
      if (w.kind == Wanted::Kind::tuple ? !PyTuple_CheckExact(o) : !PyList_CheckExact(o))
        return false;
      if (PySequence_Fast_GET_SIZE(o) != Py_ssize_t(w.items.size())) return false;
      for (size_t i = 0; i < w.items.size(); ++i)
        if (!fits(w.items[i], PySequence_Fast_GET_ITEM(o, Py_ssize_t(i)))) return false;
      return true;
    }
    case Wanted::Kind::dict: {
      if (!PyDict_CheckExact(o) || PyDict_GET_SIZE(o) != Py_ssize_t(w.items.size())) return false;
      PyObject *key, *item;
      size_t i = 0;
      for (Py_ssize_t at = 0; PyDict_Next(o, &at, &key, &item); ++i)
        if (!same_object(key, w.names[i].get()) || !fits(w.items[i], item)) return false;
      return true;
    }
    default:
      return same_object(o, w.object.get());
  }
}

// What is written shares no memory with what else is given.
bool Plan::apart() const {
  std::vector<uint64_t> ids;
  for (const aj_tensor* t : leaves_) {
    void* data;
    uint64_t bytes, offset, id;
    if (aj_status* s = core->tensor_storage(t, &data, &bytes, &offset, &id))
      return core->status_free(s), false;
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) == ids.end();
}

bool Plan::takes(PyObject* const* args, size_t n, PyObject* kwnames) {
  const size_t named = kwnames ? size_t(PyTuple_GET_SIZE(kwnames)) : 0;
  if (n + named != args_.size() || named != size_t(PyTuple_GET_SIZE(kwnames_.get()))) return false;
  for (size_t k = 0; k < named; ++k)
    if (!same_object(PyTuple_GET_ITEM(kwnames, Py_ssize_t(k)),
                     PyTuple_GET_ITEM(kwnames_.get(), Py_ssize_t(k))))
      return false;
  uint64_t include, exclude;
  dispatch->thread_keys(&include, &exclude);
  if (include != include_ || exclude != exclude_ || autograd->grad_mode() != grad_ ||
      !same(core->default_dtype(), default_dtype_) || mode_on())
    return false;
  leaves_.clear();
  std::fill(sizes_.begin(), sizes_.end(), 0);
  for (size_t i = 0; i < args_.size(); ++i)
    if (!fits(args_[i], args[i])) return false;
  for (size_t i = 1; i < leaves_.size(); ++i)  // a program has each once
    if (std::find(leaves_.begin(), leaves_.begin() + std::ptrdiff_t(i), leaves_[i]) !=
        leaves_.begin() + std::ptrdiff_t(i))
      return false;
  for (const Watched& w : watched_)
    if (!stands(w)) return false;
  return !writes_ || apart();
}

PyObject* Plan::run() {
  constexpr uint32_t kFew = 16;
  aj_tensor* few[kFew];
  std::unique_ptr<aj_tensor*[]> many;
  if (results_ > kFew) many.reset(new aj_tensor*[results_]);
  aj_tensor** results = many ? many.get() : few;
  // Whom a run calls may call the function again.
  const std::vector<aj_tensor*> leaves = std::exchange(leaves_, {});
  if (!program_) {
    Ref given(PyTuple_New(Py_ssize_t(leaves.size())));
    for (size_t i = 0; given && i < leaves.size(); ++i)
      PyTuple_SET_ITEM(given.get(), Py_ssize_t(i), wrap_borrowed(leaves[i]));
    return given ? PyObject_CallOneArg(together_.get(), given.get()) : nullptr;
  }
  if (failed(table()->run(handle(program_.get()), leaves.data(), uint32_t(leaves.size()), 0,
                          results, results_)))
    return nullptr;
  if (together_.get() == Py_None) return wrap_or_none(results[0]);
  Ref all(PyTuple_New(results_));
  for (uint32_t i = 0; i < results_; ++i) {
    PyObject* item = all ? wrap_or_none(results[i]) : nullptr;
    if (all && !item) all = Ref();
    if (all)
      PyTuple_SET_ITEM(all.get(), i, item);
    else if (!item)
      core->release(results[i]);
  }
  if (!all || together_.get() == Py_True) return all.release();
  return PyObject_CallOneArg(together_.get(), all.get());
}

}  // namespace adjoin::py
