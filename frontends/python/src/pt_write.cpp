// frontends/python/src/pt_write.cpp: writes `.pt` files: walks an object into a pickle as PyTorch
// would write it, then the memory under its tensors. What is no plain data is asked of a policy, an
// object of adjoin.serialization.
#include <array>

#include "../../cpp/files/archive.hpp"
#include "../../cpp/files/atomic.hpp"
#include "../../cpp/files/pickle_writer.hpp"
#include "device.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "pt.hpp"
#include "size.hpp"

namespace adjoin::py {
namespace {

class ObjectWriter {
 public:
  explicit ObjectWriter(PyObject* policy) : policy_(Py_NewRef(policy)) {
    parameter_ = Shared(Py_NewRef(must(helper("adjoin.nn.parameter", "Parameter"))));
  }

  std::string_view write(PyObject* o) {
    save(o);
    for (const Kept& k : storages_)
      for (auto [at, element] : k.counts) out_.correct(at, int64_t(k.bytes) / element);
    return out_.end();
  }

  std::vector<files::Bytes> storages() const {
    std::vector<files::Bytes> list;
    for (const Kept& k : storages_) list.push_back({k.data, k.bytes});
    return list;
  }

 private:
  // The memory under a tensor. The counts of its elements are written last: a later tensor may
  // reach further.
  struct Kept {
    Shared owner;
    const void* data;
    uint64_t bytes;
    DLDataType dtype;
    std::vector<std::pair<size_t, int64_t>> counts;
  };

  void save(PyObject* o) {
    if (o == Py_None) return out_.none();
    if (PyBool_Check(o)) return out_.boolean(o == Py_True);
    if (PyLong_CheckExact(o)) return integer(o);
    if (PyFloat_CheckExact(o)) return out_.real(PyFloat_AS_DOUBLE(o));
    auto known = memo_.find(o);
    if (known != memo_.end()) return out_.get(known->second);
    must(Py_EnterRecursiveCall(" while saving an object") ? -1 : 0);
    struct Leave {
      ~Leave() { Py_LeaveRecursiveCall(); }
    } leave;
    if (PyUnicode_CheckExact(o)) return text(o);
    if (PyTuple_CheckExact(o)) return tuple(o);
    if (PyList_CheckExact(o)) return list(o);
    if (PyDict_CheckExact(o)) return dict(o);
    if (is_tensor(o)) return tensor(o);
    if (PyODict_CheckExact(o)) return ordered_dict(o);
    other(o);
  }

  void remember(PyObject* o) {
    memo_[o] = out_.put();
    alive_.emplace_back(Py_NewRef(o));
  }

  void integer(PyObject* o) {
    int overflow;
    int64_t n = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (!overflow) return out_.integer(n);
    Shared bits(PyObject_CallMethod(o, "bit_length", nullptr));
    Shared f(PyObject_GetAttrString(o, "to_bytes"));
    Shared args(Py_BuildValue("ns", PyLong_AsSsize_t(bits.get()) / 8 + 1, "little")),
        names(Py_BuildValue("{s:O}", "signed", Py_True));
    Shared bytes(PyObject_Call(f.get(), args.get(), names.get()));
    out_.long_integer({PyBytes_AS_STRING(bytes.get()), size_t(PyBytes_GET_SIZE(bytes.get()))});
  }

  void text(PyObject* o) {
    Shared bytes(PyUnicode_AsEncodedString(o, "utf-8", "surrogatepass"));
    out_.text({PyBytes_AS_STRING(bytes.get()), size_t(PyBytes_GET_SIZE(bytes.get()))});
    remember(o);
  }

  void tuple(PyObject* o) {
    Py_ssize_t n = PyTuple_GET_SIZE(o);
    if (n > 3) out_.op('(');
    for (Py_ssize_t i = 0; i < n; ++i) save(PyTuple_GET_ITEM(o, i));
    auto known = memo_.find(o);
    if (known != memo_.end()) {  // it contains itself, and has been written meanwhile
      if (n > 3)
        out_.op('1');
      else
        for (Py_ssize_t i = 0; i < n; ++i) out_.op('0');
      return out_.get(known->second);
    }
    out_.tuple(size_t(n));
    if (n) remember(o);
  }

