// plugins/vector/rows.cpp: the walk over a plan for vector loops.
#include "rows.hpp"

#include <algorithm>

#include "convert_rows.hpp"

namespace adjoin::cpu {
namespace {

constexpr int64_t kColumns = 256, kLines = 16;  // of a tile
alignas(64) const char kZeros[kColumns * 8] = {};

// What a loop wants as a row and the plan has as one value: written out in a buffer, which the loop
// reads block after block. `mask`: those inputs.
struct Spread {
  Loop loop;
  RowFn plain;  // else
  const void* functor;
  uint32_t inputs;
  unsigned mask;
  int64_t out, in[3];  // bytes of an element; of inputs that the loop takes as one value 0

  static constexpr int64_t kBytes = 8192;
  void run(char* to, const void* const* from, int64_t n, bool stream) const {
    alignas(64) char buffer[3][kBytes];
    const void* at[3];
    int64_t most = kBytes / 16;
    for (uint32_t k = 0; k < inputs; ++k) {
      at[k] = from[k];
      if (!(mask >> k & 1)) continue;
      fill(buffer[k], from[k], in[k], std::min(n, most));
      at[k] = buffer[k];
    }
    for (int64_t lo = 0; lo < n; lo += most) {
      const int64_t m = std::min(most, n - lo);
      for (uint32_t k = 0; k < inputs; ++k)
        if (!(mask >> k & 1)) at[k] = static_cast<const char*>(from[k]) + lo * in[k];
      if (loop)
        loop(functor, to + lo * out, at, m, stream);
      else
        plain(functor, to + lo * out, at, m);
    }
  }

 private:
  static void fill(char* to, const void* value, int64_t size, int64_t n) {
    auto with = [&]<class T>(T) {
      std::fill_n(reinterpret_cast<T*>(to), n, *static_cast<const T*>(value));
    };
    switch (size) {
      case 1:
        return with(uint8_t());
      case 2:
        return with(uint16_t());
      case 4:
        return with(uint32_t());
      case 8:
        return with(uint64_t());
      default:
        return with(Bytes16());
    }
  }
};
void spread_loop(const void* spread, void* out, const void* const* in, int64_t n, bool stream) {
  static_cast<const Spread*>(spread)->run(static_cast<char*>(out), in, n, stream);
}
void spread_row(const void* spread, void* out, const void* const* in, int64_t n) {
  spread_loop(spread, out, in, n, false);
}
// Of the inputs in `wanted` as many as a loop has as one value.
template <class Fn>
unsigned served(const Fn (&by_mask)[8], unsigned wanted) {
  for (unsigned mask : {wanted, wanted & 6, wanted & 4, wanted & 2})
    if (by_mask[mask]) return mask;
  return 0;
}

enum class Way { direct, one, strided, turned, absent };

// One operand of the walk.
struct Port {
  Way way;
  bool convert;        // its dtype is not the loop's
  int64_t step, next;  // bytes to the next element, to the next line
  int64_t size;        // of a loop's element
  CastRow cast;        // of neighbours, if there is one
};

// f(where each operand begins) for every plane of the dimensions 0 and 1.
template <class F>
void for_planes(const aj_plan& p, F&& f) {
  aj_operand ops[kMaxOps];
  aj_plan outer = p;
  int64_t one = 1, zero = 0;
  outer.ndim = p.ndim > 2 ? p.ndim - 2 : 1;
  outer.sizes = p.ndim > 2 ? p.sizes + 2 : &one;
  for (uint32_t k = 0; k < p.nops; ++k) {
    ops[k] = p.ops[k];
    ops[k].strides = p.ndim > 2 && p.ops[k].strides ? p.ops[k].strides + 2 : &zero;
  }
  outer.ops = ops;
  for_rows(outer, [&](char** at, int64_t n) {
    char* plane[kMaxOps];
    for (int64_t i = 0; i < n; ++i) {
      for (uint32_t k = 0; k < p.nops; ++k)
        plane[k] = at[k] ? at[k] + i * (p.ndim > 2 ? ops[k].strides[0] : 0) : nullptr;
      f(plane);
    }
  });
}

class Walk {
 public:
  Walk(const aj_plan& p, const Loops& loops, const void* functor)
      : p_(p), l_(loops), functor_(functor), mask_(ones()), set_(choose_set()) {
    stream_ = worth_streaming(p);
    const DLDataType out = l_.bool_out ? dtype_of<bool> : set_.storage;
    out_ = port(0, out);
    if (out_.convert && out_.way == Way::direct) out_.cast = find_cast_row(p.ops[0].dtype, out);
    plain_ = out_.way == Way::direct && !out_.convert;
    for (uint32_t i = 0; i < l_.inputs; ++i) {
      Port& in = in_[i] = port(i + 1, place_dtype(i));
      in.convert = !is(i + 1, in.way == Way::one ? l_.compute->dtype : place_dtype(i));
      plain_ &= (in.way == Way::direct || in.way == Way::one) && !in.convert;
      if (in.convert && (in.way == Way::direct || in.way == Way::turned))
        in.cast = find_cast_row(place_dtype(i), p.ops[i + 1].dtype);
    }
    choose_loop();
  }

