// extensions/graph/record.cpp: the kernel at the key "capture": every call of the thread, with
// wrappers in the place of tensors, is made of their values and written down.
#include "record.hpp"

#include <algorithm>

#include "lazy.hpp"
#include "recording.hpp"

namespace adjoin::graph {

const aj_wrappers* wrap_table;
uint64_t capture_key;

namespace {

constexpr uint64_t kConstantLimit = 1u << 20;
std::atomic<uint64_t> last_recording{0};

// Where the default generator of a device stands.
uint64_t drawn(DLDevice d) {
  aj_object* g = nullptr;
  if (aj_status* none = core().generator_default(d, &g)) return core().status_free(none), 0;
  uint64_t seed = 0, offset = 0;
  aj_status* s = core().generator_get(g, &seed, &offset);
  core().release(g);
  check(s);
  return offset;
}

}  // namespace

Recording::Recording(std::string_view name, uint64_t limit)
    : serial_(last_recording.fetch_add(1) + 1),
      limit_(limit ? limit : kConstantLimit),
      program_(std::make_unique<Program>()),
      grad_(autograd().grad_mode() != 0) {
  program_->name = name;
  uint64_t exclude;
  dispatch().thread_keys(&include_, &exclude);
  dispatch().set_thread_keys(include_ | capture_key, exclude);
}

Recording::~Recording() {
  uint64_t include, exclude;
  dispatch().thread_keys(&include, &exclude);
  dispatch().set_thread_keys((include & ~capture_key) | (include_ & capture_key), exclude);
  // Whoever kept a traced tensor has an ordinary one from now on.
  for (const Tensor& t : shown_)
    if (is_traced(t.get())) {
      Tensor real = Tensor::borrow(payload_of(t.get())->real);
      core().status_free(wrap_table->tensor_fulfil(t.get(), real.get()));
    }
}

Tensor Recording::input(aj_tensor* t, std::string_view name) {
  if (is_traced(t)) raise(AJ_PRECONDITION, "trace: an input is traced already");
  lazily::settle_deferred(t);
  if (!is_strided(t))
    raise(AJ_UNIMPLEMENTED,
          "trace: an input has no strides (sparse, nested, in a transform); call to_dense() first");
  const uint32_t v = add(type_of(t), name);
  program_->body.inputs.push_back(v);
  return show(Tensor::borrow(t), v, nullptr);
}

void Recording::call(aj_call* c) {
  const OpFacts& f = facts_of(c->op);
  Node n;
  n.op = c->op;
  n.no_grad = grad_ && !autograd().grad_mode();
  core().get_line(&line_, &site_);
  core().set_line(0, 0);
  op_ = &f;
  Frame frame;
  for (uint32_t i = 0; i < c->nargs; i++) frame.args.push_back(argument(c->args[i], n, frame));
  aj_value rets[8] = {};
  if (c->nrets > 8) raise(AJ_UNIMPLEMENTED, "trace: ", f.name, " has more than 8 results");
  n.into.assign(c->nrets, kNone);
  for (uint32_t i = 0; i < c->nrets; i++)
    if (c->rets[i].tag == AJ_TENSOR) {
      Tensor real;
      n.into[i] = ref_of(c->rets[i].v.tensor, &real);
      rets[i] = value(real);
      frame.held.push_back(real);
    }
  for (size_t i = 0; i < f.params.size(); i++)
    if (f.params[i].flags & AJ_PARAM_WRITTEN) refuse_outside(n.args[i].ref);
  for (uint32_t v : n.into) refuse_outside(v);
  refuse_autocast(c->device);
  const uint64_t before = drawn(c->device);
  std::vector<uint64_t> versions;
  for (auto [real, seen] : frame.real) versions.push_back(core().tensor_version(real));
  {
    NoGradGuard off;
    check(dispatch().redispatch(c->op, c->keys, frame.args.data(), c->nargs, rets, c->nrets));
  }
  struct Drop {
    aj_value* rets;
    uint32_t n;
    ~Drop() {
      for (uint32_t i = 0; i < n; i++) drop(rets[i]);
    }
  } drop_rets{rets, c->nrets};
  if (drawn(c->device) != before) note_draw(n, f);
  // A batch norm that trains writes its running means, which its schema does not say.
  for (size_t i = 0; i < versions.size(); i++)
    n.keep |= core().tensor_version(frame.real[i].first) != versions[i] && !has_effect(n);
  hand_out(c, n, f, frame, rets);
  if (std::all_of(n.into.begin(), n.into.end(), [](uint32_t v) { return v == kNone; }))
    n.into.clear();
  trim(f, n.args);
  emit(std::move(n));
}

std::unique_ptr<Program> Recording::finish(aj_tensor* const* results, uint32_t count) {
  line_ = site_ = 0, op_ = nullptr;
  for (uint32_t i = 0; i < count; i++) {
    Tensor real;
    uint32_t v = ref_of(results[i], &real);
    program_->body.results.push_back(v);
  }
  if (draw_ != kNone) {
    program_->body.inputs.push_back(draw_);
    program_->draw = draw_;
  }
  remove_dead(*program_);
  verify(*program_);
  return std::move(program_);
}

aj_value Recording::argument(const aj_value& v, Node& n, Frame& frame) {
  Arg a;
  aj_value real = v;
  if (v.tag == AJ_TENSOR) {
    a = Arg::of(take(v.v.tensor, &real.v.tensor, frame));
  } else if (v.tag == AJ_TENSORS) {
    a.kind = Arg::Kind::values;
    a.tag = AJ_TENSORS;
    auto& list = frame.lists.emplace_back(v.v.tensors, v.v.tensors + v.aux);
    for (aj_tensor*& t : list) a.refs.push_back(t ? take(t, &t, frame) : kNone);
    real.v.tensors = list.data();
  } else if (v.tag == AJ_DEVICE && !program_->body.inputs.empty() &&
             shown_[program_->body.inputs[0]].device() == v.v.device) {
    a.kind = Arg::Kind::device_of;
    a.ref = program_->body.inputs[0];
  } else {
    a = constant_of(v, op_->name.c_str());
  }
  n.args.push_back(std::move(a));
  return real;
}

uint32_t Recording::take(aj_tensor* t, aj_tensor** real, Frame& frame) {
  Tensor r;
  uint32_t v = ref_of(t, &r);
  frame.real.emplace_back(r.get(), t);
  *real = r.get();
  frame.held.push_back(std::move(r));
  return v;
}

void Recording::refuse_autocast(DLDevice d) const {
  aj_autocast now{};
  now.struct_size = sizeof now;
  check(dispatch().autocast(int32_t(d.device_type), &now, nullptr));
  if (now.enabled)
    raise(AJ_UNIMPLEMENTED,
          "trace: autocast is on inside of the function, which a program does not keep; trace "
          "without it and call the program inside autocast");
}

void Recording::note_draw(Node& n, const OpFacts& f) {
  n.keep = true;
  for (size_t i = 0; i < f.params.size(); i++) {
    if (f.params[i].base != AJ_PARAM_GENERATOR) continue;
    if (draw_ == kNone) draw_ = add({true, {}, {}}, "seed");
    n.args[i] = Arg::of(draw_);
  }
}

void Recording::hand_out(aj_call* c, Node& n, const OpFacts& f, const Frame& frame,
                         aj_value* rets) {
  for (uint32_t i = 0; i < c->nrets; i++) {
    n.results.emplace_back();
    if (c->rets[i].tag == AJ_TENSOR) {  // written, and left where it is
      same_type(n.into[i], rets[i].v.tensor);
      continue;
    }
    if (rets[i].tag == AJ_NONE) continue;
    if (rets[i].tag == AJ_LIST_OBJ) {
      uint32_t count = 0;
      const aj_value* items = core().list_get(rets[i].v.object, &count);
      std::vector<Tensor> made;
      n.results[i].list = true;
      for (uint32_t j = 0; j < count; j++) {
        if (items[j].tag != AJ_TENSOR) refuse_number(f);
        made.push_back(result(n, i, Tensor::borrow(items[j].v.tensor), frame));
      }
      Body(c).ret(i, made);
      continue;
    }
    if (rets[i].tag != AJ_TENSOR) refuse_number(f);
    Tensor real = Tensor::borrow(rets[i].v.tensor);
    if (f.writes_first && i == 0 && real.get() == frame.args[0].v.tensor) {
      n.into[0] = n.args[0].ref;
      same_type(n.into[0], real.get());
      c->rets[0] = value(Tensor::view(c->args[0].v.tensor));
      core().retain(c->rets[0].v.tensor);
      continue;
    }
    Tensor made = result(n, i, std::move(real), frame);
    c->rets[i] = value(made);
    made.take();
  }
}

Tensor Recording::result(Node& n, uint32_t i, Tensor real, const Frame& frame) {
  const uint32_t v = add(type_of(real.get()));
  n.results[i].values.push_back(v);
  aj_tensor* base = nullptr;
  for (auto [r, seen] : frame.real) {
    if (r == real.get() && is_traced(seen))
      return Tensor::borrow(seen);  // contiguous() of what is so already
    if (!base && is_strided(r) && is_strided(real.get()) && real.numel() &&
        place_of(r).id == place_of(real.get()).id)
      base = seen;
  }
  if (!base && op_->kind == "view" && !frame.real.empty()) base = frame.real[0].second;
  return show(std::move(real), v, base);
}

void Recording::same_type(uint32_t v, const aj_tensor* now) const {
  if (!(program_->values[v].type == type_of(now)))
    raise(AJ_UNIMPLEMENTED, "trace: ", where(), "a tensor of type ",
          print_type(*program_, program_->values[v].type), " becomes ",
          print_type(*program_, type_of(now)), " in place; make a new tensor instead");
}

void Recording::refuse_number(const OpFacts& f) const {
  raise(AJ_UNIMPLEMENTED, "trace: ", where(), f.name,
        " gives a number, of which the program would know no more than the value of today; keep "
        "it a tensor");
}

void Recording::param(aj_tensor* t, std::string_view name) {
  names_.emplace(t, name);
  held_.push_back(Tensor::borrow(t));
}

namespace {

thread_local std::unique_ptr<Recording> current;

Recording& recording(const char* who) {
  if (!current) raise(AJ_PRECONDITION, who, ": this thread captures nothing; call begin first");
  return *current;
}

}  // namespace

aj_status* begin(aj_str name, uint64_t limit) {
  return guard("", [&] {
    if (current)
      raise(AJ_PRECONDITION, "trace: this thread captures a program already; traces do not nest");
    current = std::make_unique<Recording>(view_of(name), limit);
  });
}

aj_status* input(aj_tensor* t, aj_str name, aj_tensor** traced) {
  return guard("", [&] { *traced = recording("input").input(t, view_of(name)).take(); });
}

aj_status* param(aj_tensor* t, aj_str name) {
  return guard("", [&] { recording("param").param(t, view_of(name)); });
}

std::unique_ptr<Program> finish(aj_tensor* const* results, uint32_t n) {
  auto made = recording("end").finish(results, n);
  current.reset();
  return made;
}

void cancel() { current.reset(); }
int32_t capturing() { return current != nullptr; }

aj_status* open() {
  return guard("", [&] { recording("open").open(); });
}
aj_status* carry(aj_tensor* t, aj_tensor** inside) {
  return guard("", [&] { *inside = recording("carry").carry(t).take(); });
}
aj_status* close(aj_tensor* const* results, uint32_t n) {
  return guard("", [&] { recording("close").close(results, n); });
}
aj_status* branch(aj_tensor* decides, aj_tensor** out, uint32_t n) {
  return guard("", [&] { recording("branch").branch(decides, out, n); });
}
aj_status* loop(aj_tensor* const* carried, uint32_t n, aj_tensor** out) {
  return guard("", [&] { recording("loop").loop(carried, n, out); });
}

aj_value record_script(Program& p, std::string_view name, std::string_view callee,
                       const aj_value* args, uint32_t nargs, const aj_str* names, uint32_t nnames) {
  return recording("script").script(p, name, callee, args, nargs, names, nnames);
}

aj_status* serve(void*, aj_call* call) {
  if (!current)
    return dispatch().redispatch(call->op, call->keys, call->args, call->nargs, call->rets,
                                 call->nrets);
  return guard("", [&] {
    try {
      current->call(call);
    } catch (const Error& e) {
      // To the core this code of a fallback's means that it has not passed the call on.
      if (e.code() != AJ_UNIMPLEMENTED) throw;
      raise_as(e.kind().empty() ? "NotImplementedError" : e.kind(), AJ_PRECONDITION, e.message());
    }
  });
}

aj_status* settle(void*, aj_tensor*, aj_tensor**) {
  return guard("", [&] {
    raise(AJ_UNIMPLEMENTED,
          "the value of a traced tensor was asked for (item, bool, numpy, an if); a trace records "
          "calls and no decisions: choose by where(), or keep such code outside of the trace");
  });
}

aj_status* describe(void*, aj_tensor* t, aj_object** out) {
  return guard("", [&] {
    std::string said = text("traced as value ", payload_of(t)->value);
    check(core().string_new(str(said), out));
  });
}

}  // namespace adjoin::graph
