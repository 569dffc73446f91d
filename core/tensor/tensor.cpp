// core/tensor/tensor.cpp: making tensors and letting them go.
#include "core/tensor/tensor.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/base/keys.hpp"
#include "core/base/marks.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/frontend.hpp"
#include "core/guest/object.hpp"
#include "core/tensor/settle.hpp"

namespace adjoin {
namespace {

// Shape and strides of more dimensions than a block has places for. NULL: no memory.
[[gnu::cold, gnu::noinline]] Block* with_side_dims(Block* b) {
  auto* side = static_cast<int64_t*>(std::malloc(size_t(b->t.dl.ndim) * 2 * sizeof(int64_t)));
  if (!side) return small_free(b->priv.small_cls, b), nullptr;
  b->priv.flags |= kSideDims;
  b->t.dl.shape = side;
  b->t.dl.strides = side + b->t.dl.ndim;
  return b;
}

// The header of a block: everything but storage and sizes. NULL: no memory.
[[gnu::always_inline]] inline Block* block_new(uint32_t bytes, const DType& dtype, Device* d,
                                               int32_t ndim, uint16_t flags) {
  const int cls = small_class(bytes);
  auto* b = static_cast<Block*>(small_alloc(cls));
  if (__builtin_expect(!b, 0)) return nullptr;
  b->priv = {.flags = flags, .dtype = dtype.index, .small_cls = uint8_t(cls)};
  b->t = {.obj = {1, AJ_TENSOR, AJ_TENSOR_STRIDED},
          .dl = {nullptr, d->id, ndim, dtype.dl, b->dims, nullptr, 0},
          .keys = d->key()};
  if (__builtin_expect(ndim > kInlineDims, 0)) return with_side_dims(b);
  b->t.dl.strides = b->dims + ndim;
  return b;
}

void block_free(Block* b) { small_free(b->priv.small_cls, b); }

void side_dims_free(Block* b) {
  if (b->priv.flags & kSideDims) std::free(b->t.dl.shape);
}

aj_status* bad_shape(std::span<const int64_t> shape) {
  if (shape.size() > size_t(kMaxDims))
    return fail(AJ_INVALID_ARGUMENT, "tensor: ", uint64_t(shape.size()),
                " dimensions; only tensors with up to ", kMaxDims, " dims are supported");
  for (int64_t n : shape)
    if (n < 0) return fail(AJ_INVALID_ARGUMENT, "tensor: negative size in shape ", shape);
  return fail(AJ_OUT_OF_MEMORY, "tensor: Storage size calculation overflowed: shape ", shape,
              " has more bytes than 2^63");
}

// Elements of a shape; false if it is no shape or too large for `bytes` each.
inline bool count(std::span<const int64_t> shape, uint32_t bytes, int64_t* numel) {
  int64_t n = 1;
  bool empty = false, over = false;
  for (int64_t s : shape) {
    if (uint64_t(s) >= uint64_t(INT64_MAX))
      return false;  // where sums and products of sizes stop that would be larger
    empty |= s == 0;
    over |= __builtin_mul_overflow(n, s ? s : 1, &n);
  }
  *numel = empty ? 0 : n;
  int64_t total;  // of nothing any other size will do
  return (empty || !(over || __builtin_mul_overflow(n, int64_t(bytes), &total))) &&
         shape.size() <= size_t(kMaxDims);
}

void storage_init(Storage* s, Device* d, uint16_t flags) {
  new (s) Storage{.refs = 1, .device = d, .flags = flags};
  if (flags & kStorageForeign) s->contents.store(kEscaped, std::memory_order_relaxed);
}

[[gnu::always_inline]] inline void set_place(aj_tensor* t, const Storage* s, void* data) {
  t->dl.data = data;
  t->dl.byte_offset = 0;
  if (__builtin_expect(!(s->device->flags & AJ_DEV_OPAQUE_POINTERS), 1)) return;
  t->dl.data = s->data;
  t->dl.byte_offset = uint64_t(static_cast<char*>(data) - static_cast<char*>(s->data));
}

[[gnu::always_inline]] inline void finish_tensor(Block* b, Storage* s, int64_t numel, void* data,
                                                 bool dense) {
  b->priv.storage = s;
  b->priv.numel = numel;
  set_place(&b->t, s, data);
  auto flag = [](bool on, uint32_t bit) { return on ? bit : 0u; };
  b->t.obj.flags |= flag(dense, AJ_TENSOR_DENSE) |
                    flag(s->flags & kStorageReadOnly, AJ_TENSOR_READ_ONLY) |
                    flag(s->flags & kStorageInference, AJ_TENSOR_INFERENCE);
}

// A block with its own storage of `bytes`.
aj_status* tensor_with_bytes(Device* d, const DType& dtype, int32_t ndim, int64_t numel,
                             uint64_t bytes, Block** out) {
  bool meta = d->id.device_type == kMetaType;
  bool handles = d->flags & AJ_DEV_OPAQUE_POINTERS;
  bool inside = bytes <= kInlineBytes && (d->host() || (bytes == 0 && !handles) || meta);
  Block* b =
      block_new(kDataOffset + (inside && !meta ? uint32_t(bytes) : 0), dtype, d, ndim, kOwnStorage);
  if (!b) return no_tensor_memory();
  Storage* s = &b->own;
  uint16_t flags = uint16_t(kStorageInBlock | (tls.inference ? kStorageInference : 0));
  if (meta) {
    storage_init(s, d, flags | kStorageMeta);
    s->data = nullptr;
    s->bytes = bytes;
  } else if (inside) {
    storage_init(s, d, flags | kStorageDataInBlock);
    s->data = reinterpret_cast<char*>(b) + kDataOffset;
    s->bytes = bytes;
  } else {
    storage_init(s, d, flags);
    uint64_t got;
    if (aj_status* failed = device_alloc(d, bytes ? bytes : 1, &s->data, &got)) {
      side_dims_free(b);
      block_free(b);
      return failed;
    }
    s->spare = uint32_t(std::min<uint64_t>(got - bytes, UINT32_MAX));
    s->bytes = got - s->spare;
  }
  finish_tensor(b, s, numel, s->data, true);
  *out = b;
  return nullptr;
}

void storage_bytes_free(Storage* s) {
  if (!(s->flags & kStorageWrap)) contents_changed(*s);  // no write: nobody else's version moves
  if (s->flags & kStorageForeign) {
    auto* f = static_cast<ForeignStorage*>(s);
    call_drop(f->drop, f->ctx, "drop function");
  } else if (!(s->flags & (kStorageDataInBlock | kStorageMeta))) {
    device_free(s->device, s->data, s->bytes + s->spare);
  }
}

}  // namespace

aj_status* no_tensor_memory() {
  return fail(AJ_OUT_OF_MEMORY, "tensor: the system has no memory for a tensor's header");
}

void c_strides(std::span<const int64_t> shape, int64_t* out) {
  uint64_t step = 1;  // may pass the end where a size is 0
  for (size_t i = shape.size(); i-- > 0;) {
    out[i] = int64_t(step);
    step *= shape[i] > 1 ? uint64_t(shape[i]) : 1;
  }
}

bool dense_strides(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  uint64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 0) return true;
    if (shape[i] == 1) continue;
    if (uint64_t(strides[i]) != step)
      return std::ranges::find(shape.first(i), 0) != shape.first(i).end();
    step *= uint64_t(shape[i]);
  }
  return true;
}

