// bench/limits.cpp: what this machine can do at most, measured: bytes per second of a triad with
// non-temporal stores over arrays far larger than the caches, multiply-adds per second in
// registers. usage: limits THREADS; prints JSON. limits THREADS triad: for each line of input one
// pass of the triad, its bytes per second on a line. Compiled for the machine that it runs on.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <vector>
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace {

double seconds(const std::function<void()>& f) {
  auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Best of several rounds in which all threads do their part.
double best(int threads, int rounds, const std::function<void(int)>& part) {
  double least = 1e9;
  for (int r = 0; r < rounds; ++r)
    least = std::min(least, seconds([&] {
                       std::vector<std::thread> others;
                       for (int i = 1; i < threads; ++i) others.emplace_back(part, i);
                       part(0);
                       for (auto& t : others) t.join();
                     }));
  return least;
}

void triad(float* a, const float* b, const float* c, size_t n) {
#if defined(__AVX512F__)
  for (size_t i = 0; i < n; i += 16)
    _mm512_stream_ps(
        a + i, _mm512_fmadd_ps(_mm512_set1_ps(3), _mm512_load_ps(c + i), _mm512_load_ps(b + i)));
#elif defined(__AVX__)
  for (size_t i = 0; i < n; i += 8)
    _mm256_stream_ps(a + i, _mm256_add_ps(_mm256_mul_ps(_mm256_set1_ps(3), _mm256_load_ps(c + i)),
                                          _mm256_load_ps(b + i)));
#else
  for (size_t i = 0; i < n; ++i) a[i] = b[i] + 3 * c[i];
#endif
}

// Twelve independent chains of vectors of 64 bytes.
template <class T>
T multiply_adds(long steps) {
  typedef T V __attribute__((vector_size(64)));
  V x[12], k, s;
  for (size_t j = 0; j < sizeof(V) / sizeof(T); ++j) k[j] = T(0.999), s[j] = T(0.001);
  for (auto& v : x) v = s;
  for (long i = 0; i < steps; ++i)
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) x[j] = x[j] * k + s;
  V sum = x[0];
  for (int j = 1; j < 12; ++j) sum += x[j];
  return sum[0];
}

template <class T>
double peak(int threads) {
  constexpr long steps = 4'000'000;
  static volatile T sink;
  double t = best(threads, 5, [](int) { sink = multiply_adds<T>(steps); });
  return threads * 2.0 * 12 * (64 / sizeof(T)) * steps / t;
}

// Arrays of 256 MiB in all threads together, in pages of 2 MiB as a framework's would be.
class Triad {
 public:
  explicit Triad(int threads) : threads_(threads), n_((size_t(64) << 20) / size_t(threads)) {
    constexpr size_t page = size_t(2) << 20;
    n_ = (n_ + page - 1) / page * page;
    for (int i = 0; i < 3 * threads; ++i) {
      void* p = std::aligned_alloc(page, n_ * sizeof(float));
#if defined(__linux__)
      madvise(p, n_ * sizeof(float), MADV_HUGEPAGE);
#endif
      memory_.emplace_back(static_cast<float*>(p), std::free);
      for (size_t j = 0; j < n_; ++j) memory_.back().get()[j] = 1;
    }
  }
  // Bytes per second, the best of some rounds.
  double rate(int rounds) {
    double t = best(threads_, rounds, [&](int i) {
      triad(memory_[3 * i].get(), memory_[3 * i + 1].get(), memory_[3 * i + 2].get(), n_);
    });
    return 3.0 * sizeof(float) * double(n_) * threads_ / t;
  }

 private:
  int threads_;
  size_t n_;
  std::vector<std::unique_ptr<float, void (*)(void*)>> memory_;
};

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  Triad triad(threads);
  if (argc > 2) {
    triad.rate(2);
    for (int c; (c = std::getchar()) != EOF;)
      if (c == '\n') std::printf("%.6g\n", triad.rate(1)), std::fflush(stdout);
    return 0;
  }
  std::printf("{\"bytes\": %.4g, \"float32\": %.4g, \"float64\": %.4g}\n", triad.rate(7),
              peak<float>(threads), peak<double>(threads));
}