  void list(PyObject* o) {
    out_.op(']');
    remember(o);
    items(o);
  }
  void items(PyObject* o) {
    if (PyList_GET_SIZE(o) == 0) return;
    out_.op('(');
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i)
      save(Shared(Py_NewRef(PyList_GET_ITEM(o, i))).get());
    out_.op('e');
  }

  void dict(PyObject* o) {
    out_.op('}');
    remember(o);
    pairs(Shared(PyDict_Items(o)).get());
  }
  void pairs(PyObject* list) {  // of tuples of two
    if (PyList_GET_SIZE(list) == 0) return;
    out_.op('(');
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
      PyObject *key, *value;
      must(PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OO", &key, &value) ? 0 : -1);
      save(key), save(value);
    }
    out_.op('u');
  }

  // state_dict() gives one with an attribute, _metadata.
  void ordered_dict(PyObject* o) {
    out_.ordered_dict();
    remember(o);
    Shared items(PyMapping_Items(o));
    alive_.push_back(items);
    pairs(items.get());
    Shared attributes(PyObject_GetAttrString(o, "__dict__"));
    if (PyDict_Size(attributes.get()) > 0) dict(attributes.get()), out_.op('b');
    alive_.push_back(attributes);
  }

  Shared ask(const char* name, PyObject* o) {
    Shared answer(PyObject_CallMethod(policy_.get(), name, "(O)", o));  // a tuple is one argument
    alive_.push_back(answer);  // what is written once is remembered by its address
    return answer;
  }
  void global(PyObject* o) {
    Shared name = ask("name", o);
    const char *module, *qualified;
    must(PyArg_ParseTuple(name.get(), "ss", &module, &qualified) ? 0 : -1);
    out_.global(module, qualified);
  }

  void other(PyObject* o) {
    if (Py_TYPE(o) == &dtype_type)
      return out_.global("torch", dtype_name(reinterpret_cast<DtypeObject*>(o)->dtype));
    if (Py_TYPE(o) == &size_type) {
      out_.global("torch", "Size");
      tuple(Shared(PySequence_Tuple(o)).get());
      out_.tuple(1), out_.op('R');
      return remember(o);
    }
    if (PyType_Check(o) || PyFunction_Check(o) || PyCFunction_Check(o)) return global(o);
    Shared answer = ask("reduce", o);
    if (!is_tensor(answer.get())) return reduced(o, answer.get());
    auto place = locate(answer.get(), false);  // a storage is named, as a tensor names its own
    count(place, out_.storage(place));
    remember(o);
  }