  void run() {
    if (plain_)
      return for_rows(p_, [&](char** at, int64_t n) {
        loop_(functor_, at[0], reinterpret_cast<const void* const*>(at + 1), n, stream_);
      });
    for_planes(p_, [&](char** plane) { tiles(plane); });
  }

 private:
  bool is(uint32_t op, DLDataType d) const { return same(p_.ops[op].dtype, d); }
  DLDataType place_dtype(uint32_t i) const {
    return i == 0 && l_.bool_first ? dtype_of<bool> : set_.storage;
  }

  // Inputs that are one value.
  unsigned ones() const {
    unsigned mask = 0;
    for (uint32_t i = 0; i < l_.inputs; ++i)
      if (!p_.ops[i + 1].data || (row_stride(p_, i + 1) == 0 && !(i == 0 && l_.bool_first)))
        mask |= 1u << i;
    return mask;
  }

  void choose_loop() {
    const unsigned mask = served(set_.by_mask, mask_);
    loop_ = set_.by_mask[mask];
    if (mask == mask_) return;
    spread_ = {loop_, nullptr, functor_, l_.inputs, mask_ & ~mask, out_.size, {}};
    for (uint32_t i = 0; i < l_.inputs; ++i) spread_.in[i] = mask >> i & 1 ? 0 : in_[i].size;
    loop_ = spread_loop, functor_ = &spread_;
  }

  // The set whose dtype all tensors have, numbers aside, which are of the computing type; else that
  // one's.
  const LoopSet& choose_set() const {
    for (uint32_t s = 1; s < l_.nsets; ++s) {
      if (!l_.sets[s].by_mask[mask_]) continue;
      bool all = l_.bool_out || is(0, l_.sets[s].storage);
      for (uint32_t i = l_.bool_first; i < l_.inputs && all; ++i)
        all = !p_.ops[i + 1].data || row_stride(p_, i + 1) == 0 || is(i + 1, l_.sets[s].storage);
      if (all) return l_.sets[s];
    }
    return l_.sets[0];
  }

  Port port(uint32_t op, DLDataType wanted) const {
    const aj_operand& o = p_.ops[op];
    Port port = {Way::direct, !same(o.dtype, wanted), row_stride(p_, op),
                 0,           bytes_of(wanted),       nullptr};
    if (!o.data) return {Way::absent, true, 0, 0, port.size, nullptr};
    if (p_.ndim > 1 && o.strides) port.next = o.strides[1];
    int64_t own = bytes_of(o.dtype);
    if (op > 0 && port.step == 0 && !(op == 1 && l_.bool_first))
      port.way = Way::one;
    else if (port.step != own && (op > 0 || p_.sizes[0] > 1))
      port.way = op > 0 && port.next == own && p_.sizes[0] > 4 && p_.sizes[1] > 4 ? Way::turned
                                                                                  : Way::strided;
    return port;
  }

