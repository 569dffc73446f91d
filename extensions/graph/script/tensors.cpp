// extensions/graph/script/tensors.cpp: what a tensor has besides its ops: sizes, elements,
// attributes; and tensors of Python's numbers.
#include <algorithm>

#include "machine.hpp"

namespace adjoin::graph::script {
namespace {

const Tensor& self(Call& c) { return std::get<Tensor>(c.at(0)); }

Value sizes(std::span<const int64_t> list_of) {
  std::vector<Value> out;
  for (int64_t n : list_of) out.emplace_back(n);
  return tuple(std::move(out));
}

int64_t dim_at(const Tensor& t, const Value& v) {
  int64_t d = whole(v, "dim"), n = t.ndim();
  if (d < -n || d >= n)
    index_error("Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                "], but got ", d, ")");
  return d < 0 ? d + n : d;
}
Value size(Call& c) {
  const Value* dim = c.find(1, "dim");
  if (!dim || is<None>(*dim)) return sizes(self(c).shape());
  return self(c).shape()[size_t(dim_at(self(c), *dim))];
}
Value stride(Call& c) {
  const Value* dim = c.find(1, "dim");
  if (!dim || is<None>(*dim)) return sizes(self(c).strides());
  return self(c).strides()[size_t(dim_at(self(c), *dim))];
}
Value dim(Call& c) { return self(c).ndim(); }
Value count(Call& c) { return self(c).numel(); }
Value item_of(Call& c) {
  if (self(c).numel() != 1)
    raise_as("RuntimeError", AJ_INVALID_ARGUMENT, "item: a tensor with ", self(c).numel(),
             " elements is no single number; index it, or use .tolist()");
  return tensor_items(std::get<Tensor>(call_named("reshape", {self(c), list({})})));
}
Value to_list(Call& c) { return tensor_items(self(c)); }
Value detach(Call& c) { return self(c).detach(); }
Value requires_grad(Call& c) {
  self(c).requires_grad_(c.args.size() < 2 || truth(c.at(1)));
  return c.at(0);
}
Value backward(Call& c) {
  const Value* g = c.find(1, "gradient");
  const Value* keep = c.find(2, "retain_graph");
  self(c).backward(g && is<Tensor>(*g) ? std::get<Tensor>(*g) : Tensor(), keep && truth(*keep));
  return None{};
}
Value is_contiguous(Call& c) { return self(c).is_contiguous(); }
Value is_floating(Call& c) { return self(c).is_floating_point(); }
Value is_complex(Call& c) { return self(c).is_complex(); }
Value is_signed(Call& c) {
  const uint8_t code = self(c).dtype().code;
  return code != kDLUInt && code != kDLBool;
}
Value element_size(Call& c) { return int64_t(self(c).dtype().bits / 8); }
Value get_device(Call& c) { return int64_t(self(c).device().device_id); }

// to(dtype), to(device), to(other), to(device, dtype); keywords; non_blocking, copy.
Value convert(Call& c) {
  Value dtype = None{}, place = None{};
  auto target = [&](const Value& v) {
    if (auto* t = std::get_if<Tensor>(&v)) return dtype = t->dtype(), place = t->device(), true;
    if (is<DLDataType>(v)) return dtype = v, true;
    if (is<DLDevice>(v)) return place = v, true;
    if (auto* s = std::get_if<std::string>(&v)) return place = device(*s), true;
    return is<None>(v);
  };
  size_t next = 1;
  while (next < c.args.size() && next < 3 && target(c.args[next])) next++;
  bool copy = next + 1 < c.args.size() && truth(c.args[next + 1]);
  Named more;
  for (auto& [name, v] : c.named) {
    if (name == "copy")
      copy = truth(v);
    else if (name == "memory_format")
      more.emplace_back(name, v);
    else if (name != "non_blocking" && !target(v))
      type_error("to(): '", name, "' is ", type_name(v));
  }
  const Tensor& t = self(c);
  const bool there = (is<None>(dtype) || std::get<DLDataType>(dtype) == t.dtype()) &&
                     (is<None>(place) || std::get<DLDevice>(place) == t.device());
  if (there && !copy && more.empty()) return c.at(0);
  more.emplace_back("dtype", dtype), more.emplace_back("device", place),
      more.emplace_back("copy", copy);
  return call_named("to", {t}, std::move(more));
}
Value cpu(Call& c) {
  const Value place = device("cpu");
  if (self(c).device() == std::get<DLDevice>(place)) return c.at(0);
  return converted(c.at(0), None{}, place);
}
Value cast(Call& c) {  // float(), long(), ...
  static const std::map<std::string_view, DLDataType> dtypes{
      {"float", float32}, {"double", float64}, {"half", float16},     {"bfloat16", bfloat16},
      {"long", int64},    {"int", int32},      {"short", int16},      {"char", int8},
      {"byte", uint8},    {"bool", boolean},   {"cfloat", complex64}, {"cdouble", complex128}};
  const DLDataType to = dtypes.at(c.who);
  return self(c).dtype() == to ? c.at(0) : converted(c.at(0), to);
}
Value type_as(Call& c) {
  const Tensor& like = std::get<Tensor>(c.at(1));
  if (self(c).dtype() == like.dtype() && self(c).device() == like.device()) return c.at(0);
  return converted(c.at(0), like.dtype(), like.device());
}
Value made_new(Call& c) {  // new_zeros, new_ones, new_empty, new_full, new_tensor
  const std::string name = std::string(c.who).substr(4);
  Value dtype = self(c).dtype(), place = self(c).device();
  Named named;
  for (auto& [n, v] : c.named) {
    if (n == "dtype" && !is<None>(v))
      dtype = v;
    else if (n == "device" && !is<None>(v))
      place = v;
    else if (n != "dtype" && n != "device")
      named.emplace_back(n, v);
  }
  std::vector<Value> args(c.args.begin() + 1, c.args.end());
  if (name == "tensor") return tensor_of(c.at(1), &dtype, &place);
  named.emplace_back("dtype", dtype), named.emplace_back("device", place);
  return call_named(name.c_str(), std::move(args), std::move(named));
}
Value split(Call& c) {
  const Value *by = c.find(1, "split_size_or_sections"), *at = c.find(2, "dim");
  if (!by) by = c.find(1, "split_size");
  if (!by) type_error("split() wants a size, or a list of sizes");
  const bool several = holds<List>(*by) || holds<Tuple>(*by);
  return call_named(several ? "split_with_sizes" : "split",
                    {c.at(0), *by, at ? *at : Value(int64_t(0))});
}
Value nonzero(Call& c) {
  const Value* as_tuple = c.find(1, "as_tuple");
  Value found = call_named(".nonzero", {c.at(0)});
  return as_tuple && truth(*as_tuple) ? call_named(".unbind", {found, int64_t(1)}) : found;
}
// unique and unique_consecutive give what was asked for: a tensor, or several.
Value unique(Call& c) {
  const std::string name = std::string(".") + c.who;
  const size_t first = name == ".unique" ? 2 : 1;
  std::vector<Value> found = items_of(call_named(name.c_str(), c.args, c.named)), out{found[0]};
  const Value *inverse = c.find(first, "return_inverse"),
              *counts = c.find(first + 1, "return_counts");
  if (inverse && truth(*inverse)) out.push_back(found[1]);
  if (counts && truth(*counts)) out.push_back(found[2]);
  return out.size() == 1 ? out[0] : tuple(std::move(out));
}
Value fill(Call& c) { return call_named("fill_", c.args); }
// squeeze_ and its kin: the tensor itself takes the shape and strides of a view.
Value take_view(Call& c) {
  const Tensor t = self(c);
  std::string name = std::string(".") + c.who;  // ".squeeze_"
  name.pop_back();
  if (t.requires_grad())
    raise_as("RuntimeError", AJ_PRECONDITION, name.substr(1), "_: a tensor that requires grad ",
             "keeps its shape in a program; use ", name.substr(1), "() and the result");
  const Value made = call_named(name.c_str(), c.args, c.named);
  const Tensor& view = std::get<Tensor>(made);
  void* data;
  uint64_t bytes, offset, id;
  check(core().tensor_storage(view.get(), &data, &bytes, &offset, &id));
  const int64_t item = view.dtype().bits * view.dtype().lanes / 8;
  core().tensor_bump_version(t.get());
  check(core().tensor_set(t.get(), t.get(), int64_t(offset) / item, int32_t(view.ndim()),
                          view.get()->dl.shape, view.get()->dl.strides));
  return c.at(0);
}
Value length_of(Call& c) { return length(c.at(0)); }

struct Entry {
  std::string_view name;
  Builtin run;
};
constexpr Entry table[] = {
    {"size", size},
    {"stride", stride},
    {"dim", dim},
    {"ndimension", dim},
    {"numel", count},
    {"nelement", count},
    {"item", item_of},
    {"tolist", to_list},
    {"detach", detach},
    {"requires_grad_", requires_grad},
    {"squeeze_", take_view},
    {"unsqueeze_", take_view},
    {"t_", take_view},
    {"transpose_", take_view},
    {"swapaxes_", take_view},
    {"swapdims_", take_view},
    {"as_strided_", take_view},
    {"backward", backward},
    {"is_contiguous", is_contiguous},
    {"is_floating_point", is_floating},
    {"is_complex", is_complex},
    {"is_signed", is_signed},
    {"element_size", element_size},
    {"get_device", get_device},
    {"to", convert},
    {"cpu", cpu},
    {"float", cast},
    {"double", cast},
    {"half", cast},
    {"bfloat16", cast},
    {"long", cast},
    {"int", cast},
    {"short", cast},
    {"char", cast},
    {"byte", cast},
    {"bool", cast},
    {"cfloat", cast},
    {"cdouble", cast},
    {"type_as", type_as},
    {"new_zeros", made_new},
    {"new_ones", made_new},
    {"new_empty", made_new},
    {"new_full", made_new},
    {"new_tensor", made_new},
    {"split", split},
    {"nonzero", nonzero},
    {"unique", unique},
    {"unique_consecutive", unique},
    {"fill_", fill},
    {"__len__", length_of},
};

template <class T>
Value at_memory(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  if constexpr (std::is_floating_point_v<T>)
    return double(x);
  else if constexpr (std::is_same_v<T, bool>)
    return x;
  else
    return int64_t(x);
}

Value element(const char* p, DLDataType d) {
  if (d == float32) return at_memory<float>(p);
  if (d == float64) return at_memory<double>(p);
  if (d == int64) return at_memory<int64_t>(p);
  if (d == int32) return at_memory<int32_t>(p);
  if (d == int16) return at_memory<int16_t>(p);
  if (d == int8) return at_memory<int8_t>(p);
  if (d == uint8) return at_memory<uint8_t>(p);
  if (d == boolean) return at_memory<bool>(p);
  if (d == complex128) {
    double z[2];
    std::memcpy(z, p, sizeof z);
    return std::complex<double>(z[0], z[1]);
  }
  raise(AJ_UNIMPLEMENTED, "tolist: elements of ", d, " are no numbers of a scripted program");
}

Value nested(const char*& at, std::span<const int64_t> shape, DLDataType d) {
  if (shape.empty()) {
    Value v = element(at, d);
    at += d.bits / 8;
    return v;
  }
  std::vector<Value> out;
  for (int64_t i = 0; i < shape[0]; i++) out.push_back(nested(at, shape.subspan(1), d));
  return list(std::move(out));
}

// What nested lists hold: their shape, and the widest kind of number.
struct Shape_ {
  std::vector<int64_t> shape;
  bool known = false;
  int widest = -1;  // 0 bool, 1 int, 2 float, 3 complex

