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

// What has to be called before anything else of the runtime; again is no harm.
Result start();
// Where a device's calls go, as the runtime's SetCurrent takes it.
Result place_of(int32_t device, Place* out);
// What else is to be said where kernels have no machine code for a device; "" if nothing.
std::string why_no_image();

// NULL if the runtime may be called in this process; notes that it has been, for forks to come.
aj_status* ready();
bool used();  // has the runtime been started here?
void mark_used();
void poison_after_fork();

// Makes a device the thread's current one while it lives. Others in the process (a library, another
// framework) find theirs again; a thread that had none keeps device 0, which is what it had by
// default, and gets no context of another.
class On {
 public:
  explicit On(int32_t device) {
    result_ = place_of(device, &mine_);
    if (!failed()) result_ = runtime().GetCurrent(&before_);
    if (failed() || before_ == mine_) return;
    result_ = runtime().SetCurrent(mine_);
    returns_ = !failed() && (before_ != kNowhere || device != 0);
  }
  ~On() {
    if (returns_) (void)runtime().SetCurrent(before_);
  }
  On(const On&) = delete;
  On& operator=(const On&) = delete;
  bool failed() const { return result_ != kSuccess; }
  Result result() const { return result_; }

 private:
  Place mine_ = kNowhere, before_ = kNowhere;
  bool returns_ = false;
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
