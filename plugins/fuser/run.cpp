// plugins/fuser/run.cpp: runs stages over the rows of an index space, or over pieces of one long
// row, on the core's threads.
#include <adjoin/kit/parallel.hpp>
#include <algorithm>
#include <cstring>
#include <memory>

#include "program.hpp"
#include "vector/layer_norm_rows.hpp"
#include "vector/reduce_leaf.hpp"
#include "vector/softmax_rows.hpp"
#include "vector/stream.hpp"
#include "walk.hpp"

namespace adjoin::fuser {
namespace {

constexpr int64_t kChunk = 16384;  // elements that a thread takes at least
constexpr int64_t kPiece = 1024;   // elements that are brought together at once

// n elements, `step` bytes apart, as neighbours.
template <class T>
void gather(char* to, const char* from, int64_t step, int64_t n) {
  T* out = reinterpret_cast<T*>(to);
  if (step == int64_t(sizeof(T)))
    std::memcpy(to, from, size_t(n) * sizeof(T));
  else if (step == 0)
    std::fill_n(out, n, *reinterpret_cast<const T*>(from));
  else
    for (int64_t i = 0; i < n; ++i) out[i] = *reinterpret_cast<const T*>(from + i * step);
}
void gather(char* to, const char* from, int64_t size, int64_t step, int64_t n) {
  (size == 1   ? gather<uint8_t>
   : size == 4 ? gather<uint32_t>
               : gather<uint64_t>)(to, from, step, n);
}

// Memory and operands of one thread.
class Worker {
 public:
  Worker(const Program& p, const Walk& w, bool stream)
      : p_(p), w_(w), steps_(*p.steps), tile_(p.steps->tile()), stream_(stream) {
    const size_t buffer = rounded(size_t(w.row * steps_.size + kMostTile));
    size_t ends = 1;  // operands that a piece shorter than a tile is copied for
    for (const Stage& s : p.stages) ends = std::max(ends, s.reads.size() + s.writes.size());
    const size_t bytes = p.tiles * size_t(kMostTile) + (w.inputs + p.rows) * 64 +
                         p.buffers * (p.reduces ? buffer : 0) + ends * size_t(kMostTile) +
                         (w.staged ? w.inputs * size_t(kPiece) * 8 : 0);
    if (bytes > sizeof stack_) heap_.reset(new (std::align_val_t(64)) char[bytes]);
    char* at = heap_ ? heap_.get() : stack_;
    if (p.places.size() > kFew) many_.reset(new Operand[p.places.size()]);
    operands_ = many_ ? many_.get() : few_;
    frame_.operands = operands_;
    for (size_t o = 0; o < p.places.size(); ++o) {
      const Place& place = p.places[o];
      Operand& mine = operands_[o];
      switch (place.kind) {
        case Place::Kind::tile:
          mine = {at + place.index * size_t(kMostTile), 0, steps_.lanes};
          break;
        case Place::Kind::number:
          mine.at = const_cast<char*>(p.number(place.index));
          break;
        case Place::Kind::input:
        case Place::Kind::output:
          mine = tensor(o);
          break;
        default:
          break;
      }
    }
    at += p.tiles * size_t(kMostTile);
    splats_ = at;
    at += w.inputs * 64;
    for (size_t o = 0; o < p.places.size(); ++o)
      if (p.places[o].kind == Place::Kind::row) operands_[o].at = at + p.places[o].index * 64;
    at += p.rows * 64;
    for (size_t o = 0; o < p.places.size(); ++o)
      if (p.places[o].kind == Place::Kind::buffer)
        operands_[o] = {at + p.places[o].index * buffer, steps_.size, steps_.lanes};
    if (p.reduces) at += p.buffers * buffer;
    ends_ = at;
    pieces_ = at + ends * size_t(kMostTile);
    for (size_t k = 0; k < w.inputs; ++k)
      if (!w.tensors[k].along && !w.tensors[k].moves) splat(k, w.tensors[k].data);
  }