aj_status* tensor_new(Device* d, const DType& dtype, std::span<const int64_t> shape,
                      aj_tensor** out) {
  int64_t numel;
  if (__builtin_expect(!count(shape, dtype.bytes, &numel), 0)) return bad_shape(shape);
  Block* b;
  AJ_TRY(
      tensor_with_bytes(d, dtype, int32_t(shape.size()), numel, uint64_t(numel) * dtype.bytes, &b));
  uint64_t step = 1;  // may pass the end where a size is 0
  for (size_t i = shape.size(); i-- > 0;) {
    b->t.dl.shape[i] = shape[i];
    b->t.dl.strides[i] = int64_t(step);
    step *= shape[i] > 1 ? uint64_t(shape[i]) : 1;
  }
  *out = &b->t;
  return nullptr;
}

aj_status* tensor_new_like(const aj_tensor* like, Device* d, const DType& dtype, aj_tensor** out) {
  const int ndim = like->dl.ndim;
  const uint64_t bytes = uint64_t(priv(like).numel) * dtype.bytes;
  if (__builtin_expect(bytes > kInlineBytes || ndim > kInlineDims, 0))
    return tensor_new(d, dtype, shape(like), out);
  Block* b = block_new(kDataOffset + uint32_t(bytes), dtype, d, ndim, kOwnStorage);
  if (__builtin_expect(!b, 0)) return no_tensor_memory();
  char* data = reinterpret_cast<char*>(b) + kDataOffset;
  b->priv.storage = new (&b->own) Storage{.refs = 1,
                                          .data = data,
                                          .bytes = bytes,
                                          .device = d,
                                          .flags = kStorageInBlock | kStorageDataInBlock};
  b->priv.numel = priv(like).numel;
  b->t.dl.data = data;
  b->t.obj.flags |= AJ_TENSOR_DENSE;
  if (__builtin_expect(tls.inference, 0))
    b->own.flags |= kStorageInference, b->t.obj.flags |= AJ_TENSOR_INFERENCE;
  int64_t step = 1;
  for (int i = ndim; i-- > 0;) {
    const int64_t n = b->dims[i] = like->dl.shape[i];
    b->dims[ndim + i] = step;
    step *= n > 1 ? n : 1;
  }
  *out = &b->t;
  return nullptr;
}

