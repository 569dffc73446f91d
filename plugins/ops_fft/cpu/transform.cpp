// plugins/ops_fft/cpu/transform.cpp: which lines go together, and how real ones become complex
// ones.
#include "transform.hpp"

#include <adjoin/kit/parallel.hpp>
#include <algorithm>

namespace adjoin::cpu::fft {

namespace {

// So many elements of a line may lie in each lane: beside each other in memory, or turned round.
constexpr int64_t kBeside = 4096, kTurned = 128;

template <class T>
bool in_lanes(const Plan<T>& plan, bool beside) {
  if (plan.passes.empty() && plan.n > 1) return false;
  return !plan.columns || plan.n <= (beside || plan.uneven ? kBeside : kTurned);
}

// Lines to lines, `parts` numbers an element. Those beside each other share what the cache holds,
// so all lines go on together.
template <class T>
void copy(const Lines<T>& from, const Lines<T>& to, int64_t n, int parts) {
  for (int64_t j = 0; j < n; ++j)
    for (int i = 0; i < from.count; ++i)
      for (int part = 0; part < parts; ++part)
        to.at[i][j * to.stride + part] = from.at[i][j * from.stride + part];
}

// Lines of a scratch array, one behind the other.
template <class T>
Lines<T> apart(T* all, int64_t length, int64_t stride, int count) {
  Lines<T> lines{{}, stride, count, false};
  for (int i = 0; i < count; ++i) lines.at[i] = all + i * length;
  return lines;
}
template <class T>
T* scratch(Slot slot, int64_t length, int count) {
  return static_cast<T*>(room(slot, length * count * int64_t(sizeof(T))));
}

// Complex lines, in the way that is best for so many.
template <class T>
void transform(const Plan<T>& plan, const Lines<T>& from, const Lines<T>& to, bool back, T scale) {
  const Code<T>& vectors = code<T>();
  const bool lanes = in_lanes(plan, from.beside && to.beside);
  if (lanes && (!plan.columns || 2 * from.count > vectors.lanes))
    return vectors.group(plan, from, to, back, scale);
  if (from.stride == 2 && to.stride == 2) {
    for (int i = 0; i < from.count; ++i) vectors.single(plan, from.at[i], to.at[i], back, scale);
    return;
  }
  const int64_t length = 2 * plan.n;
  const Lines<T> lines = apart(scratch<T>(kLine, length, from.count), length, 2, from.count);
  copy(from, lines, plan.n, 2);
  for (int i = 0; i < from.count; ++i) vectors.single(plan, lines.at[i], lines.at[i], back, scale);
  copy(lines, to, plan.n, 2);
}

template <class T>
void to_half(const Job<T>& job, const Plan<T>& plan, Lines<T> from, Lines<T> to) {
  const int64_t n = job.n, half = n / 2 + 1;
  const bool conj = !job.forward;
  if (plan.half && in_lanes(*plan.half, from.beside && to.beside) &&
      (!plan.half->columns || 2 * from.count > code<T>().lanes))
    return code<T>().half_group(plan, from, to, conj, job.scale);
  from.beside = to.beside = false;
  if (!plan.half) {  // an odd number: as complex numbers
    const Lines<T> lines = apart(scratch<T>(kOther, 2 * n, from.count), 2 * n, 2, from.count);
    std::fill_n(lines.at[0], 2 * n * from.count, T(0));
    copy(from, lines, n, 1);
    transform(plan, lines, lines, conj, job.scale);
    return copy(lines, to, half, 2);
  }
  Lines<T> pairs = from, spectra = to;
  if (from.stride != 1) {
    pairs = apart(scratch<T>(kOther, n, from.count), n, 1, from.count);
    copy(from, pairs, n, 1);
  }
  pairs.stride = 2;
  if (to.stride != 2) spectra = apart(scratch<T>(kLine, 2 * half, to.count), 2 * half, 2, to.count);
  transform(*plan.half, pairs, spectra, false, job.scale);
  for (int i = 0; i < to.count; ++i) code<T>().unfold(plan, spectra.at[i], conj);
  if (to.stride != 2) copy(spectra, to, half, 2);
}

template <class T>
void from_half(const Job<T>& job, const Plan<T>& plan, Lines<T> from, Lines<T> to) {
  const int64_t n = job.n, half = n / 2 + 1;
  from.beside = to.beside = false;
  const int64_t length = plan.half ? n : 2 * n;
  Lines<T> lines = apart(scratch<T>(kOther, length, from.count), length, 2, from.count);
  if (from.stride != 2) {
    const Lines<T> packed = apart(scratch<T>(kLine, 2 * half, from.count), 2 * half, 2, from.count);
    copy(from, packed, half, 2);
    from = packed;
  }
  for (int i = 0; i < from.count; ++i) {
    const T* x = from.at[i];
    T* y = lines.at[i];
    if (plan.half) {
      code<T>().fold(plan, x, y, job.forward);
      continue;
    }
    y[0] = x[0], y[1] = 0;
    for (int64_t k = 1; k < half; ++k) {
      y[2 * k] = y[2 * (n - k)] = x[2 * k];
      y[2 * k + 1] = x[2 * k + 1], y[2 * (n - k) + 1] = -x[2 * k + 1];
    }
  }
  if (!plan.half) {
    transform(plan, lines, lines, !job.forward, job.scale);
    return copy(lines, to, n, 1);
  }
  if (to.stride == 1) {
    to.stride = 2;
    return transform(*plan.half, lines, to, true, job.scale);
  }
  transform(*plan.half, lines, lines, true, job.scale);
  lines.stride = 1;
  copy(lines, to, n, 1);
}

}  // namespace

void ordered(std::vector<Dim>& dims) {
  std::erase_if(dims, [](const Dim& d) { return d.size == 1; });
  std::ranges::stable_sort(dims, [](const Dim& a, const Dim& b) {
    return std::abs(a.out) != std::abs(b.out) ? std::abs(a.out) > std::abs(b.out)
                                              : std::abs(a.in) > std::abs(b.in);
  });
  for (size_t i = dims.size(); i-- > 1;) {
    Dim &outer = dims[i - 1], inner = dims[i];
    if (outer.in != inner.size * inner.in || outer.out != inner.size * inner.out) continue;
    outer = {outer.size * inner.size, inner.in, inner.out};
    dims.erase(dims.begin() + int64_t(i));
  }
  if (dims.empty()) dims.push_back({1, 0, 0});
}

template <class T>
void run(Job<T> job) {
  ordered(job.others);
  const PlanPtr<T> plan = plan_of<T>(job.n, job.kind != Kind::complex);
  const Plan<T>& complex = plan->half ? *plan->half : *plan;
  const Dim inner = job.others.back();
  const int64_t number = job.kind == Kind::to_half ? 1 : 2;
  const bool beside = job.kind != Kind::from_half && inner.in == number && inner.out == 2;
  // Columns that are too long for lanes still go together: their elements share cache lines.
  const bool grouped = in_lanes(complex, beside) || (beside && job.n <= (1 << 16));
  const int64_t most = grouped ? code<T>().lanes : 1;
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < job.others.size(); ++i) outer *= job.others[i].size;
  const int64_t lines = outer * inner.size;
  // Columns beside each other end with their row.
  const int64_t a_row = (inner.size + most - 1) / most;
  const int64_t groups = beside ? outer * a_row : (lines + most - 1) / most;
  const bool ahead = job.cold && grouped && !beside;
  const int64_t grain = std::max<int64_t>(1, (int64_t(1) << 15) / (most * job.n));
  kit::parallel_for(groups, grain, [&](int64_t lo, int64_t hi) {
    for (; lo < hi; ++lo) {
      int64_t first = lo * most, end = std::min(lines, first + most);
      if (beside) {
        first = lo / a_row * inner.size + lo % a_row * most;
        end = std::min((lo / a_row + 1) * inner.size, first + most);
      }
      Lines<T> from{{}, job.in_stride, int(end - first), beside}, to = from;
      to.stride = job.out_stride;
      if (ahead && lo + 1 < groups) {
        from.next = most * inner.in;
        to.next = job.in == job.out ? 0 : most * inner.out;
      }
      for (int64_t line = first; line < end; ++line) {
        int64_t rest = line, in = 0, out = 0;
        for (size_t d = job.others.size(); d-- > 0;) {
          const Dim& dim = job.others[d];
          const int64_t at = d ? rest % dim.size : rest;
          rest /= dim.size;
          in += at * dim.in, out += at * dim.out;
        }
        from.at[line - first] = const_cast<T*>(job.in) + in;
        to.at[line - first] = job.out + out;
      }
      switch (job.kind) {
        case Kind::complex:
          transform(*plan, from, to, !job.forward, job.scale);
          break;
        case Kind::to_half:
          to_half(job, *plan, from, to);
          break;
        case Kind::from_half:
          from_half(job, *plan, from, to);
          break;
      }
    }
  });
}
template void run<float>(Job<float>);
template void run<double>(Job<double>);

}  // namespace adjoin::cpu::fft