  // Rows by pieces, for which what does not lie so is brought together first.
  void staged(int64_t lo, int64_t hi) {
    int64_t place[kMostDims] = {};
    set(place, lo);
    const int64_t most = std::max<int64_t>(1, kPiece / w_.row);
    for (size_t k = 0; k < w_.inputs; ++k)
      if (is_staged(k)) {
        operands_[k] = {pieces_ + k * size_t(kPiece) * 8, w_.tensors[k].size, steps_.lanes};
        for (int64_t j = 0; j < most && !w_.tensors[k].moves && w_.row <= kPiece; ++j)
          bring(k, j * w_.row, w_.tensors[k].data, 0, w_.row);
      }
    for (int64_t r = lo; r < hi; r += most) {
      const int64_t n = std::min(most, hi - r);
      int64_t first[kMostDims];
      std::copy_n(place, kMostDims, first);
      for (int64_t a = 0; a < w_.row; a += kPiece) {
        const int64_t count = n * std::min(kPiece, w_.row - a);
        for (size_t o = 0; o < p_.places.size(); ++o) {
          const Place& each = p_.places[o];
          if (each.kind != Place::Kind::input && each.kind != Place::Kind::output) continue;
          const Walk::Tensor& t = w_.tensors[tensor_of(each)];
          if (t.dense) operands_[o].at = t.data + (r * w_.row + a) * t.size;
        }
        for (size_t k = 0; k < w_.inputs; ++k) {
          const Walk::Tensor& t = w_.tensors[k];
          if (!is_staged(k) || (!t.moves && w_.row <= kPiece)) continue;
          std::copy_n(first, kMostDims, place);
          for (int64_t j = 0; j < n; ++j, next(place))
            bring(k, j * w_.row, at(t, place), a, std::min(kPiece, w_.row - a));
        }
        range(p_.stages[0], 0, count);
      }
      std::copy_n(first, kMostDims, place);
      for (int64_t j = 0; j < n; ++j) next(place);
    }
  }

  // A piece of the only row.
  void piece(int64_t lo, int64_t hi) { range(p_.stages[0], lo, hi); }

  void rows(int64_t lo, int64_t hi) {
    int64_t place[kMostDims] = {};
    set(place, lo);
    for (int64_t r = lo; r < hi; ++r, next(place)) {
      move(place);
      row();
    }
  }

 private:
  // Where a row is, by outer dimension.
  void set(int64_t* place, int64_t row) const {
    for (int64_t d = int64_t(w_.outer); d-- > 0; row /= w_.size[d]) place[d] = row % w_.size[d];
  }
  void next(int64_t* place) const {
    for (size_t d = w_.outer; d-- > 0;) {
      if (++place[d] < w_.size[d]) break;
      place[d] = 0;
    }
  }
  char* at(const Walk::Tensor& t, const int64_t* place) const {
    char* at = t.data;
    for (size_t d = 0; d < w_.outer; ++d) at += place[d] * t.step[d];
    return at;
  }
  bool is_staged(size_t k) const {
    const Walk::Tensor& t = w_.tensors[k];
    return !t.dense && (t.moves || t.inner != 0);
  }
  void bring(size_t k, int64_t to, const char* row, int64_t from, int64_t n) const {
    const Walk::Tensor& t = w_.tensors[k];
    gather(operands_[k].at + to * t.size, row + from * t.inner, t.size, t.inner, n);
  }

  static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

  size_t tensor_of(const Place& place) const {
    return place.kind == Place::Kind::input ? place.index : w_.inputs + place.index;
  }
  Operand tensor(size_t o) {
    const Walk::Tensor& t = w_.tensors[tensor_of(p_.places[o])];
    return {t.data, t.along ? t.size : 0, t.along ? steps_.lanes : 0};
  }

  // One value for all elements: a vector of it, or of its bytes.
  void splat(size_t k, const char* from) {
    char* to = splats_ + k * 64;
    const int64_t size = w_.tensors[k].size;
    if (size == 1)
      std::memset(to, *from != 0, 64);
    else if (size == 4)
      std::fill_n(reinterpret_cast<uint32_t*>(to), 16, *reinterpret_cast<const uint32_t*>(from));
    else
      std::fill_n(reinterpret_cast<uint64_t*>(to), 8, *reinterpret_cast<const uint64_t*>(from));
    operands_[input_place(k)].at = to;
  }
  // Inputs are the first places.
  size_t input_place(size_t k) const { return k; }

  void move(const int64_t* place) {
    for (size_t o = 0; o < p_.places.size(); ++o) {
      const Place& each = p_.places[o];
      if (each.kind != Place::Kind::input && each.kind != Place::Kind::output) continue;
      const size_t k = tensor_of(each);
      const Walk::Tensor& t = w_.tensors[k];
      if (!t.moves) continue;
      if (t.along || k >= w_.inputs)
        operands_[o].at = at(t, place);
      else
        splat(k, at(t, place));
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k) {
      if (p_.outputs[k].row == kNone) continue;
      row_outputs_[k] = at(w_.tensors[w_.inputs + k], place);
    }
  }

