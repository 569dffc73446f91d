// frontends/cli/conform/call.cpp: arguments as the contract wants them, the call, its results.
#include "call.hpp"

#include <algorithm>

namespace adjoin::cli::conform {
namespace {

constexpr uint64_t kSeed = 20;

void take_result(aj_value& v, Outcome& out) {
  if (v.tag == AJ_TENSOR) {
    out.tensors.push_back(Tensor::steal(v.v.tensor));
  } else if (v.tag == AJ_LIST_OBJ) {
    for (Tensor& t : kit::take<std::vector<Tensor>>(v)) out.tensors.push_back(std::move(t));
  } else if (v.tag == AJ_BOOL || v.tag == AJ_INT || v.tag == AJ_FLOAT || v.tag == AJ_COMPLEX_OBJ) {
    Scalar s = kit::take<Scalar>(v);
    DLDataType dtype = s.is_bool()      ? boolean
                       : s.is_integer() ? int64
                       : s.is_complex() ? complex128
                                        : float64;
    out.values.push_back(from_numbers(dtype, {}, {s.to_complex()}));
  } else {
    kit::drop(v);
  }
}

}  // namespace

Call::Call(const Row& row, const Given& given, DLDevice device, Lay lay)
    : row_(row), device_(device), args_(row.params.size()) {
  for (size_t i = 0; i < args_.size(); ++i) {
    const Param& p = row.params[i];
    if (given[i].kind == Argument::kTensor || given[i].kind == Argument::kTensors)
      put_tensors(i, given[i], p.written() && lay == Lay::kExpanded ? Lay::kDense : lay);
    else if (given[i].kind == Argument::kValue)
      put_value(i, given[i].value);
    else if (p.base == AJ_PARAM_DEVICE && !row.takes_tensors())
      args_[i] = kit::value(device);
    else if (p.has_default())
      args_[i] = p.value;
  }
}

void Call::put_tensors(size_t i, const Argument& a, Lay lay) {
  std::vector<aj_tensor*> list;
  for (const auto& t : a.tensors) {
    list.push_back(nullptr);
    if (!t) continue;
    inputs_.push_back({i, place(*t, device_, lay)});
    list.back() = inputs_.back().placed.tensor.get();
  }
  if (a.kind == Argument::kTensor) {
    args_[i].tag = AJ_TENSOR;
    args_[i].v.tensor = list[0];
    return;
  }
  lists_.push_back(std::move(list));
  args_[i] = {AJ_TENSORS, uint32_t(lists_.back().size()), {0}};
  args_[i].v.tensors = lists_.back().data();
}

void Call::put_list(size_t i, const Json& v) {
  const Param& p = row_.params[i];
  std::vector<Json> items = v.kind == Json::kList ? v.items : std::vector<Json>{v};
  if (v.kind != Json::kList && p.list > 0) items.assign(size_t(p.list), v);
  auto n = uint32_t(items.size());
  if (p.base == AJ_PARAM_BOOL) {
    std::vector<uint8_t>& list = bools_.emplace_back(n + 1);
    for (size_t k = 0; k < n; ++k) list[k] = items[k].yes;
    args_[i] = {AJ_BOOLS, n, {0}};
    args_[i].v.bools = list.data();
  } else if (p.base == AJ_PARAM_FLOAT) {
    std::vector<double>& list = floats_.emplace_back(n + 1);
    for (size_t k = 0; k < n; ++k) list[k] = items[k].to_double();
    args_[i] = {AJ_FLOATS, n, {0}};
    args_[i].v.floats = list.data();
  } else {
    std::vector<int64_t>& list = ints_.emplace_back(n + 1);
    for (size_t k = 0; k < n; ++k) list[k] = items[k].whole;
    args_[i] = {AJ_INTS, n, {0}};
    args_[i].v.ints = list.data();
  }
}

void Call::put_value(size_t i, const Json& v) {
  const Param& p = row_.params[i];
  if (p.base == AJ_PARAM_DTYPE) {
    args_[i] = kit::value(dtype_named(v.text));
  } else if (p.base == AJ_PARAM_DEVICE) {
    args_[i] = kit::value(device_);
  } else if (v.kind == Json::kText) {
    args_[i] = kit::value(std::string_view(texts_.emplace_back(v.text)));
  } else if (p.list) {
    put_list(i, v);
  } else if (v.kind == Json::kBool) {
    args_[i] = kit::value(v.yes);
  } else if (p.base == AJ_PARAM_FLOAT || v.kind == Json::kFloat) {
    args_[i] = kit::value(v.to_double());
  } else {
    args_[i] = kit::value(v.whole);
  }
}

void Call::require_grad(size_t param) {
  for (Input& in : inputs_)
    if (in.param == param &&
        (in.placed.tensor.is_floating_point() || in.placed.tensor.is_complex()))
      kit::check(kit::autograd().set_requires_grad(in.placed.tensor.get(), 1));
  if (!row_.params[param].written() || args_[param].tag != AJ_TENSOR) return;
  written_ = Tensor::borrow(args_[param].v.tensor) * 1;  // a leaf may not be written
  args_[param].v.tensor = written_.get();
}

Outcome Call::run(const std::vector<Tensor>& rets, bool fetch_values) {
  Outcome out;
  std::vector<aj_value> slots(row_.results.size() + 1);
  for (size_t i = 0; i < rets.size(); ++i)
    if (rets[i].defined()) slots[i] = kit::value(rets[i]);
  try {
    kit::check(kit::core().manual_seed(kSeed));
    kit::check(kit::dispatch().call(row_.op, args_.data(), uint32_t(args_.size()), slots.data(),
                                    uint32_t(row_.results.size())));
    for (size_t i = 0; i < row_.results.size(); ++i) take_result(slots[i], out);
    if (row_.results.empty())
      for (const Input& in : inputs_)
        if (row_.params[in.param].written()) out.tensors.push_back(in.placed.tensor);
    if (fetch_values) {
      kit::check(kit::core().device_synchronize(device_));  // what a kernel found is told late
      for (const Tensor& t : out.tensors)
        out.values.push_back(t.defined() ? fetch(t) : HostTensor{});
    }
    out.ok = true;
  } catch (const kit::Error& e) {
    out.code = e.code();
    out.message = e.message();
    kit::core().status_free(
        kit::core().device_synchronize(device_));  // nothing of this call is left for the next
  }
  return out;
}

std::string Call::trespass() const {
  for (const Input& in : inputs_) {
    const std::string& name = row_.params[in.param].name;
    if (!row_.params[in.param].written()) {
      if (!unchanged(in.placed)) return "the argument " + name + " was written to";
    } else if (int64_t n = touched(in.placed)) {
      return std::to_string(n) + " bytes around the argument " + name + " were written";
    }
  }
  return {};
}

Outcome run_plain(const Row& row, const Given& given, DLDevice device) {
  return Call(row, given, device, Lay::kDense).run();
}

void complete(const Row& row, Given& given, DLDevice device) {
  const Json* after = row.test.find("after");
  if (!after) return;
  const aj_op* op = kit::dispatch().find_op(kit::str(after->text));
  if (!op)
    kit::raise(AJ_NOT_FOUND, "the row ", row.name, " comes after ", after->text, ": no such op");
  Row forward(op);
  Given args(forward.params.size());
  for (size_t i = 0; i < args.size(); ++i) {
    const Param& p = forward.params[i];
    for (size_t k = 0; k < row.params.size(); ++k)
      if (row.params[k].name == p.name) args[i] = given[k];
    bool lacks = args[i].kind == Argument::kAbsent && !p.optional() && !p.has_default();
    if (!lacks || p.tensor()) continue;
    args[i].kind = Argument::kValue;  // what the backward row does not know has no part in it
    args[i].value.kind = Json::kInt;
  }
  Outcome made = run_plain(forward, args, device);
  for (size_t r = 0; made.ok && r < made.values.size(); ++r)
    for (size_t k = 0; k < row.params.size(); ++k)
      if (row.params[k].name ==
          (forward.results[r].name.empty() ? "out" : forward.results[r].name)) {
        given[k].kind = Argument::kTensor;
        given[k].tensors.assign(1, made.values[r]);
      }
}

}  // namespace adjoin::cli::conform
