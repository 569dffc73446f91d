// frontends/cli/conform/comm_cases.cpp: small whole numbers, which every dtype holds, and plain
// loops.
#include <adjoin/kit/dtype.hpp>
#include <algorithm>
#include <cmath>

#include "comm.hpp"

namespace adjoin::cli::conform {
namespace {

constexpr const char* kKinds[] = {"barrier",     "broadcast", "all_reduce",     "reduce",
                                  "all_gather",  "gather",    "reduce_scatter", "scatter",
                                  "all_to_all",  "send",      "recv",           "all_gather_v",
                                  "all_to_all_v"};
constexpr const char* kOps[] = {"sum",  "avg", "product", "min",       "max",
                                "band", "bor", "bxor",    "premul_sum"};
constexpr uint64_t kSizes[] = {0, 1, 7, 1000, 150'001};
constexpr uint64_t kLarge = 1000;  // beyond it one dtype is tried

using Dtypes = kit::stored;

bool reduces(int32_t kind) {
  return kind == AJ_COLL_ALL_REDUCE || kind == AJ_COLL_REDUCE || kind == AJ_COLL_REDUCE_SCATTER;
}
bool has_root(int32_t kind) {
  return kind == AJ_COLL_BROADCAST || kind == AJ_COLL_REDUCE || kind == AJ_COLL_GATHER ||
         kind == AJ_COLL_SCATTER;
}

std::vector<DLDataType> dtypes_in(uint64_t mask) {
  std::vector<DLDataType> found;
  [&]<class... T>(kit::Types<T...>) {
    ((mask >> kit::DTypeOf<T>::index & 1 ? found.push_back(kit::dtype_of<T>) : void()), ...);
  }(Dtypes{});
  return found;
}

Number combined(int32_t op, Number a, Number b) {
  const double x = a.real(), y = b.real();
  switch (op) {
    case AJ_RED_PROD:
      return a * b;
    case AJ_RED_MIN:
      return std::min(x, y);
    case AJ_RED_MAX:
      return std::max(x, y);
    case AJ_RED_BAND:
      return double(int(x) & int(y));
    case AJ_RED_BOR:
      return double(int(x) | int(y));
    case AJ_RED_BXOR:
      return double(int(x) ^ int(y));
    default:
      return a + b;
  }
}

constexpr double kFactor = 0.5;  // of the premultiplied sum; exact in every dtype that has halves

}  // namespace

Number CollectiveCase::given(int rank, size_t i) const {
  const double value = double(((size_t(rank) + 1) * (i % 7 + 1) + id) % 3 + 1);
  if (dtype.code == kDLBool) return double(int(value) & 1);
  return dtype.code == kDLComplex ? Number(value, 1) : Number(value);
}

std::vector<uint64_t> CollectiveCase::in_counts(int rank, int n) const {
  std::vector<uint64_t> counts;
  for (int to = 0; kind == AJ_COLL_ALL_TO_ALL_V && to < n; to++)
    counts.push_back(count ? count * uint64_t((rank + 2 * to) % 3) + uint64_t(to) : 0);
  return counts;
}

std::vector<uint64_t> CollectiveCase::out_counts(int rank, int n) const {
  std::vector<uint64_t> counts;
  for (int from = 0; from < n; from++) {
    if (kind == AJ_COLL_ALL_GATHER_V) counts.push_back(count ? count + uint64_t(from) : 0);
    if (kind == AJ_COLL_ALL_TO_ALL_V) counts.push_back(in_counts(from, n)[size_t(rank)]);
  }
  return counts;
}

size_t CollectiveCase::in_size(int rank, int n) const {
  switch (kind) {
    case AJ_COLL_BARRIER:
      return 0;
    case AJ_COLL_BROADCAST:
      return rank == root ? count : 0;
    case AJ_COLL_SCATTER:
      return rank == root ? count * size_t(n) : 0;
    case AJ_COLL_REDUCE_SCATTER:
    case AJ_COLL_ALL_TO_ALL:
      return count * size_t(n);
    case AJ_COLL_ALL_GATHER_V:
      return out_counts(rank, n)[size_t(rank)];
    case AJ_COLL_ALL_TO_ALL_V: {
      size_t all = 0;
      for (uint64_t c : in_counts(rank, n)) all += c;
      return all;
    }
    default:
      return count;
  }
}

size_t CollectiveCase::out_size(int rank, int n) const {
  switch (kind) {
    case AJ_COLL_BARRIER:
      return 0;
    case AJ_COLL_REDUCE:
      return rank == root ? count : 0;
    case AJ_COLL_GATHER:
      return rank == root ? count * size_t(n) : 0;
    case AJ_COLL_ALL_GATHER:
    case AJ_COLL_ALL_TO_ALL:
      return count * size_t(n);
    case AJ_COLL_ALL_GATHER_V:
    case AJ_COLL_ALL_TO_ALL_V: {
      size_t all = 0;
      for (uint64_t c : out_counts(rank, n)) all += c;
      return all;
    }
    default:
      return count;
  }
}

std::vector<Number> CollectiveCase::wanted(int rank, int n) const {
  std::vector<Number> out(out_size(rank, n));
  for (size_t i = 0; i < out.size(); i++) {
    if (reduces(kind)) {
      const size_t at = kind == AJ_COLL_REDUCE_SCATTER ? size_t(rank) * count + i : i;
      const double factor = op == AJ_RED_PREMUL ? kFactor : 1;
      out[i] = given(0, at) * factor;
      for (int r = 1; r < n; r++) out[i] = combined(op, out[i], given(r, at) * factor);
      if (op == AJ_RED_AVG) out[i] /= n;
      const bool whole = dtype.code == kDLInt || dtype.code == kDLUInt;
      if (whole) out[i] = std::trunc(out[i].real() + 1e-9);
      if (dtype.code == kDLBool) out[i] = out[i].real() != 0;
    } else if (kind == AJ_COLL_BROADCAST) {
      out[i] = given(root, i);
    } else if (kind == AJ_COLL_SCATTER) {
      out[i] = given(root, size_t(rank) * count + i);
    } else if (kind == AJ_COLL_ALL_GATHER || kind == AJ_COLL_GATHER) {
      out[i] = given(int(i / count), i % count);
    } else if (kind == AJ_COLL_ALL_TO_ALL) {
      out[i] = given(int(i / count), size_t(rank) * count + i % count);
    }
  }
  if (kind != AJ_COLL_ALL_GATHER_V && kind != AJ_COLL_ALL_TO_ALL_V) return out;
  size_t at = 0;
  for (int from = 0; from < n; from++) {
    size_t first = 0;
    for (int to = 0; kind == AJ_COLL_ALL_TO_ALL_V && to < rank; to++)
      first += in_counts(from, n)[size_t(to)];
    for (size_t i = 0; i < out_counts(rank, n)[size_t(from)]; i++)
      out[at++] = given(from, first + i);
  }
  return out;
}

std::string CollectiveCase::name(int n) const {
  return kit::text(kKinds[kind], reduces(kind) ? kit::text(" ", kOps[op]) : "", " ", dtype, "[",
                   count, "]", has_root(kind) ? kit::text(" root ", root) : "",
                   in_place ? " in place" : "", " of ", n);
}

bool CollectiveCase::same(Number got, Number want) const {
  const double near = !reduces(kind)                                                      ? 0
                      : dtype.bits == 16 && dtype.code != kDLInt && dtype.code != kDLUInt ? 1e-2
                      : dtype.code == kDLFloat || dtype.code == kDLComplex                ? 1e-6
                                                                                          : 0;
  return std::abs(got - want) <= near * std::max(1.0, std::abs(want));
}

std::vector<CollectiveCase> collective_cases(const aj_comm_caps& caps, int n) {
  std::vector<CollectiveCase> all;
  auto add = [&](int32_t kind, int32_t op, DLDataType dtype, uint64_t count, int root, bool place) {
    all.push_back({kind, op, dtype, count, root, place, uint32_t(all.size() + 1)});
  };
  auto has = [&](int32_t kind) { return caps.kinds >> kind & 1; };
  for (int32_t op = AJ_RED_SUM; op <= AJ_RED_PREMUL; op++)
    for (DLDataType dtype : dtypes_in(caps.dtypes[op])) {
      const bool real =
          dtype.code == kDLFloat || dtype.code == kDLBfloat || dtype.code == kDLComplex;
      if ((op == AJ_RED_PREMUL && !real) || (op == AJ_RED_AVG && dtype.code == kDLBool)) continue;
      if (has(AJ_COLL_ALL_REDUCE)) add(AJ_COLL_ALL_REDUCE, op, dtype, 5, -1, all.size() % 2);
    }
  const std::vector<DLDataType> sums = dtypes_in(caps.dtypes[AJ_RED_SUM]);
  const DLDataType moved[] = {kit::dtype_of<float>, kit::dtype_of<uint8_t>,
                              kit::dtype_of<kit::Complex128>};
  for (int32_t kind = AJ_COLL_BARRIER; kind <= AJ_COLL_ALL_TO_ALL_V; kind++) {
    if (!has(kind) || kind == AJ_COLL_SEND || kind == AJ_COLL_RECV) continue;
    for (uint64_t count : kSizes)
      for (size_t d = 0; d < (count > kLarge ? 1 : std::size(moved)); d++) {
        DLDataType dtype = moved[d];
        if (reduces(kind) && sums.empty()) continue;
        if (reduces(kind) && !(caps.dtypes[AJ_RED_SUM] >> (d == 1 ? AJ_DT_UINT8
                                                           : d    ? AJ_DT_COMPLEX128
                                                                  : AJ_DT_FLOAT32) &
                               1))
          dtype = sums[0];
        const bool in_place = (kind <= AJ_COLL_REDUCE && kind != AJ_COLL_BARRIER) && d == 0;
        const int roots = has_root(kind) && count == 7 ? n : 1;
        for (int r = 0; r < roots; r++)
          add(kind, AJ_RED_SUM, dtype, count,
              has_root(kind) ? (roots > 1 ? r : int(count % uint64_t(n))) : -1, in_place);
      }
  }
  return all;
}

void write_number(DLDataType dtype, void* at, size_t i, Number value) {
  kit::visit<Dtypes>(dtype, [&]<class T>() {
    T* p = static_cast<T*>(at) + i;
    if constexpr (kit::is_complex<T>)
      *p = T(kit::Real<T>(value.real()), kit::Real<T>(value.imag()));
    else if constexpr (kit::is_half<T>)
      *p = T(float(value.real()));
    else
      *p = T(value.real());
  });
}

Number read_number(DLDataType dtype, const void* at, size_t i) {
  return kit::visit<Dtypes>(dtype, [&]<class T>() -> Number {
    const T v = static_cast<const T*>(at)[i];
    if constexpr (kit::is_complex<T>)
      return {double(v.re), double(v.im)};
    else if constexpr (kit::is_half<T>)
      return double(float(v));
    else
      return double(v);
  });
}

}  // namespace adjoin::cli::conform
