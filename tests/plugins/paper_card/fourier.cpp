// tests/plugins/paper_card/fourier.cpp: of cuFFT and hipFFT what the plugins call, over plain sums.
// It refuses what the vendors forbid: sizes below 1, arrays that do not hold a side, the host's
// memory, memory that is not aligned to a complex number, no work memory, another device's stream.
// A transform from half a spectrum writes over what it has read, and reads all of it.
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "card.hpp"

using namespace paper;

namespace {

enum { kGood = 0, kNoPlan = 1, kNoType = 3, kInvalid = 4, kFailed = 6, kNotAligned = 9 };
enum { kC2C = 0x29, kR2C = 0x2a, kC2R = 0x2c, kDouble = 0x40 };

struct Side {
  long long embed[3], step, distance;
  // In elements, of element 0 of the batch's array.
  long long place(const long long* at, int rank) const {
    long long p = 0;
    for (int d = 0; d < rank; ++d) p = p * (d ? embed[d] : 1) + at[d];
    return p * step;
  }
};
struct Plan {
  int rank = 0, type = 0, device = 0;
  long long sizes[3] = {1, 1, 1}, batch = 0;
  Side in = {}, out = {};
  bool allocates = true;
  Stream* stream = nullptr;
  void* work = nullptr;
  std::vector<char> tables;  // a card's memory in truth
  bool alive = true;

  size_t work_bytes() const { return size_t(64 * batch); }
  bool is_half(bool of_in) const { return (type & 0xf) == (of_in ? kC2R & 0xf : kR2C & 0xf); }
  bool is_real(bool of_in) const { return (type & 0xf) == (of_in ? kR2C & 0xf : kC2R & 0xf); }
  long long last(bool of_in) const {
    return is_half(of_in) ? sizes[rank - 1] / 2 + 1 : sizes[rank - 1];
  }
};

// Plans stay, so that a graph that runs one of those that have ended can be told.
struct Plans {
  std::mutex lock;
  std::map<uintptr_t, std::shared_ptr<Plan>> all;
  uintptr_t next = 1;
};
Plans& plans() {
  static auto* one = new Plans;
  return *one;
}
std::shared_ptr<Plan> find(uintptr_t handle) {
  std::lock_guard held(plans().lock);
  auto it = plans().all.find(handle);
  return it == plans().all.end() || !it->second->alive ? nullptr : it->second;
}
uintptr_t make() {
  std::lock_guard held(plans().lock);
  auto plan = std::make_shared<Plan>();
  plan->device = current_device;
  ++counts.plans, ++counts.plans_alive;
  plans().all[plans().next] = plan;
  return plans().next++;
}
int end(uintptr_t handle) {
  auto plan = find(handle);
  if (!plan) return kNoPlan;
  wait_for_all(plan->device);
  plan->alive = false;
  --counts.plans_alive;
  return kGood;
}

int describe(uintptr_t handle, int rank, const long long* n, const long long* in, long long step_in,
             long long apart_in, const long long* out, long long step_out, long long apart_out,
             int type, long long batch, size_t* bytes) {
  auto plan = find(handle);
  if (!plan) return kNoPlan;
  const int kind = type & ~kDouble;
  if (kind != kC2C && kind != kR2C && kind != kC2R) return kNoType;
  if (rank < 1 || rank > 3 || batch < 1 || step_in < 1 || step_out < 1 || apart_in < 1 ||
      apart_out < 1 || plan->allocates)
    return kInvalid;
  plan->rank = rank, plan->type = type, plan->batch = batch;
  plan->in.step = step_in, plan->in.distance = apart_in;
  plan->out.step = step_out, plan->out.distance = apart_out;
  for (int d = 0; d < rank; ++d) {
    plan->sizes[d] = n[d];
    plan->in.embed[d] = in[d], plan->out.embed[d] = out[d];
    if (n[d] < 1) return kInvalid;
  }
  for (int d = 1; d < rank; ++d)
    if (in[d] < (d + 1 < rank ? n[d] : plan->last(true)) ||
        out[d] < (d + 1 < rank ? n[d] : plan->last(false)))
      return kInvalid;
  *bytes = plan->work_bytes();
  return kGood;
}

template <class F>
void each_place(const Plan& p, long long last, F f) {
  long long at[3] = {};
  const long long rows = p.rank > 1 ? p.sizes[0] : 1, middle = p.rank > 2 ? p.sizes[1] : 1;
  for (long long i = 0; i < rows; ++i)
    for (long long j = 0; j < middle; ++j)
      for (long long k = 0; k < last; ++k) {
        if (p.rank > 2) at[0] = i, at[1] = j;
        if (p.rank == 2) at[0] = i;
        at[p.rank - 1] = k;
        f(at);
      }
}

template <class T>
struct Sums {
  using C = std::complex<T>;
  using Wide = std::complex<double>;