  void look(const Value& v, size_t depth) {
    if (auto* t = std::get_if<Tensor>(&v)) {
      for (size_t i = 0; i < size_t(t->ndim()); i++) level(depth + i, t->shape()[i]);
      leaf(depth + size_t(t->ndim()));
      const uint8_t code = t->dtype().code;
      widest = std::max(widest, t->is_complex()          ? 3
                                : t->is_floating_point() ? 2
                                : code == kDLBool        ? 0
                                                         : 1);
      return;
    }
    if (is_number(v)) {
      leaf(depth);
      widest = std::max(widest, is<bool>(v) ? 0 : is<int64_t>(v) ? 1 : is<double>(v) ? 2 : 3);
      return;
    }
    if (!holds<List>(v) && !holds<Tuple>(v) && !is<Range>(v))
      type_error("tensor(): numbers and lists of them are wanted, not ", type_name(v));
    std::vector<Value> all = items_of(v);
    level(depth, int64_t(all.size()));
    for (const Value& x : all) look(x, depth + 1);
  }

 private:
  void level(size_t depth, int64_t n) {
    if (depth == shape.size() && !known)
      shape.push_back(n);
    else if (depth >= shape.size() || shape[depth] != n)
      value_error("tensor: expected a sequence of length ",
                  depth < shape.size() ? shape[depth] : int64_t(0), " at dimension ",
                  uint64_t(depth), ", got ", n);
  }
  void leaf(size_t depth) {
    if (known && depth != shape.size()) value_error("tensor: numbers stand at different depths");
    if (!known && depth != shape.size()) value_error("tensor: numbers stand at different depths");
    known = true;
  }
};

void flatten(const Value& v, std::vector<std::complex<double>>& z, std::vector<int64_t>& n,
             bool whole_) {
  if (auto* t = std::get_if<Tensor>(&v)) return flatten(tensor_items(t->detach()), z, n, whole_);
  if (is_number(v)) {
    if (whole_)
      n.push_back(whole(v, "tensor"));
    else
      z.push_back(complex_of(v));
    return;
  }
  for (const Value& x : items_of(v)) flatten(x, z, n, whole_);
}

Tensor on_host(DLDataType d, const std::vector<int64_t>& shape) {
  DLTensor like{
      nullptr, device("cpu"), int32_t(shape.size()), d, const_cast<int64_t*>(shape.data()), nullptr,
      0};
  aj_tensor* t = nullptr;
  check(core().tensor_empty(&like, 0, &t));
  return Tensor::steal(t);
}

}  // namespace