  // (function, arguments, [state, [items, [pairs]]]), as __reduce_ex__(2) gives it; a list is the
  // [module, name] of the object.
  void reduced(PyObject* o, PyObject* r) {
    if (PyList_Check(r)) return name(Shared(PyList_AsTuple(r)).get());
    PyObject *f, *args, *state = Py_None, *list = Py_None, *dict = Py_None;
    must(PyArg_ParseTuple(r, "OO!|OOO", &f, &PyTuple_Type, &args, &state, &list, &dict) ? 0 : -1);
    if (is_new(f)) {
      save(PyTuple_GET_ITEM(args, 0));
      Shared rest(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
      alive_.push_back(rest);
      save(rest.get());
      out_.op('\x81');
    } else {
      PyTuple_CheckExact(f) ? name(f) : save(f);
      save(args);
      out_.op('R');
    }
    remember(o);
    auto kept = [&](PyObject* iterable) {
      alive_.emplace_back(PySequence_List(iterable));
      return alive_.back().get();
    };
    if (list != Py_None) items(kept(list));
    if (dict != Py_None) pairs(kept(dict));
    if (state != Py_None) save(state), out_.op('b');
  }
  void name(PyObject* pair) {  // (module, name)
    const char *module, *qualified;
    must(PyArg_ParseTuple(pair, "ss", &module, &qualified) ? 0 : -1);
    out_.global(module, qualified);
  }
  static char* must(char* p, int) {
    if (!p) throw PythonError{};
    return p;
  }
  static void must(int n) { py::must(n); }
  static PyObject* must(PyObject* o) { return py::must(o); }

  static bool is_new(PyObject* f) {
    PyObject* found = must(helper("copyreg", "__newobj__"));
    return f == found;
  }

  // --- tensors ---
  static std::string_view dtype_name(DLDataType d) {
    auto info = sized<aj_dtype_info>();
    must_status(core->dtype_info(d, &info));
    return view(info.name);
  }

  void tensor(PyObject* o) {
    Shared attributes(PyObject_GetAttrString(o, "__dict__"));
    bool more = PyDict_Size(attributes.get()) > 0;
    Shared flag(PyObject_GetAttrString(o, "requires_grad"));
    bool grad = flag.get() == Py_True;
    alive_.push_back(attributes);
    if (reinterpret_cast<PyObject*>(Py_TYPE(o)) == parameter_.get()) {
      out_.global("torch._utils", more ? "_rebuild_parameter_with_state" : "_rebuild_parameter");
      if (more) out_.op('(');
      plain(o, false);
      out_.boolean(grad);
      out_.ordered_dict();
      if (more) save(attributes.get());
      more ? out_.op('t') : out_.tuple(3);
      out_.op('R');
    } else if (is_exact_tensor(o) && !more) {
      plain(o, grad);
    } else {
      with_type(o, grad, attributes.get());
    }
    remember(o);
  }

  void with_type(PyObject* o, bool grad, PyObject* attributes) {
    out_.global("torch._tensor", "_rebuild_from_type_v2");
    out_.op('(');
    auto type = [&] {
      is_exact_tensor(o) ? out_.global("torch", "Tensor")
                         : global(reinterpret_cast<PyObject*>(Py_TYPE(o)));
    };
    if (Shared parts = parts_of(o); parts.get() != Py_None) {
      out_.global("adjoin._tensor", "_rebuild_parts");
      type();
      made_of(parts.get(), grad);
    } else if (Shared outside = outside_of(o); outside.get() != Py_None) {
      out_.global("torch._utils", "_rebuild_wrapper_subclass");
      type();
      save(outside.get());
    } else if (is_strided(tensor_of(o)) && is_meta(tensor_of(o))) {
      meta_name();
      type();
      meta_arguments(tensor_of(o), grad);
    } else {
      auto place = locate(o, grad);
      out_.rebuild_name(place);
      type();
      count(place, out_.rebuild_arguments(place));
    }
    save(is_exact_tensor(o) ? attributes : ask("state", o).get());
    out_.op('t');
    out_.op('R');
  }

  void plain(PyObject* o, bool grad) {
    aj_tensor* t = tensor_of(o);
    if (Shared parts = parts_of(o); parts.get() != Py_None) {
      out_.global("adjoin._tensor", "_rebuild_parts");
      made_of(parts.get(), grad);
      return out_.op('R');
    }
    if (is_meta(t)) return without_memory(t, grad);
    auto place = locate(o, grad);
    count(place, out_.tensor(place));
  }

  // What is seen of a tensor whose class keeps its values; None of others.
  Shared outside_of(PyObject* o) {
    return is_strided(tensor_of(o)) ? Shared(Py_NewRef(Py_None)) : ask("outside", o);
  }
  // (op, arguments...), which makes a tensor without strides again. None: its values are saved.
  static Shared parts_of(PyObject* o) {
    return Shared(is_strided(tensor_of(o)) ? Py_NewRef(Py_None) : must(wrapper_parts(nullptr, o)));
  }
  void made_of(PyObject* parts, bool grad) {
    out_.op('(');
    alive_.emplace_back(PySequence_GetItem(parts, 0));
    save(alive_.back().get());
    alive_.emplace_back(
        PySequence_Tuple(Shared(PySequence_GetSlice(parts, 1, PySequence_Size(parts))).get()));
    save(alive_.back().get());
    out_.boolean(grad);
    out_.op('t');
  }

  void without_memory(aj_tensor* t, bool grad) {
    meta_name();
    meta_arguments(t, grad);
    out_.op('R');
  }
  void meta_name() { out_.global("torch._utils", "_rebuild_meta_tensor_no_storage"); }
  void meta_arguments(aj_tensor* t, bool grad) {
    if (!strides_settled(t)) throw PythonError{};
    auto n = static_cast<size_t>(t->dl.ndim);
    out_.op('(');
    out_.global("torch", dtype_name(t->dl.dtype));
    out_.integers({t->dl.shape, n});
    out_.integers({t->dl.strides, n});
    out_.boolean(grad);
    out_.op('t');
  }

  void count(const files::PickleWriter::TensorPlace& place, size_t at) {
    Kept& k = storages_[place.storage];
    bool typed = place.own && files::storage_of_dtype(place.dtype);
    k.counts.emplace_back(at, typed ? item_bytes(k.dtype) : 1);
  }

  files::PickleWriter::TensorPlace locate(PyObject* o, bool grad) {
    aj_tensor* t = tensor_of(o);
    if (!settled(t)) throw PythonError{};
    size_t number = keep_storage(o);
    void* data;
    uint64_t bytes, offset, id;
    must_status(core->tensor_storage(t, &data, &bytes, &offset, &id));
    auto n = static_cast<size_t>(t->dl.ndim);
    const Kept& k = storages_[number];
    Shared where(device_object(t->dl.device)),
        name(on_host(t) ? PyUnicode_FromString("cpu") : PyObject_Str(where.get()));
    alive_.push_back(name);
    return {dtype_name(t->dl.dtype),
            must(const_cast<char*>(PyUnicode_AsUTF8(name.get())), 0),
            number,
            0,
            int64_t(offset) / item_bytes(t->dl.dtype),
            {t->dl.shape, n},
            {t->dl.strides, n},
            grad,
            same(k.dtype, t->dl.dtype)};
  }

  size_t keep_storage(PyObject* o) {
    aj_tensor* t = tensor_of(o);
    void* data;
    uint64_t bytes, offset, id;
    must_status(core->tensor_storage(t, &data, &bytes, &offset, &id));
    auto [known, fresh] = by_id_.emplace(id, storages_.size());
    if (bytes == 0) fresh = true;  // nothing is shared, so each keeps its own dtype
    if (!fresh && bytes <= storages_[known->second].bytes) return known->second;
    Shared base(PyObject_GetAttrString(
        o, "_base"));  // it knows what was asked for; a view knows what there is
    if (fresh && base.get() != Py_None)
      must_status(core->tensor_storage(tensor_of(base.get()), &data, &bytes, &offset, &id));
    auto element = uint64_t(item_bytes(t->dl.dtype));
    Kept k{Shared(Py_NewRef(o)), data, bytes / element * element, t->dl.dtype, {}};
    if (!on_host(t)) {
      k.owner = ask("host_bytes", o);
      k.data = data_of(tensor_of(k.owner.get()));
      k.bytes = std::min(k.bytes, uint64_t(core->tensor_numel(tensor_of(k.owner.get()))));
      alive_.emplace_back(Py_NewRef(o));  // its id stays its own
    }
    if (fresh)
      storages_.push_back(std::move(k));
    else if (on_host(t))
      storages_[known->second].bytes = k.bytes;
    return fresh ? storages_.size() - 1 : known->second;
  }

  Shared policy_, parameter_;
  files::PickleWriter out_;
  std::unordered_map<PyObject*, uint32_t> memo_;
  std::vector<Shared> alive_;  // addresses in the memo stay those of the objects that they were
  std::vector<Kept> storages_;
  std::unordered_map<uint64_t, size_t> by_id_;
};

// A Python object with write().
struct ObjectSink {
  PyObject* file;
  void reserve(uint64_t) {}
  void write(const char* data, uint64_t n) {
    while (n) {
      Shared bytes(PyMemoryView_FromMemory(const_cast<char*>(data), Py_ssize_t(n), PyBUF_READ));
      Shared result(PyObject_CallMethod(file, "write", "O", bytes.get()));
      Shared released(PyObject_CallMethod(bytes.get(), "release", nullptr));
      Py_ssize_t done = PyLong_Check(result.get()) ? PyLong_AsSsize_t(result.get()) : Py_ssize_t(n);
      if (done <= 0 || uint64_t(done) > n)
        kit::raise_as("OSError", AJ_UNAVAILABLE, "save: the file's write() took ", int64_t(done),
                      " bytes of ", n);
      data += done, n -= uint64_t(done);
    }
  }
};

struct Unlocked {  // another Python thread runs while the disk works
  PyThreadState* state = PyEval_SaveThread();
  ~Unlocked() { PyEval_RestoreThread(state); }
};

// Hears Ctrl-C between pieces; the old file is still there then.
struct PathSink {
  static constexpr uint64_t kPatience = 64u << 20;
  explicit PathSink(const std::string& path) : file(path) {}
  void reserve(uint64_t n) { file.reserve(n); }
  void write(const char* data, uint64_t n) {
    file.write(data, n);
    listen(n);
  }
  std::span<char> space() { return file.space(); }
  void advance(size_t n) {
    file.advance(n);
    listen(n);
  }
  void listen(uint64_t n) {
    if ((since += n) < kPatience) return;
    since = 0;
    Gil gil;
    must(PyErr_CheckSignals());
  }
  files::AtomicFile file;
  uint64_t since = 0;
};

PyObject* save_file(PyObject*, PyObject* args) {  // (object, policy, path or file, root, sums)
  PyObject *object, *policy, *target;
  const char* root;
  int sums;
  if (!PyArg_ParseTuple(args, "OOOsp", &object, &policy, &target, &root, &sums)) return nullptr;
  try {
    ObjectWriter writer(policy);
    std::string_view pickle = writer.write(object);
    std::vector<files::Bytes> storages = writer.storages();
    if (PyBytes_Check(target)) {
      std::string path(PyBytes_AS_STRING(target), size_t(PyBytes_GET_SIZE(target)));
      Unlocked unlocked;
      PathSink sink(path);
      files::write_pt(sink, root, pickle, storages, sums);
      sink.file.commit();
    } else {
      ObjectSink sink{target};
      files::write_pt(sink, root, pickle, storages, sums);
    }
  } catch (...) {
    return raise_caught();
  }
  Py_RETURN_NONE;
}

PyObject* sum_of_bytes(PyObject*, PyObject* args) {  // (bytes, before)
  Py_buffer b;
  unsigned before = 0;
  if (!PyArg_ParseTuple(args, "y*|I", &b, &before)) return nullptr;
  uint32_t sum = files::crc32(before, b.buf, size_t(b.len));
  PyBuffer_Release(&b);
  return PyLong_FromUnsignedLong(sum);
}

// For formats that Python writes.
PyObject* write_atomically(PyObject*, PyObject* args) {  // (path, sequence of buffers)
  PyObject *path, *parts;
  if (!PyArg_ParseTuple(args, "O&O", PyUnicode_FSConverter, &path, &parts)) return nullptr;
  Shared owned(path);
  std::vector<Py_buffer> buffers;
  try {
    Shared list(PySequence_List(parts));
    uint64_t total = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.get()); ++i) {
      Py_buffer b;
      must(PyObject_GetBuffer(PyList_GET_ITEM(list.get(), i), &b, PyBUF_SIMPLE));
      buffers.push_back(b);
      total += uint64_t(b.len);
    }
    std::string target(PyBytes_AS_STRING(path));
    Unlocked unlocked;
    files::AtomicFile file(target);
    file.reserve(total);
    constexpr size_t kPiece = 1u << 20;
    for (const Py_buffer& b : buffers)
      for (size_t at = 0; at < size_t(b.len); at += kPiece)
        file.write(static_cast<const char*>(b.buf) + at, std::min(kPiece, size_t(b.len) - at));
    file.commit();
  } catch (...) {
    raise_caught();
  }
  for (Py_buffer& b : buffers) PyBuffer_Release(&b);
  return PyErr_Occurred() ? nullptr : Py_NewRef(Py_None);
}

}  // namespace

int init_pt_write(PyObject* module) {
  static PyMethodDef functions[] = {
      {"pt_save", save_file, METH_VARARGS, "pt_save(object, policy, path or file, root, sums)"},
      {"crc32", sum_of_bytes, METH_VARARGS, "crc32(bytes, before=0)"},
      {"write_atomically", write_atomically, METH_VARARGS, "write_atomically(path, buffers)"},
      {},
  };
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
