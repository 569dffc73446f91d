// plugins/onednn/report.hpp: what `adjoin doctor` and `adjoin plugins why` show of this plugin.
#ifndef ADJOIN_PLUGINS_ONEDNN_REPORT_HPP
#define ADJOIN_PLUGINS_ONEDNN_REPORT_HPP
#include <adjoin/abi/report.h>

namespace adjoin::onednn {

extern const aj_report report;

}  // namespace adjoin::onednn
#endif
