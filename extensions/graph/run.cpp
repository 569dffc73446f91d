// extensions/graph/run.cpp: runs a program: one call after the other through the dispatcher, so
// that autocast, the tape, devices and errors are those of any call.
#include "run.hpp"

#include <algorithm>
#include <numeric>

#include "parts.hpp"
#include "passes/passes.hpp"
#include "value.hpp"

namespace adjoin::graph {
namespace {

constexpr uint32_t kMostArgs = 40, kMostResults = 8;

Step step_of(const Program& p, const Node& n) {
  Step s;
  s.node = &n;
  if (n.what != Node::What::call) return s;
  const OpFacts& f = facts_of(n.op);
  if (f.params.size() > kMostArgs || f.results.size() > kMostResults)
    raise(AJ_UNIMPLEMENTED, f.name, ": a program's call has at most 40 arguments and 8 results");
  for (uint32_t i = 0; i < f.params.size(); i++) {
    aj_value v{};
    if (i >= n.args.size()) {
      if (f.params[i].flags & AJ_PARAM_HAS_DEFAULT) v = f.params[i].value;
    } else if (const Arg& a = n.args[i]; a.kind == Arg::Kind::constant) {
      v = value_of(a);
      for (uint32_t j = 0; j < a.sizes.size(); j++)
        if (a.sizes[j] != kNone) s.sizes.push_back({i, j, a.sizes[j]});
    } else if (a.kind == Arg::Kind::value) {
      const Type& t = p.values[a.ref].type;
      if (t.number()) v.tag = t.dtype.code == kDLInt ? AJ_INT : AJ_FLOAT;
      s.values.push_back({i, a.ref});
    } else if (a.kind == Arg::Kind::device_of) {
      s.devices.push_back({i, a.ref});
    } else {
      s.lists.push_back({i, a.refs});
    }
    s.args.push_back(v);
  }
  return s;
}

// A number is read where it lies.
bool lies_here(const aj_tensor* t) {
  return t->obj.flags & AJ_TENSOR_STRIDED && t->dl.device.device_type == kDLCPU && t->dl.data;
}

// Who was made in this block dies after its last use.
void find_deaths(const Block& b, Sequence& s, std::vector<bool> alive) {
  for (uint32_t v : b.results) alive[v] = true;
  for (size_t i = s.steps.size(); i-- > 0;) {
    auto last = [&](uint32_t v) {
      if (alive[v]) return;
      alive[v] = true;
      s.steps[i].dies.push_back(v);
    };
    each_use(*s.steps[i].node, last);
    for (const Result& r : s.steps[i].node->results)
      for (uint32_t v : r.values) last(v);
  }
}

// An element-wise result goes where an argument lies that dies there. What may have shown its
// memory to others is left alone.
void find_reuse(const Program& p, Sequence& s) {
  std::vector<bool> seen(p.values.size(), true);
  auto shows = [&](const Node& n, const OpFacts& f, size_t i) {
    return f.kind == "view" || (f.params[i].flags & AJ_PARAM_ALIASED) || !n.blocks.empty();
  };
  for (const Step& step : s.steps) {
    const Node& n = *step.node;
    bool makes_its_own = n.what == Node::What::call && n.into.empty() && !n.keep;
    for (size_t i = 0; makes_its_own && i < n.args.size(); i++)
      makes_its_own = !shows(n, facts_of(n.op), i);
    if (makes_its_own) {
      for (const Result& r : n.results)
        for (uint32_t v : r.values) seen[v] = r.list;
    } else {
      each_use(n, [&](uint32_t v) { seen[v] = true; });
    }
  }
  for (Step& step : s.steps) {
    const Node& n = *step.node;
    if (n.what != Node::What::call || !n.into.empty() || n.keep || n.results.size() != 1 ||
        n.results[0].list || n.results[0].values.size() != 1)
      continue;
    const OpFacts& f = facts_of(n.op);
    if (f.writes || f.draws || !is_element_wise(f.kind)) continue;
    const Type& type = p.values[n.results[0].values[0]].type;
    for (const Step::Put& put : step.values)
      if (!seen[put.reg] && p.values[put.reg].type == type &&
          std::count(step.dies.begin(), step.dies.end(), put.reg)) {
        step.reuse = put.reg;
        step.handed_out = std::count(s.results.begin(), s.results.end(), n.results[0].values[0]);
        break;
      }
  }
}

// Bytes of what the calls make that are alive at once: of parts what others see of them. Who is
// given from outside is not counted, nor is what shows another's memory.
uint64_t peak_in(const Program& p, const Sequence& s) {
  std::vector<uint64_t> bytes(p.values.size());
  std::vector<uint32_t> owner(p.values.size(), kNone), holders(p.values.size());
  uint64_t alive = 0, most = 0;
  auto hold = [&](uint32_t v, uint32_t whose) {
    owner[v] = whose;
    if (whose != kNone) holders[whose]++;
  };
  auto make = [&](uint32_t v) {
    const Type& t = p.values[v].type;
    uint64_t n = t.other ? 0 : (t.dtype.bits + 7u) / 8u;
    for (int64_t size : t.shape) n *= uint64_t(size);
    bytes[v] = n, alive += n;
    most = std::max(most, alive);
    hold(v, v);
  };
  auto die = [&](uint32_t v) {
    const uint32_t whose = owner[v];
    owner[v] = kNone;
    if (whose != kNone && --holders[whose] == 0) alive -= bytes[whose];
  };
  auto part = s.parts.begin();
  for (size_t i = 0; i < s.steps.size();) {
    const bool together = part != s.parts.end() && part->first == i;
    const size_t end = i + (together ? part->count : 1);
    if (together) {
      for (uint32_t v : part->outputs) make(v);
      ++part;
    }
    for (; i < end; i++) {
      const Step& step = s.steps[i];
      const Node& n = *step.node;
      const bool shows = n.what == Node::What::detach ||
                         (n.what == Node::What::call && facts_of(n.op).kind == "view");
      uint32_t from = step.reuse;
      if (shows && !n.args.empty() && n.args[0].kind == Arg::Kind::value) from = n.args[0].ref;
      for (const Result& r : n.results)
        for (uint32_t v : r.values)
          if (!together) from != kNone ? hold(v, owner[from]) : make(v);
      for (uint32_t v : step.dies) die(v);
    }
  }
  return most;
}

enum class Way { free, in_order, plain };

Sequence sequence_of(const Program& p, const Block& b, bool outermost, int32_t device_type,
                     Way way) {
  Sequence s;
  s.inputs = b.inputs;
  s.results = b.results;
  Arranged arranged;
  if (way == Way::plain) {
    arranged.order.resize(b.nodes.size());
    std::iota(arranged.order.begin(), arranged.order.end(), 0u);
  } else {
    arranged = arrange(p, b, device_type, way == Way::in_order);
  }
  s.parts = std::move(arranged.parts);
  for (uint32_t i : arranged.order) {
    const Node& n = b.nodes[i];
    s.steps.push_back(step_of(p, n));
    for (const Block& inner : n.blocks)
      s.steps.back().blocks.push_back(sequence_of(p, inner, false, device_type, way));
  }
  // Inside of a block values from outside stay: a loop reads them again.
  if (outermost) {
    find_deaths(b, s, std::vector<bool>(p.values.size()));
    if (way == Way::free) find_reuse(p, s);
    if (p.sizes.empty()) s.peak = peak_in(p, s);
  }
  if (way != Way::plain) find_groups(p, b, s);
  return s;
}

class GradMode {
 public:
  explicit GradMode(bool off) : off_(off), before_(off ? autograd().set_grad_mode(0) : 0) {}
  ~GradMode() {
    if (off_) autograd().set_grad_mode(before_);
  }
  GradMode(const GradMode&) = delete;

