// frontends/python/src/pt_read.cpp: reads `.pt` files: containers, numbers and tensors are made
// here, what names a class or a function is asked of a policy, an object of adjoin.serialization.
#include <cmath>

#include "../../cpp/files/mapping.hpp"
#include "../../cpp/files/old_layout.hpp"
#include "../../cpp/files/zip.hpp"
#include "device.hpp"
#include "dtype.hpp"
#include "methods.hpp"
#include "pt.hpp"
#include "size.hpp"

namespace adjoin::py {

PyObject* raise_caught() {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const kit::Error& e) {
    PyObject* type = PyExc_RuntimeError;
    if (e.kind() == "UnpicklingError")
      type = helper("pickle", "UnpicklingError");
    else if (!e.kind().empty())
      type = PyDict_GetItemString(PyEval_GetBuiltins(), e.kind().c_str());
    Ref text(to_python(e.message()));  // it may quote a name that is no UTF-8
    if (text) PyErr_SetObject(type ? type : PyExc_RuntimeError, text.get());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

namespace {

// The memory under tensors of the file.
struct Storage {
  Shared base;  // of one dimension, on the device where the storage belongs
  Shared object;
};

class PtFile {
 public:
  using Value = Shared;
  using Values = const std::vector<Shared>&;

  // A path, which is mapped, or the file's bytes, of which tensors are made by copying.
  PtFile(PyObject* source, bool map, bool check_sums) : map_(map), check_sums_(check_sums) {
    if (PyUnicode_Check(source)) open_path(source);
    if (!mapping_) {
      must(PyObject_GetBuffer(source, &buffer_, PyBUF_SIMPLE));
      text_ = {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
      map_ = false;
    }
    if (files::OldLayout::looks_so(text_)) {
      old_ = std::make_unique<files::OldLayout>(text_);
      pickle_ = old_->pickle;
    } else {
      open_archive();
    }
  }
  PtFile(const PtFile&) = delete;
  ~PtFile() {
    if (buffer_.obj) PyBuffer_Release(&buffer_);
  }

  PyObject* run(PyObject* policy) {
    Bound bound(*this, policy);
    files::PickleMachine<PtFile> machine(pickle_, *this);
    return machine.run().release();
  }
  void bind(PyObject* policy) {
    policy_ = Shared(Py_NewRef(policy));
    tensor_v1_ = Shared(PyObject_GetAttrString(policy, "tensor_v1"));
    tensor_v2_ = Shared(PyObject_GetAttrString(policy, "tensor_v2"));
    tensor_v3_ = Shared(PyObject_GetAttrString(policy, "tensor_v3"));
    ordered_dict_ = Shared(Py_NewRef(must(helper("collections", "OrderedDict"))));
  }
  std::string_view pickle() const { return pickle_; }
  size_t length() const { return old_ ? old_->length : text_.size(); }

  // --- what PickleMachine asks for ---
  Shared none() { return Shared(Py_NewRef(Py_None)); }
  Shared boolean(bool b) { return Shared(PyBool_FromLong(b)); }
  Shared integer(int64_t n) { return Shared(PyLong_FromLongLong(n)); }
  Shared decimal(std::string_view s) {
    return Shared(PyLong_FromString(std::string(s).c_str(), nullptr, 10));
  }
  Shared long_integer(std::string_view s) {
    Shared bytes = this->bytes(s),
           f(PyObject_GetAttrString(reinterpret_cast<PyObject*>(&PyLong_Type), "from_bytes"));
    Shared args(Py_BuildValue("Os", bytes.get(), "little")),
        names(Py_BuildValue("{s:O}", "signed", Py_True));
    return Shared(PyObject_Call(f.get(), args.get(), names.get()));
  }
  Shared real(double x) { return Shared(PyFloat_FromDouble(x)); }
  Shared text(std::string_view s) {
    return Shared(PyUnicode_DecodeUTF8(s.data(), Py_ssize_t(s.size()), "surrogatepass"));
  }
  Shared escaped_text(std::string_view s) {
    return Shared(PyUnicode_DecodeRawUnicodeEscape(s.data(), Py_ssize_t(s.size()), nullptr));
  }
  Shared bytes(std::string_view s) {
    return Shared(PyBytes_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
  }
  Shared escaped_bytes(std::string_view s) {
    Shared raw(PyBytes_DecodeEscape(s.data(), Py_ssize_t(s.size()), nullptr, 0, nullptr));
    return text({PyBytes_AS_STRING(raw.get()), size_t(PyBytes_GET_SIZE(raw.get()))});
  }
  Shared byte_array(std::string_view s) {
    return Shared(PyByteArray_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
  }
  Shared tuple(Values items) {
    Shared t(PyTuple_New(Py_ssize_t(items.size())));
    for (size_t i = 0; i < items.size(); ++i)
      PyTuple_SET_ITEM(t.get(), Py_ssize_t(i), Py_NewRef(items[i].get()));
    return t;
  }
  Shared list() { return Shared(PyList_New(0)); }
  Shared dict() { return Shared(PyDict_New()); }
  Shared set() { return Shared(PySet_New(nullptr)); }
  Shared frozen_set(Values items) {
    Shared s = set();
    add(s, items);
    return Shared(PyFrozenSet_New(s.get()));
  }
  void append(Shared& to, Values items) {
    if (!PyList_CheckExact(to.get())) return tell("extend", to, tuple(items));
    for (const Shared& item : items) must(PyList_Append(to.get(), item.get()));
  }
  void set_items(Shared& to, Values items) {
    bool plain = PyDict_CheckExact(to.get());
    if (!plain && !PyODict_CheckExact(to.get())) return tell("set_items", to, tuple(items));
    for (size_t i = 0; i < items.size(); i += 2)
      must(plain ? PyDict_SetItem(to.get(), items[i].get(), items[i + 1].get())
                 : PyObject_SetItem(to.get(), items[i].get(), items[i + 1].get()));
  }
  void add(Shared& to, Values items) {
    if (!PySet_CheckExact(to.get())) return tell("extend", to, tuple(items));
    for (const Shared& item : items) must(PySet_Add(to.get(), item.get()));
  }
  std::string_view text_of(const Shared& s) {
    Py_ssize_t n = 0;
    const char* p = PyUnicode_Check(s.get()) ? PyUnicode_AsUTF8AndSize(s.get(), &n) : nullptr;
    if (!p) damaged("a name is no text");
    return {p, size_t(n)};
  }
  Shared global(std::string_view module, std::string_view name) {
    Shared& known = globals_[kit::text(module, "\n", name)];
    if (!known) known = ask("find", {text(module), text(name)});
    return known;
  }
  Shared reduce(const Shared& f, const Shared& args) {
    if (!PyTuple_CheckExact(args.get())) damaged("arguments are no tuple");
    if (f.get() == tensor_v2_.get() || f.get() == tensor_v3_.get() || f.get() == tensor_v1_.get()) {
      Shared made = rebuild(f.get() == tensor_v3_.get(), args.get());
      if (made.get()) return made;
    }
    if (f.get() == ordered_dict_.get() && PyTuple_GET_SIZE(args.get()) == 0)
      return Shared(PyObject_CallNoArgs(f.get()));
    return ask("call", {f, args});
  }
  Shared make(const Shared& type, const Shared& args, const Shared& names) {
    if (!PyTuple_CheckExact(args.get())) damaged("arguments are no tuple");
    return ask("make", {type, args, !names ? none() : names});
  }
  void build(Shared& object, const Shared& state) { tell("build", object, state); }
  Shared persistent(const Shared& id);
  Shared tensor(bool typed, PyObject* args) {
    return reduce(typed ? tensor_v3_ : tensor_v2_, Shared(Py_NewRef(args)));
  }

 private:
  // A policy may hold the file, in a capsule, into which the collector does not see: what is known
  // of the policy and what it gave is given up with the last result.
  struct Bound {
    Bound(PtFile& file, PyObject* policy) : file(file) { file.bind(policy); }
    ~Bound() {
      file.globals_.clear();
      for (Shared* s : {&file.policy_, &file.tensor_v1_, &file.tensor_v2_, &file.tensor_v3_})
        *s = Shared();
    }
    PtFile& file;
  };

  [[noreturn]] static void damaged(const char* what) {
    kit::raise_as("UnpicklingError", AJ_DATA_LOSS, "load: the pickle is damaged: ", what);
  }

  void open_path(PyObject* source) {
    PyObject* bytes = nullptr;
    must(PyUnicode_FSConverter(source, &bytes) ? 0 : -1);
    Shared path(bytes);
    if (map_) Py_XDECREF(watch_mapped_files(nullptr, nullptr));
    mapping_ = map_ ? std::make_shared<files::Mapping>(PyBytes_AS_STRING(bytes), 0)
                    : std::make_shared<files::Mapping>(PyBytes_AS_STRING(bytes));
    text_ = mapping_->text();
  }

  void open_archive() {
    if (!files::ZipDirectory::looks_so(text_))
      kit::raise_as("UnpicklingError", AJ_DATA_LOSS,
                    "load: this is no `.pt` file: it begins neither as a zip archive nor as the "
                    "old layout does; "
                    "adjoin.safetensors and adjoin.utils.npz read other formats");
    zip_ = std::make_unique<files::ZipDirectory>(text_);
    if (map_) zip_->expect(*mapping_);
    for (const files::Record& r : zip_->records())
      if (r.name.ends_with("/data.pkl")) root_ = r.name.substr(0, r.name.size() - 8);
    if (root_.empty())
      kit::raise(
          AJ_DATA_LOSS,
          "load: the zip archive holds no data.pkl; it is no `.pt` file, or not a whole one");
    if (zip_->find(root_ + "constants.pkl"))
      kit::raise(AJ_UNIMPLEMENTED,
                 "load: this is an archive of TorchScript, a program; save the state dict of the "
                 "module instead");
    pickle_ = record("data.pkl");
    if (zip_->find(root_ + "byteorder")) big_ = record("byteorder") == "big";
  }
  std::string_view record(const std::string& name) {
    const files::Record* r = zip_->find(root_ + name);
    if (!r)
      kit::raise(AJ_DATA_LOSS, "load: the file has no record '", name.substr(0, 100),
                 "'; it is not whole");
    return zip_->bytes(*r, true);
  }

  Shared ask(const char* name, std::initializer_list<Shared> args) {
    Shared packed = tuple(args), f(PyObject_GetAttrString(policy_.get(), name));
    return Shared(PyObject_Call(f.get(), packed.get(), nullptr));
  }
  void tell(const char* name, const Shared& object, const Shared& what) {
    ask(name, {object, what});
  }

  std::string_view bytes_of(const std::string& key);
  aj_tensor* on_memory(std::string_view bytes, DLTensor& like);
  aj_tensor* copied(std::string_view bytes, DLTensor& like);
  Shared rebuild(bool typed, PyObject* args);
  Shared part_of(const Storage& whole, PyObject* part);
  static Shared item_of(PyObject* tuple, Py_ssize_t i) {
    return Shared(Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  }

  bool map_, check_sums_, big_ = false;
  Py_buffer buffer_{};
  std::shared_ptr<files::Mapping> mapping_;
  std::string_view text_, pickle_;
  std::unique_ptr<files::ZipDirectory> zip_;
  std::unique_ptr<files::OldLayout> old_;
  std::string root_;
  Shared policy_, tensor_v1_, tensor_v2_, tensor_v3_, ordered_dict_;
  std::unordered_map<std::string, Shared> globals_;
  std::unordered_map<std::string, Storage> storages_;
  std::unordered_map<PyObject*, Storage*> by_object_;
};

std::string_view PtFile::bytes_of(const std::string& key) {
  if (old_) {
    auto found = old_->storages.find(key);
    if (found == old_->storages.end()) damaged("it names a storage that the file does not have");
    return found->second;
  }
  const files::Record* r = zip_->find(root_ + "data/" + key);
  if (!r)
    kit::raise(AJ_DATA_LOSS, "load: the file has no storage '", key.substr(0, 100),
               "'; it is not whole");
  return zip_->bytes(*r, false);
}

// A tensor on a part of the mapping.
aj_tensor* PtFile::on_memory(std::string_view bytes, DLTensor& like) {
  auto* keep = new std::shared_ptr<files::Mapping>(mapping_);
  auto drop = [](void* p) { delete static_cast<std::shared_ptr<files::Mapping>*>(p); };
  like.data = const_cast<char*>(bytes.data());
  aj_tensor* t = nullptr;
  aj_status* s = core->tensor_from_memory(&like, bytes.size(), 0, keep, drop, &t);
  if (s) delete keep;
  must_status(s);
  return t;
}

aj_tensor* PtFile::copied(std::string_view bytes, DLTensor& like) {
  aj_tensor* t = nullptr;
  must_status(core->tensor_empty(&like, 0, &t));
  if (!bytes.empty()) std::memcpy(data_of(t), bytes.data(), bytes.size());
  uint64_t element = uint64_t(item_bytes(like.dtype));
  if (big_)
    files::swap_bytes(data_of(t), bytes.size(),
                      like.dtype.code == kDLComplex ? element / 2 : element);
  return t;
}

// At most 64 counts; -1: not a tuple of such.
int read_sizes(PyObject* tuple, int64_t* out) {
  if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > 64) return -1;
  auto n = static_cast<int>(PyTuple_GET_SIZE(tuple));
  for (int i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    int overflow = 0;
    out[i] = PyLong_CheckExact(item) ? PyLong_AsLongLongAndOverflow(item, &overflow) : -1;
    if (overflow || out[i] < 0) return -1;
  }
  return n;
}

// ("storage", its type, key, location, count of elements) and, in the old layout, (key, offset,
// count) of a part.
Shared PtFile::persistent(const Shared& id) {
  PyObject* t = id.get();
  Py_ssize_t n = PyTuple_CheckExact(t) ? PyTuple_GET_SIZE(t) : 0;
  if (n < 5 || n > 6 || !PyUnicode_Check(PyTuple_GET_ITEM(t, 3)) ||
      !PyLong_CheckExact(PyTuple_GET_ITEM(t, 4)))
    damaged("it refers to something that is no storage");
  auto item = [&](Py_ssize_t i) { return item_of(t, i); };
  std::string key(text_of(item(2)));
  PyObject* part = n == 6 ? PyTuple_GET_ITEM(t, 5) : Py_None;
  Storage& known = storages_[key];
  if (known.object.get()) return part == Py_None ? known.object : part_of(known, part);
  Shared type(PyObject_GetAttrString(PyTuple_GET_ITEM(t, 1), "dtype"));
  DLTensor like{};
  if (!as_dtype(type.get(), &like.dtype)) damaged("a storage is of no known type");
  std::string_view bytes = bytes_of(key);
  int64_t count = PyLong_AsLongLong(PyTuple_GET_ITEM(t, 4)), element = item_bytes(like.dtype);
  if (count == -1 && PyErr_Occurred()) throw PythonError{};
  if (count < 0 || uint64_t(count) != bytes.size() / uint64_t(element) ||
      bytes.size() % uint64_t(element))
    kit::raise(AJ_DATA_LOSS, "load: storage '", key.substr(0, 100), "' has ",
               uint64_t(bytes.size()), " bytes, which are not ", count, " elements of ", element);
  if (zip_ && check_sums_) zip_->bytes(*zip_->find(root_ + "data/" + key), true);
  like.device = host_device();
  like.ndim = 1;
  like.shape = &count;
  bool usable =
      map_ && !big_ && !bytes.empty() &&
      reinterpret_cast<uintptr_t>(bytes.data()) % std::min<size_t>(size_t(element), 8) == 0;
  Shared host(wrap(usable ? on_memory(bytes, like) : copied(bytes, like)));
  Shared placed = ask("place", {host, item(3)});
  if (!is_tensor(placed.get())) damaged("a storage has no place");
  known.base = placed;
  known.object = Shared(call_helper("adjoin._typed_storage", "over",
                                    std::array<PyObject*, 1>{placed.get()}.data(), 1));
  by_object_[known.object.get()] = &known;
  return part == Py_None ? known.object : part_of(known, part);
}

// A storage that began inside of another: (its key, the first element, their count).
Shared PtFile::part_of(const Storage& whole, PyObject* part) {
  if (!PyTuple_CheckExact(part) || PyTuple_GET_SIZE(part) != 3 ||
      !PyUnicode_Check(PyTuple_GET_ITEM(part, 0)))
    damaged("a part of a storage has no key, offset and size");
  Storage& known = storages_["part " + std::string(text_of(item_of(part, 0)))];
  if (known.object.get()) return known.object;
  int64_t place[2], step = 1;
  Shared two(PyTuple_GetSlice(part, 1, 3));
  aj_tensor* base = tensor_of(whole.base.get());
  if (read_sizes(two.get(), place) != 2 || place[0] > base->dl.shape[0] ||
      place[1] > base->dl.shape[0] - place[0])
    damaged("a part of a storage lies outside of it");
  DLTensor like{nullptr, base->dl.device, 1, base->dl.dtype, &place[1], &step, 0};
  aj_tensor* made = nullptr;
  must_status(core->tensor_view(base, &like, place[0], &made));
  known.base = Shared(wrap(made));
  known.object = Shared(call_helper("adjoin._typed_storage", "over",
                                    std::array<PyObject*, 1>{known.base.get()}.data(), 1));
  by_object_[known.object.get()] = &known;
  return known.object;
}

// (storage, offset, size, stride, [requires_grad, hooks, [dtype]]). Of nothing if the dtype is none
// of ours: the policy decides then.
Shared PtFile::rebuild(bool typed, PyObject* args) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  auto storage = n >= 4 ? by_object_.find(PyTuple_GET_ITEM(args, 0)) : by_object_.end();
  if (storage == by_object_.end()) damaged("a tensor has no storage");
  aj_tensor* base = tensor_of(storage->second->base.get());
  DLDataType dtype = base->dl.dtype;
  if (typed && (n < 7 || !as_dtype(PyTuple_GET_ITEM(args, 6), &dtype))) {
    forget_error();
    return Shared();
  }
  int64_t offset, sizes[64], strides[64];
  Shared one(PyTuple_Pack(1, PyTuple_GET_ITEM(args, 1)));
  int dims = read_sizes(PyTuple_GET_ITEM(args, 2), sizes);
  if (read_sizes(one.get(), &offset) != 1 || dims < 0 ||
      read_sizes(PyTuple_GET_ITEM(args, 3), strides) != dims)
    damaged("a tensor's size, stride or offset is not of counts");
  auto d = static_cast<size_t>(dims);
  uint64_t room = uint64_t(base->dl.shape[0]) * uint64_t(item_bytes(base->dl.dtype)) /
                  uint64_t(item_bytes(dtype));
  if (!files::lies_inside(room, offset, {sizes, d}, {strides, d}))
    kit::raise(AJ_DATA_LOSS, "load: a tensor of shape ", kit::Shape{sizes, dims}, ", strides ",
               kit::Shape{strides, dims}, " and offset ", offset,
               " is not inside of its storage of ", room, " elements; the file is damaged");
  aj_tensor* made = nullptr;
  int64_t none = 0;
  if (same(dtype, base->dl.dtype)) {
    DLTensor like{nullptr, base->dl.device, 1, dtype, &none, nullptr, 0};
    must_status(core->tensor_empty(&like, 0, &made));
    HeldTensor held(made);
    must_status(core->tensor_set(made, base, offset, dims, sizes, strides));
    held.release();
  } else {
    DLTensor like{nullptr, base->dl.device, dims, dtype, sizes, strides, 0};
    must_status(core->tensor_view(base, &like, offset, &made));
  }
  HeldTensor held(made);
  if (n > 4 && PyTuple_GET_ITEM(args, 4) == Py_True)
    must_status(autograd->set_requires_grad(made, 1));
  return Shared(wrap(held.release()));
}

constexpr const char* kCapsule = "adjoin.pt_file";

PtFile* file_of(PyObject* capsule) {
  auto* file = static_cast<PtFile*>(PyCapsule_GetPointer(capsule, kCapsule));
  if (!file) throw PythonError{};
  return file;
}

PyObject* open_file(PyObject*, PyObject* args) {  // (path or buffer, map, check_sums)
  PyObject* source;
  int map, check;
  if (!PyArg_ParseTuple(args, "Opp", &source, &map, &check)) return nullptr;
  try {
    auto file = std::make_unique<PtFile>(source, map, check);
    PyObject* capsule = must(PyCapsule_New(file.get(), kCapsule, [](PyObject* c) {
      delete static_cast<PtFile*>(PyCapsule_GetPointer(c, kCapsule));
    }));
    (void)file.release();  // the capsule has it
    return capsule;
  } catch (...) {
    return raise_caught();
  }
}

PyObject* run_file(PyObject*, PyObject* args) {  // (file, policy)
  PyObject *capsule, *policy;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &policy)) return nullptr;
  try {
    return file_of(capsule)->run(policy);
  } catch (...) {
    return raise_caught();
  }
}

// For unpicklers of somebody else: the pickle, and what it asks of the file.
PyObject* pickle_of(PyObject*, PyObject* args) {  // (file, policy)
  PyObject *capsule, *policy;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &policy)) return nullptr;
  try {
    PtFile* file = file_of(capsule);
    file->bind(policy);
    return file->bytes(file->pickle()).release();
  } catch (...) {
    return raise_caught();
  }
}

PyObject* storage_of_id(PyObject*, PyObject* args) {  // (file, persistent id)
  PyObject *capsule, *id;
  if (!PyArg_ParseTuple(args, "OO", &capsule, &id)) return nullptr;
  try {
    return file_of(capsule)->persistent(Shared(Py_NewRef(id))).release();
  } catch (...) {
    return raise_caught();
  }
}

// How many bytes of what was given are the file's: in the old layout another may follow.
PyObject* length_of(PyObject*, PyObject* capsule) {
  try {
    return PyLong_FromSize_t(file_of(capsule)->length());
  } catch (...) {
    return raise_caught();
  }
}

PyObject* rebuild_tensor(PyObject*, PyObject* args) {  // (file, has a dtype, arguments)
  PyObject *capsule, *rest;
  int typed;
  if (!PyArg_ParseTuple(args, "OpO!", &capsule, &typed, &PyTuple_Type, &rest)) return nullptr;
  try {
    return file_of(capsule)->tensor(typed, rest).release();
  } catch (...) {
    return raise_caught();
  }
}

}  // namespace

int init_pt_read(PyObject* module) {
  static PyMethodDef functions[] = {
      {"pt_open", open_file, METH_VARARGS, "pt_open(path or buffer, map, check_sums)"},
      {"pt_run", run_file, METH_VARARGS, "pt_run(file, policy)"},
      {"pt_pickle", pickle_of, METH_VARARGS, "pt_pickle(file, policy)"},
      {"pt_length", length_of, METH_O, "pt_length(file)"},
      {"pt_storage", storage_of_id, METH_VARARGS, "pt_storage(file, persistent_id)"},
      {"watch_mapped_files", watch_mapped_files, METH_NOARGS,
       "Names the file on stderr if one that is mapped was cut short."},
      {"pt_rebuild", rebuild_tensor, METH_VARARGS, "pt_rebuild(file, has_dtype, arguments)"},
      {},
  };
  return PyModule_AddFunctions(module, functions);
}

}  // namespace adjoin::py
