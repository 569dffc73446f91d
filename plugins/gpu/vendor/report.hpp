// plugins/gpu/vendor/report.hpp: what a vendor's plugin tells of itself: its devices, the libraries
// that it found, and where.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_REPORT_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_REPORT_HPP
#include <adjoin/abi/report.h>

#include <adjoin/kit/plugin.hpp>

namespace adjoin::vendor {

extern const aj_report report;

// Offers the report, and the libraries' products, factorisations and transforms
// at `priority`. Services are under the name in the
// plugin's note, so that a second plugin, for another version of the vendor's runtime, has its own.
void offer_services(kit::Registrar& plugin, const aj_plugin_note& note, int32_t priority);

// The plugin's own: a line each; opens what was not opened yet.
std::string describe_libraries();

}  // namespace adjoin::vendor
#endif
