// core/tensor/tensor.hpp: what stands around the public 72 bytes of a tensor, and the memory that
// tensors share.
//
// One 64-byte-aligned block: [TensorPriv 64][aj_tensor 72][dims 80][Storage 64, not in a view][pad
// to 320][data <= 704].
#pragma once
#include <adjoin/abi/core.h>

#include <atomic>
#include <span>

#include "core/base/dtype.hpp"
#include "core/device/device.hpp"
#include "core/guest/object.hpp"
#include "core/guest/pins.hpp"
#include "core/memory/small.hpp"

namespace adjoin {

struct Node;  // core/tape/node.hpp
struct Meta;  // gradient, hooks and engine slots of a leaf: core/tape/node.hpp

enum StorageFlags : uint16_t {
  kStorageInBlock = 1,      // stands inside a tensor's block
  kStorageDataInBlock = 2,  // its bytes too
  kStorageForeign = 4,      // a ForeignStorage: memory of somebody else
  kStorageReadOnly = 8,
  kStorageMeta = 16,  // no bytes
  kStorageInference = 32,
  kStorageWrap = 64,  // a WrapStorage: a tensor without strides, see wrap.hpp
};

struct Storage {
  std::atomic<uint32_t> refs;
  uint32_t version;
  void* data;
  uint64_t bytes;  // what was asked for
  Device* device;
  void* stream;          // stream it was allocated on
  uint32_t writer_line;  // last writer of a recorded tensor: line and op, for messages
  uint16_t flags;
  uint16_t writer_op;                   // op index + 1
  std::atomic<uint64_t> contents;       // number of what is in it: core/tensor/prepared.hpp
  std::atomic<uint32_t> prepared_seen;  // which form of it was asked for last
  uint32_t spare;                       // bytes behind those: the memory's size is the sum
};
static_assert(sizeof(Storage) == 64);
constexpr uint64_t kEscaped = ~0ull;  // contents: somebody may write unseen

struct ForeignStorage : Storage {
  void* ctx;
  void (*drop)(void* ctx);
  Pin pin;
};

// The memory of a wrapper. Its aliases share it, so they share payload and version, and the values
// once they are there.
struct WrapStorage : ForeignStorage {
  uint64_t key;
  aj_object* payload;  // NULL once fulfilled
  aj_tensor* source;   // whose memory was taken over
  aj_tensor* version_of;
  int32_t level, layout;
  std::atomic<uint8_t> spin;  // held while payload and source are replaced
};

enum ViewKind : uint8_t {
  kNotView = 0,
  kView = 1,
  kViewMulti = 2,   // one result of split, unbind, chunk
  kViewNoGrad = 3,  // made with recording off
  kViewInference = 4,
  kViewChain = 5,  // dtype-changing: cannot be replayed by as_strided
};

enum TensorFlags : uint16_t {
  kOwnStorage =
      1,  // the block holds a Storage, on which this tensor keeps one reference to its end
  kFrontendOwned = 2,  // the frontend's word is to be dropped with the tensor
  kSideDims = 4,       // shape and strides are in a block of their own (more than 5 dimensions)
  kRetainsGrad = 8,
  kUncounted = 16,      // made by .data: its writes do not count
  kWrappedNumber = 32,  // a 0-dim tensor that promotes as a number
};

struct TensorPriv {
  Storage* storage;
  Node* node;  // what made it; NULL for a leaf
  Meta* meta;  // NULL unless a leaf that requires grad, or hooks
  void* frontend;
  int64_t numel;
  uint32_t out_nr;  // which result of node
  uint16_t flags;
  uint8_t dtype;  // AJ_DT_ index
  uint8_t view_kind;
  aj_tensor* base;  // root of a view (owned), else NULL
  uint32_t rebase;  // base: how often its history was rewritten; view: the count last seen
  uint16_t frontend_id;
  uint8_t small_cls;  // size class of the block
  uint8_t pad;
};
static_assert(sizeof(TensorPriv) == 64);

constexpr int kInlineDims = 5;
constexpr int kMaxDims = 64;
struct Block {
  TensorPriv priv;
  aj_tensor t;
  int64_t dims[2 * kInlineDims];
  Storage own;  // absent in a view's block
};
constexpr uint32_t kDataOffset = 320;
constexpr uint32_t kInlineBytes = kSmallMax - kDataOffset;
constexpr uint32_t kViewBlock = 256;
static_assert(offsetof(Block, t) == 64 && sizeof(Block) <= kDataOffset);
static_assert(offsetof(Block, own) == 216);

inline TensorPriv& priv(aj_tensor* t) {
  return reinterpret_cast<Block*>(reinterpret_cast<char*>(t) - 64)->priv;
}
inline const TensorPriv& priv(const aj_tensor* t) { return priv(const_cast<aj_tensor*>(t)); }
inline Storage& storage(const aj_tensor* t) { return *priv(t).storage; }
inline Device* device(const aj_tensor* t) { return priv(t).storage->device; }
// Where the first element is, to compute with. Of a device with handles it is no address: the core
// alone subtracts it from another place in the same storage, and gives it to tensor_alias.
inline char* place(const aj_tensor* t) {
  return static_cast<char*>(t->dl.data) + t->dl.byte_offset;
}
inline Bytes bytes_of(const aj_tensor* t, int64_t shift = 0) {
  if (!(device(t)->flags & AJ_DEV_OPAQUE_POINTERS)) return {device(t), place(t) + shift, 0};
  return {device(t), t->dl.data, t->dl.byte_offset + uint64_t(shift)};
}
inline std::span<const int64_t> shape(const aj_tensor* t) {
  return {t->dl.shape, size_t(t->dl.ndim)};
}
inline std::span<const int64_t> strides(const aj_tensor* t) {
  return {t->dl.strides, size_t(t->dl.ndim)};
}
inline bool requires_grad(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_REQUIRES_GRAD; }
inline bool is_dense(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_DENSE; }
inline bool order_is_free(const aj_tensor* t) { return t->obj.flags & AJ_TENSOR_FREE_ORDER; }
inline bool same_device(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

void storage_destroy(Storage* s);
// What a tensor lets go of with its history; core/tape/node.cpp has both.
void node_release(Node* n);
void meta_destroy(Meta* m);
inline void storage_release(Storage* s) {
  if (drop_ref(s->refs)) storage_destroy(s);
}

// Owns one reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(aj_tensor* steal) : t_(steal) {}
  Ref(Ref&& o) noexcept : t_(o.t_) { o.t_ = nullptr; }
  Ref& operator=(Ref&& o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Ref() { adjoin::release(t_); }
  static Ref borrow(aj_tensor* t) {
    retain(t);
    return Ref(t);
  }
  aj_tensor* get() const { return t_; }
  aj_tensor* operator->() const { return t_; }
  explicit operator bool() const { return t_; }
  aj_tensor* take() {
    aj_tensor* t = t_;
    t_ = nullptr;
    return t;
  }
  aj_tensor** out() {
    adjoin::release(t_);
    t_ = nullptr;
    return &t_;
  }

 private:
  aj_tensor* t_ = nullptr;
};

// Dense, uninitialised. Hot: one block when the data fit into it.
aj_status* tensor_new(Device* d, const DType& dtype, std::span<const int64_t> shape,
                      aj_tensor** out);
// The same of another's shape, on a host. Hot where all of it fits into one block.
aj_status* tensor_new_like(const aj_tensor* like, Device* d, const DType& dtype, aj_tensor** out);
aj_status* no_tensor_memory();
aj_status* tensor_new_strided(Device* d, const DType& dtype, std::span<const int64_t> shape,
                              std::span<const int64_t> strides, aj_tensor** out);
// Shares the memory of `of`; `data` is the place of element 0. Takes no reference on a base: see
// view_attach.
aj_status* tensor_alias(aj_tensor* of, const DType& dtype, std::span<const int64_t> shape,
                        std::span<const int64_t> strides, void* data, aj_tensor** out);
// A tensor without strides on `s`, which is retained; `like` as aj_wrap has it.
aj_status* tensor_wrapped(Device* d, const DLTensor* like, WrapStorage* s, uint64_t key,
                          aj_tensor** out);
// Another tensor that is all that t is, but for its history.
aj_status* tensor_same(aj_tensor* t, aj_tensor** out);
// Makes `v` (from tensor_alias) a view of `of`'s root, with the bookkeeping that in-place writes
// need.
void view_attach(aj_tensor* v, aj_tensor* of, uint8_t view_kind);
aj_status* tensor_foreign(Device* d, const DLTensor* like, uint64_t bytes, uint64_t flags,
                          void* ctx, void (*drop)(void*), aj_tensor** out);
// Replaces shape and strides (resize_, set_, squeeze_); recomputes numel and the dense flag.
aj_status* tensor_set_dims(aj_tensor* t, std::span<const int64_t> shape,
                           std::span<const int64_t> strides);
aj_status* resize(aj_tensor* t,
                  std::span<const int64_t> shape);  // C order; grows the memory if needed
void tensor_set_storage(aj_tensor* t, Storage* borrowed, void* data);
bool dense_strides(std::span<const int64_t> shape, std::span<const int64_t> strides);
void c_strides(std::span<const int64_t> shape, int64_t* out);
// The storage that has the memory: of a wrapper that was fulfilled that of its source.
const Storage* owner(const Storage* s);
bool at_same_addresses(const aj_tensor* a, const aj_tensor* b);
// May two tensors share bytes? Two storages may lie over one memory: a wrapper's and its source's,
// or what was taken twice from outside.
inline bool may_share(const aj_tensor* a, const aj_tensor* b) {
  const Storage &x = storage(a), &y = storage(b);
  if (&x == &y) return true;
  const auto *p = static_cast<const char*>(x.data), *q = static_cast<const char*>(y.data);
  if (__builtin_expect(p >= q + y.bytes || q >= p + x.bytes || !p || !q, 1)) return false;
  return at_same_addresses(a, b);
}
// Do two tensors share bytes? 0 no, 1 the very same elements, 2 partly.
int overlap(const aj_tensor* a, const aj_tensor* b);
bool overlaps_itself(const aj_tensor* t);
// Do all elements of such a view lie inside the memory of so many bytes?
bool inside(uint64_t bytes, const DType& t, std::span<const int64_t> shape, const int64_t* strides,
            int64_t first);
// Forms of the old contents are dropped; `next` is 0 or kEscaped, which stays.
void contents_forget(Storage& s, uint64_t next);
inline void contents_changed(Storage& s) {
  if (__builtin_expect(s.contents.load(std::memory_order_relaxed) != 0, 0)) contents_forget(s, 0);
}
// The word that one language may keep on a tensor, and what tells it of another dtype.
void* frontend_word(const aj_tensor* t, int32_t id);
void set_frontend_word(aj_tensor* t, int32_t id, void* word, int32_t owned);
void frontend_dtype_changed(const aj_tensor* t);
inline void bump_version(aj_tensor* t) {
  Storage& s = storage(t);
  if (!(priv(t).flags & kUncounted)) s.version++;
  contents_changed(s);
}

}  // namespace adjoin
