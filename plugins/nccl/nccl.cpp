// plugins/nccl/nccl.cpp: where the library was found, and which version it is.
#include "nccl.hpp"

#include <adjoin/abi/base.h>

#include <adjoin/kit/error.hpp>

#include "../gpu/vendor/libraries.hpp"

namespace adjoin::nccl_engine {
namespace {

using vendor::SharedLibrary;

std::string version_text(int v) {  // 2.8 and older counted otherwise
  const int major = v < 10000 ? v / 1000 : v / 10000;
  const int minor = v < 10000 ? v / 100 % 10 : v / 100 % 100;
  return kit::text(major, ".", minor, ".", v % 100);
}

struct Opened {
#ifdef AJ_RCCL
  SharedLibrary file{"RCCL", "ADJOIN_RCCL", {"librccl.so.1"}, {}};
#else
  SharedLibrary file{"NCCL", "ADJOIN_NCCL", {"libnccl.so.2"}, {"nvidia/nccl/lib"}};
#endif
  Nccl table;
  std::string engine, path;

  std::string bind_all() {
#define AJ_BIND_(name, parameters) \
  if (!file.bind("nccl" #name, &table.name)) return "it has no nccl" #name;
    AJ_NCCL_NEEDED_(AJ_BIND_)
    AJ_BIND_(GetErrorString, ())
#undef AJ_BIND_
#define AJ_BIND_(name, parameters) file.bind("nccl" #name, &table.name);
    AJ_NCCL_NEWER_(AJ_BIND_)
    AJ_BIND_(GetLastError, ())
#undef AJ_BIND_
    return "";
  }
  Opened() {
    if (!file.open()) return;
    if (std::string why = bind_all(); !why.empty()) {
      file.close_for(why);
      return;
    }
    table.GetVersion(&table.version);
    engine = kit::text(kEngine, " ", version_text(table.version));
    file.set_version(version_text(table.version));
    path = file.path();
  }
};
Opened& opened() {
  static auto* one = new Opened;  // never destroyed: threads may be inside at exit
  return *one;
}

}  // namespace

const Nccl& Nccl::get() {
  if (!opened().file.usable())
    kit::raise(AJ_UNAVAILABLE, kEngine, ": the library is not found: ", opened().file.where(),
#ifdef AJ_RCCL
               "; it comes with ROCm (apt-get install rccl)"
#else
               "; pip install nvidia-nccl-cu12"
#endif
               "; or name an engine for the cpu, as gloo: tensors go through the cpu's memory");
  return opened().table;
}
const std::string& engine_text() { return opened().engine; }
const std::string& library_path() { return opened().path; }

int number_of(uint32_t index) {
  switch (index) {
    case AJ_DT_INT8:
      return 0;
    case AJ_DT_UINT8:
      return 1;
    case AJ_DT_INT32:
      return 2;
    case AJ_DT_UINT32:
      return 3;
    case AJ_DT_INT64:
      return 4;
    case AJ_DT_UINT64:
      return 5;
    case AJ_DT_FLOAT16:
      return 6;
    case AJ_DT_FLOAT32:
      return 7;
    case AJ_DT_FLOAT64:
      return 8;
    case AJ_DT_BFLOAT16:
      return opened().table.version >= 21000 ? 9 : -1;
    default:
      return -1;
  }
}

}  // namespace adjoin::nccl_engine
