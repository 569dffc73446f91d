// bench/limits.cpp: what this machine can do at most, measured: bytes per second of a triad with
// non-temporal stores over arrays far larger than the caches, multiply-adds per second in
// registers. usage: limits THREADS; prints JSON. Compiled for the machine that it runs on.
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

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  size_t n = (size_t(64) << 20) / size_t(threads);  // 256 MiB an array in all
  std::vector<std::unique_ptr<float, void (*)(void*)>> memory;
  for (int i = 0; i < 3 * threads; ++i) {
    float* p = static_cast<float*>(std::aligned_alloc(64, n * sizeof(float)));
    for (size_t j = 0; j < n; ++j) p[j] = 1;
    memory.emplace_back(p, std::free);
  }
  double t = best(threads, 7, [&](int i) {
    triad(memory[3 * i].get(), memory[3 * i + 1].get(), memory[3 * i + 2].get(), n);
  });
  std::printf("{\"bytes\": %.4g, \"float32\": %.4g, \"float64\": %.4g}\n",
              3.0 * sizeof(float) * double(n) * threads / t, peak<float>(threads),
              peak<double>(threads));
}
