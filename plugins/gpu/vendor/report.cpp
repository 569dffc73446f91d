// plugins/gpu/vendor/report.cpp: the lines that `adjoin plugins why` shows of a vendor's plugin.
#include "report.hpp"

#include <adjoin/kit/library.hpp>

#include "fourier.hpp"
#include "fourier_library.hpp"
#include "product.hpp"
#include "solver.hpp"
#include "solver_library.hpp"
#include "status.hpp"

namespace adjoin::vendor {
namespace {

std::string devices() {
  std::string why = missing(), lines = kit::text("kernels for ", AJ_GPU_ARCHS, "\n");
  if (!why.empty()) return kit::text(lines, "device ", kDevice, ": ", why, "\n");
  int32_t n = count_devices();
  lines += kit::text("device ", kDevice, ": ", n, n == 1 ? " device\n" : " devices\n");
  // Their names only if asking does not start the runtime: forks may follow.
  for (int32_t i = 0; used() && i < n; ++i) {
    aj_device_props p = {};
    if (describe(i, &p) == kSuccess)
      lines += kit::text("device ", kDevice, ":", i, ": ", static_cast<const char*>(p.name), ", ",
                         static_cast<const char*>(p.arch), ", ", p.total_memory >> 20, " MiB\n");
  }
  return lines;
}

std::string named(const char* library, const std::string& plugin) {
  return plugin == kDevice ? library : library + ("@" + plugin);
}

aj_status* lines(void*, aj_object** out) {
  return kit::guard(kDevice, [&] {
    kit::check(kit::core().string_new(kit::str(devices() + describe_libraries()), out));
  });
}

}  // namespace

const aj_report report = {sizeof(aj_report), 0, nullptr, lines};

void offer_services(kit::Registrar& plugin, const aj_plugin_note& note, int32_t priority) {
  kit::bind_libraries(plugin.env());
  static const std::string name = note.name, own = "aj.report/" + name,
                           blas = std::string("aj.blas/") + kDevice,
                           linalg = std::string("aj.linalg/") + kDevice,
                           library = named(kBlasName, name),
                           solver = named(solver_words.name, name);
  static const std::string fft = std::string("aj.fft/") + kDevice,
                           fourier = named(fourier_words.name, name);
  static const aj_linalg factoring = linalg_offer();
  static const aj_fft transforming = fourier_offer(name);
  plugin.service(own.c_str(), name.c_str(), &report, 0);
  plugin.service(blas.c_str(), library.c_str(), &blas_table, priority);
  plugin.service(linalg.c_str(), solver.c_str(), &factoring, priority);
  plugin.service(fft.c_str(), fourier.c_str(), &transforming, priority);
}

}  // namespace adjoin::vendor
