// core/call/host_copy.cpp: copy_ where a device has no kernel for it: its memory is arranged on the
// host.
#include "core/call/copy.hpp"
#include "core/op/call.hpp"
#include "core/op/registry.hpp"

namespace adjoin {
namespace {

// The bytes from a tensor's first element to its last, on the host, where a tensor of the same
// strides lies in them.
class Image {
 public:
  aj_status* take(aj_tensor* of, Device* host) {
    if (device(of) == host) return tensor_ = Ref::borrow(of), nullptr;
    of_ = of;
    const DType& type = dt(priv(of).dtype);
    int64_t before = 0, after = 0;
    for (int d = 0; d < of->dl.ndim && priv(of).numel; d++)
      (of->dl.strides[d] < 0 ? before : after) +=
          (of->dl.shape[d] - 1) * of->dl.strides[d] * type.bytes;
    first_ = bytes_of(of, before);
    size_ = priv(of).numel ? after - before + type.bytes : 0;
    AJ_TRY(tensor_new(host, dt(AJ_DT_UINT8), {&size_, 1}, bytes_.out()));
    AJ_TRY(device_synchronize(device(of)));
    if (size_) AJ_TRY(device_copy(bytes_of(bytes_.get()), first_, uint64_t(size_)));
    return tensor_alias(bytes_.get(), type, shape(of), strides(of), place(bytes_.get()) - before,
                        tensor_.out());
  }
  aj_tensor* tensor() const { return tensor_.get(); }
  aj_status* put_back() {
    if (!of_ || !size_) return nullptr;
    return device_copy(first_, bytes_of(bytes_.get()), uint64_t(size_));
  }

 private:
  aj_tensor* of_ = nullptr;
  Bytes first_{};
  int64_t size_ = 0;
  Ref bytes_, tensor_;
};

}  // namespace

bool arranges_copies(Device* d) {
  static aj_op* copy = const_cast<aj_op*>(find_op("copy_"));
  int bit = 63 - __builtin_clzll(d->key());
  return copy->table[bit].load(std::memory_order_acquire) || resolve(copy, bit);
}

aj_status* copy_by_host(aj_tensor* to, aj_tensor* from) {
  Device* host;
  AJ_TRY(default_host(&host));
  Image source, target;
  AJ_TRY(source.take(from, host));
  AJ_TRY(target.take(to, host));
  AJ_TRY(copy_into(target.tensor(), source.tensor()));
  return target.put_back();
}

}  // namespace adjoin