 private:
  bool off_;
  int32_t before_;
};

class Run {
 public:
  Run(const Program& p, uint32_t flags)
      : p_(p),
        fuse_(!(flags & AJ_RUN_NO_FUSION)),
        measure_(!(flags & kRunTogether)),
        fulfils_(flags & kRunFulfils),
        regs_(p.values.size()) {}

  // Symbols are known from the inputs, and with them all sizes.
  void inputs(aj_tensor* const* args, uint32_t n) {
    std::vector<int64_t> symbols(p_.symbols.size(), -1);
    for (uint32_t i = 0; i < n && !symbols.empty(); i++) {
      const Type& t = p_.values[p_.body.inputs[i]].type;
      for (size_t d = 0; args[i] && d < t.shape.size() && int64_t(d) < args[i]->dl.ndim; d++)
        if (uint32_t s = t.shape[d] < 0 ? alone(p_.sizes[size_t(-1 - t.shape[d])]) : kNone;
            s != kNone && symbols[s] < 0)
          symbols[s] = args[i]->dl.shape[d];
    }
    for (const Size& s : p_.sizes) sizes_.push_back(s.at(symbols.data()));
    for (uint32_t i = 0; i < n; i++) {
      check_input(i, args[i]);
      give(p_.body.inputs[i], Tensor::borrow(args[i]));
    }
  }

