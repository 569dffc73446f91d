// extensions/distributed/reducer.cpp: buckets start strictly in their order, whenever they are
// full: every process starts the same collectives.
#include "reducer.hpp"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace adjoin::distributed {

using kit::autograd;
using kit::check;
using kit::core;
using kit::raise;

namespace {

bool on_host(const Tensor& t) { return t.device().device_type == kDLCPU; }

char* memory_of(const Tensor& t) { return static_cast<char*>(t.dl().data) + t.dl().byte_offset; }

bool dense(const Tensor& t) { return t.get()->obj.flags & AJ_TENSOR_DENSE && on_host(t); }

template <class T>
void scaled(char* to, const char* from, int64_t n, double by) {
  T* y = reinterpret_cast<T*>(to);
  const T* x = reinterpret_cast<const T*>(from);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * T(by);
}

}  // namespace

Reducer::Reducer(std::shared_ptr<Group> group, const aj_reducer_def& def)
    : group_(std::move(group)),
      factor_(def.factor),
      full_(def.full),
      self_(def.self),
      params_(def.nparams),
      buckets_(def.nbuckets) {
  for (uint32_t b = 0; b < def.nbuckets; b++) buckets_[b].flat = Tensor::borrow(def.flats[b]);
  for (uint32_t i = 0; i < def.nparams; i++) {
    Param& p = params_[i];
    p.leaf = def.params[i];
    p.view = Tensor::borrow(def.views[i]);
    p.bucket = def.bucket_of[i];
    p.reducer = this;
    p.number = i;
    p.name = kit::view_of(def.names[i]);
    buckets_[p.bucket].members.push_back(i);
    check(autograd().hook_tensor(p.leaf, AJ_HOOK_POST_ACCUMULATE, arrived, &p, nullptr, &p.hook));
  }
}

Reducer::~Reducer() { forget(); }

void Reducer::forget() {
  for (Param& p : params_)
    if (p.hook) core().status_free(autograd().hook_remove(std::exchange(p.hook, 0)));
}

void Reducer::arm(aj_tensor* const* roots, uint32_t nroots, uint8_t* reached) {
  partly_ = reached != nullptr;
  armed_ = true;
  begun_ = false;
  next_ = 0;
  for (Bucket& b : buckets_) {
    b.missing = uint32_t(b.members.size());
    b.launched = false;
    b.work = nullptr;
  }
  if (partly_) mark_reached(roots, nroots, reached);
  for (Param& p : params_) {
    p.come = partly_ && !reached[p.number];
    if (!p.come) continue;
    static constinit kit::Op zero("zero_");
    const aj_value args[] = {kit::value(p.view)};
    kit::run(zero.get(), args, 1);
    buckets_[p.bucket].missing--;
  }
}

// One walk over the nodes of the graph that the roots have.
void Reducer::mark_reached(aj_tensor* const* roots, uint32_t nroots, uint8_t* reached) const {
  std::unordered_map<const aj_tensor*, uint32_t> place;
  for (const Param& p : params_) place[p.leaf] = p.number;
  std::memset(reached, 0, params_.size());
  auto note = [&](const aj_tensor* leaf) {
    if (auto found = place.find(leaf); found != place.end()) reached[found->second] = 1;
  };
  std::unordered_set<aj_node*> seen;
  std::vector<aj_node*> open;
  auto visit = [&](aj_node* owned) {
    if (!owned) return;
    if (seen.insert(owned).second)
      open.push_back(owned);
    else
      core().release(owned);
  };
  for (uint32_t i = 0; i < nroots; i++) {
    aj_node* node = nullptr;
    uint32_t result = 0;
    check(autograd().tensor_node(roots[i], &node, &result));
    if (!node) note(roots[i]);
    visit(node);
  }
  while (!open.empty()) {
    aj_node* node = open.back();
    open.pop_back();
    if (aj_tensor* leaf = autograd().node_variable(node)) note(leaf);
    for (uint32_t i = 0, n = autograd().node_edges(node); i < n; i++) {
      aj_node* next = nullptr;
      uint32_t result = 0;
      if (aj_status* s = autograd().node_edge(node, i, &next, &result)) {
        core().status_free(s);
        continue;
      }
      visit(next);
    }
  }
  for (aj_node* node : seen) core().release(node);
}