aj_status* tensor_new_strided(Device* d, const DType& dtype, std::span<const int64_t> shape,
                              std::span<const int64_t> strides, aj_tensor** out) {
  int64_t numel;
  if (!count(shape, dtype.bytes, &numel)) return bad_shape(shape);
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); i++) {
    if (strides[i] < 0) return fail(AJ_INVALID_ARGUMENT, "tensor: negative stride in ", strides);
    int64_t reach;
    if (__builtin_mul_overflow(shape[i] ? shape[i] - 1 : 0, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return bad_shape(shape);
  }
  int64_t bytes;
  if (__builtin_mul_overflow(numel ? last + 1 : 0, int64_t(dtype.bytes), &bytes))
    return bad_shape(shape);
  Block* b;
  AJ_TRY(tensor_with_bytes(d, dtype, int32_t(shape.size()), numel, uint64_t(bytes), &b));
  std::copy(shape.begin(), shape.end(), b->t.dl.shape);
  std::copy(strides.begin(), strides.end(), b->t.dl.strides);
  if (!dense_strides(shape, strides)) b->t.obj.flags &= ~uint32_t(AJ_TENSOR_DENSE);
  *out = &b->t;
  return nullptr;
}

aj_status* tensor_alias(aj_tensor* of, const DType& dtype, std::span<const int64_t> shape,
                        std::span<const int64_t> strides, void* data, aj_tensor** out) {
  int64_t numel;
  if (__builtin_expect(!count(shape, dtype.bytes, &numel), 0)) return bad_shape(shape);
  Storage* s = priv(of).storage;
  Block* b = block_new(kViewBlock, dtype, s->device, int32_t(shape.size()), 0);
  if (!b) return no_tensor_memory();
  s->refs.fetch_add(1, std::memory_order_relaxed);
  bool dense = true;
  uint64_t step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    b->t.dl.shape[i] = shape[i];
    b->t.dl.strides[i] = strides[i];
    dense &= shape[i] == 1 || uint64_t(strides[i]) == step;
    step *= uint64_t(shape[i]);
  }
  finish_tensor(b, s, numel, data, dense || numel == 0);
  b->t.keys = of->keys & ~(1ull << 33);  // the tape's key is given by the tape
  *out = &b->t;
  return nullptr;
}

namespace {

// Shape, and strides if there are any; no memory.
[[gnu::cold]] aj_status* without_strides(Device* d, const DType& dtype, const DLTensor& like,
                                         WrapStorage* s, int64_t numel, aj_tensor** out) {
  Block* b = block_new(kViewBlock, dtype, d, like.ndim, 0);
  if (!b) return no_tensor_memory();
  s->refs.fetch_add(1, std::memory_order_relaxed);
  finish_tensor(b, s, numel, nullptr, false);
  b->t.obj.flags &= ~uint32_t(AJ_TENSOR_STRIDED);
  if (numel < 0) b->t.obj.flags |= AJ_TENSOR_RAGGED;
  std::copy_n(like.shape, like.ndim, b->t.dl.shape);
  if (like.strides) {
    std::copy_n(like.strides, like.ndim, b->t.dl.strides);
    b->t.dl.byte_offset = like.byte_offset;
  } else {
    b->t.dl.strides = nullptr;
  }
  *out = &b->t;
  return nullptr;
}

}  // namespace

aj_status* tensor_wrapped(Device* d, const DLTensor* like, WrapStorage* s, uint64_t key,
                          aj_tensor** out) {
  storage_init(s, d,
               uint16_t(kStorageForeign | kStorageWrap | (tls.inference ? kStorageInference : 0)));
  const DType* dtype = find_dtype(like->dtype);
  if (!dtype) return fail(AJ_WRONG_TYPE, "tensor_wrap: unknown dtype ", like->dtype);
  int64_t known[kMaxDims], numel;
  if (like->ndim < 0 || like->ndim > kMaxDims)
    return fail(AJ_INVALID_ARGUMENT, "tensor_wrap: ", like->ndim, " dimensions; at most ", kMaxDims,
                " are possible");
  std::span<const int64_t> shape{like->shape, size_t(like->ndim)};
  bool ragged = std::ranges::find(shape, -1) != shape.end();
  std::ranges::replace_copy(shape, known, -1, 1);
  if (!count({known, shape.size()}, dtype->bytes, &numel)) return bad_shape(shape);
  AJ_TRY(without_strides(d, *dtype, *like, s, ragged ? -1 : numel, out));
  (*out)->keys |= key | kWrapKey;
  return nullptr;
}