  // What the program is given.
  void give(uint32_t v, Tensor t) {
    static const uint64_t tape = dispatch().key_mask(AJ_STR_LIT("autograd"));
    const bool recorded = t.defined() && t.get()->keys & tape;
    taped_ |= recorded;
    calm_ &= !recorded && !(t.defined() && t.get()->obj.flags & AJ_TENSOR_VIEW);
    put(v, std::move(t));
  }
  void put(uint32_t v, Tensor t) { regs_[v] = std::move(t); }
  const Tensor& at(uint32_t v) const { return regs_[v]; }
  bool taped() const { return taped_ && autograd().grad_mode(); }
  void swap(std::vector<Tensor>& regs) { regs_.swap(regs); }

  void sequence(const Sequence& s) {
    auto group = s.groups.begin();
    auto part = s.parts.begin();
    std::optional<Turn> turn;  // of the part whose calls are made
    size_t part_end = 0;
    for (size_t i = 0; i < s.steps.size();) {
      if (turn && i == part_end) turn->end(false), turn.reset();
      if (part != s.parts.end() && part->first == i) {
        const Part& p = *part++;
        if (fuse_ && !(measure_ && Turn::lost(p, sizes_)) && takes_part(p, regs_, sizes_, calm_))
          turn.emplace(p, sizes_, measure_);
        if (turn && turn->together() && run_part(p, regs_, sizes_)) {
          turn->end(true), turn.reset();
          counts.passes++, counts.groups++, counts.fused += p.count;
          for (size_t end = i + p.count; i < end; i++) bury(s.steps[i]);
          while (group != s.groups.end() && group->first < i) ++group;
          continue;
        }
        part_end = i + p.count;
      }
      if (group != s.groups.end() && group->first == i) {
        const Group& g = *group++;
        if (fuse_ && run_group(g, regs_, sizes_)) {
          counts.passes++, counts.groups++, counts.fused += g.count;
          for (size_t end = i + g.count; i < end; i++) bury(s.steps[i]);
          continue;
        }
      }
      step(s.steps[i]);
      bury(s.steps[i++]);
    }
    if (turn) turn->end(false);
  }

  Counts counts;

  void step(const Step& s) {
    const Node& n = *s.node;
    GradMode mode(n.no_grad);
    if (n.what == Node::What::call) return call(s);
    if (n.what == Node::What::detach)
      return put(n.results[0].values[0], regs_[n.args[0].ref].detach());
    if (n.what == Node::What::scripted)
      raise(AJ_PRECONDITION, p_.name,
            ": the program calls scripted code; run what lowered() gives");
    if (n.what == Node::What::branch) {
      const Sequence& taken = s.blocks[regs_[n.args[0].ref].item<bool>() ? 0 : 1];
      sequence(taken);
      std::vector<Tensor> out = take(taken.results);
      for (size_t i = 0; i < out.size(); i++) put(n.results[i].values[0], std::move(out[i]));
      return;
    }
    std::vector<Tensor> carried;
    for (const Arg& a : n.args) carried.push_back(regs_[a.ref]);
    for (;;) {
      for (size_t i = 0; i < carried.size(); i++) put(s.blocks[0].inputs[i], carried[i]);
      sequence(s.blocks[0]);
      if (!regs_[s.blocks[0].results[0]].item<bool>()) break;
      sequence(s.blocks[1]);
      carried = take(s.blocks[1].results);
      if (core().interrupted()) raise(AJ_CANCELLED, p_.name, ": interrupted in a loop");
    }
    for (size_t i = 0; i < carried.size(); i++) put(n.results[i].values[0], std::move(carried[i]));
  }

 private:
  void bury(const Step& s) {
    for (uint32_t v : s.dies) regs_[v] = Tensor();
  }

  std::vector<Tensor> take(const std::vector<uint32_t>& values) const {
    std::vector<Tensor> out;
    for (uint32_t v : values) out.push_back(regs_[v]);
    return out;
  }

