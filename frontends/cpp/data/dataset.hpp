// adjoin/data/dataset.hpp: collections of examples, and how a batch is made of some.
//
// A dataset is any type with size() and operator[](index); an example is a Tensor or a tuple of
// Tensors. A type with batch(indices) makes whole batches itself.
#ifndef ADJOIN_DATA_DATASET_HPP
#define ADJOIN_DATA_DATASET_HPP
#include <adjoin/joined.hpp>
#include <adjoin/kit/ops.hpp>

namespace AJ_HIDDEN adjoin {
namespace data {

using Indices = std::vector<int64_t>;

// Random numbers for one example: the same whoever draws them, in whichever thread (SplitMix64:
// Steele et al., 2014).
class Random {
 public:
  using result_type = uint64_t;
  explicit Random(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t(0); }
  uint64_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double uniform() { return double((*this)() >> 11) * 0x1p-53; }  // [0, 1)
  int64_t below(int64_t n) {
    return int64_t(static_cast<unsigned __int128>((*this)()) * uint64_t(n) >> 64);
  }

 private:
  uint64_t state_;
};

// Rows of tensors that have the same first size.
template <class... T>
class TensorDataset {
 public:
  explicit TensorDataset(T... tensors) : tensors_(std::move(tensors)...) {
    auto agree = [&](const Tensor& t) { return t.ndim() > 0 && t.size(0) == size(); };
    if (!std::apply([&](const auto&... t) { return (agree(t) && ...); }, tensors_))
      kit::raise(AJ_INVALID_ARGUMENT, "TensorDataset: the tensors differ in their first size");
  }
  int64_t size() const { return std::get<0>(tensors_).size(0); }
  auto operator[](int64_t i) const {
    return std::apply([&](const auto&... t) { return std::tuple<T...>(select(t, 0, i)...); },
                      tensors_);
  }
  auto batch(const Indices& indices) const {
    Tensor rows = empty({int64_t(indices.size())}, int64);
    std::copy(indices.begin(), indices.end(), rows.data<int64_t>());
    return std::apply(
        [&](const auto&... t) { return std::tuple<T...>(index_select(t, 0, rows)...); }, tensors_);
  }

 private:
  static_assert((std::same_as<T, Tensor> && ...), "a TensorDataset is made of Tensors");
  std::tuple<T...> tensors_;
};

inline Tensor collate(const std::vector<Tensor>& examples) { return stack(examples); }
template <class... T>
std::tuple<T...> collate(const std::vector<std::tuple<T...>>& examples) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    auto column = [&]<size_t J>(std::integral_constant<size_t, J>) {
      std::vector<Tensor> list;
      for (const auto& e : examples) list.push_back(std::get<J>(e));
      return stack(list);
    };
    return std::tuple<T...>(column(std::integral_constant<size_t, I>())...);
  }
  (std::index_sequence_for<T...>());
}

// Another view of a dataset: make(example, random), random seeded by the loader's seed, the epoch
// and the index.
template <class D, class F>
class Mapped {
 public:
  Mapped(D dataset, F make) : dataset_(std::move(dataset)), make_(std::move(make)) {}
  int64_t size() const { return dataset_.size(); }
  auto operator[](int64_t i) const {
    Random random(0);
    return at(i, random);
  }
  auto at(int64_t i, Random& random) const { return make_(dataset_[i], random); }

 private:
  D dataset_;
  F make_;
};

// Some rows of a dataset, in an order.
template <class D>
class Subset {
 public:
  Subset(D dataset, Indices rows) : dataset_(std::move(dataset)), rows_(std::move(rows)) {}
  int64_t size() const { return int64_t(rows_.size()); }
  auto operator[](int64_t i) const { return dataset_[rows_.at(size_t(i))]; }

 private:
  D dataset_;
  Indices rows_;
};

template <class D>
auto make_batch(const D& dataset, const Indices& indices, uint64_t seed) {
  if constexpr (requires { dataset.batch(indices); }) {
    return dataset.batch(indices);
  } else {
    auto example = [&](int64_t i) {
      Random random(seed ^ (uint64_t(i) * 0xd1342543de82ef95));
      random();
      if constexpr (requires { dataset.at(i, random); })
        return dataset.at(i, random);
      else
        return dataset[i];
    };
    std::vector<decltype(example(0))> examples;
    for (int64_t i : indices) examples.push_back(example(i));
    return collate(examples);
  }
}

}  // namespace data
}  // namespace adjoin
#endif
