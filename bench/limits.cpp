// bench/limits.cpp: what this machine can do at most, measured: bytes per second of a triad with
// non-temporal stores over arrays far larger than the caches, multiply-adds per second in
// registers. usage: limits THREADS; prints JSON. limits THREADS streams: for each line of input,
// the bytes of an element of a result and of up to three operands (0: none), one pass of the triad
// and one of a loop that reads and writes just those and computes next to nothing; their bytes per
// second on a line. Compiled for the machine that it runs on.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
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

typedef int Line __attribute__((vector_size(64)));

void stream(char* to, Line v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(v));
#elif defined(__AVX__)
  __m256i half[2];
  std::memcpy(half, &v, sizeof v);
  for (int i = 0; i < 2; ++i) _mm256_stream_si256(reinterpret_cast<__m256i*>(to) + i, half[i]);
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

// Elements [lo, hi) of a result of W bytes each and operands of A, B and C; lo is a multiple of 64.
template <bool Fetch, int W, int A, int B, int C>
void pass(char* const* at, size_t lo, size_t hi) {
  constexpr int least_in = C ? C : B ? B : A ? A : 8, step = 64 / std::min(W, least_in);
  constexpr size_t ahead = 2048;
  constexpr int size[] = {W, A, B, C};
  for (size_t i = lo; i < hi; i += step) {
    Line all = {1, 2, 3};
#pragma GCC unroll 3
    for (int k = 1; k < 4; ++k)
#pragma GCC unroll 8
      for (int j = 0; j < size[k] * step; j += 64) {
        const char* p = at[k] + i * size_t(size[k]) + j;
        if (Fetch) __builtin_prefetch(p + ahead);
        all |= *reinterpret_cast<const Line*>(p);
      }
#pragma GCC unroll 8
    for (int j = 0; j < W * step; j += 64) stream(at[0] + i * size_t(W) + j, all);
  }
}

using Pass = void (*)(char* const* at, size_t lo, size_t hi);
// For element sizes `size`, those of the operands in falling order.
template <bool Fetch, int... Known>
Pass choose_pass(const int* size) {
  constexpr int known[] = {9, Known..., 0}, count = sizeof...(Known), last = known[count];
  if constexpr (count == 4) {
    return &pass<Fetch, Known...>;
  } else {
    Pass chosen = nullptr;
    auto fits = [&]<int S>() {
      if constexpr ((count == 0 && S > 0) || count == 1 || (count > 1 && S <= last))
        if (size[count] == S) chosen = choose_pass<Fetch, Known..., S>(size);
    };
    fits.template operator()<0>(), fits.template operator()<1>(), fits.template operator()<2>();
    fits.template operator()<4>(), fits.template operator()<8>();
    return chosen;
  }
}

// Four arrays of 256 MiB, in pages of 2 MiB as a framework's would be; each thread has its part.
class Arrays {
 public:
  explicit Arrays(int threads) : threads_(threads) {
    for (char*& p : at_) {
      p = static_cast<char*>(std::aligned_alloc(kPage, kBytes));
#if defined(__linux__)
      madvise(p, kBytes, MADV_HUGEPAGE);
#endif
      for (size_t j = 0; j < kBytes; j += sizeof(float)) *reinterpret_cast<float*>(p + j) = 1;
    }
  }
  ~Arrays() {
    for (char* p : at_) std::free(p);
  }
  // Bytes per second, the best of some rounds.
  double triad(int rounds) {
    constexpr size_t n = kBytes / sizeof(float);
    auto array = [&](int k) { return reinterpret_cast<float*>(at_[k]); };
    return 3.0 * kBytes / best(threads_, rounds, [&](int i) {
             size_t lo = part(n, i);
             ::triad(array(0) + lo, array(1) + lo, array(2) + lo, part(n, i + 1) - lo);
           });
  }
  // With and without asking ahead: processors differ in which is better.
  double streams(const int* size) {
    size_t widest = 1, all = 0;
    for (int k = 0; k < 4; ++k) widest = std::max(widest, size_t(size[k])), all += size_t(size[k]);
    size_t n = kBytes / widest;
    double least = 1e9;
    for (Pass pass : {choose_pass<false>(size), choose_pass<true>(size)})
      if (pass)
        least = std::min(least,
                         best(threads_, 1, [&](int i) { pass(at_, part(n, i), part(n, i + 1)); }));
    return double(all * n) / least;
  }

 private:
  static constexpr size_t kPage = size_t(2) << 20, kBytes = size_t(256) << 20;
  size_t part(size_t n, int i) const {
    return i == threads_ ? n : n / size_t(threads_) * size_t(i) / kPage * kPage;
  }
  int threads_;
  char* at_[4];
};

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  Arrays arrays(threads);
  if (argc > 2) {
    arrays.triad(2);
    for (int size[4]; std::scanf("%d %d %d %d", size, size + 1, size + 2, size + 3) == 4;)
      std::printf("%.6g %.6g\n", arrays.triad(1), arrays.streams(size)), std::fflush(stdout);
    return 0;
  }
  std::printf("{\"bytes\": %.4g, \"float32\": %.4g, \"float64\": %.4g}\n", arrays.triad(7),
              peak<float>(threads), peak<double>(threads));
}
