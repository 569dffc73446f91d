// adjoin/pt.hpp: reads and writes PyTorch's `.pt` files. load_pt() gives the tensors of a state
// dict by name; read_pt() all that a file holds, as a tree in which classes are names: nothing is
// executed. Files are mapped privately, so reading copies nothing.
#ifndef ADJOIN_PT_HPP
#define ADJOIN_PT_HPP
// clang-format off
#include "joined.hpp"  // before the kit
// clang-format on
#include <adjoin/kit/ops.hpp>
#include <deque>
#include <map>

#include "files/archive.hpp"
#include "files/atomic.hpp"
#include "files/memory.hpp"
#include "files/old_layout.hpp"
#include "files/pickle_writer.hpp"

namespace AJ_HIDDEN adjoin {

// A value of a file. Trees may contain themselves, as Python's lists may; they live as long as one
// PtFile of theirs does.
struct PtValue {
  enum Kind {
    none,
    boolean,
    integer,
    real,
    text,
    bytes,
    tuple,
    list,
    set,
    dict,
    name,
    tensor,
    storage,
    object
  };
  Kind kind = none;
  int64_t i = 0;  // boolean, integer
  double x = 0;   // real
  std::string s;  // text, bytes, decimal digits of an integer beyond int64, "module.name" of a name
  std::vector<PtValue*> items;  // of tuples, lists and sets; key, value, key, value of dicts
  Tensor t;                     // tensor, storage
  PtValue *type = nullptr, *args = nullptr,
          *state = nullptr;  // object: what the file says of one of a class

  const PtValue* find(std::string_view key) const {  // in a dict; NULL: not there
    for (size_t i = 0; kind == dict && i + 1 < items.size(); i += 2)
      if (items[i]->kind == text && items[i]->s == key) return items[i + 1];
    return nullptr;
  }
  const PtValue& operator[](std::string_view key) const {
    const PtValue* found = find(key);
    if (!found) kit::raise(AJ_NOT_FOUND, "load: there is no '", key, "' in the file's dict");
    return *found;
  }
};

namespace files {

// What a PickleMachine makes for C++.
class PtTree {
 public:
  using Value = PtValue*;
  using Values = const std::vector<Value>&;
  using Kind = PtValue::Kind;

  // Tensors lie in the mapping and keep it.
  explicit PtTree(std::shared_ptr<Mapping> map) : map_(std::move(map)) { open(map_->text()); }
  // Tensors are copies.
  explicit PtTree(std::string_view file) { open(file); }
  const PtValue& root() const { return *root_; }

  Value none() { return add(PtValue::none); }
  Value boolean(bool b) { return integer_of(PtValue::boolean, b); }
  Value integer(int64_t n) { return integer_of(PtValue::integer, n); }
  Value decimal(std::string_view digits) {
    Value v = add(PtValue::integer);
    auto end = std::from_chars(digits.data(), digits.data() + digits.size(), v->i);
    if (end.ec != std::errc() || end.ptr != digits.data() + digits.size()) v->s = digits;
    return v;
  }
  Value long_integer(std::string_view bytes) {
    Value v = add(PtValue::integer);
    if (bytes.size() > 8)
      return v->s = kit::text("an integer of ", uint64_t(bytes.size()), " bytes"), v;
    for (size_t k = 0; k < 8; ++k) {
      uint64_t byte = k < bytes.size()                        ? uint8_t(bytes[k])
                      : !bytes.empty() && bytes.back() & 0x80 ? 255
                                                              : 0;
      v->i |= int64_t(byte << (8 * k));
    }
    return v;
  }
  Value real(double x) {
    Value v = add(PtValue::real);
    v->x = x;
    return v;
  }
  Value text(std::string_view s) { return text_of_kind(PtValue::text, s); }
  Value escaped_text(std::string_view s) { return text(s); }
  Value bytes(std::string_view s) { return text_of_kind(PtValue::bytes, s); }
  Value escaped_bytes(std::string_view s) { return bytes(s); }
  Value byte_array(std::string_view s) { return bytes(s); }
  Value tuple(Values items) { return of(PtValue::tuple, items); }
  Value frozen_set(Values items) { return of(PtValue::set, items); }
  Value list() { return add(PtValue::list); }
  Value dict() { return add(PtValue::dict); }
  Value set() { return add(PtValue::set); }
  void append(Value to, Values items) {
    if (to->kind != PtValue::list && to->kind != PtValue::set && to->kind != PtValue::object)
      damaged("appends to what is no list");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }
  void add(Value to, Values items) { append(to, items); }
  void set_items(Value to, Values items) {
    if (to->kind != PtValue::dict && to->kind != PtValue::object)
      damaged("sets items of what is no dict");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }
  std::string_view text_of(Value v) {
    if (v->kind != PtValue::text) damaged("has a name that is no text");
    return v->s;
  }
  Value global(std::string_view module, std::string_view name) {
    return text_of_kind(PtValue::name, kit::text(module, ".", name));
  }
  Value persistent(Value id);
  Value reduce(Value f, Value args);
  Value make(Value type, Value args, Value) { return reduce(type, args); }
  void build(Value v, Value state) { v->state = state; }