  static std::vector<Wide> roots(long long n, int sign) {
    std::vector<Wide> w(static_cast<size_t>(n));
    for (long long k = 0; k < n; ++k)
      w[size_t(k)] = std::polar(1.0, sign * 2 * std::numbers::pi * double(k) / double(n));
    return w;
  }
  // All of an array's numbers, row by row, along one dimension after the other.
  static void along(std::vector<Wide>& x, const Plan& p, int sign) {
    long long inner = 1;
    for (int d = p.rank - 1; d >= 0; --d) {
      const long long n = p.sizes[d];
      const auto w = roots(n, sign);
      std::vector<Wide> y(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const long long k = long(i) / inner % n, first = long(i) - k * inner;
        Wide sum = 0;
        for (long long j = 0; j < n; ++j)
          sum += x[size_t(first + j * inner)] * w[size_t(j * k % n)];
        y[i] = sum;
      }
      x = std::move(y), inner *= n;
    }
  }
  static void run(const Plan& p, void* from, void* to, int sign) {
    for (long long b = 0; b < p.batch; ++b) {
      std::vector<Wide> x;
      const long long n = p.sizes[p.rank - 1];
      auto read = [&](const long long* at) {
        return static_cast<C*>(from)[b * p.in.distance + p.in.place(at, p.rank)];
      };
      each_place(p, n, [&](const long long* at) {
        if (p.is_real(true)) {
          x.push_back(static_cast<T*>(from)[b * p.in.distance + p.in.place(at, p.rank)]);
        } else if (p.is_half(true) && at[p.rank - 1] > n / 2) {
          long long other[3];
          for (int d = 0; d < p.rank; ++d) other[d] = (p.sizes[d] - at[d]) % p.sizes[d];
          x.push_back(std::conj(Wide(read(other))));
        } else {
          x.push_back(Wide(read(at)));
        }
      });
      along(x, p, sign);
      if (p.is_half(true))
        each_place(p, p.last(true), [&](const long long* at) {
          static_cast<C*>(from)[b * p.in.distance + p.in.place(at, p.rank)] = C(77, 77);
        });
      size_t i = 0;
      each_place(p, n, [&](const long long* at) {
        const Wide value = x[i++];
        const long long place = b * p.out.distance + p.out.place(at, p.rank);
        if (at[p.rank - 1] >= p.last(false)) return;
        if (p.is_real(false))  // what is not real of it is an error of who asked
          static_cast<T*>(to)[place] = T(value.real() + value.imag());
        else
          static_cast<C*>(to)[place] = C(value);
      });
    }
  }
};

// Of the last element that a side touches.
size_t reach(const Plan& p, bool of_in) {
  const Side& side = of_in ? p.in : p.out;
  long long at[3];
  for (int d = 0; d < p.rank; ++d) at[d] = p.sizes[d] - 1;
  at[p.rank - 1] = p.last(of_in) - 1;
  const size_t real = p.type & kDouble ? 8 : 4;
  return size_t(side.place(at, p.rank) + (p.batch - 1) * side.distance + 1) *
         (p.is_real(of_in) ? real : 2 * real);
}

int run(uintptr_t handle, int type, void* in, void* out, int sign) {
  auto p = find(handle);
  if (!p || p->type != type) return kNoPlan;
  const size_t complex = type & kDouble ? 16 : 8;
  for (const void* side : {in, out})
    if (reinterpret_cast<uintptr_t>(side) % complex) return kNotAligned;
  if (sign != 1 && sign != -1) return kInvalid;
  if (!is_known(in) || !is_known(out) || check_range(in, reach(*p, true)) ||
      check_range(out, reach(*p, false)) || !p->work || check_range(p->work, p->work_bytes()))
    return kInvalid;
  ++counts.transforms;
  const Plan now = *p;
  int result = submit(now.stream, [=] {
    if (!p->alive) return lose_device(kIllegalAddress, now.device);  // its tables are gone
    if (idle_now) return;
    std::memset(now.work, 0x5a, now.work_bytes());
    if (type & kDouble)
      Sums<double>::run(now, in, out, sign);
    else
      Sums<float>::run(now, in, out, sign);
  });
  return result ? int(kFailed) : int(kGood);
}

int allocate_itself(uintptr_t handle, int on) {
  auto p = find(handle);
  return p ? p->allocates = on != 0, kGood : int(kNoPlan);
}
int go_to(uintptr_t handle, Stream* stream) {
  auto p = find(handle);
  return p ? p->stream = stream, kGood : int(kNoPlan);
}
int work_in(uintptr_t handle, void* work) {
  auto p = find(handle);
  if (!p) return kNoPlan;
  if (!is_known(work)) return kInvalid;
  return p->work = work, kGood;
}

}  // namespace

