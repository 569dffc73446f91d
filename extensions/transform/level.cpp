// extensions/transform/level.cpp: levels are entered and left; tensors of theirs are made and
// opened.
#include "level.hpp"

#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <vector>

#include "origin.hpp"

namespace adjoin::transform {

const aj_wrappers* wrap_table;
const aj_lower* lower_table;
uint64_t transform_key;

namespace {

constexpr aj_str kType = AJ_STR_LIT("transform::payload");
std::atomic<int32_t> last_level{0};

// The levels of a thread; `top`: where the call that is served stands.
thread_local Level* top = nullptr;

void release_level(Level* l) {
  if (l->users.fetch_sub(1) == 1) delete l;
}

void drop_payload(void* p) {
  auto* payload = static_cast<Payload*>(p);
  core().release(payload->value);
  core().release(payload->tangent);
  if (payload->view) core().release(payload->view->base);
  delete payload->view;
  drop_origin(payload->origin);
  if (payload->level) release_level(payload->level);
}

int32_t payload_type() {
  static const int32_t type = [] {
    int32_t made = 0;
    check(core().type_find(kType, &made));
    return made;
  }();
  return type;
}

// The object is owned.
aj_object* make_payload(Level& l, const Tensor& value, const Tensor& tangent, bool batched) {
  aj_object* o = nullptr;
  void* at = nullptr;
  check(core().object_new(payload_type(), &o, &at));
  auto* p = static_cast<Payload*>(at);
  l.users.fetch_add(1);
  p->level = &l;
  p->value = Tensor(value).take();
  p->tangent = Tensor(tangent).take();
  p->batched = batched;
  p->owned = false;
  p->generation = 0;
  p->view = nullptr;
  return o;
}

// Bytes before the first element, as as_strided counts.
int64_t offset_of(const aj_tensor* t) {
  if (!(t->obj.flags & AJ_TENSOR_STRIDED)) return int64_t(t->dl.byte_offset);
  void* data;
  uint64_t bytes, offset = 0, id;
  check(core().tensor_storage(t, &data, &bytes, &offset, &id));
  return int64_t(offset);
}

int64_t counted(int64_t dim, int64_t ndim, const char* who) {
  if (dim < -ndim || dim >= ndim)
    raise(AJ_OUT_OF_RANGE, who, ": dimension ", dim, " of a tensor of ", ndim, " dimensions");
  return dim < 0 ? dim + ndim : dim;
}

// Dimension `from` at place `to`; the others in their order.
Tensor moved(const Tensor& t, int64_t from, int64_t to) {
  if (from == to) return t;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < t.ndim(); i++)
    if (i != from) order.push_back(i);
  order.insert(order.begin() + to, from);
  return permute(t, order);
}

}  // namespace

void register_payload() {
  int32_t type;
  check(core().type_register(kType, sizeof(Payload), drop_payload, &type));
}

Level* innermost() { return top; }
int32_t innermost_id() { return top ? top->id : 0; }

Level* find_level(int32_t id, const char* who) {
  for (Level* l = top; l; l = l->outer)
    if (l->id == id) return l;
  raise(AJ_PRECONDITION, who, ": level ", id, " is not open on this thread; the innermost one is ",
        innermost_id());
}

Tensor make_wrapper(Level& l, const Tensor& value, const Tensor& tangent, bool batched,
                    aj_tensor* view_of) {
  aj_wrap w{};
  w.struct_size = sizeof w;
  w.key = transform_key;
  w.like = value.dl();
  w.like.data = nullptr;
  w.like.byte_offset = 0;
  if (value.get()->obj.flags & AJ_TENSOR_FREE_ORDER) w.like.strides = nullptr;
  if (batched) {
    w.like.ndim--;
    w.like.shape++;
    if (w.like.strides) w.like.strides++;
  }
  if (view_of && w.like.strides) {
    aj_tensor* base = nullptr;
    check(autograd().base(view_of, &base));
    Tensor held = Tensor::steal(base);
    w.like.byte_offset =
        uint64_t(offset_of(value.get()) - offset_of(payload_of(base ? base : view_of)->value));
  }
  w.payload = make_payload(l, value, tangent, batched);
  w.view_of = view_of;
  w.level = l.id;
  aj_tensor* made = nullptr;
  aj_status* s = wrap_table->tensor_wrap(&w, &made);
  core().release(w.payload);
  check(s);
  return Tensor::steal(made);
}

void set_payload(aj_tensor* t, Level& l, const Tensor& value, const Tensor& tangent, bool batched) {
  aj_object* o = make_payload(l, value, tangent, batched);
  aj_status* s = wrap_table->tensor_set_payload(t, o);
  core().release(o);
  check(s);
}

Tensor lift(const Tensor& t, Level& l) {
  if (at_level(t.get(), l)) return t;
  return make_wrapper(l, t, {}, false);
}

Below::Below(const Level& l) : before_(top), recording_(lower_table->recording_below(l.recording)) {
  top = l.outer;
  if (!top) return;  // nothing around: the key stays excluded, as it is while its kernel runs
  dispatch().thread_keys(&include_, &exclude_);
  dispatch().set_thread_keys(include_, exclude_ & ~transform_key);
  keys_ = true;
}