 private:
  [[noreturn]] static void damaged(const char* what) {
    kit::raise(AJ_DATA_LOSS, "load: the pickle is damaged: it ", what);
  }
  static void need(bool good, const char* what) {
    if (!good) damaged(what);
  }

  Value add(Kind kind) {
    nodes_.emplace_back().kind = kind;
    return &nodes_.back();
  }
  Value integer_of(Kind kind, int64_t n) {
    Value v = add(kind);
    v->i = n;
    return v;
  }
  Value text_of_kind(Kind kind, std::string_view s) {
    Value v = add(kind);
    v->s = s;
    return v;
  }
  Value of(Kind kind, Values items) {
    Value v = add(kind);
    v->items = items;
    return v;
  }

  void open(std::string_view file);
  std::string_view storage_bytes(const std::string& key);
  Value tensor(bool typed, const std::vector<Value>& args);
  Tensor memory(std::string_view bytes, DLDataType dtype, int64_t count);

  std::shared_ptr<Mapping> map_;
  std::deque<PtValue> nodes_;
  std::unique_ptr<ZipDirectory> zip_;
  std::unique_ptr<OldLayout> old_;
  std::string prefix_;
  bool big_ = false;
  std::map<std::string, Value> storages_;
  PtValue* root_ = nullptr;
};

inline void PtTree::open(std::string_view file) {
  std::string_view pickle;
  if (OldLayout::looks_so(file)) {
    old_ = std::make_unique<OldLayout>(file);
    pickle = old_->pickle;
  } else {
    if (!ZipDirectory::looks_so(file))
      kit::raise(AJ_DATA_LOSS,
                 "load: this is no `.pt` file: it is neither a zip archive nor of the old layout");
    zip_ = std::make_unique<ZipDirectory>(file);
    if (map_) zip_->expect(*map_);
    for (const Record& r : zip_->records())
      if (r.name.ends_with("/data.pkl")) prefix_ = r.name.substr(0, r.name.size() - 8);
    const Record* order = zip_->find(prefix_ + "byteorder");
    big_ = order && zip_->bytes(*order, true) == "big";
    const Record* data = zip_->find(prefix_ + "data.pkl");
    if (prefix_.empty() || !data)
      kit::raise(
          AJ_DATA_LOSS,
          "load: the zip archive holds no data.pkl; it is no `.pt` file, or not a whole one");
    pickle = zip_->bytes(*data, true);
  }
  PickleMachine<PtTree> machine(pickle, *this);
  root_ = machine.run();
}

inline std::string_view PtTree::storage_bytes(const std::string& key) {
  if (old_) {
    auto found = old_->storages.find(key);
    need(found != old_->storages.end(), "names a storage that the file does not have");
    return found->second;
  }
  const Record* r = zip_->find(prefix_ + "data/" + key);
  need(r, "names a storage that the file does not have");
  return zip_->bytes(*r, !map_);
}

inline Tensor PtTree::memory(std::string_view bytes, DLDataType dtype, int64_t count) {
  uint64_t element = dtype.bits / 8;
  bool even = reinterpret_cast<uintptr_t>(bytes.data()) % std::min<uint64_t>(element, 8) == 0;
  bool stays = map_ && even && !big_ && !bytes.empty();
  std::shared_ptr<Mapping> home = stays ? map_ : Mapping::of(bytes);
  char* data = stays ? const_cast<char*>(bytes.data()) : home->data;
  if (big_) swap_bytes(data, bytes.size(), dtype.code == kDLComplex ? element / 2 : element);
  return tensor_in(home, data, {&count, 1}, dtype);
}

inline PtValue* PtTree::persistent(Value id) {
  const auto& parts = id->items;
  need(id->kind == PtValue::tuple && parts.size() >= 5 && parts[1]->kind == PtValue::name &&
           parts[2]->kind == PtValue::text,
       "refers to something that is no storage");
  Value& known = storages_[parts[2]->s];
  if (known) return known;
  const StorageName* type =
      find_storage_name(std::string_view(parts[1]->s).substr(parts[1]->s.rfind('.') + 1));
  need(type, "has a storage of no known type");
  DLDataType dtype;
  kit::check(kit::env.core->dtype_find(kit::str(type->dtype), &dtype));
  std::string_view bytes = storage_bytes(parts[2]->s);
  int64_t count = parts[4]->i;
  need(parts[4]->kind == PtValue::integer && count >= 0 &&
           uint64_t(count) == bytes.size() / type->bytes && bytes.size() % type->bytes == 0,
       "has a storage of another size than its record");
  Value v = add(PtValue::storage);
  v->t = memory(bytes, dtype, count);
  return known = v;
}

inline std::vector<int64_t> counts_of(const PtValue* v) {
  std::vector<int64_t> list;
  for (const PtValue* item : v->items)
    list.push_back(item->kind == PtValue::integer && item->s.empty() ? item->i : -1);
  return list;
}

// (storage, offset, size, stride, requires_grad, hooks, dtype)
inline PtValue* PtTree::tensor(bool typed, const std::vector<Value>& args) {
  need(args.size() >= (typed ? 7u : 4u) && args[0]->kind == PtValue::storage &&
           args[1]->kind == PtValue::integer,
       "has a tensor without a storage");
  const Tensor& base = args[0]->t;
  DLDataType dtype = base.dtype();
  if (typed) {
    need(args[6]->kind == PtValue::name && args[6]->s.starts_with("torch."),
         "has a tensor of no dtype");
    kit::check(kit::env.core->dtype_find(kit::str(std::string_view(args[6]->s).substr(6)), &dtype));
  }
  std::vector<int64_t> shape = counts_of(args[2]), strides = counts_of(args[3]);
  uint64_t room = uint64_t(base.numel()) * base.dtype().bits / dtype.bits;
  need(lies_inside(room, args[1]->i, shape, strides),
       "has a tensor that is not inside of its storage");
  DLTensor like{nullptr, base.device(), int32_t(shape.size()), dtype, shape.data(), strides.data(),
                0};
  aj_tensor* made = nullptr;
  kit::check(kit::env.core->tensor_view(base.get(), &like, args[1]->i, &made));
  Value v = add(PtValue::tensor);
  v->t = Tensor::steal(made);
  if (args.size() > 4 && args[4]->kind == PtValue::boolean && args[4]->i) v->t.requires_grad_();
  return v;
}

inline PtValue* PtTree::reduce(Value f, Value args) {
  need(args->kind == PtValue::tuple, "calls with what are no arguments");
  const auto& list = args->items;
  if (f->kind == PtValue::name) {
    if (f->s == "torch._utils._rebuild_tensor" || f->s == "torch._utils._rebuild_tensor_v2")
      return tensor(false, list);
    if (f->s == "torch._utils._rebuild_tensor_v3") return tensor(true, list);
    bool parameter = f->s.starts_with("torch._utils._rebuild_parameter");
    if (parameter && list.size() >= 2 && list[0]->kind == PtValue::tensor) {
      Value v = add(PtValue::tensor);
      v->t = list[0]->t.requires_grad() ? list[0]->t : list[0]->t.detach();
      if (list[1]->i) v->t.requires_grad_();
      return v;
    }
    if (f->s == "collections.OrderedDict" && list.empty()) return dict();
    if (f->s == "torch.Size" && list.size() == 1) return list[0];
  }
  Value v = add(PtValue::object);
  v->type = f;
  v->args = args;
  return v;
}

}  // namespace files

namespace files {
inline Tensor on_host(const Tensor& t) {
  Tensor dense = contiguous(t.detach());
  auto home = Mapping::of(std::string(uint64_t(t.numel()) * t.dtype().bits / 8, '\0'));
  kit::check(kit::env.core->tensor_copy_bytes(dense.get(), home->data, home->size, 1));
  return tensor_in(home, home->data, t.shape(), t.dtype());
}
}  // namespace files

using PtFile = std::shared_ptr<const files::PtTree>;

// All that a file holds: read_pt("x.pt")->root()["epoch"].i
inline PtFile read_pt(const std::string& path) {
  return std::make_shared<const files::PtTree>(std::make_shared<files::Mapping>(path));
}

// The tensors of a dict by name; those of a dict in it as "outer.inner".
inline std::map<std::string, Tensor> load_pt(const std::string& path) {
  std::map<std::string, Tensor> found;
  PtFile file = read_pt(path);
  auto visit = [&](auto& self, const PtValue& dict, const std::string& prefix, int depth) -> void {
    for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
      const PtValue &key = *dict.items[i], &value = *dict.items[i + 1];
      std::string name = prefix + (key.kind == PtValue::integer ? std::to_string(key.i) : key.s);
      if (value.kind == PtValue::tensor)
        found[name] = value.t;
      else if (value.kind == PtValue::dict && depth < 20)
        self(self, value, name + ".", depth + 1);
    }
  };
  if (file->root().kind != PtValue::dict)
    kit::raise(AJ_INVALID_ARGUMENT, "load: '", path,
               "' holds no dict of tensors; look at it with read_pt()");
  visit(visit, file->root(), "", 0);
  return found;
}

