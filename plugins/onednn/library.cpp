// plugins/onednn/library.cpp: opening libdnnl and binding what is called of it.
#include "library.hpp"

#include <adjoin/kit/library.hpp>
#include <string>

namespace adjoin::onednn {
namespace {

using namespace kit;

template <class F>
bool bind(void* handle, const char* name, F* out) {
  return (*out = reinterpret_cast<F>(dlsym(handle, name))) != nullptr;
}

std::string open(Library* to) {
  // By the name that the headers' version has: another one would have other descriptors.
  std::string why;
  void* handle = open_library("onednn", "libdnnl.so.2", &why);
  if (!handle) return why;
#define AJ_BIND_(name) \
  if (!bind(handle, "dnnl_" #name, &to->name)) return "it has no dnnl_" #name;
  AJ_DNNL_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
  // dlsym looks into what the library itself is linked with.
  if (!bind(handle, "omp_get_max_threads", &to->omp_get_max_threads) ||
      !bind(handle, "omp_set_num_threads", &to->omp_set_num_threads))
    to->omp_set_num_threads = nullptr;
  if (to->engine_create(&to->engine, dnnl_cpu, 0) != dnnl_success) return "it makes no CPU engine";
  // Each bit of an instruction set's number is a feature; wider sets contain the narrower's bits.
  int isa = to->get_effective_cpu_isa(), wanted = dnnl_cpu_isa_avx512_core_bf16;
  to->bfloat16 = (isa & wanted) == wanted;
  return {};
}

}  // namespace

const Library* Library::find() {
  static const Library* one = []() -> const Library* {
    auto* made =
        new Library();  // never destroyed: threads may still compute while the process exits
    std::string why = open(made);
    if (why.empty()) return opened = made;
    core().log(2, AJ_STR_LIT("onednn"), str("libdnnl.so.2 does not serve: " + why));
    delete made;
    return nullptr;
  }();
  return one;
}

void must(dnnl_status_t status, const char* doing) {
  if (status == dnnl_success) return;
  int32_t code = status == dnnl_out_of_memory   ? AJ_OUT_OF_MEMORY
                 : status == dnnl_unimplemented ? AJ_UNIMPLEMENTED
                                                : AJ_INTERNAL;
  raise(code, "onednn: ", doing, ": the library answers ", int(status));
}

dnnl_stream_t stream() {
  thread_local dnnl_stream_t one = [] {
    dnnl_stream_t made = nullptr;  // as long as the process: threads are few
    must(dnnl().stream_create(&made, dnnl().engine, dnnl_stream_default_flags), "a stream");
    return made;
  }();
  return one;
}

}  // namespace adjoin::onednn