  // Does nobody else have the memory, and would the result lie as that does?
  bool may_reuse(const Step& s) const {
    constexpr uint64_t wanted = AJ_TENSOR_STRIDED | AJ_TENSOR_DENSE;
    if (autograd().grad_mode()) return false;
    for (const Step::Put& put : s.values) {
      const aj_tensor* t = regs_[put.reg].get();
      if (!t || (t->obj.flags & (wanted | AJ_TENSOR_FREE_ORDER)) != wanted || t->keys >> 24)
        return false;
    }
    const aj_tensor* t = regs_[s.reuse].get();
    return !(t->obj.flags & AJ_TENSOR_VIEW) && core().tensor_unique(t);
  }

  void call(const Step& s) {
    const Node& n = *s.node;
    aj_value rets[kMostResults] = {};
    for (size_t i = 0; i < n.into.size(); i++)
      if (n.into[i] != kNone) rets[i] = value(regs_[n.into[i]]);
    if (s.reuse != kNone && (fulfils_ || !s.handed_out) && may_reuse(s))
      rets[0] = value(regs_[s.reuse]);
    counts.passes++;
    try {
      call_step(s, regs_.data(), sizes_, rets);
    } catch (const Error& e) {
      if (!n.line || n.line >= p_.lines.size()) throw;
      raise_as(e.kind(), e.code(), e.message(), " (captured at ", p_.lines[n.line], ")");
    }
    for (size_t i = 0; i < n.results.size(); i++) {
      const Result& r = n.results[i];
      if (r.list) {
        keep_list(r, rets[i]);
      } else if (!r.values.empty()) {
        put(r.values[0], Tensor::steal(rets[i].tag == AJ_TENSOR ? rets[i].v.tensor : nullptr));
        rets[i].tag = AJ_NONE;
      }
      drop(rets[i]);
    }
  }

  void keep_list(const Result& r, aj_value& ret) {
    uint32_t count = 0;
    const aj_value* items =
        ret.tag == AJ_LIST_OBJ ? core().list_get(ret.v.object, &count) : nullptr;
    if (count != r.values.size()) {
      drop(ret);
      raise(AJ_INVALID_ARGUMENT, p_.name, ": a call gives ", count, " tensors, the program has ",
            uint64_t(r.values.size()), "; capture it for these sizes");
    }
    for (uint32_t i = 0; i < count; i++) put(r.values[i], Tensor::borrow(items[i].v.tensor));
  }

  void check_input(uint32_t i, const aj_tensor* t) const {
    const Value& v = p_.values[p_.body.inputs[i]];
    if (t && has_shape(t, v.type, sizes_) && (!v.type.number() || lies_here(t))) return;
    std::string given = t ? text(t->dl.dtype, Shape{t->dl.shape, t->dl.ndim}) : "None";
    raise(AJ_INVALID_ARGUMENT, p_.name, ": input ", i, " ('", v.name, "') is ", given,
          ", the program was captured for ", print_type(p_, v.type),
          v.type.number() ? ": give a tensor of one number, of the processor"
                          : "; capture it for these sizes");
  }

