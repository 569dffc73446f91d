// adjoin/kit/plans.hpp: plans of Fourier transforms (abi/fft.h), kept by who asks for them: the
// last ones used.
#ifndef ADJOIN_KIT_PLANS_HPP
#define ADJOIN_KIT_PLANS_HPP
#include <adjoin/abi/fft.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

namespace adjoin {
namespace AJ_HIDDEN kit {

class Plans {
 public:
  using Held = std::shared_ptr<aj_object>;

  // revision: of the services, when the table was found; plans of another one are let go.
  Held get(const aj_fft* table, const aj_fft_desc& d, uint64_t revision) {
    {
      std::lock_guard held(lock_);
      std::erase_if(kept_, [&](const Kept& k) { return k.revision != revision; });
      for (auto at = kept_.begin(); at != kept_.end(); ++at)
        if (at->table == table && same(at->d, d)) {
          kept_.splice(kept_.begin(), kept_, at);
          return at->plan;
        }
    }
    aj_object* made = nullptr;
    check(table->plan(table->self, &d, &made));
    Held plan(made, [](aj_object* o) { core().release(o); });
    std::list<Kept> last;  // ends under no lock
    std::lock_guard held(lock_);
    kept_.push_front({d, table, revision, plan});
    if (kept_.size() > kMost) last.splice(last.begin(), kept_, std::prev(kept_.end()));
    return plan;
  }

 private:
  static constexpr size_t kMost = 64;
  struct Kept {
    aj_fft_desc d;
    const aj_fft* table;
    uint64_t revision;
    Held plan;
  };
  static bool same(const aj_fft_desc& a, const aj_fft_desc& b) {
    return a.kind == b.kind && a.dtype.bits == b.dtype.bits &&
           a.device.device_id == b.device.device_id && a.forward == b.forward && a.rank == b.rank &&
           a.batch == b.batch && a.batch_in == b.batch_in && a.batch_out == b.batch_out &&
           a.scale == b.scale && std::ranges::equal(a.sizes, b.sizes) &&
           std::ranges::equal(a.stride_in, b.stride_in) &&
           std::ranges::equal(a.stride_out, b.stride_out);
  }

  std::mutex lock_;
  std::list<Kept> kept_;  // the last used first
};

}  // namespace kit
}  // namespace adjoin
#endif
