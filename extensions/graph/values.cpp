// extensions/graph/values.cpp: which value of the program a tensor is: traced, a parameter, a
// constant, or one of these in another tensor; and the wrappers that the caller sees.
#include <algorithm>

#include "lazy.hpp"
#include "recording.hpp"

namespace adjoin::graph {

namespace {

constexpr aj_str kType = AJ_STR_LIT("graph::traced");

int32_t payload_type() {
  static const int32_t type = [] {
    int32_t made = 0;
    check(core().type_find(kType, &made));
    return made;
  }();
  return type;
}

int64_t numel(const aj_tensor* t) { return core().tensor_numel(t); }

std::string line_of(uint32_t line) {
  aj_object* text = nullptr;
  if (!line) return {};
  if (aj_status* s = core().line_text(line, &text)) {
    core().status_free(s);
    return {};
  }
  std::string found(view_of(core().string_get(text)));
  core().release(text);
  return found;
}

}  // namespace

void register_payload() {
  int32_t type;
  auto destroy = [](void* p) { core().release(static_cast<Payload*>(p)->real); };
  check(core().type_register(kType, sizeof(Payload), destroy, &type));
}

Place place_of(const aj_tensor* t) {
  void* data;
  uint64_t bytes;
  Place p;
  check(core().tensor_storage(t, &data, &bytes, &p.offset, &p.id));
  return p;
}

std::string Recording::line() const {
  std::string here = line_of(line_), from = line_of(site_);
  if (here.empty()) here.swap(from);
  if (!from.empty() && from != here) here += ", called at " + from;
  std::replace(here.begin(), here.end(), '\n', ' ');
  return here;
}

std::string Recording::where() const {
  std::string from = line(), out = op_ ? op_->name : "a result";
  if (!from.empty()) out += " (" + from + ")";
  return out + ": ";
}

void Recording::emit(Node n) {
  std::string from = line();
  if (!from.empty()) {
    auto [at, fresh] = line_ids_.emplace(from, uint32_t(program_->lines.size()));
    if (fresh) program_->lines.push_back(from);
    n.line = at->second;
  }
  block().nodes.push_back(std::move(n));
}

uint32_t Recording::add(Type type, std::string_view name) {
  const uint32_t v = program_->add(std::move(type), std::string(name));
  shown_.resize(v + 1);
  return v;
}

// The value that a tensor is, and its values.
uint32_t Recording::ref_of(aj_tensor* t, Tensor* real) {
  if (!is_traced(t)) {
    *real = Tensor::borrow(t);
    return foreign(t);
  }
  const Payload* p = payload_of(t);
  if (p->recording != serial_)
    raise(AJ_PRECONDITION, "trace: a tensor of another trace is used; traces do not nest");
  *real = Tensor::borrow(p->real);
  // detach() makes another tensor with the same payload.
  if (shown_[p->value].get() == t) return p->value;
  auto known = aliases_.find(t);
  return known != aliases_.end() ? known->second : detached(t, p->value);
}

uint32_t Recording::detached(aj_tensor* alias, uint32_t of) {
  Node n;
  n.what = Node::What::detach;
  n.args.push_back(Arg::of(of));
  const uint32_t v = add(Type(program_->values[of].type));
  n.results.push_back({{v}, false});
  emit(std::move(n));
  held_.push_back(Tensor::borrow(alias));
  detached_.push_back(alias);
  aliases_[alias] = v;
  return v;
}

// A tensor with memory: a parameter, something like it, or a constant.
uint32_t Recording::foreign(aj_tensor* t) {
  if (auto known = foreign_.find(t); known != foreign_.end()) return known->second;
  if (auto known = aliases_.find(t); known != aliases_.end()) return known->second;
  lazily::settle_deferred(t);
  if (!is_strided(t))
    raise(
        AJ_UNIMPLEMENTED, "trace: ", where(),
        "a tensor without strides (sparse, nested, in a transform) is met; call to_dense() first");
  const Place place = place_of(t);
  auto named = names_.find(t);
  const bool constant = named == names_.end();
  if (auto same = memory_.find(place.id); constant && same != memory_.end())
    return alias_of(same->second, t);
  const uint64_t bytes = uint64_t(numel(t)) * (t->dl.dtype.bits / 8);
  if (constant && bytes > limit_)
    raise(AJ_INVALID_ARGUMENT, "trace: ", where(), "a tensor of ", bytes, " bytes, ", t->dl.dtype,
          Shape{t->dl.shape, t->dl.ndim},
          ", is neither an input nor a parameter; as a constant it "
          "would be kept in the program (at most ",
          limit_, " bytes): register it as a buffer of the module, or give it as an input");
  Weight w{add(type_of(t)), constant ? text("constant.", constants_++) : named->second, constant,
           Tensor::borrow(t)};
  const uint32_t v = w.value;
  shown_[v] = w.tensor;
  foreign_[t] = v;
  if (numel(t)) memory_.emplace(place.id, v);
  program_->weights.push_back(std::move(w));
  return v;
}

// weight.detach(), weight.data: the parameter in another tensor.
uint32_t Recording::alias_of(uint32_t v, aj_tensor* t) {
  const aj_tensor* base = shown_[v].get();
  const bool same = place_of(base).offset == place_of(t).offset && type_of(base) == type_of(t) &&
                    std::equal(base->dl.strides, base->dl.strides + base->dl.ndim, t->dl.strides);
  if (!same)
    raise(
        AJ_UNIMPLEMENTED, "trace: ", where(), "a tensor ", Shape{t->dl.shape, t->dl.ndim},
        " shares the memory of '%", program_->values[v].name,
        "' and was not made of it by a call that the trace has seen; make it inside the function");
  return detached(t, v);
}

// A wrapper of the value, kept so that its address stays its own.
Tensor Recording::show(Tensor real, uint32_t v, aj_tensor* base) {
  if (base && !is_traced(base)) base = lifted(base);
  aj_wrap w{};
  w.struct_size = sizeof w;
  w.key = capture_key;
  w.like = real.dl();
  w.like.data = nullptr;
  w.like.byte_offset = 0;
  if (!is_strided(real.get()) || real.get()->obj.flags & AJ_TENSOR_FREE_ORDER)
    w.like.strides = nullptr;
  else
    w.like.byte_offset = place_of(real.get()).offset;
  void* at = nullptr;
  check(core().object_new(payload_type(), &w.payload, &at));
  *static_cast<Payload*>(at) = {serial_, v, Tensor(real).take()};
  w.view_of = base;
  aj_tensor* made = nullptr;
  aj_status* s = wrap_table->tensor_wrap(&w, &made);
  core().release(w.payload);
  check(s);
  return shown_[v] = Tensor::steal(made);
}

// A parameter as a wrapper, the base of views.
aj_tensor* Recording::lifted(aj_tensor* t) {
  if (auto known = lifted_.find(t); known != lifted_.end()) return known->second.get();
  const uint32_t v = foreign(t);
  Tensor kept = shown_[v];
  Tensor made = show(Tensor::borrow(t), v, nullptr);
  shown_[v] = kept;
  lifted_[t] = made;
  return made.get();
}

}  // namespace adjoin::graph
