// plugins/gpu/vendor/status.hpp: what a vendor's runtime answers, as statuses; and the way every
// call into it goes. AJ_GPU_RUNTIME is the plugin's own header: CUDA's or HIP's functions under
// common names.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_STATUS_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_STATUS_HPP
#include <adjoin/kit/error.hpp>
#include <atomic>
#include AJ_GPU_RUNTIME

namespace adjoin::vendor {

// For a result that is not success. What the runtime keeps as the thread's last error is cleared.
aj_status* status_of(Result result, std::string_view doing);

// Why there is no device, as "no device, because ..."; "" where there is one. Opens no context: a
// fork may follow.
std::string missing();

// NULL if the runtime may be called in this process; notes that it has been, for forks to come.
aj_status* ready();
bool used();  // has the runtime been started here?
void mark_used();
void poison_after_fork();

// Makes a device the thread's current one while it lives. Others in the process (a library, another
// framework) find theirs again.
class On {
 public:
  explicit On(int32_t device) : device_(device) {
    result_ = runtime().GetDevice(&before_);
    if (!failed() && before_ != device_) result_ = runtime().SetDevice(device_);
  }
  ~On() {
    if (before_ >= 0 && before_ != device_) (void)runtime().SetDevice(before_);
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;
  bool failed() const { return result_ != kSuccess; }
  Result result() const { return result_; }

 private:
  int device_, before_ = -1;
  Result result_;
};

// f(runtime) on a device; what it returns as a status.
template <class F>
aj_status* on(int32_t device, std::string_view doing, F&& f) {
  if (aj_status* s = ready()) return s;
  On here(device);
  if (here.failed()) return status_of(here.result(), doing);
  Result result = f(runtime());
  return result == kSuccess ? nullptr : status_of(result, doing);
}

}  // namespace adjoin::vendor
#endif
