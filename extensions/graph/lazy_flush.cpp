// extensions/graph/lazy_flush.cpp: what a lazy scope has written down becomes a program, which is
// kept with the calls and runs.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <unordered_map>

#include "lazy.hpp"
#include "passes/passes.hpp"
#include "run.hpp"
#include "value.hpp"

namespace adjoin::graph::lazily {

const char* words(Why w) {
  switch (w) {
    case Why::end:
      return "the scope ended";
    case Why::asked:
      return "flush was called";
    case Why::value:
      return "a value was asked for";
    case Why::sizes:
      return "the op's sizes depend on values";
    case Why::write:
      return "a tensor from outside of the scope is written";
    case Why::device:
      return "another device";
    case Why::limit:
      return "the limit of calls or bytes was reached";
    default:
      return "the op cannot be written down";
  }
}

Below::Below() {
  dispatch().thread_keys(&include_, &exclude_);
  const uint64_t from = ~(lazy_key - 1);
  dispatch().set_thread_keys(include_ & ~from, exclude_ | from);
  grad_ = autograd().set_grad_mode(0);
  inference_ = autograd().set_inference_mode(0);
}
Below::~Below() {
  autograd().set_inference_mode(inference_);
  autograd().set_grad_mode(grad_);
  dispatch().set_thread_keys(include_, exclude_);
}

namespace {

// Tensors share memory with their base, so a write to one is read through the other.
class Classes {
 public:
  explicit Classes(uint32_t n) : of_(n) {
    for (uint32_t v = 0; v < n; v++) of_[v] = v;
  }
  void join(uint32_t v, uint32_t base) { of_[v] = of_[base]; }
  uint32_t of(uint32_t v) const { return of_[v]; }

