// adjoin/data.hpp: batches of a dataset, in order or shuffled, made ahead by threads if asked for.
//
//   data::Loader loader(data::TensorDataset(pictures, labels), {.batch = 64, .shuffle = true});
//   for (auto [x, y] : loader) ...      // each loop is an epoch
#ifndef ADJOIN_DATA_HPP
#define ADJOIN_DATA_HPP
#include <adjoin/data/dataset.hpp>
#include <adjoin/joined.hpp>
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

namespace AJ_HIDDEN adjoin {
namespace data {

struct LoaderOptions {
  int64_t batch = 1;
  bool shuffle = false, drop_last = false;
  int threads = 0;  // that make batches ahead; 0: made when asked for, by who asks
  int ahead = 2;    // batches per thread
  std::optional<uint64_t> seed = std::nullopt;  // of the order and of the examples' random numbers;
                                                // none: the default generator
};

// What makes an epoch's batches by number: with threads, in the order of the numbers all the same.
template <class Batch>
class Epoch {
 public:
  Epoch(int64_t count, const LoaderOptions& o, std::function<Batch(int64_t)> make)
      : count_(count),
        room_(std::max(1, o.ahead) * std::max(1, o.threads)),
        make_(std::move(make)) {
    for (int i = 0; i < o.threads && i < count; ++i) workers_.emplace_back([this] { work(); });
  }
  Epoch(const Epoch&) = delete;
  ~Epoch() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& w : workers_) w.join();
  }

  // The next batch, or nothing after the last. What a dataset throws comes out here.
  std::optional<Batch> next() {
    if (taken_ == count_) return std::nullopt;
    if (workers_.empty()) return make_(taken_++);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.count(taken_) > 0; });
    Slot slot = std::move(ready_.extract(taken_++).mapped());
    lock.unlock();
    changed_.notify_all();
    if (slot.error) std::rethrow_exception(slot.error);
    return std::move(slot.batch);
  }

 private:
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr error;
  };
  void work() {
    NoGradGuard off;
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || begun_ == count_ || begun_ < taken_ + room_; });
      if (stop_ || begun_ == count_) return;
      int64_t number = begun_++;
      lock.unlock();
      Slot slot;
      try {
        slot.batch = make_(number);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      ready_.emplace(number, std::move(slot));
      lock.unlock();
      changed_.notify_all();
    }
  }

  int64_t count_, room_;
  std::function<Batch(int64_t)> make_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, Slot> ready_;
  int64_t begun_ = 0, taken_ = 0;
  bool stop_ = false;
  std::vector<std::thread> workers_;  // last: they use all of the above
};

template <class Dataset>
class Loader {
 public:
  using Batch = decltype(make_batch(std::declval<const Dataset&>(), Indices(), 0));

  explicit Loader(Dataset dataset, LoaderOptions o = {})
      : dataset_(std::move(dataset)), options_(o) {
    if (o.batch < 1 || o.threads < 0)
      kit::raise(AJ_INVALID_ARGUMENT, "Loader: batch ", o.batch, ", threads ", o.threads,
                 "; wanted: 1 or more, 0 or more");
    if (o.seed) order_ = Generator(device("cpu")), order_->manual_seed(*o.seed);
  }

  int64_t size() const {  // batches of an epoch
    int64_t n = dataset_.size(), b = options_.batch;
    return options_.drop_last ? n / b : (n + b - 1) / b;
  }
  const Dataset& dataset() const { return dataset_; }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(std::shared_ptr<Epoch<Batch>> e) : epoch_(std::move(e)) { ++*this; }
    Batch& operator*() { return *batch_; }
    Iterator& operator++() {
      batch_ = epoch_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !batch_; }

   private:
    std::shared_ptr<Epoch<Batch>> epoch_;
    std::optional<Batch> batch_;
  };
  Iterator begin() {
    auto rows = std::make_shared<Indices>(order());
    uint64_t seed = options_.seed.value_or(0) * 0x9e3779b97f4a7c15 + uint64_t(epoch_++);
    if (!options_.seed) seed = fresh_seed();
    auto make = [this, rows, seed](int64_t number) {
      auto from = rows->begin() + number * options_.batch;
      auto to =
          rows->begin() + std::min<int64_t>((number + 1) * options_.batch, int64_t(rows->size()));
      return make_batch(dataset_, Indices(from, to), seed);
    };
    return Iterator(std::make_shared<Epoch<Batch>>(size(), options_, make));
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  Indices order() {
    Indices rows(size_t(dataset_.size()));
    std::iota(rows.begin(), rows.end(), 0);
    if (!options_.shuffle) return rows;
    Tensor shuffled = randperm(dataset_.size(), order_ ? *order_ : Generator());
    std::copy_n(shuffled.data<int64_t>(), rows.size(), rows.begin());
    return rows;
  }
  // For who gives no seed: from the default generator, only where examples are random.
  uint64_t fresh_seed() {
    Random probe(0);
    if constexpr (requires { dataset_.at(0, probe); })
      return uint64_t(randint(INT64_MAX, Ints({})).item<int64_t>());
    return 0;
  }

  Dataset dataset_;
  LoaderOptions options_;
  std::optional<Generator> order_;
  int64_t epoch_ = 0;
};

}  // namespace data
}  // namespace adjoin
#endif
