// plugins/nccl/plugin.cpp: libaj_nccl.so, the service aj.comm/cuda; libaj_rccl.so, aj.comm/hip.
#include <adjoin/kit/engine.hpp>
#include <adjoin/kit/library.hpp>
#include <adjoin/kit/plugin.hpp>

#include "comm.hpp"

namespace adjoin::nccl_engine {
namespace {

const aj_comm table = kit::comm::Table<Comm>::of({kEngine, 4});

}  // namespace
}  // namespace adjoin::nccl_engine

#ifdef AJ_RCCL
#define AJ_NAME_ "rccl"
#define AJ_DEVICE_ "hip"
#else
#define AJ_NAME_ "nccl"
#define AJ_DEVICE_ "cuda"
#endif
AJ_PLUGIN(.name = AJ_NAME_, .version = "0.1.0", .vendor = "Adjoin", .license = "Apache-2.0",
          .provides = "service:aj.comm/" AJ_DEVICE_) {
  adjoin::kit::bind_libraries(plugin.env());
  plugin.service("aj.comm/" AJ_DEVICE_, AJ_NAME_, &adjoin::nccl_engine::table, 0);
}
