// plugins/cuda/dnn.cpp: where cuDNN was found, and which version it is.
#include "dnn.hpp"

#include "driver.hpp"

namespace adjoin::vendor {
namespace {

struct Opened {
  SharedLibrary file{"cuDNN", "ADJOIN_CUDNN", {"libcudnn.so.9"}, {"nvidia/cudnn/lib"}};
  Dnn table = {};
  bool usable = false;

  Opened() {
    if (!file.open()) return;
#define AJ_BIND_(name)                                                                      \
  if (!(table.name = reinterpret_cast<decltype(table.name)>(file.symbol("cudnn" #name)))) { \
    file.close_for("it has no cudnn" #name);                                                \
    return;                                                                                 \
  }
    AJ_CUDNN_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
    size_t (*cuda)() = nullptr;
    if (file.bind("cudnnGetCudartVersion", &cuda) && !driver_serves(int(cuda()))) {
      file.close_for(kit::text("it is for CUDA ", version_text(int(cuda())),
                               ", and the driver serves up to ", version_text(driver_version())));
      return;
    }
    size_t v = table.GetVersion();
    file.set_version(kit::text(v / 10000, ".", v / 100 % 100, ".", v % 100));
    usable = true;
  }
};
Opened& opened() {
  static auto* one = new Opened;  // never destroyed: threads may still compute at exit
  return *one;
}

}  // namespace

const Dnn* Dnn::find() { return opened().usable ? &opened().table : nullptr; }
const SharedLibrary& dnn_file() { return opened().file; }

void must(cudnnStatus_t status, const char* doing) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  raise_if_lost(doing);
  int32_t code = status == CUDNN_STATUS_NOT_SUPPORTED ? AJ_UNIMPLEMENTED : AJ_INTERNAL;
  kit::raise(code, "cuda: cuDNN: ", doing, ": ", dnn().GetErrorString(status), " (", int(status),
             "), found as ", dnn_file().where());
}

}  // namespace adjoin::vendor