Builtin find_tensor_method(std::string_view name) {
  for (const Entry& e : table)
    if (e.name == name) return e.run;
  return nullptr;
}

Value converted(const Value& t, const Value& dtype, const Value& place) {
  return call_named("to", {t}, {{"dtype", dtype}, {"device", place}});
}

Value tensor_items(const Tensor& t) {
  Value v = t.detach();
  const DLDataType d = t.dtype();
  const bool halves = (t.is_floating_point() && d.bits < 32) || d == complex64;
  if (halves) v = converted(v, t.is_complex() ? complex128 : float64);
  if (!(t.device() == device("cpu"))) v = converted(v, None{}, device("cpu"));
  v = call_named("contiguous", {v});
  const Tensor& here = std::get<Tensor>(v);
  const char* at = static_cast<const char*>(here.data_ptr());
  return nested(at, here.shape(), here.dtype());
}

Tensor tensor_of(const Value& data, const Value* dtype, const Value* place) {
  const bool typed = dtype && !is<None>(*dtype);
  Value made;
  if (auto* t = std::get_if<Tensor>(&data)) {
    made = call_named("clone", {t->detach()});
  } else {
    Shape_ s;
    s.look(data, 0);
    const DLDataType standard = core().default_dtype();
    const DLDataType own = s.widest == 0   ? boolean
                           : s.widest == 1 ? int64
                           : s.widest == 3 ? (standard == float64 ? complex128 : complex64)
                                           : standard;
    const bool whole_ = s.widest == 0 || s.widest == 1;
    std::vector<std::complex<double>> z;
    std::vector<int64_t> n;
    flatten(data, z, n, whole_);
    Tensor host = on_host(whole_ ? int64 : s.widest == 3 ? complex128 : float64, s.shape);
    if (whole_)
      std::copy(n.begin(), n.end(), host.data<int64_t>());
    else if (s.widest == 3)
      std::copy(z.begin(), z.end(), static_cast<std::complex<double>*>(host.data_ptr()));
    else
      std::transform(z.begin(), z.end(), host.data<double>(), [](auto x) { return x.real(); });
    const DLDataType to = typed ? std::get<DLDataType>(*dtype) : own;
    made = host.dtype() == to ? Value(host) : converted(host, to);
  }
  if (typed && !(std::get<Tensor>(made).dtype() == std::get<DLDataType>(*dtype)))
    made = converted(made, *dtype);
  if (place && !is<None>(*place)) {
    const DLDevice d = is<std::string>(*place) ? device(std::get<std::string>(*place))
                                               : std::get<DLDevice>(*place);
    if (!(std::get<Tensor>(made).device() == d)) made = converted(made, None{}, d);
  }
  return std::get<Tensor>(made);
}