 private:
  std::vector<uint32_t> of_;
};

bool written(const Node& n, const OpFacts& f, std::vector<uint32_t>& targets) {
  targets.clear();
  for (uint32_t v : n.into)
    if (v != kNone) targets.push_back(v);
  for (size_t i = 0; f.writes && i < n.args.size(); i++) {
    if (!(f.params[i].flags & AJ_PARAM_WRITTEN)) continue;
    if (n.args[i].kind == Arg::Kind::value) targets.push_back(n.args[i].ref);
    for (uint32_t v : n.args[i].refs)
      if (v != kNone) targets.push_back(v);
  }
  return !targets.empty();
}

}  // namespace

namespace {

// Bit by bit, where both lie in C order; of other layouts the values are compared by the op.
bool same_bits(const Tensor& a, const Tensor& b) {
  static constinit Op contiguous("contiguous");
  auto bytes = [](const Tensor& t) {
    aj_value v = value(t), out{};
    check(dispatch().call(contiguous.get(), &v, 1, &out, 1));
    Tensor dense = Tensor::steal(out.v.tensor);
    std::vector<char> copy(size_t(dense.numel()) * (dense.dtype().bits / 8));
    if (!copy.empty()) check(core().tensor_copy_bytes(dense.get(), copy.data(), copy.size(), 1));
    return copy;
  };
  return bytes(a) == bytes(b);
}

// The same program twice, once call by call; nothing outside of it is written by either. Each value
// is a result, so the first call that differs is known.
void check_fusion(const Program& p, const std::vector<aj_tensor*>& inputs) {
  auto copy = copy_of(p);
  std::vector<std::pair<uint32_t, const Node*>> made;
  for (const Node& n : p.body.nodes)
    for (const Result& r : n.results)
      for (uint32_t v : r.values) made.emplace_back(v, &n);
  copy->body.results.clear();
  for (auto [v, n] : made) copy->body.results.push_back(v);
  auto results = [&](uint32_t flags) {
    std::vector<aj_tensor*> out(made.size());
    run(*copy, inputs.data(), uint32_t(inputs.size()), flags, out.data(), uint32_t(out.size()));
    std::vector<Tensor> owned;
    for (aj_tensor* t : out) owned.push_back(Tensor::steal(t));
    return owned;
  };
  const std::vector<Tensor> fused = results(0), single = results(AJ_RUN_NO_FUSION);
  for (size_t i = 0; i < made.size(); i++) {
    if (same_bits(fused[i], single[i])) continue;
    const Node& n = *made[i].second;
    raise(AJ_INTERNAL, "check: ", facts_of(n.op).name,
          " has other values in a fused group than alone",
          n.line ? " (" + p.lines[n.line] + ")" : "", "; it is the first call that differs of ",
          uint64_t(p.body.nodes.size()), "; please report it with the program:\n", print(p));
  }
}

}  // namespace

// The shortest times of a program, fused and call by call, in turns; the first turn makes it ready.
// A processor that others share: where one thread computes, its own time counts.
static void time_both(Program& p, const std::vector<aj_tensor*>& inputs, size_t results,
                      aj_lazy_stats& s) {
  const bool alone = core().num_threads() == 1;
  auto now = [&] {
    timespec t;
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
  };
  constexpr int kMost = 12, kLeast = 3;
  constexpr uint64_t kEnough = 5'000'000;
  uint64_t least[2] = {~uint64_t(0), ~uint64_t(0)}, spent = 0;
  std::vector<aj_tensor*> out(results);
  for (int turn = 0; turn < kMost && (turn < kLeast || spent < kEnough); turn++)
    for (const uint32_t flags : {0u, uint32_t(AJ_RUN_NO_FUSION)}) {
      const uint64_t begin = now();
      run(p, inputs.data(), uint32_t(inputs.size()), flags | kRunTogether | kRunFulfils, out.data(),
          uint32_t(results));
      for (aj_tensor* t : out) core().release(t);
      const uint64_t took = now() - begin;
      spent += took;
      if (turn) least[flags ? 1 : 0] = std::min(least[flags ? 1 : 0], took);
    }
  s.together += least[0], s.apart += least[1];
}

std::vector<Known*> Scope::path() const {
  std::vector<Known*> calls;
  for (Known* s = at_; s->before; s = s->before) calls.push_back(s);
  std::reverse(calls.begin(), calls.end());
  return calls;
}

// The calls that somebody sees: what is alive, what it is made of, and what is written to these.
std::unique_ptr<Program> Scope::program_of(const std::vector<uint32_t>& alive, Known::Ready& r) {
  auto p = std::make_unique<Program>();
  p->name = "lazy";
  Classes memory{uint32_t(slots_.size())};
  for (uint32_t v = 0; v < slots_.size(); v++) {
    p->add(slots_[v].shown->type);
    if (slots_[v].shown->base != kNone) memory.join(v, slots_[v].shown->base);
  }
  std::vector<bool> used(slots_.size()), read(slots_.size());  // values; memory, by class
  auto use = [&](uint32_t v) { used[v] = read[memory.of(v)] = true; };
  for (uint32_t v : alive) use(v);
  const std::vector<Known*> calls = path();
  std::vector<bool> wanted(calls.size());
  std::vector<uint32_t> targets;
  for (size_t i = calls.size(); i-- > 0;) {
    const Node& n = calls[i]->node;
    bool needed = false;
    for (const Result& res : n.results)
      for (uint32_t v : res.values) needed |= used[v];
    if (written(n, facts_of(n.op), targets))
      for (uint32_t v : targets) needed |= read[memory.of(v)] || slots_[v].shown->input;
    if (!needed) continue;
    wanted[i] = true;
    each_use(n, use);
  }
  std::unordered_map<std::string, uint32_t> lines;
  for (size_t i = 0; i < calls.size(); i++) {
    if (!wanted[i]) continue;
    Node n = calls[i]->node;
    if (std::all_of(n.into.begin(), n.into.end(), [](uint32_t v) { return v == kNone; }))
      n.into.clear();
    if (std::string at = line_words(calls[i]->line, calls[i]->site); !at.empty()) {
      auto [known, fresh] = lines.emplace(at, uint32_t(p->lines.size()));
      if (fresh) p->lines.push_back(at);
      n.line = known->second;
    }
    r.place.emplace_back(calls[i], uint32_t(p->body.nodes.size()));
    p->body.nodes.push_back(std::move(n));
  }
  for (uint32_t v = 0; v < slots_.size(); v++)
    if (slots_[v].input.defined() && used[v]) {
      p->body.inputs.push_back(v);
      r.inputs.push_back(v);
    }
  p->body.results = alive;
  std::vector<uint32_t> first(slots_.size());
  std::vector<bool> ordered(slots_.size());
  for (uint32_t v = 0; v < slots_.size(); v++) {
    const Shown& shown = *slots_[v].shown;
    first[v] = memory.of(v);
    // Without strides that are known its order is its own.
    ordered[v] = shown.in_order || shown.strides.empty();
  }
  make_functional(*p, first, ordered);
  slice(*p, r);
  verify(*p);
  return p;
}

// Do the strides descend? Then what eager makes of it is in C order.
static bool descends(const Shown& v) {
  if (v.strides.empty()) return v.in_order && !v.free;
  int64_t least = 1;
  for (size_t d = v.type.shape.size(); d-- > 0;) {
    if (v.type.shape[d] == 1 || v.strides[d] == 0) continue;
    if (v.strides[d] < least) return false;
    least = v.strides[d] * v.type.shape[d];
  }
  return true;
}

void Scope::slice(Program& p, Known::Ready& r) const {
  std::vector<bool> down;
  for (const Slot& s : slots_) down.push_back(descends(*s.shown));
  const std::vector<uint32_t> before = slice_first(p, down);
  if (before.empty()) return;
  std::vector<const Known*> calls(r.place.size());
  for (auto [seen, node] : r.place) calls[node] = seen;
  r.place.clear();
  for (uint32_t i = 0; i < before.size(); i++)
    if (before[i] != kNone) r.place.emplace_back(calls[before[i]], i);
}

Known::Ready& Scope::ready_for(const std::vector<uint32_t>& alive) {
  for (auto& r : at_->ready)
    if (r->alive == alive) return *r;
  auto r = std::make_unique<Known::Ready>();
  r->alive = alive;
  r->program = program_of(alive, *r);
  r->number = ++memory_->programs;
  if (at_->ready.size() == 8) at_->ready.erase(at_->ready.begin());
  at_->ready.push_back(std::move(r));
  return *at_->ready.back();
}

// Numbers that are not those of the first time go into the program.
void Scope::put_numbers(Known::Ready& r) {
  std::vector<const Node*> changed;
  for (const Number& n : numbers_)
    for (auto [seen, node] : r.place) {
      if (seen != n.seen) continue;
      Arg& a = r.program->body.nodes[node].args[n.arg];
      void* at = a.tag == AJ_INT ? static_cast<void*>(&a.i) : &a.re;
      if (std::memcmp(at, &n.value.v, 8)) {
        std::memcpy(at, &n.value.v, 8);
        changed.push_back(&r.program->body.nodes[node]);
      }
    }
  if (changed.empty()) return;
  r.number = ++memory_->programs;
  // Only this scope has the program.
  std::shared_ptr<const Plan> plan = r.program->plan.load();
  if (plan && !renumber(*r.program, const_cast<Plan&>(*plan), changed))
    r.program->plan.store(nullptr);
}

// Memory that the scope has made is made by the program.
void Scope::keep(const Known::Ready& r) {
  memory_->kept = copy_of(*r.program);
  memory_->kept_inputs.clear();
  Block& body = memory_->kept->body;
  body.inputs.clear();
  for (uint32_t v : r.inputs) {
    const Tensor& t = slots_[v].input;
    if (std::none_of(born_.begin(), born_.end(),
                     [&](const Tensor& b) { return b.get() == t.get(); })) {
      body.inputs.push_back(v);
      memory_->kept_inputs.push_back(t);
      continue;
    }
    const DLTensor& dl = t.get()->dl;
    const aj_value args[] = {value(Ints(dl.shape, size_t(dl.ndim))),
                             value(Ints(dl.strides, size_t(dl.ndim))), value(dl.dtype),
                             value(dl.device)};
    static constinit Op op("empty_strided");
    Node n;
    n.op = op.get();
    for (const aj_value& a : args) n.args.push_back(constant_of(a, "lazy"));
    n.results = {{{v}, false}};
    body.nodes.insert(body.nodes.begin(), std::move(n));
  }
}

void Scope::carry_out(Known::Ready& r, Flush& told) {
  if (!numbers_.empty()) put_numbers(r);
  memory_->stats.program = r.number;
  std::vector<aj_tensor*> inputs, results(r.alive.size());
  for (uint32_t v : r.inputs) inputs.push_back(slots_[v].input.get());
  if (flags & AJ_LAZY_KEEP) keep(r);
  const DLDataType now = core().default_dtype();
  const bool other = !(now == default_dtype_);
  if (other) check(core().set_default_dtype(default_dtype_));
  struct Back {
    bool other;
    DLDataType dtype;
    ~Back() {
      if (other) core().status_free(core().set_default_dtype(dtype));
    }
  } back{other, now};
  {
    Below below;
    if (flags & AJ_LAZY_CHECK) check_fusion(*r.program, inputs);
    if (flags & AJ_LAZY_TIMED && !wrote_)
      time_both(*r.program, inputs, results.size(), memory_->stats);
    // What is kept runs elsewhere: no compiler is asked here.
    const bool apart = flags & (AJ_LAZY_NO_FUSION | AJ_LAZY_KEEP);
    run(*r.program, inputs.data(), uint32_t(inputs.size()),
        (apart ? AJ_RUN_NO_FUSION : 0) | kRunTogether | kRunFulfils, results.data(),
        uint32_t(results.size()));
  }
  for (size_t i = 0; i < r.alive.size(); i++) {
    Deferred* d = slots_[r.alive[i]].deferred;
    if (d)
      d->real = results[i];
    else
      core().release(results[i]);
  }
  told.peak = peak_of(*r.program, !(flags & (AJ_LAZY_NO_FUSION | AJ_LAZY_KEEP)));
  told.passes = r.program->passes, told.groups = r.program->groups, told.fused = r.program->fused;
}

void Scope::flush(Why why, const aj_op* op) {
  std::lock_guard held(memory_->lock);
  if (running_ || !calls_) return;
  Flush told{why, op ? facts_of(op).name : ""};
  core().get_line(&told.line, &told.site);
  std::vector<uint32_t> alive;
  for (uint32_t v = 0; v < slots_.size(); v++)
    if (slots_[v].deferred) alive.push_back(v);
  Known* first = at_;
  while (first->before->before) first = first->before;
  told.begun = first->line, told.begun_site = first->site;
  told.calls = calls_, told.matched = matched_;
  if (flags & AJ_LAZY_WHOLE && breaks(why)) {
    const std::string at = line_words(told.line, told.site);
    raise_as("RuntimeError", AJ_PRECONDITION, "compile(fullgraph=True): ", words(why),
             told.op.empty() ? "" : " (" + told.op + ")", at.empty() ? "" : " at " + at,
             "; the function is more than one program there: keep the value a tensor (where), or "
             "leave fullgraph out");
  }
  const auto begin = std::chrono::steady_clock::now();
  running_ = true;
  try {
    if (!alive.empty() || wrote_) carry_out(ready_for(alive), told);
  } catch (const Error& e) {
    running_ = false;
    failed_region_ = region_;
    failed_ = text(e.message(), "; executed later, in the lazy scope's region that begins at ",
                   line_words(told.begun, told.begun_site));
    begin_again();
    raise_as(e.kind(), e.code(), failed_);
  }
  running_ = false;
  told.nanoseconds = uint64_t((std::chrono::steady_clock::now() - begin).count());
  aj_lazy_stats& s = memory_->stats;
  s.flushes++;
  s.passes += told.passes, s.groups += told.groups, s.fused += told.fused;
  if (memory_->flushes.size() < 1000) memory_->flushes.push_back(std::move(told));
  begin_again();
}

void Scope::begin_again() {
  region_++;
  std::vector<Slot> slots;
  slots.swap(slots_);  // what dies with them asks for us
  slots.clear();
  if (slots_.empty()) slots_.swap(slots);  // its memory serves again
  numbers_.clear(), born_.clear();
  calls_ = matched_ = 0, bytes_ = 0;
  wrote_ = false;
  at_ = &memory_->root;
  if (memory_->stale) {
    memory_->root.after.clear();
    memory_->stale = false;
    memory_->stats.kept = 0;
  }
}

void Scope::fulfil(aj_tensor* t, const Deferred& d) {
  std::lock_guard held(memory_->lock);
  if (!d.real && d.region == region_) flush(Why::value);
  if (!d.real)
    raise(AJ_PRECONDITION, "the value of a lazy tensor is not there: ",
          d.region == failed_region_ ? failed_ : "what it is made of has failed");
  check(wrap_table->tensor_fulfil(t, d.real));
}

void Scope::died(const Deferred& d) {
  std::lock_guard held(memory_->lock);
  if (d.region == region_ && d.value < slots_.size()) slots_[d.value].deferred = nullptr;
}

}  // namespace adjoin::graph::lazily