  void tiles(char** plane) {
    int64_t n0 = p_.ndim ? p_.sizes[0] : 1, n1 = p_.ndim > 1 ? p_.sizes[1] : 1;
    for (int64_t j = 0; j < n1; j += kLines)
      for (int64_t i = 0; i < n0; i += kColumns)
        tile(plane, i, std::min(kColumns, n0 - i), j, std::min(kLines, n1 - j));
  }

  void tile(char** plane, int64_t i, int64_t n, int64_t j, int64_t lines) {
    for (uint32_t k = 0; k < l_.inputs; ++k)
      if (in_[k].way == Way::turned) {
        const aj_operand& o = p_.ops[k + 1];
        int64_t own = bytes_of(o.dtype);
        const char* from = plane[k + 1] + i * in_[k].step + j * own;
        transpose(own, turned_[k], own * kColumns, from, in_[k].step, n, lines);
      }
    for (int64_t line = 0; line < lines; ++line) {
      const void* in[3];
      for (uint32_t k = 0; k < l_.inputs; ++k) in[k] = input(plane, k, i, n, j, line);
      char* to = plane[0] + i * out_.step + (j + line) * out_.next;
      bool straight = out_.way == Way::direct && !out_.convert;
      loop_(functor_, straight ? to : result_, in, n, stream_ && straight);
      if (straight) continue;
      if (l_.bool_out)
        typed<bool>.store(to, p_.ops[0].dtype, out_.step, result_, n);
      else
        store(to, n);
    }
  }

  // The result is of the loop's dtype: the computing type, or the output's own.
  void store(char* to, int64_t n) {
    if (out_.cast) return out_.cast(to, result_, n, stream_);
    if (out_.convert || same(set_.storage, l_.compute->dtype))
      return l_.compute->store(to, p_.ops[0].dtype, out_.step, result_, n);
    visit<halves>(set_.storage, [&]<class S>() {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<S*>(to + i * out_.step) = reinterpret_cast<const S*>(result_)[i];
    });
  }

  const void* input(char** plane, uint32_t k, int64_t i, int64_t n, int64_t j, int64_t line) {
    const Port& port = in_[k];
    if (port.way == Way::absent) return kZeros;
    DLDataType own = p_.ops[k + 1].dtype;
    const char* from = plane[k + 1] + i * port.step + (j + line) * port.next;
    if (port.way == Way::one) {
      if (port.convert) l_.compute->load(loaded_[k], from, own, 0, 1);
      return port.convert ? loaded_[k] : from;
    }
    if (port.way == Way::turned) {
      from = turned_[k] + line * kColumns * bytes_of(own);
      if (!port.convert) return from;
      load(loaded_[k], k, from, own, bytes_of(own), n);
      return loaded_[k];
    }
    if (port.way == Way::direct && !port.convert) return from;
    load(loaded_[k], k, from, own, port.step, n);
    return loaded_[k];
  }

  void load(char* to, uint32_t k, const char* from, DLDataType own, int64_t step, int64_t n) {
    if (in_[k].cast) return in_[k].cast(to, from, n, false);
    visit<stored>(place_dtype(k), [&]<class S>() { typed<S>.load(to, from, own, step, n); });
  }