  void row() {
    for (const Stage& s : p_.stages) {
      if (!s.row.empty()) {
        frame_.vectors = 1;
        steps_.sweep(s.row.data(), &frame_, 0, tile_);
      }
      if (!s.sweep.empty()) range(s, 0, w_.row);
      for (const Reduce& r : s.reduces) reduce(r);
    }
    for (size_t k = 0; k < p_.outputs.size(); ++k)
      if (p_.outputs[k].row != kNone)
        std::memcpy(row_outputs_[k], operands_[p_.outputs[k].row].at, size_t(steps_.size));
  }

  void range(const Stage& s, int64_t lo, int64_t hi) {
    frame_.vectors = kVectors;
    const int64_t n = hi - lo, whole = n / tile_ * tile_;
    if (whole) {
      const auto& steps = stream_ ? s.streamed : s.sweep;
      steps_.sweep(steps.data(), &frame_, lo, lo + whole);
    }
    if (whole == n) return;
    // Elements of the last tile that were computed already are computed again, the same.
    if (whole) return steps_.sweep(s.sweep.data(), &frame_, hi - tile_, hi);
    few(s, lo, n);
  }

  // Fewer elements than a tile: in memory that has room for one.
  void few(const Stage& s, int64_t lo, int64_t n) {
    Operand before[2 * (kMostInputs + kMostOutputs)];
    size_t k = 0;
    auto aside = [&](uint32_t o, bool fill) {
      Operand& mine = operands_[o];
      before[k] = mine;
      if (mine.advance) {
        char* to = ends_ + k * size_t(kMostTile);
        if (fill) {
          const char* from = mine.at + lo * mine.advance;
          const auto bytes = size_t(n * mine.advance), all = size_t(tile_ * mine.advance);
          std::memcpy(to, from, bytes);
          // What the last vector has besides is computed: it is as cheap as the rest.
          for (int64_t i = n; i < (n + steps_.lanes - 1) / steps_.lanes * steps_.lanes; ++i)
            std::memcpy(to + i * mine.advance, from, size_t(mine.advance));
          if (n <= steps_.lanes)
            mine.step = 0;  // the first vector again
          else
            std::memset(
                to + (n + steps_.lanes - 1) / steps_.lanes * steps_.lanes * mine.advance, 0,
                all - size_t((n + steps_.lanes - 1) / steps_.lanes * steps_.lanes * mine.advance));
        }
        mine.at = to - lo * mine.advance;
      }
      ++k;
    };
    for (uint32_t o : s.reads) aside(o, true);
    for (uint32_t o : s.writes) aside(o, false);
    frame_.vectors = size_t((n + steps_.lanes - 1) / steps_.lanes);
    steps_.sweep(s.sweep.data(), &frame_, lo, lo + tile_);
    frame_.vectors = kVectors;
    k = 0;
    for (uint32_t o : s.reads) operands_[o] = before[k++];
    for (uint32_t o : s.writes) {
      const char* from = ends_ + k * size_t(kMostTile);
      operands_[o] = before[k++];
      std::memcpy(operands_[o].at + lo * operands_[o].advance, from,
                  size_t(n * operands_[o].advance));
    }
  }

  void reduce(const Reduce& r) { steps_.size == 4 ? reduce_as<float>(r) : reduce_as<double>(r); }
  template <class T>
  void reduce_as(const Reduce& r) {
    const auto& leaves = cpu::leaves<T>();
    const T* x = reinterpret_cast<const T*>(operands_[r.from].at);
    T y{};
    T* row = reinterpret_cast<T*>(operands_[r.to].at);
    switch (r.fold) {
      case Fold::softmax:
        return cpu::softmax_rows<T>().softmax(x, row, w_.row, false);
      case Fold::log_softmax:
        return cpu::softmax_rows<T>().log_softmax(x, row, w_.row, false);
      case Fold::layer_norm: {
        T mean, rstd;
        const bool scaled = r.weight != kNone;
        cpu::norm_rows<T>().forward(
            x, scaled ? reinterpret_cast<const T*>(operands_[r.weight].at) : nullptr,
            scaled ? reinterpret_cast<const T*>(operands_[r.bias].at) : nullptr, row, w_.row, r.eps,
            false, &mean, &rstd);
        if (r.mean != kNone) value_of_row(r.mean, mean);
        if (r.rstd != kNone) value_of_row(r.rstd, rstd);
        return;
      }
      case Fold::sum:
        y = leaves.sum(x, w_.row);
        break;
      case Fold::mean:
        y = leaves.sum(x, w_.row) / T(w_.row);
        break;
      case Fold::largest:
        y = leaves.largest(x, w_.row);
        break;
      case Fold::least:
        y = leaves.least(x, w_.row);
        break;
    }
    value_of_row(r.to, y);
  }
  template <class T>
  void value_of_row(uint32_t operand, T y) {
    std::fill_n(reinterpret_cast<T*>(operands_[operand].at), 64 / sizeof(T), y);
  }

