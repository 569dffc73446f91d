// core/service/services.hpp: swappable tables by slot, as the contract's service.h gives them out.
#pragma once
#include <adjoin/abi/service.h>

#include <string>
#include <string_view>

#include "core/base/status.hpp"

namespace adjoin {

extern const aj_services services_table;

aj_status* service_add(const aj_service_def& d, std::string_view plugin);
aj_status* service_peek(aj_str slot,
                        aj_service_def* io);         // the first, for a look under the load lock
std::string service_given(std::string_view plugin);  // one whose table somebody may keep, or empty
std::string service_summary(std::string_view plugin);  // a line a service, for people
void service_remove(std::string_view plugin);          // everything that a plugin offers

}  // namespace adjoin