  const aj_plan& p_;
  const Loops& l_;
  const void* functor_;
  const unsigned mask_;
  const LoopSet& set_;
  Loop loop_;
  Spread spread_;
  Port out_, in_[3];
  bool stream_, plain_;
  alignas(64) char result_[kColumns * 8];
  alignas(64) char loaded_[3][kColumns * 8];
  alignas(64) char turned_[3][kColumns * kLines * 8];
};

// m lines of n elements that broadcasting repeats, written out.
template <class T>
void write_out(char* to, const char* from, int64_t step, int64_t next, int64_t n, int64_t m) {
  T* out = reinterpret_cast<T*>(to);
  for (int64_t j = 0; j < m; ++j)
    for (int64_t i = 0; i < n; ++i)
      *out++ = *reinterpret_cast<const T*>(from + i * step + j * next);
}

// Dense lines shorter than a few vectors beside operands that repeat a line, or the first element
// of each: as many lines as a tile has columns are one row of the loop, before which what repeats
// is written out, once if it is the same for all. False: otherwise.
[[gnu::noinline]] bool run_short_lines(const aj_plan& p, const Loops& l, const void* functor) {
  const int64_t size = p.compute.bits / 8, n = p.sizes[0], line = n * size;
  if (n > 32 || p.ops[0].strides[0] != size || p.ops[0].strides[1] != line) return false;
  if (p.ndim > 2 && n * p.sizes[1] < 64) return false;  // tiles cost less than so many planes
  unsigned numbers = 0, written = 0;
  for (uint32_t k = 0; k < l.inputs; ++k) {
    const aj_operand& o = p.ops[k + 1];
    if (!o.tensor)
      numbers |= 1u << k;
    else if (o.strides[0] != size || o.strides[1] != line)
      written |= 1u << k;
  }
  Loop loop = l.sets[0].by_mask[numbers];
  if (!loop) return false;
  alignas(64) char buffer[3][kColumns * 8];
  const int64_t most = kColumns / n;
  const bool stream = worth_streaming(p);
  auto plane = [&](char** at) {
    for (int64_t j = 0, m; j < p.sizes[1]; j += m) {
      m = std::min(most, p.sizes[1] - j);
      const void* in[3];
      for (uint32_t k = 0; k < l.inputs; ++k) {
        const aj_operand& o = p.ops[k + 1];
        const char* from = at[k + 1];
        const bool buffered = written >> k & 1;
        in[k] = buffered ? buffer[k] : numbers >> k & 1 ? from : from + j * line;
        if (!buffered || (j > 0 && o.strides[1] == 0)) continue;
        (size == 4 ? write_out<uint32_t> : write_out<uint64_t>)(buffer[k], from + j * o.strides[1],
                                                                o.strides[0], o.strides[1], n, m);
      }
      loop(functor, at[0] + j * line, in, n * m, stream);
    }
  };
  if (p.ndim > 2) {
    for_planes(p, plane);
  } else {
    char* at[kMaxOps];
    for (uint32_t k = 0; k < p.nops; ++k) at[k] = static_cast<char*>(p.ops[k].data);
    plane(at);
  }
  if (stream) end_streaming();
  return true;
}

// Dense rows, past the caches. False: the operands are not as the loop wants them.
bool stream_plain(const aj_plan& p, const Rows& r, const void* functor) {
  Streamed s = {nullptr, functor, r.out->size, r.inputs, {}};
  if (!same(p.ops[0].dtype, r.out->dtype) || row_stride(p, 0) != s.size) return false;
  unsigned mask = 0;
  for (uint32_t k = 0; k < r.inputs; ++k) {
    const aj_operand& o = p.ops[k + 1];
    if (!o.data || !same(o.dtype, r.in[k]->dtype)) return false;
    s.sizes[k] = row_stride(p, k + 1);
    if (s.sizes[k] != 0 && s.sizes[k] != int64_t(r.in[k]->size)) return false;
    mask |= unsigned(s.sizes[k] == 0) << k;
  }
  s.row = r.by_mask[mask];
  if (!s.row) return false;
  for_rows(p, [&](char** at, int64_t n) { stream_blocks(s, at[0], at + 1, n); });
  return true;
}

// All but one short row. Apart: its tiles would be a large frame of every call.
[[gnu::noinline]] void run_walk(const aj_plan& p, const Loops& loops, const void* functor,
                                bool alike) {
  if (alike && p.ndim >= 2 && run_short_lines(p, loops, functor)) return;
  Walk(p, loops, functor).run();
  if (worth_streaming(p)) end_streaming();
}

void run_rows_of(const aj_plan& p, const Rows& rows, const void* functor) {
  if (worth_streaming(p) && stream_plain(p, rows, functor)) return end_streaming();
  RowDriver(p, rows, functor).run();
}
// A mask that the rows have no loop for.
[[gnu::noinline]] void run_spread(const aj_plan& p, Rows& rows, const void* functor,
                                  unsigned mask) {
  const unsigned has = served(rows.by_mask, mask);
  Spread spread = {nullptr,     rows.by_mask[has],       functor, rows.inputs,
                   mask & ~has, int64_t(rows.out->size), {}};
  for (uint32_t i = 0; i < rows.inputs; ++i)
    spread.in[i] = has >> i & 1 ? 0 : int64_t(rows.in[i]->size);
  rows.by_mask[mask] = spread_row;
  run_rows_of(p, rows, &spread);
}

}  // namespace

void run_plain(const aj_plan& p, const RowTypes& types, const PlainLoops& loops,
               const void* functor) {
  Rows rows = {types.inputs, types.out, {types.in[0], types.in[1], types.in[2]}, {}};
  std::copy_n(loops.by_mask, 8, rows.by_mask);
  unsigned ones = 0;
  for (uint32_t k = 0; k < rows.inputs; ++k)
    ones |= unsigned(!p.ops[k + 1].data || row_stride(p, k + 1) == 0) << k;
  if (!rows.by_mask[ones]) return run_spread(p, rows, functor, ones);
  run_rows_of(p, rows, functor);
}

namespace {

// At most 64 bytes, by words that may overlap: a call of the C library would take as long as the
// row.
template <class Word>
[[gnu::always_inline]] inline bool copy_ends(char* to, const char* from, size_t bytes) {
  if (bytes < sizeof(Word)) return false;
  Word word;
  for (size_t i = 0; i + sizeof word <= bytes; i += sizeof word) {
    std::memcpy(&word, from + i, sizeof word);
    std::memcpy(to + i, &word, sizeof word);
  }
  std::memcpy(&word, from + bytes - sizeof word, sizeof word);
  std::memcpy(to + bytes - sizeof word, &word, sizeof word);
  return true;
}
[[gnu::always_inline]] inline void copy_few(char* to, const char* from, size_t bytes) {
  struct Sixteen {
    uint64_t half[2];
  };
  copy_ends<Sixteen>(to, from, bytes) || copy_ends<uint64_t>(to, from, bytes) ||
      copy_ends<uint32_t>(to, from, bytes) || copy_ends<uint16_t>(to, from, bytes) ||
      copy_ends<uint8_t>(to, from, bytes);
}

}  // namespace

void short_row(const RowShape& s, const void* functor, void* out, const void* const* in,
               int64_t n) {
  if (n <= 0) return;
  alignas(64) char result[64], element[3][64];  // of a vector
  const void* at[3];
  for (uint32_t k = 0; k < s.inputs; ++k) {
    at[k] = in[k];
    if (s.in[k] == 0) continue;
    char* to = element[k];
    const size_t size = s.in[k], bytes = size_t(n) * size;
    std::memset(to, 0, sizeof element[k]);
    copy_few(to, static_cast<const char*>(in[k]), bytes);
    for (int64_t i = n; s.repeat && i < s.lanes; ++i) std::memcpy(to + size_t(i) * size, to, size);
    at[k] = to;
  }
  s.loop(functor, result, at, s.lanes, false);
  copy_few(static_cast<char*>(out), result, size_t(n) * s.out);
}

void run_rows(const aj_plan& p, const Loops& l, const void* functor) {
  // Is every input there, and of the dtype that the loop reads?
  bool alike = p.nops == l.inputs + 1 && !l.bool_first && same(l.sets[0].storage, p.compute);
  const void* in[3];
  unsigned numbers = 0;
  for (uint32_t k = 0; alike && k < l.inputs; ++k) {
    const aj_operand& o = p.ops[k + 1];
    alike = o.data && same(o.dtype, p.compute);
    in[k] = o.data, numbers |= unsigned(!o.tensor) << k;
  }
  alike &= same(p.ops[0].dtype, l.bool_out ? dtype_of<bool> : p.compute);
  // Few elements in one dense row: nothing else is to be chosen.
  bool flat = alike && (p.flags & AJ_PLAN_FLAT) && p.numel < 2048;
  Loop loop = flat ? l.sets[0].by_mask[numbers] : nullptr;
  loop ? loop(functor, p.ops[0].data, in, p.numel, false)
       : run_walk(p, l, functor, alike && !l.bool_out);
}

}  // namespace adjoin::cpu
