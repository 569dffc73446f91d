// core/thread/pool.hpp: the one pool of threads. Chunks do not depend on the number of threads.
#pragma once
#include <adjoin/abi/core.h>

namespace adjoin {

// Chunks [i * grain, min(n, (i + 1) * grain)), claimed in order; the caller takes part; nested
// calls run inline. Of several errors the one of the earliest chunk comes back. Now and then the
// opener asks whether the user wants to stop.
aj_status* parallel_for(int64_t n, int64_t grain,
                        aj_status* (*body)(void* self, int64_t lo, int64_t hi), void* self);
int num_threads();
aj_status* set_num_threads(int n);
int default_num_threads();  // ADJOIN_NUM_THREADS, OMP_NUM_THREADS, else affinity and the control
                            // group's quota
// Is it worth opening a region for work estimated at `ns` of one thread?
bool worth_threads(uint64_t ns);
void pool_fork_prepare();
void pool_fork_parent();
void pool_fork_child();

}  // namespace adjoin
