// core/profile/profile.hpp: events of calls, kernels, memory and labels, for who listens
// (abi/profile.h).
//
// Nothing here is on the path of a call while nobody listens: an op then has the run function of
// its kind and its kernels their own functions; listen() puts others in their places, as any change
// of the registry does.
#pragma once
#include <adjoin/abi/profile.h>

#include <atomic>

#include "core/op/op.hpp"

namespace adjoin {

extern std::atomic<uint32_t> told_kinds;  // what somebody listens to
inline bool told(uint32_t kinds) { return told_kinds.load(std::memory_order_relaxed) & kinds; }

extern const aj_profile profile_table;

// Something that has begun on this thread. The innermost one is at tls.open.
struct Open {
  aj_event event;
  Open* outer;
  explicit Open(uint32_t kind, aj_str name);  // begins; the rest of the event is zero
  void tell_begin();                          // once what is known by then is filled in
  void end();                                 // tells; labels that were left open inside are gone
};
void labels_end();  // of a thread that ends

// calls.cpp: who stands in the places that the registry gives to who listens. Wants the registry's
// lock.
void tell_calls(uint32_t kinds);

}  // namespace adjoin