aj_status* tensor_same(aj_tensor* t, aj_tensor** out) {
  if (is_strided(t)) return tensor_alias(t, dt(priv(t).dtype), shape(t), strides(t), place(t), out);
  AJ_TRY(without_strides(device(t), dt(priv(t).dtype), t->dl,
                         static_cast<WrapStorage*>(priv(t).storage), priv(t).numel, out));
  (*out)->keys = t->keys & ~kAutogradKey;
  return nullptr;
}

void view_attach(aj_tensor* v, aj_tensor* of, uint8_t view_kind) {
  aj_tensor* root = priv(of).base ? priv(of).base : of;
  retain(root);
  TensorPriv& p = priv(v);
  p.base = root;
  p.rebase = priv(root).rebase;
  uint8_t inherited = priv(of).view_kind;  // a view of an odd view stays odd
  p.view_kind = view_kind == kView && inherited > kView ? inherited : view_kind;
  p.flags |= priv(of).flags & kUncounted;
  v->obj.flags |= AJ_TENSOR_VIEW;
}

namespace {

// Do so many bytes hold all elements of a tensor of others?
bool fits(const DLTensor& t, uint64_t numel, uint32_t size, uint64_t bytes) {
  if (t.byte_offset > bytes) return false;
  uint64_t room = (bytes - t.byte_offset) / size;
  if (!t.strides || numel == 0) return numel <= room;
  uint64_t last = 0;
  for (int i = 0; i < t.ndim; i++) {
    uint64_t reach;
    if (t.strides[i] < 0 ||
        __builtin_mul_overflow(uint64_t(t.shape[i] - 1), uint64_t(t.strides[i]), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return false;
  }
  return last < room;
}

}  // namespace

aj_status* tensor_foreign(Device* d, const DLTensor* like, uint64_t bytes, uint64_t flags,
                          void* ctx, void (*drop)(void*), aj_tensor** out) {
  const DType* dtype = find_dtype(like->dtype);
  if (!dtype) return fail(AJ_WRONG_TYPE, "tensor_from_memory: unknown dtype ", like->dtype);
  std::span<const int64_t> shape{like->shape, size_t(like->ndim)};
  int64_t numel;
  if (like->ndim < 0 || !count(shape, dtype->bytes, &numel)) {
    aj_status* bad = bad_shape(shape);
    if (bad->code == AJ_OUT_OF_MEMORY)
      bad->code = AJ_OUT_OF_RANGE;  // nothing is asked of the system
    return bad;
  }
  if (!fits(*like, uint64_t(numel), dtype->bytes, bytes))
    return fail(AJ_OUT_OF_RANGE, "tensor_from_memory: shape ", shape, " of ", like->dtype,
                " with its strides and byte_offset ", like->byte_offset, " reaches outside the ",
                bytes, " bytes");
  Block* b = block_new(kViewBlock, *dtype, d, like->ndim, 0);
  auto* s = b ? new (std::nothrow) ForeignStorage : nullptr;
  if (!s) {
    if (b) side_dims_free(b), block_free(b);
    return no_tensor_memory();
  }
  storage_init(s, d,
               uint16_t(kStorageForeign | (flags & AJ_TENSOR_READ_ONLY ? kStorageReadOnly : 0)));
  s->data = static_cast<char*>(like->data);
  s->bytes = bytes;
  s->ctx = ctx;
  s->drop = drop;
  s->pin = Pin(Holder::memory, drop);
  std::copy(shape.begin(), shape.end(), b->t.dl.shape);
  if (like->strides) {
    std::copy_n(like->strides, like->ndim, b->t.dl.strides);
  } else {
    c_strides(shape, b->t.dl.strides);
  }
  finish_tensor(b, s, numel, static_cast<char*>(like->data) + like->byte_offset,
                dense_strides(shape, {b->t.dl.strides, shape.size()}));
  *out = &b->t;
  return nullptr;
}

void storage_destroy(Storage* s) {
  storage_bytes_free(s);
  if (s->flags & kStorageInBlock) {
    block_free(reinterpret_cast<Block*>(reinterpret_cast<char*>(s) - offsetof(Block, own)));
  } else if (s->flags & kStorageWrap) {
    delete static_cast<WrapStorage*>(s);
  } else if (s->flags & kStorageForeign) {
    delete static_cast<ForeignStorage*>(s);
  }
}

void tensor_destroy(aj_tensor* t) {
  AJ_MARK(after);
  TensorPriv& p = priv(t);
  auto* b = reinterpret_cast<Block*>(&p);
  if (__builtin_expect((p.flags & kFrontendOwned) != 0, 0))
    frontend_drop(p.frontend_id, p.frontend);
  if (p.node) node_release(p.node);
  if (__builtin_expect(p.meta != nullptr, 0)) meta_destroy(p.meta);
  if (p.base) release(p.base);
  if (__builtin_expect((p.flags & kSideDims) != 0, 0)) std::free(t->dl.shape);
  Storage* s = p.storage;
  if (__builtin_expect((p.flags & kOwnStorage) != 0, 1)) {
    if (__builtin_expect(s != &b->own, 0)) storage_release(s);
    if (drop_ref(b->own.refs)) {  // the block goes, now or with its last view
      if (b->own.flags & kStorageDataInBlock) {
        contents_changed(b->own);
        block_free(b);
      } else {
        storage_destroy(&b->own);
      }
    }
  } else {
    storage_release(s);
    block_free(b);
  }
  AJ_MARK(release);
}

aj_status* tensor_set_dims(aj_tensor* t, std::span<const int64_t> shape,
                           std::span<const int64_t> strides) {
  TensorPriv& p = priv(t);
  int64_t numel;
  if (!count(shape, dt(p.dtype).bytes, &numel)) return bad_shape(shape);
  auto* b = reinterpret_cast<Block*>(&p);
  int64_t copy[2 * kMaxDims];  // the caller's spans may be our own arrays
  std::copy(shape.begin(), shape.end(), copy);
  std::copy(strides.begin(), strides.end(), copy + kMaxDims);
  size_t n = shape.size();
  int64_t* home = b->dims;
  if (n > size_t(kInlineDims)) {
    home = static_cast<int64_t*>(std::malloc(n * 2 * sizeof(int64_t)));
    if (!home) return no_tensor_memory();
  }
  side_dims_free(b);
  p.flags = uint16_t(n > size_t(kInlineDims) ? p.flags | kSideDims : p.flags & ~kSideDims);
  std::copy_n(copy, n, home);
  std::copy_n(copy + kMaxDims, n, home + n);
  t->dl.ndim = int32_t(n);
  t->dl.shape = home;
  t->dl.strides = home + n;
  p.numel = numel;
  bool dense = dense_strides({home, n}, {home + n, n});
  t->obj.flags &= ~uint32_t(AJ_TENSOR_DENSE | AJ_TENSOR_FREE_ORDER);
  if (dense) t->obj.flags |= AJ_TENSOR_DENSE;
  return nullptr;
}

void tensor_set_storage(aj_tensor* t, Storage* s, void* data) {
  TensorPriv& p = priv(t);
  auto* b = reinterpret_cast<Block*>(&p);
  Storage* old = p.storage;
  if (s != &b->own) s->refs.fetch_add(1, std::memory_order_relaxed);
  p.storage = s;
  set_place(t, s, data);
  t->dl.device = s->device->id;
  t->keys = (t->keys & ~kBackendKeys) | s->device->key();
  if (old == s) {
    if (s != &b->own) storage_release(s);
    return;
  }
  if ((p.flags & kOwnStorage) && old == &b->own) {
    // The block's reference on it stays to the tensor's end; its bytes may go now if nobody else
    // looks at them.
    if (old->refs.load(std::memory_order_acquire) == 1) {
      storage_bytes_free(old);
      old->flags |= kStorageMeta;
      old->data = nullptr;
    }
    return;
  }
  storage_release(old);
}

void* frontend_word(const aj_tensor* t, int32_t id) {
  return priv(t).frontend_id == id ? priv(t).frontend : nullptr;
}

// The word serves one language per tensor: a second one is not remembered.
void set_frontend_word(aj_tensor* t, int32_t id, void* word, int32_t owned) {
  TensorPriv& p = priv(t);
  if (p.frontend && p.frontend_id != id) return;
  p.frontend = word;
  p.frontend_id = word ? uint16_t(id) : 0;
  p.flags = uint16_t(owned && word ? p.flags | kFrontendOwned : p.flags & ~kFrontendOwned);
}

void frontend_dtype_changed(const aj_tensor* t) {
  const TensorPriv& p = priv(t);
  if (!p.frontend) return;
  if (auto tell = frontend_dtype_teller(p.frontend_id)) tell(p.frontend);
}

}  // namespace adjoin
