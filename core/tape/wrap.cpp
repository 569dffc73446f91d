// core/tape/wrap.cpp: tensors without strides: made, written, fulfilled, settled for who reads
// them, or refused.
#include "core/tape/wrap.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/base/guarded.hpp"
#include "core/guest/caught.hpp"
#include "core/op/call.hpp"
#include "core/op/registry_state.hpp"
#include "core/tape/node.hpp"
#include "core/tape/ops.hpp"
#include "core/tape/view.hpp"

namespace adjoin {
namespace {

constexpr uint8_t kDeepest = 16;  // settling that asks for settling

WrapStorage& wrap_of(const aj_tensor* t) { return static_cast<WrapStorage&>(storage(t)); }
bool is_wrap(const aj_tensor* t) { return storage(t).flags & kStorageWrap; }
int bit_of(uint64_t key) { return 63 - __builtin_clzll(key); }
const Wrapper* wrapper_at(uint64_t key) {
  return registry().wrappers[bit_of(key)].load(std::memory_order_acquire);
}

const char* layout_name(int32_t layout) {
  constexpr const char* names[] = {"strided",    "sparse_coo", "sparse_csr", "opaque",
                                   "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"};
  return layout >= 0 && layout < 8 ? names[layout] : "opaque";
}

void forget(void* ctx) {
  auto* w = static_cast<WrapStorage*>(ctx);
  registry().wrapped[bit_of(w->key)]--;
  release(w->payload);
  release(w->source);
  release(w->version_of);
}

// A function of the key's, by a plugin.
template <class F, class... A>
aj_status* asked(const Wrapper* w, F f, const char* name, A... args) {
  return caught(f, name, [&] { return f(w->def.self, args...); });
}

template <class F, class... A>
aj_status* unrecorded(const Wrapper* w, F f, const char* name, A... args) {
  NoGrad off;
  return asked(w, f, name, args...);
}

aj_status* wrong_gift(const Wrapper* w, std::string_view who, const char* name, const char* kind) {
  return fail(AJ_INTERNAL, who, ": ", name, " of key '", w->key, "', of plugin '", w->provider,
              "', gave no ", kind, "tensor of the same dtype and shape");
}

// The values are in the storage: t shows them, too.
void take_values(aj_tensor* t, const WrapStorage& w) {
  const aj_tensor* from = w.source;
  t->dl.data = from->dl.data;
  t->dl.byte_offset = from->dl.byte_offset;
  t->dl.strides = t->dl.shape + t->dl.ndim;
  std::ranges::copy(strides(from), t->dl.strides);
  t->keys &= ~(w.key | kWrapKey);
  constexpr uint32_t shown = AJ_TENSOR_STRIDED | AJ_TENSOR_DENSE | AJ_TENSOR_READ_ONLY;
  __atomic_store_n(&t->obj.flags, t->obj.flags | (from->obj.flags & shown),
                   __ATOMIC_RELEASE);  // last: who misses it asks
}

aj_status* bad_wrap(const aj_wrap* w) {
  if (!w || w->struct_size < AJ_END_OF(aj_wrap, layout))
    return fail(AJ_INVALID_ARGUMENT, "tensor_wrap: aj_wrap: struct_size is ",
                w ? w->struct_size : 0, ", at least ", uint64_t(AJ_END_OF(aj_wrap, layout)),
                " is needed");
  AJ_TRY(check_words("tensor_wrap", "", w->flags, 0));
  if (!w->key || (w->key & (w->key - 1)) || !wrapper_at(w->key))
    return fail(AJ_NOT_FOUND, "tensor_wrap: key mask ", w->key,
                " is not that of one key with a def_wrapper");
  if (w->layout < AJ_LAYOUT_STRIDED || w->layout > AJ_LAYOUT_JAGGED)
    return fail(AJ_INVALID_ARGUMENT, "tensor_wrap: there is no layout ", w->layout,
                "; AJ_LAYOUT_... are 0 to ", int(AJ_LAYOUT_JAGGED));
  if (w->like.ndim && !w->like.shape)
    return fail(AJ_INVALID_ARGUMENT, "tensor_wrap: shape is NULL, ndim is ", w->like.ndim);
  if (!w->payload)
    return fail(AJ_INVALID_ARGUMENT,
                "tensor_wrap: the payload is NULL; a counted object is needed");
  return nullptr;
}

aj_status* tensor_wrap(const aj_wrap* w, aj_tensor** out) {
  AJ_TRY(bad_wrap(w));
  Device* d = device_at(w->like.device);
  if (!d) AJ_TRY(device_open(w->like.device, &d));
  auto* s = new (std::nothrow) WrapStorage{};
  if (!s) return no_tensor_memory();
  s->key = w->key;
  s->layout = w->layout;
  s->level = w->level;
  s->payload = w->payload;
  s->version_of = w->version_of ? w->version_of : w->view_of;
  retain(s->payload);
  retain(s->version_of);
  s->ctx = s;
  s->drop = forget;
  registry().wrapped[bit_of(w->key)]++;
  aj_status* failed = tensor_wrapped(d, &w->like, s, w->key, out);
  storage_release(s);
  if (!failed && w->view_of) view_attach(*out, w->view_of, tls.grad_off ? kViewNoGrad : kView);
  return failed;
}

aj_status* tensor_fulfil(aj_tensor* t, aj_tensor* source) {
  if (is_strided(t)) return nullptr;
  AJ_TRY(settle_memory(source, "tensor_fulfil"));
  if (!same_device(t->dl.device, source->dl.device) || priv(t).dtype != priv(source).dtype ||
      !std::ranges::equal(shape(t), shape(source)))
    return fail(AJ_INVALID_ARGUMENT, "tensor_fulfil: the tensor is ", t->dl.dtype, " of shape ",
                shape(t), " on ", t->dl.device, ", the source ", source->dl.dtype, " of shape ",
                shape(source), " on ", source->dl.device);
  WrapStorage& w = wrap_of(t);
  aj_object* dead = nullptr;
  {
    SpinGuard guard(w.spin);
    if (!w.source) {
      const Storage& from = storage(source);
      retain(source);
      w.data = from.data;
      w.bytes = from.bytes;
      w.stream = from.stream;
      w.flags |= from.flags & (kStorageReadOnly | kStorageMeta | kStorageInference);
      w.source = source;
      std::swap(dead, w.payload);
    }
    if (!is_strided(t)) take_values(t, w);
  }
  release(dead);
  return nullptr;
}

aj_status* tensor_strided(aj_tensor* t, aj_str who, aj_tensor** out) {
  return strided_of(t, view(who), out);
}

template <auto F>
constexpr const char* name_of() {
  if constexpr (std::is_same_v<decltype(F), decltype(&aj_wrapper_def::copy)>)
    return "`copy`";
  else
    return F == &aj_wrapper_def::describe ? "`describe`" : "`parts`";
}

// A function of the key's that may be missing, or the tensor strided: then nothing is in `out`.
template <auto F, class T>
aj_status* ask(aj_tensor* t, T** out) {
  *out = nullptr;
  if (is_strided(t) || wrap_of(t).source) return nullptr;
  const Wrapper* w = wrapper_of(t);
  return w->def.*F ? unrecorded(w, w->def.*F, name_of<F>(), t, out) : nullptr;
}

aj_status* tensor_payload_get(const aj_tensor* t, uint64_t key, aj_object** out) {
  *out = nullptr;
  if (is_strided(t) || wrap_of(t).key != key) return nullptr;
  SpinGuard guard(wrap_of(t).spin);
  retain(*out = wrap_of(t).payload);
  return nullptr;
}

int32_t tensor_layout(const aj_tensor* t) {
  return is_strided(t) ? int32_t(AJ_LAYOUT_STRIDED) : wrap_of(t).layout;
}

}  // namespace

aj_status* tensor_copy(aj_tensor* t, aj_tensor** out) { return ask<&aj_wrapper_def::copy>(t, out); }

const Wrapper* wrapper_of(const aj_tensor* t) { return wrapper_at(wrap_of(t).key); }

int32_t level_of(const aj_tensor* t) { return is_strided(t) ? 0 : wrap_of(t).level; }

aj_object* tensor_payload(const aj_tensor* t, uint64_t key) {
  return !is_strided(t) && wrap_of(t).key == key ? wrap_of(t).payload : nullptr;
}

aj_status* tensor_set_payload(aj_tensor* t, aj_object* payload) {
  if (is_strided(t) || wrap_of(t).source || !payload)
    return fail(AJ_INVALID_ARGUMENT, "tensor_set_payload: ",
                payload ? "the tensor is strided and has none" : "the payload is NULL");
  WrapStorage& w = wrap_of(t);
  retain(payload);
  {
    SpinGuard guard(w.spin);
    std::swap(w.payload, payload);
  }
  release(payload);
  bump_version(t);
  return nullptr;
}

aj_status* refuse_wrapper(const aj_tensor* t, std::string_view who) {
  const Wrapper* w = wrapper_of(t);
  const int32_t layout = wrap_of(t).layout;
  return fail(AJ_UNIMPLEMENTED, who, ": key '", w->key, "' has nothing for it, and its ",
              layout == AJ_LAYOUT_STRIDED ? "tensors have no values yet"
                                          : text(layout_name(layout), " tensors have no strides"),
              w->hint.empty() ? "" : "; ", w->hint);
}

aj_status* strided_of(aj_tensor* t, std::string_view who, aj_tensor** out) {
  *out = nullptr;
  if (is_strided(t)) AJ_TRY(settle_order(t));
  if (!is_strided(t) && wrap_of(t).source) AJ_TRY(tensor_fulfil(t, wrap_of(t).source));
  if (is_strided(t)) return retain(*out = t), nullptr;
  const Wrapper* w = wrapper_of(t);
  if (!w->def.settle) return refuse_wrapper(t, who);
  if (tls.settling == kDeepest)
    return fail(AJ_INTERNAL, who, ": settling a tensor of key '", w->key,
                "' asks for the same again; see its `settle`");
  Ref made;
  tls.settling++;
  aj_status* s = unrecorded(w, w->def.settle, "`settle`", t, made.out());
  tls.settling--;
  AJ_TRY(s);
  bool good = made && is_strided(made.get()) && priv(made.get()).dtype == priv(t).dtype &&
              (t->obj.flags & AJ_TENSOR_RAGGED || std::ranges::equal(shape(made.get()), shape(t)));
  if (!good) return wrong_gift(w, who, "`settle`", "strided ");
  AJ_TRY(settle_order(made.get()));
  *out = made.take();
  return nullptr;
}

aj_status* settle_wrapper(aj_tensor* t, std::string_view who) {
  Ref made;
  AJ_TRY(strided_of(t, who, made.out()));
  return is_strided(t) ? nullptr : refuse_wrapper(t, who);  // a copy has other memory
}

uint32_t watched_version(const aj_tensor* t) {
  constexpr uint32_t watched =
      1u << 31;  // no storage's own number, so a plain look at it finds a difference
  uint32_t flag = 0;
  for (; is_wrap(t) && wrap_of(t).version_of; t = wrap_of(t).version_of)
    flag = watched;  // where every write is counted
  return flag | storage(t).version;
}

void wrap_written(Storage& s) {
  if (aj_tensor* other = static_cast<WrapStorage&>(s).version_of) bump_version(other);
}

aj_status* sum_gradients(aj_tensor* a, aj_tensor* b, aj_tensor** out) {
  for (aj_tensor* t : {a, b}) {
    if (is_strided(t)) continue;
    const Wrapper* w = wrapper_of(t);
    if (!w->def.add_gradient) continue;
    AJ_TRY(asked(w, w->def.add_gradient, "`add_gradient`", a, b, out));
    if (*out && priv(*out).dtype == priv(t).dtype && std::ranges::equal(shape(*out), shape(t)))
      return nullptr;
    release(std::exchange(*out, nullptr));
    return wrong_gift(w, "backward", "`add_gradient`", "");
  }
  return tape::add(a, b, out);
}

const aj_wrappers wrap_table = {
    .struct_size = sizeof(aj_wrappers),
    .minor = 0,
    .def_wrapper = guarded<def_wrapper>,
    .tensor_wrap = guarded<tensor_wrap>,
    .tensor_payload = tensor_payload,
    .tensor_set_payload = guarded<tensor_set_payload>,
    .tensor_fulfil = guarded<tensor_fulfil>,
    .tensor_strided = guarded<tensor_strided>,
    .tensor_describe = guarded<ask<&aj_wrapper_def::describe, aj_object>>,
    .tensor_copy = guarded<tensor_copy>,
    .tensor_parts = guarded<ask<&aj_wrapper_def::parts, aj_object>>,
    .tensor_layout = tensor_layout,
    .tensor_level = level_of,
    .tensor_payload_get = tensor_payload_get,
};

}  // namespace adjoin