// A plan is a number to one vendor, an address to the other.
#define FOURIER_(P, H)                                                                            \
  int P##GetVersion(int* out) { return *out = 12004, kGood; }                                     \
  int P##Create(H* out) { return *out = (H)(make()), kGood; }                                     \
  int P##Destroy(H h) { return end(uintptr_t(h)); }                                               \
  int P##SetAutoAllocation(H h, int on) { return allocate_itself(uintptr_t(h), on); }             \
  int P##MakePlanMany64(H h, int rank, long long* n, long long* in, long long step_in,            \
                        long long apart_in, long long* out, long long step_out,                   \
                        long long apart_out, int type, long long batch, size_t* bytes) {          \
    return describe(uintptr_t(h), rank, n, in, step_in, apart_in, out, step_out, apart_out, type, \
                    batch, bytes);                                                                \
  }                                                                                               \
  int P##SetStream(H h, Stream* s) { return go_to(uintptr_t(h), s); }                             \
  int P##SetWorkArea(H h, void* work) { return work_in(uintptr_t(h), work); }                     \
  int P##ExecC2C(H h, void* in, void* out, int sign) {                                            \
    return run(uintptr_t(h), kC2C, in, out, sign);                                                \
  }                                                                                               \
  int P##ExecZ2Z(H h, void* in, void* out, int sign) {                                            \
    return run(uintptr_t(h), kC2C + kDouble, in, out, sign);                                      \
  }                                                                                               \
  int P##ExecR2C(H h, void* in, void* out) { return run(uintptr_t(h), kR2C, in, out, -1); }       \
  int P##ExecD2Z(H h, void* in, void* out) {                                                      \
    return run(uintptr_t(h), kR2C + kDouble, in, out, -1);                                        \
  }                                                                                               \
  int P##ExecC2R(H h, void* in, void* out) { return run(uintptr_t(h), kC2R, in, out, 1); }        \
  int P##ExecZ2D(H h, void* in, void* out) { return run(uintptr_t(h), kC2R + kDouble, in, out, 1); }

using Address = void*;

extern "C" {
FOURIER_(cufft, int)
FOURIER_(hipfft, Address)
}
