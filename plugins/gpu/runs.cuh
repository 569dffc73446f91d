// plugins/gpu/runs.cuh: elements that meet at one place are joined in one order, so bits never
// depend on scheduling: their places are put in order, and equal ones are a run. A thread joins a
// run, the columns of it side by side; of a long run parts are joined before.
#ifndef ADJOIN_PLUGINS_GPU_RUNS_CUH
#define ADJOIN_PLUGINS_GPU_RUNS_CUH
#include "merge.cuh"

namespace adjoin::gpu {

constexpr int kRunBits = 8;
constexpr int64_t kRunPart = int64_t(1) << kRunBits;

// What is joined: J has State, value(element, column), join(a, b) and put(place, column, state).
template <class J>
struct Runs {
  using State = typename J::State;
  J job;
  const int64_t *places, *order;  // of elements; order NULL: there is one
  int64_t n;
  Divisor columns;
  State* heads;  // of each part, what goes on from the part before
  AJ_DEVICE int64_t element(int64_t i) const { return order ? order[i] : i; }
  AJ_DEVICE int64_t place(int64_t i) const { return places[element(i)]; }
  // Elements of the run from i to the end of the part.
  AJ_DEVICE State joined(int64_t i, int64_t of, int64_t column) const {
    State s = job.value(element(i), column);
    for (int64_t k = i + 1; k < n && (k & (kRunPart - 1)) && place(k) == of; ++k)
      s = job.join(s, job.value(element(k), column));
    return s;
  }
};
template <class J>
struct JoinHeads {
  Runs<J> r;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t part = i, column = r.columns.split(&part), at = (part + 1) * kRunPart;
    int64_t place = r.place(at);
    if (place >= 0 && r.place(at - 1) == place) r.heads[i] = r.joined(at, place, column);
  }
};
template <class J>
struct JoinRuns {
  Runs<J> r;
  AJ_DEVICE void operator()(int64_t i) const {
    int64_t at = i, column = r.columns.split(&at), place = r.place(at);
    if (place < 0 || (at > 0 && r.place(at - 1) == place)) return;
    auto s = r.joined(at, place, column);
    int64_t part = at >> kRunBits;
    for (at = (part + 1) * kRunPart; at < r.n && r.place(at) == place; at += kRunPart, ++part)
      s = r.job.join(s, r.heads[part * r.columns.size + column]);
    r.job.put(place, column, s);
  }
};

// Element i's place is found(i), below 0: none.
template <class Find>
struct FindPlaces {
  Find find;
  int64_t* places;
  AJ_DEVICE void operator()(int64_t i) const { places[i] = find(i); }
};
template <class Find, class J>
void join_runs(const aj_call* call, const Find& find, int64_t n, int64_t columns, const J& job) {
  if (n == 0 || columns == 0) return;
  Buffer<int64_t> places(call, n), one(call, n), other(call, n);
  int64_t parts = (n - 1) / kRunPart;  // behind the first
  Buffer<typename J::State> heads(call, parts * columns);
  each(call, n, FindPlaces<Find>{find, places.data()});
  Keys<int64_t> keys = {places.data(), n, 1, false};
  const int64_t* order = order_lines(call, keys, 1, n, one.data(), other.data()).places;
  Runs<J> runs = {job, places.data(), order, n, columns, heads.data()};
  each(call, parts * columns, JoinHeads<J>{runs});
  each(call, n * columns, JoinRuns<J>{runs});
}

// Short lines, or many, are a thread's; few threads would have long ones: they go by runs.
inline bool by_lines(int64_t lines, int64_t length) { return length <= 32 || lines >= 1 << 15; }

// Elements that meet only within lines of `length` neighbours.
template <class J>
struct JoinLine {
  J job;
  int64_t length;
  AJ_DEVICE void operator()(int64_t line) const {
    for (int64_t i = line * length; i < (line + 1) * length; ++i)
      if (int64_t at = job(i); at >= 0) job.put(at, 0, job.value(i, 0));
  }
};
template <class J>
void join_all(const aj_call* call, int64_t lines, int64_t length, const J& job) {
  if (by_lines(lines, length))
    each(call, lines, JoinLine<J>{job, length});
  else
    join_runs(call, job, lines * length, 1, job);
}

}  // namespace adjoin::gpu
#endif
