// plugins/gpu/lists.cuh: a function of the elements of tensors that stand at the same place of
// several lists. One launch serves as many places as its argument holds: a network of many small
// parameters takes a few launches and not one for each.
#ifndef ADJOIN_PLUGINS_GPU_LISTS_CUH
#define ADJOIN_PLUGINS_GPU_LISTS_CUH
#include <algorithm>
#include <deque>
#include <span>

#include "pack.cuh"

namespace adjoin::gpu {

using List = std::span<aj_tensor* const>;

constexpr int64_t kListTask = 4096;  // elements that a block does at once

// N tensors of type T at each place. A task is a part of one tensor.
template <class F, class T, int N>
struct Places {
  static constexpr int kMost = (4000 - int(sizeof(F))) / int(12 + 8 * N);
  F f;
  int64_t begin;  // the first one's place in the lists
  int32_t count;
  uint32_t first[kMost + 1];  // tasks before those of a place
  int64_t n[kMost];
  T* at[kMost][N];  // NULL: absent

  AJ_HD int place_of(uint32_t task) const {
    int low = 0, high = count;  // first[low] <= task < first[high]
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (first[middle] <= task ? low : high) = middle;
    }
    return low;
  }
};

// f(i, x) for each element of the tensors at place i of the lists, x being what stands there in
// each of the N tensors, in the dtype that T computes in. The first W of them are written back.
template <class F, class T, int N, int W>
AJ_GLOBAL void lists_kernel(AJ_ARGUMENT Places<F, T, N> p) {
  constexpr int kWide = int(kPack<T>);
  for (uint32_t task = block_x(); task < p.first[p.count]; task += blocks_x()) {
    int place = p.place_of(task);
    int64_t begin = int64_t(task - p.first[place]) * kListTask;
    int64_t end = begin + kListTask < p.n[place] ? begin + kListTask : p.n[place];
    T* at[N];
    bool packs = true;
    for (int k = 0; k < N; ++k) {
      at[k] = p.at[place][k];
      packs = packs && aligned(at[k]);
    }
    for (int64_t i = begin + int64_t(thread_x()) * kWide; i < end;
         i += int64_t(threads_x()) * kWide) {
      if (packs && i + kWide <= end) {
        Pack<T> x[N];
        for (int k = 0; k < N; ++k)
          if (at[k]) x[k] = *reinterpret_cast<const Pack<T>*>(at[k] + i);
        for (int j = 0; j < kWide; ++j) {
          Math<T> now[N];
          for (int k = 0; k < N; ++k) now[k] = at[k] ? Math<T>(x[k].at[j]) : Math<T>(0);
          p.f(p.begin + place, now);
          for (int k = 0; k < W; ++k) x[k].at[j] = T(now[k]);
        }
        for (int k = 0; k < W; ++k)
          if (at[k]) *reinterpret_cast<Pack<T>*>(at[k] + i) = x[k];
        continue;
      }
      for (int64_t j = i; j < end && j < i + kWide; ++j) {
        Math<T> now[N];
        for (int k = 0; k < N; ++k) now[k] = at[k] ? Math<T>(at[k][j]) : Math<T>(0);
        p.f(p.begin + place, now);
        for (int k = 0; k < W; ++k)
          if (at[k]) at[k][j] = T(now[k]);
      }
    }
  }
}

// Fills launches and calls launch(argument) for each. f, of the place in the lists, may depend on
// the place: those that follow each other and have equal functions share a launch. A tensor that is
// not dense is copied, and written back when all are through.
template <class T, int N, int W, class F, class Launch>
void fill_lists(const aj_call* call, const List (&lists)[N], const F& of_place,
                const Launch& launch) {
  using P = Places<std::decay_t<decltype(of_place(size_t(0)))>, T, N>;
  std::deque<Plain<T>> made;
  P p = {};
  auto flush = [&](size_t next) {
    if (p.first[p.count]) launch(p);
    p.count = 0;
    p.begin = int64_t(next);
  };
  for (size_t i = 0; i < lists[0].size(); ++i) {
    T* at[N] = {};
    for (int k = 0; k < N; ++k) {
      if (lists[k].empty()) continue;
      k < W ? made.emplace_back(call, MutView(lists[k][i]), true)
            : made.emplace_back(call, TensorView(lists[k][i]));
      at[k] = made.back().data();
    }
    bool twice = false;  // is changed twice, one after the other
    for (int32_t k = 0; W > 0 && k < p.count; ++k) twice |= p.at[k][0] == at[0] && p.n[k];
    auto f = of_place(i);
    if (p.count && (p.count == P::kMost || twice || !(p.f == f))) flush(i);
    p.f = f;
    p.n[p.count] = TensorView(lists[0][i]).numel();
    std::copy_n(at, N, p.at[p.count]);
    p.first[p.count + 1] = p.first[p.count] + uint32_t((p.n[p.count] + kListTask - 1) / kListTask);
    ++p.count;
  }
  flush(0);
  for (Plain<T>& each : made) each.commit();
}

template <class T, int N, int W, class F>
void each_of_lists(const aj_call* call, const List (&lists)[N], const F& of_place) {
  fill_lists<T, N, W>(call, lists, of_place, [&]<class P>(const P& p) {
    launch_blocks<&lists_kernel<decltype(P::f), T, N, W>>(call, p.first[p.count], kThreads, p);
  });
}

// f<T>(begin, n) for the runs of a list that have one dtype.
template <class F>
void for_dtypes(List list, const F& f) {
  for (size_t begin = 0, end; begin < list.size(); begin = end) {
    DLDataType dtype = TensorView(list[begin]).dtype();
    for (end = begin; end < list.size() && same(TensorView(list[end]).dtype(), dtype);) ++end;
    visit<stored_floating>(dtype, [&]<class T>() { f.template operator()<T>(begin, end - begin); });
  }
}

}  // namespace adjoin::gpu
#endif
