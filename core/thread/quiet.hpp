// core/thread/quiet.hpp: waits until no thread can be inside a call that began before.
#pragma once

#include <string>

#include "core/base/tls.hpp"

namespace adjoin {

// Of register_thread() and a thread's end.
void quiet_add(Tls* thread);
void quiet_remove(Tls* thread);

// f(thread), one after the other; none of them ends meanwhile.
void each_thread(void (*f)(Tls* thread, void* with), void* with);

// Why some thread may still be inside code that a call before this one chose; empty: none can.
std::string wait_until_quiet();

}  // namespace adjoin
