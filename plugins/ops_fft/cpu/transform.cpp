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

template <class T>
void gather(const T* from, int64_t stride, int64_t n, int parts, T* to) {
  for (int64_t j = 0; j < n; ++j)
    for (int i = 0; i < parts; ++i) to[j * parts + i] = from[j * stride + i];
}
template <class T>
void scatter(const T* from, int64_t n, int parts, T* to, int64_t stride) {
  for (int64_t j = 0; j < n; ++j)
    for (int i = 0; i < parts; ++i) to[j * stride + i] = from[j * parts + i];
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
  T* all = static_cast<T*>(room(kLine, from.count * 2 * plan.n * int64_t(sizeof(T))));
  for (int64_t j = 0; j < plan.n; ++j)  // lines beside each other share what the cache holds
    for (int i = 0; i < from.count; ++i)
      for (int part = 0; part < 2; ++part)
        all[(i * plan.n + j) * 2 + part] = from.at[i][j * from.stride + part];
  for (int i = 0; i < from.count; ++i) {
    T* line = all + i * plan.n * 2;
    vectors.single(plan, line, line, back, scale);
  }
  for (int64_t j = 0; j < plan.n; ++j)
    for (int i = 0; i < from.count; ++i)
      for (int part = 0; part < 2; ++part)
        to.at[i][j * to.stride + part] = all[(i * plan.n + j) * 2 + part];
}

// Lines of a scratch array, one behind the other.
template <class T>
Lines<T> apart(T* all, int64_t length, int count) {
  Lines<T> lines{{}, 2, count, false};
  for (int i = 0; i < count; ++i) lines.at[i] = all + i * length;
  return lines;
}
template <class T>
T* scratch(Slot slot, int64_t length, int count) {
  return static_cast<T*>(room(slot, length * count * int64_t(sizeof(T))));
}

template <class T>
void to_half(const Job<T>& job, const Plan<T>& plan, Lines<T> from, Lines<T> to) {
  const int64_t n = job.n, half = n / 2 + 1;
  from.beside = to.beside = false;
  const bool conj = !job.forward;
  if (!plan.half) {  // an odd number: as complex numbers
    T* all = scratch<T>(kOther, 2 * n, from.count);
    Lines<T> lines = apart(all, 2 * n, from.count);
    for (int i = 0; i < from.count; ++i)
      for (int64_t j = 0; j < n; ++j)
        lines.at[i][2 * j] = from.at[i][j * from.stride], lines.at[i][2 * j + 1] = 0;
    transform(plan, lines, lines, conj, job.scale);
    for (int i = 0; i < to.count; ++i) scatter(lines.at[i], half, 2, to.at[i], to.stride);
    return;
  }
  Lines<T> pairs = from, spectra = to;
  if (from.stride != 1) {
    pairs = apart(scratch<T>(kOther, n, from.count), n, from.count);
    for (int i = 0; i < from.count; ++i) gather(from.at[i], from.stride, n, 1, pairs.at[i]);
  }
  pairs.stride = 2;
  if (to.stride != 2) spectra = apart(scratch<T>(kLine, 2 * half, to.count), 2 * half, to.count);
  transform(*plan.half, pairs, spectra, false, job.scale);
  for (int i = 0; i < to.count; ++i) {
    code<T>().unfold(plan, spectra.at[i], conj);
    if (to.stride != 2) scatter(spectra.at[i], half, 2, to.at[i], to.stride);
  }
}

template <class T>
void from_half(const Job<T>& job, const Plan<T>& plan, Lines<T> from, Lines<T> to) {
  const int64_t n = job.n, half = n / 2 + 1;
  from.beside = to.beside = false;
  const int64_t length = plan.half ? n : 2 * n;
  Lines<T> lines = apart(scratch<T>(kOther, length, from.count), length, from.count);
  T* packed = from.stride == 2 ? nullptr : scratch<T>(kLine, 2 * half, 1);
  for (int i = 0; i < from.count; ++i) {
    const T* x = from.at[i];
    if (packed) gather(x, from.stride, half, 2, packed), x = packed;
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
    for (int i = 0; i < to.count; ++i)
      for (int64_t j = 0; j < n; ++j) to.at[i][j * to.stride] = lines.at[i][2 * j];
    return;
  }
  if (to.stride == 1) {
    to.stride = 2;
    return transform(*plan.half, lines, to, true, job.scale);
  }
  transform(*plan.half, lines, lines, true, job.scale);
  for (int i = 0; i < to.count; ++i) scatter(lines.at[i], n, 1, to.at[i], to.stride);
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
  const bool beside = job.kind == Kind::complex && inner.in == 2 && inner.out == 2;
  // Columns that are too long for lanes still go together: their elements share cache lines.
  const bool grouped = in_lanes(complex, beside) || (beside && job.n <= (1 << 16));
  const int64_t most = grouped ? code<T>().lanes : 1;
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < job.others.size(); ++i) outer *= job.others[i].size;
  const int64_t lines = outer * inner.size;
  // Columns beside each other end with their row.
  const int64_t a_row = (inner.size + most - 1) / most;
  const int64_t groups = beside ? outer * a_row : (lines + most - 1) / most;
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