bool Reducer::waits_for(uint8_t* missing) const {
  if (!armed_ || !begun_) return false;
  for (const Param& p : params_) missing[p.number] = !p.come;
  return true;
}

aj_status* Reducer::arrived(void* param, aj_tensor**) {
  Param& p = *static_cast<Param*>(param);
  if (!p.reducer->armed_) return nullptr;
  return kit::guard("", [&] { p.reducer->arrived(p); });
}

void Reducer::arrived(Param& p) {
  begun_ = true;
  if (p.come) {
    if (partly_ && !buckets_[p.bucket].launched) return;
    raise(AJ_PRECONDITION, "DistributedDataParallel: the gradient of ", p.name,
          " came twice, or after its bucket: a parameter that two backward passes of one forward "
          "reach wants no_sync() for all but the last one");
  }
  keep(p);
  p.come = true;
  if (--buckets_[p.bucket].missing == 0) go_on();
}

// The gradient lies in the bucket from now on; scaled before the sum, so that a sum of halves fits.
void Reducer::keep(Param& p) {
  aj_tensor* found = nullptr;
  check(autograd().grad(p.leaf, &found));
  const Tensor grad = Tensor::steal(found);
  if (!grad.defined()) return;
  const double by = hooked_ ? 1.0 : factor_;
  const bool here = grad.get() == p.view.get();
  const bool plain = grad.dtype() == p.view.dtype() && dense(grad) && dense(p.view);
  const DLDataType dtype = p.view.dtype();
  if (here && by == 1.0) return;
  if (plain && (dtype == float32 || dtype == float64)) {
    (dtype == float32 ? scaled<float> : scaled<double>)(memory_of(p.view), memory_of(grad),
                                                        p.view.numel(), by);
    core().tensor_bump_version(p.view.get());
  } else {
    const int32_t mode = autograd().set_grad_mode(0);
    static constinit kit::Op copy("copy_"), mul("mul");
    try {
      const aj_value pair[] = {kit::value(p.view), kit::value(grad), kit::value(false)};
      if (!here) kit::run(copy.get(), pair, 3);
      const aj_value by_factor[] = {kit::value(p.view), kit::value(Scalar(by))};
      if (by != 1.0) kit::run_into(mul.get(), by_factor, 2, p.view);
    } catch (...) {
      autograd().set_grad_mode(mode);
      throw;
    }
    autograd().set_grad_mode(mode);
  }
  if (!here) check(autograd().set_grad(p.leaf, p.view.get()));
}

void Reducer::go_on() {
  while (next_ < buckets_.size() && buckets_[next_].missing == 0) launch(buckets_[next_++]);
  if (next_ < buckets_.size()) return;
  armed_ = begun_ = false;
  check(full_(self_, -1));
}

void Reducer::launch(Bucket& b) {
  b.launched = true;
  if (hooked_ || !on_host(b.flat)) return check(full_(self_, int32_t(&b - buckets_.data())));
  if (!group_) return;  // of one process
  aj_coll c = {};
  c.struct_size = sizeof c;
  c.kind = AJ_COLL_ALL_REDUCE;
  c.op = AJ_RED_SUM;
  c.peer = -1;
  c.count = uint64_t(b.flat.numel());
  c.dtype = b.flat.dtype();
  c.device = {kDLCPU, 0};
  c.in = c.out = memory_of(b.flat);
  aj_tensor* kept = b.flat.get();
  b.work = group_->start(c, 0, &kept, 1);
  core().tensor_bump_version(kept);
}

void Reducer::wait() {
  for (Bucket& b : buckets_)
    if (b.work) {
      group_->wait(*b.work, -1);
      b.work = nullptr;
    }
}

}  // namespace adjoin::distributed
