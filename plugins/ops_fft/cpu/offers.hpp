// plugins/ops_fft/cpu/offers.hpp: the service "aj.fft/cpu": our own offer, and those of others.
#ifndef ADJOIN_PLUGINS_OPS_FFT_CPU_OFFERS_HPP
#define ADJOIN_PLUGINS_OPS_FFT_CPU_OFFERS_HPP
#include <adjoin/abi/fft.h>

namespace adjoin::cpu::fft {

// Is there an offer besides our own? A look at a counter.
bool has_others();
// Does another one serve it? Plans of others are kept, the last 64.
bool served_by_others(const aj_fft_desc& d, const void* in, void* out);

}  // namespace adjoin::cpu::fft
#endif
