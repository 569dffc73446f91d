// plugins/ops_fft/cpu/offers.cpp: our own transform as an offer, and the offers of others, which go
// first.
#include "offers.hpp"

#include <adjoin/kit/plans.hpp>
#include <adjoin/kit/plugin.hpp>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>

#include "transform.hpp"

namespace adjoin::cpu::fft {

namespace {

using kit::core;

constexpr aj_str kSlot = {"aj.fft/cpu", 10};

int32_t plan_type = -1;

bool good(const aj_fft_desc& d) {
  return d.struct_size >= sizeof d && d.rank >= 1 && d.rank <= 3 && d.dtype.code == kDLFloat &&
         (d.dtype.bits == 32 || d.dtype.bits == 64) && d.device.device_type == kDLCPU;
}

int32_t score(void*, const aj_fft_desc* d) { return good(*d) ? 1 : 0; }

aj_status* plan(void*, const aj_fft_desc* d, aj_object** out) {
  return kit::guard("aj.fft/cpu", [&] {
    if (!good(*d))
      kit::raise(AJ_INVALID_ARGUMENT, "own: 1 to 3 dimensions of float32 or float64 are served");
    void* payload = nullptr;
    kit::check(core().object_new(plan_type, out, &payload));
    std::memcpy(payload, d, sizeof *d);
  });
}

// Dimension by dimension: half spectra first or last, in `between` as long as they are wider than
// the result.
template <class T>
void run_as(const aj_fft_desc& d, const T* in, T* out) {
  const int last = d.rank - 1;
  const int parts_in = d.kind == AJ_FFT_TO_HALF ? 1 : 2;
  const int parts_out = d.kind == AJ_FFT_FROM_HALF ? 1 : 2;
  int64_t size[3], from[3], to[3], batch_from = d.batch_in * parts_in;
  int64_t batch_to = d.batch_out * parts_out;
  for (int i = 0; i < d.rank; ++i) {
    size[i] = d.sizes[i];
    from[i] = d.stride_in[i] * parts_in, to[i] = d.stride_out[i] * parts_out;
  }
  if (d.kind != AJ_FFT_COMPLEX) size[last] = d.sizes[last] / 2 + 1;
  auto along = [&](Kind kind, int axis, const T* x, T* y, double scale) {
    Job<T> job{kind, d.sizes[axis], x, y, from[axis], to[axis], {}, d.forward != 0, T(scale)};
    job.others.push_back({d.batch, batch_from, batch_to});
    for (int i = 0; i < d.rank; ++i)
      if (i != axis) job.others.push_back({size[i], from[i], to[i]});
    run(std::move(job));
  };
  std::vector<T> between;
  if (d.kind == AJ_FFT_FROM_HALF) {
    if (d.rank == 1) return along(Kind::from_half, last, in, out, d.scale);
    const int64_t result[3] = {to[0], to[1], to[2]}, batch_result = batch_to;
    batch_to = 2;
    for (int i = last; i >= 0; --i) to[i] = batch_to, batch_to *= size[i];
    between.resize(size_t(batch_to * d.batch));
    const T* x = in;
    for (int i = last; i-- > 0; x = between.data()) {
      along(Kind::complex, i, x, between.data(), 1);
      std::copy_n(to, 3, from), batch_from = batch_to;
    }
    std::copy_n(result, 3, to), batch_to = batch_result;
    return along(Kind::from_half, last, x, out, d.scale);
  }
  along(d.kind == AJ_FFT_TO_HALF ? Kind::to_half : Kind::complex, last, in, out, d.scale);
  std::copy_n(to, 3, from), batch_from = batch_to;
  for (int i = last; i-- > 0;) along(Kind::complex, i, out, out, 1);
}

aj_status* run_own(void*, aj_object* plan, const void* in, uint64_t offset_in, void* out,
                   uint64_t offset_out, void*) {
  return kit::guard("aj.fft/cpu", [&] {
    if (plan->type != plan_type) kit::raise(AJ_INVALID_ARGUMENT, "own: the plan is another one's");
    const auto& d = *static_cast<const aj_fft_desc*>(core().object_payload(plan));
    const char* x = static_cast<const char*>(in) + offset_in;
    char* y = static_cast<char*>(out) + offset_out;
    if (d.dtype.bits == 32)
      run_as(d, reinterpret_cast<const float*>(x), reinterpret_cast<float*>(y));
    else
      run_as(d, reinterpret_cast<const double*>(x), reinterpret_cast<double*>(y));
  });
}

constexpr aj_fft own = {sizeof(aj_fft), 0, {"own", 3}, nullptr, &score, &plan, &run_own};

// What others offer, in their order; only those that stand before our own.
struct Others {
  uint64_t revision = 0;
  std::vector<const aj_fft*> tables;
};

std::shared_ptr<const Others> look() {
  auto found = std::make_shared<Others>();
  found->revision = kit::services().revision();
  for (uint32_t i = 0; i < kit::services().count(kSlot); ++i) {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    kit::check(kit::services().at(kSlot, i, &def));
    if (def.table == &own) break;
    found->tables.push_back(static_cast<const aj_fft*>(def.table));
  }
  // Looking may have loaded plugins, which moves the counter once more.
  return found->revision == kit::services().revision() ? found : look();
}

std::mutex mutex;
std::shared_ptr<const Others> others;
std::atomic<uint64_t> none_at{~uint64_t(0)};  // the revision at which nobody else was there

std::shared_ptr<const Others> current() {
  std::lock_guard lock(mutex);
  if (!others || others->revision != kit::services().revision()) {
    others = look();
    if (others->tables.empty()) none_at = others->revision;
  }
  return others;
}

kit::Plans plans;

}  // namespace

void offer(kit::Registrar& plugin) {
  const aj_str name = kit::str("ops_fft::plan");
  kit::check(core().type_register(name, sizeof(aj_fft_desc), nullptr, &plan_type));
  plugin.service("aj.fft/cpu", "own", &own, 0);
}

bool has_others() {
  if (none_at.load(std::memory_order_relaxed) == kit::services().revision()) return false;
  return !current()->tables.empty();
}

bool served_by_others(const aj_fft_desc& d, const void* in, void* out) {
  const auto now = current();
  for (const aj_fft* table : now->tables) {
    if (table->score(table->self, &d) <= 0) continue;
    const kit::Plans::Held plan = plans.get(table, d, now->revision);
    kit::check(table->run(table->self, plan.get(), in, 0, out, 0, nullptr));
    return true;
  }
  return false;
}

}  // namespace adjoin::cpu::fft
