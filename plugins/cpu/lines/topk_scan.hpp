// plugins/cpu/lines/topk_scan.hpp: looking for elements that beat the worst of the best so far;
// ordering the words of a short line.
#ifndef ADJOIN_PLUGINS_CPU_LINES_TOPK_SCAN_HPP
#define ADJOIN_PLUGINS_CPU_LINES_TOPK_SCAN_HPP
#include <cstdint>

namespace adjoin::cpu {

// The first i >= from with not (x[i] <= bound), or n; without `above`, with not (x[i] >= bound).
// So a NaN is always found.
int64_t find_beyond(const float* x, int64_t from, int64_t n, float bound, bool above);
int64_t find_beyond(const double* x, int64_t from, int64_t n, double bound, bool above);

// Words that all differ, in order: each is counted against all others, so nothing has to be
// guessed.
constexpr int64_t kRanked = 64;  // at most so many
void rank_words(const uint64_t* a, uint64_t* sorted, int64_t n);

}  // namespace adjoin::cpu
#endif
