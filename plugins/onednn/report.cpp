// plugins/onednn/report.cpp: which oneDNN was found.
#include "report.hpp"

#include <dlfcn.h>

#include <string>

#include "library.hpp"

namespace adjoin::onednn {
namespace {

std::string found() {
  const Library* library = Library::find();
  if (!library)
    return "missing: libdnnl.so.2 (oneDNN): convolutions are the backend's own; "
           "apt-get install libdnnl2\n";
  Dl_info where = {};
  dladdr(reinterpret_cast<const void*>(library->engine_create), &where);
  const dnnl_version_t* v = library->version();
  return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch) + ": " + (where.dli_fname ? where.dli_fname : "?") + "\n";
}

aj_status* lines(void*, aj_object** out) {
  return kit::guard("onednn", [&] { kit::check(kit::core().string_new(kit::str(found()), out)); });
}

}  // namespace

const aj_report report = {sizeof(aj_report), 0, nullptr, lines};

}  // namespace adjoin::onednn