Below::~Below() {
  if (keys_) dispatch().set_thread_keys(include_, exclude_);
  lower_table->restore(recording_);
  top = before_;
}

aj_status* enter(int32_t kind, int64_t size, int32_t randomness, int32_t* level) {
  return guard("transform: enter", [&] {
    if (kind < AJ_LEVEL_BATCH || kind > AJ_LEVEL_DUAL_KEPT)
      raise(AJ_INVALID_ARGUMENT, "enter: there is no kind ", kind,
            " of a level; batch is 0, dual 1, a dual one whose tensors are kept 2");
    const bool kept = kind == AJ_LEVEL_DUAL_KEPT;
    uint64_t include, exclude;
    dispatch().thread_keys(&include, &exclude);
    if (kept) kind = AJ_LEVEL_DUAL;
    if (size < 0 || randomness < AJ_RANDOM_ERROR || randomness > AJ_RANDOM_DIFFERENT)
      raise(AJ_INVALID_ARGUMENT, "enter: a batch of ", size, " samples, randomness ", randomness,
            "; a size from 0 on and AJ_RANDOM_... are wanted");
    auto* l = new Level{
        last_level.fetch_add(1) + 1, kind,   randomness, size, autograd().grad_mode() != 0, kept,
        !(include & transform_key),  {true}, top,        {1}};
    top = l;
    dispatch().set_thread_keys(include | transform_key, exclude);
    *level = l->id;
  });
}

aj_status* leave(int32_t level) {
  return guard("transform: leave", [&] {
    if (!top || top->id != level)
      raise(AJ_PRECONDITION, "leave: level ", level, " is not the innermost one, which is ",
            innermost_id());
    Level* l = top;
    top = l->outer;
    l->open = false;
    const bool alone = l->alone;
    release_level(l);
    if (!alone) return;
    uint64_t include, exclude;
    dispatch().thread_keys(&include, &exclude);
    dispatch().set_thread_keys(include & ~transform_key, exclude);
  });
}

aj_status* batched(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out) {
  return guard("transform: batched", [&] {
    Level* l = find_level(level, "batched");
    const Tensor& x = Tensor::view(t);
    int64_t d = counted(dim, x.ndim(), "batched");
    if (x.shape()[size_t(d)] != l->size)
      raise(AJ_INVALID_ARGUMENT, "batched: dimension ", dim, " has ", x.shape()[size_t(d)],
            " samples, the level has ", l->size);
    Tensor first;
    {
      Below below(*l);
      first = moved(x, d, 0);
    }
    *out = make_wrapper(*l, first, {}, true).take();
  });
}

aj_status* unbatched(aj_tensor* t, int32_t dim, int32_t level, aj_tensor** out) {
  return guard("transform: unbatched", [&] {
    Level* l = find_level(level, "unbatched");
    const Tensor& x = Tensor::view(t);
    const Payload* p = at_level(t, *l);
    bool is_batched = false;
    Tensor value = p ? current_value(t, &is_batched) : x;
    Below below(*l);
    if (!is_batched) {
      std::vector<int64_t> sizes(value.shape().begin(), value.shape().end());
      sizes.insert(sizes.begin(), l->size);
      value = expand(value, sizes);
    }
    *out = moved(value, 0, counted(dim, value.ndim(), "unbatched")).take();
  });
}

aj_status* shared(aj_tensor* t, int32_t level, aj_tensor** out) {
  return guard("transform: shared", [&] {
    bool is_batched = false;
    Tensor value = at_level(t, *find_level(level, "shared")) ? current_value(t, &is_batched)
                                                             : Tensor::borrow(t);
    *out = is_batched ? nullptr : value.take();
  });
}

aj_status* batch_of(int32_t level, int64_t* size, int32_t* randomness) {
  return guard("transform: batch_of", [&] {
    const Level* l = find_level(level, "batch_of");
    *size = l->size;
    *randomness = l->randomness;
  });
}

aj_status* random_stride(int32_t level, int64_t blocks) {
  return guard("transform: random_stride",
               [&] { find_level(level, "random_stride")->stride = blocks; });
}

namespace {
struct Left {  // where the thread stood before `below`
  Level* top;
  int32_t recording;
};
thread_local std::vector<Left> left;
}  // namespace

aj_status* below(int32_t level) {
  return guard("transform: below", [&] {
    const Level* l = find_level(level, "below");
    left.push_back({top, autograd().grad_mode()});
    if (!l->recording) autograd().set_grad_mode(0);
    top = l->outer;
  });
}

void above() {
  if (left.empty()) return;
  top = left.back().top;
  autograd().set_grad_mode(left.back().recording);
  left.pop_back();
}

int32_t kind_of(int32_t level) {
  for (const Level* l = top; l; l = l->outer)
    if (l->id == level) return l->kind;
  return -1;
}

aj_status* lift_to(aj_tensor* t, int32_t level, aj_tensor** out) {
  return guard("transform: lift", [&] {
    Level* l = level ? find_level(level, "lift") : top;
    *out = (l ? lift(Tensor::view(t), *l) : Tensor::borrow(t)).take();
  });
}

}  // namespace adjoin::transform