bool tensor_attribute(const Tensor& t, std::string_view name, Value* out) {
  auto give = [&](Value v) { return *out = std::move(v), true; };
  if (name == "shape") return give(sizes(t.shape()));
  if (name == "dtype") return give(t.dtype());
  if (name == "device") return give(t.device());
  if (name == "ndim") return give(t.ndim());
  if (name == "requires_grad") return give(t.requires_grad());
  if (name == "is_leaf") return give(t.is_leaf());
  if (name == "T" || name == "mT" || name == "mH" || name == "H") {
    const bool two = name != "T" || t.ndim() == 2;
    if (!two && t.ndim() > 2) {
      std::vector<Value> dims;
      for (int64_t d = t.ndim(); d-- > 0;) dims.emplace_back(d);
      return give(call_named("permute", {t, list(std::move(dims))}));
    }
    if (t.ndim() < 2) return give(t);
    Value turned = call_named("transpose", {t, int64_t(-2), int64_t(-1)});
    return give(name == "mH" || name == "H" ? call_named("conj", {turned}) : turned);
  }
  if (name == "data") return give(t.detach());
  if (name == "grad") {
    Tensor g = t.grad();
    return give(g.defined() ? Value(g) : Value(None{}));
  }
  if (name == "itemsize") return give(int64_t(t.dtype().bits / 8));
  if (name == "nbytes") return give(t.numel() * int64_t(t.dtype().bits / 8));
  if (name == "is_cuda" || name == "is_cpu" || name == "is_meta")
    return give(view_of(core().device_name(t.device().device_type)) == name.substr(3));
  if (name == "is_quantized" || name == "is_nested") return give(false);
  if (name == "layout") return give(Tag{AJ_LAYOUT, wrap_table->tensor_layout(t.get())});
  if (name == "is_sparse") return give(wrap_table->tensor_layout(t.get()) == AJ_LAYOUT_SPARSE_COO);
  if (name == "is_sparse_csr")
    return give(wrap_table->tensor_layout(t.get()) == AJ_LAYOUT_SPARSE_CSR);
  if (name == "is_mkldnn") return give(wrap_table->tensor_layout(t.get()) == AJ_LAYOUT_OPAQUE);
  if (name == "real" || name == "imag")
    return give(name == "real" && !t.is_complex() ? Value(t)
                                                  : call_named(std::string(name).c_str(), {t}));
  return false;
}

}  // namespace adjoin::graph::script