// A dict of tensors, in the order given; those that share memory share it in the file. Never a half
// file: see files/atomic.hpp.
inline void save_pt(std::span<const std::pair<std::string, Tensor>> tensors,
                    const std::string& path) {
  files::PickleWriter out;
  std::vector<files::Bytes> storages;
  std::vector<Tensor> kept;
  std::map<uint64_t, size_t> known;
  out.ordered_dict();
  out.op('(');
  for (const auto& [name, original] : tensors) {
    bool here = original.device().device_type == kDLCPU;
    const Tensor& t = kept.emplace_back(here ? original.detach() : files::on_host(original));
    aj_dtype_info info{};
    info.struct_size = sizeof info;
    kit::check(kit::env.core->dtype_info(t.dtype(), &info));
    auto strides = t.strides();
    void* data;
    uint64_t bytes, offset, id;
    kit::check(kit::env.core->tensor_storage(t.get(), &data, &bytes, &offset, &id));
    uint64_t element = info.bytes;
    auto [place, fresh] = known.emplace(id, storages.size());
    if (fresh) storages.push_back({data, bytes / element * element});
    uint64_t size = storages[place->second].size;
    if (offset + element > size && t.numel())
      kit::raise(AJ_UNIMPLEMENTED, "save: '", name,
                 "' shares memory that is not wholly known; save a clone() of it");
    out.text(name);
    // Untyped, so that tensors of one memory may be of several dtypes.
    out.tensor({kit::view_of(info.name), "cpu", place->second, int64_t(size),
                int64_t(offset / element), t.shape(), strides, original.requires_grad(), false});
  }
  out.op('u');
  std::string_view pickle = out.end();
  size_t slash = path.rfind('/');
  std::string root = slash == std::string::npos ? path : path.substr(slash + 1);
  if (size_t dot = root.rfind('.'); dot != std::string::npos && dot > 0) root.resize(dot);
  files::AtomicFile file(path);
  files::write_pt(file, root.substr(0, 200), pickle, storages);
  file.commit();
}
inline void save_pt(const std::map<std::string, Tensor>& tensors, const std::string& path) {
  std::vector<std::pair<std::string, Tensor>> list(tensors.begin(), tensors.end());
  save_pt(std::span<const std::pair<std::string, Tensor>>(list), path);
}

}  // namespace adjoin
#endif
