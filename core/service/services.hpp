// core/service/services.hpp: swappable tables by slot, as the contract's service.h gives them out.
#pragma once
#include <adjoin/abi/service.h>

#include <string>
#include <string_view>

#include "core/status.hpp"

namespace adjoin {

extern const aj_services services_table;

aj_status* service_add(const aj_service_def& d, std::string_view plugin);
std::string service_summary(std::string_view plugin);  // a line a service, for people
void service_remove(std::string_view plugin);  // everything that a plugin offers

}  // namespace adjoin