  struct Aligned {
    void operator()(char* p) const { ::operator delete[](p, std::align_val_t(64)); }
  };
  alignas(64) char stack_[12288];
  std::unique_ptr<char[], Aligned> heap_;
  const Program& p_;
  const Walk& w_;
  const Steps& steps_;
  const int64_t tile_;
  const bool stream_;
  static constexpr size_t kFew = 40;
  Operand few_[kFew];
  std::unique_ptr<Operand[]> many_;
  Operand* operands_;
  char* row_outputs_[kMostOutputs];
  char *splats_, *ends_, *pieces_;
  Frame frame_{};
};

int64_t bytes_of_tensors(const Walk& w) {
  int64_t sum = 0;
  for (size_t k = 0; k < w.count; ++k) {
    const Walk::Tensor& t = w.tensors[k];
    if (t.along) sum += t.size * w.row * (t.moves ? w.rows : 1);
  }
  return sum;
}

// May the results go past the caches? Then every tile of them begins on a line.
bool streams(const Program& p, const Walk& w) {
  if (!p.streams || bytes_of_tensors(w) < cpu::stream_bytes()) return false;
  for (size_t k = w.inputs; k < w.count; ++k) {
    const Walk::Tensor& t = w.tensors[k];
    if (!t.along || t.size == 1) continue;
    if (reinterpret_cast<uintptr_t>(t.data) % 64) return false;
    for (size_t d = 0; d < w.outer; ++d)
      if (t.step[d] % 64) return false;
  }
  return true;
}

}  // namespace

void run(const Program& p, aj_tensor* const* in, aj_tensor* const* out, const int64_t* sizes) {
  const Walk w(p, in, out, sizes);
  if (w.row == 0 || w.rows == 0) {
    if (p.reduces && w.rows) raise(AJ_UNIMPLEMENTED, "fuser: rows without elements");
    return;
  }
  if (p.reduces) {
    if (w.row > kMostRow) raise(AJ_UNIMPLEMENTED, "fuser: a long row");
    for (const Stage& s : p.stages)
      for (const Reduce& r : s.reduces)
        for (uint32_t o : {r.from, r.weight, r.bias})
          if (o != kNone && p.places[o].kind == Place::Kind::input &&
              !w.tensors[p.places[o].index].along && w.row > 1)
            raise(AJ_UNIMPLEMENTED, "fuser: a row that is one value is reduced");
  }
  const bool stream = !w.staged && streams(p, w);
  const int64_t tile = p.steps->tile();
  const int64_t grain = std::max<int64_t>(1, std::max(kChunk / w.row, w.rows / 64));
  if (w.staged) {
    // Rows of a few elements cost more to bring together than the calls do.
    for (size_t k = 0; k < w.inputs && w.row < 16; ++k)
      if (!w.tensors[k].dense && w.tensors[k].moves) raise(AJ_UNIMPLEMENTED, "fuser: short rows");
    parallel_for(w.rows, grain,
                 [&](int64_t lo, int64_t hi) { Worker(p, w, false).staged(lo, hi); });
    return;
  }
  if (w.outer == 0 && !p.reduces) {
    const int64_t most = std::max(kChunk, w.row / 64 / tile * tile);
    parallel_for(w.row, most, [&](int64_t lo, int64_t hi) {
      Worker(p, w, stream).piece(lo, hi);
      if (stream) cpu::end_streaming();
    });
    return;
  }
  // Rows that are shorter than a tile, and many: buffers cost more than the calls do.
  if (w.row < tile && w.rows > 8) raise(AJ_UNIMPLEMENTED, "fuser: short rows");
  parallel_for(w.rows, grain, [&](int64_t lo, int64_t hi) {
    Worker(p, w, stream).rows(lo, hi);
    if (stream) cpu::end_streaming();
  });
}

}  // namespace adjoin::fuser