  const Program& p_;
  bool fuse_, measure_, fulfils_, calm_ = true, taped_ = false;
  std::vector<Tensor> regs_;
  std::vector<int64_t> sizes_;  // of Program::sizes
};

}  // namespace

static std::shared_ptr<const Plan> plan_of(int32_t device_type) {
  auto plan = std::make_shared<Plan>();
  plan->revision = service_table->revision();
  plan->device_type = device_type;
  return plan;
}

// Where its first tensor lies: numbers lie elsewhere.
static int32_t device_of(const Program& p, aj_tensor* const* args, uint32_t nargs) {
  for (uint32_t i = 0; i < nargs; i++)
    if (args[i] && !p.values[p.body.inputs[i]].type.number())
      return int32_t(args[i]->dl.device.device_type);
  return kDLCPU;
}

static const Sequence& body_of(const Program& p, const Plan& plan, Way way) {
  Plan::Order& o = way == Way::plain ? plan.plain : way == Way::in_order ? plan.taped : plan.free;
  std::call_once(o.made, [&] { o.body = sequence_of(p, p.body, true, plan.device_type, way); });
  return o.body;
}

int64_t Size::at(const int64_t* symbols) const {
  int64_t sum = 0;
  for (const Term& t : terms) {
    int64_t product = t.by;
    bool large = false;
    for (uint32_t s : t.symbols) large |= __builtin_mul_overflow(product, symbols[s], &product);
    if (large || __builtin_add_overflow(sum, product, &sum))
      raise(AJ_OUT_OF_RANGE, "program: a size made of the inputs' sizes is no number of 64 bits");
  }
  return sum;
}

namespace {

// Numbers made of sizes; lists of them are copied first.
void put_sizes(const Step& s, const std::vector<int64_t>& sizes, aj_value* args,
               std::vector<std::vector<int64_t>>& lists) {
  uint32_t copied = kNone;
  lists.reserve(s.sizes.size());
  for (auto [arg, item, size] : s.sizes) {
    if (args[arg].tag == AJ_INT) {
      args[arg].v.i = sizes[size];
      continue;
    }
    if (arg != copied) lists.emplace_back(args[arg].v.ints, args[arg].v.ints + args[arg].aux);
    copied = arg;
    lists.back()[item] = sizes[size];
    args[arg].v.ints = lists.back().data();
  }
}

}  // namespace

void call_step(const Step& s, const Tensor* regs, const std::vector<int64_t>& sizes,
               aj_value* rets) {
  aj_value args[kMostArgs];
  std::copy(s.args.begin(), s.args.end(), args);
  for (auto [arg, reg] : s.values) {
    if (!regs[reg].defined()) continue;
    if (args[arg].tag == AJ_NONE) {
      args[arg] = value(regs[reg]);
    } else {
      const DLTensor& t = regs[reg].get()->dl;
      std::memcpy(&args[arg].v, static_cast<const char*>(t.data) + t.byte_offset, 8);
    }
  }
  for (auto [arg, reg] : s.devices) args[arg] = value(regs[reg].device());
  std::vector<std::vector<int64_t>> numbers;
  if (!s.sizes.empty()) put_sizes(s, sizes, args, numbers);
  std::vector<std::vector<aj_tensor*>> lists;
  lists.reserve(s.lists.size());
  for (const Step::PutList& l : s.lists) {
    auto& list = lists.emplace_back();
    for (uint32_t v : l.regs) list.push_back(v == kNone ? nullptr : regs[v].get());
    args[l.arg] = {AJ_TENSORS, uint32_t(list.size()), {0}};
    args[l.arg].v.tensors = list.data();
  }
  check(dispatch().call(s.node->op, args, uint32_t(s.args.size()), rets,
                        uint32_t(s.node->results.size())));
}

void run_statement(const Program& p, const Node& n, std::vector<Tensor>& regs) {
  Step s = step_of(p, n);
  for (const Block& inner : n.blocks)
    s.blocks.push_back(sequence_of(p, inner, false, kDLCPU, Way::plain));
  Run r(p, 0);
  r.swap(regs);
  r.step(s);
  r.swap(regs);
}

uint64_t peak_of(const Program& p, bool fused) {
  const std::shared_ptr<const Plan> plan = p.plan.load();
  return plan ? body_of(p, *plan, fused ? Way::free : Way::plain).peak : 0;
}

void run(Program& p, aj_tensor* const* args, uint32_t nargs, uint32_t flags, aj_tensor** rets,
         uint32_t nrets) {
  const uint32_t wanted = p.tensor_inputs();
  if (nargs != wanted || nrets != p.body.results.size())
    raise(AJ_INVALID_ARGUMENT, p.name, ": ", nargs, " inputs and ", nrets,
          " results, the program has ", wanted, " and ", uint64_t(p.body.results.size()));
  std::shared_ptr<const Plan> plan = p.plan.load();
  const int32_t device_type = device_of(p, args, nargs);
  if (!plan || plan->device_type != device_type || plan->revision != service_table->revision())
    p.plan.store(plan = plan_of(device_type));
  Run r(p, flags);
  r.inputs(args, nargs);
  for (const Weight& w : p.weights) {
    if (!w.tensor.defined())
      raise(AJ_PRECONDITION, p.name, ": the ", w.constant ? "constant" : "parameter", " '", w.name,
            "' has no values; a program that was read from text gets them by set_weight");
    r.give(w.value, w.tensor);
  }
  const Sequence& body = body_of(p, *plan,
                                 flags & AJ_RUN_NO_FUSION ? Way::plain
                                 : r.taped()              ? Way::in_order
                                                          : Way::free);
  r.sequence(body);
  for (uint32_t i = 0; i < nrets; i++) rets[i] = Tensor(r.at(p.body.results[i])).take();
  p.nodes = body.steps.size();
  p.passes = r.counts.passes, p.groups = r.counts.groups, p.fused = r.counts.fused;
}

}  // namespace adjoin::graph
