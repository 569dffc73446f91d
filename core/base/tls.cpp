// core/base/tls.cpp: the state of each thread.
#include "core/base/tls.hpp"

namespace adjoin {

constinit thread_local Tls tls __attribute__((tls_model("initial-exec"))) = {};

}  // namespace adjoin
