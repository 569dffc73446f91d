// plugins/cpu/report.hpp: what `adjoin doctor` and `adjoin plugins why` show of this plugin.
#ifndef ADJOIN_PLUGINS_CPU_REPORT_HPP
#define ADJOIN_PLUGINS_CPU_REPORT_HPP
#include <adjoin/abi/report.h>

namespace adjoin::cpu {

extern const aj_report report;

}  // namespace adjoin::cpu
#endif
