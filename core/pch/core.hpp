// core/pch/core.hpp: what most files of the core read, compiled once where a build asks for it
// (-Db_pch=true): those whose optimizer does little. The object cache serves other folders only
// without.
#include <adjoin/kit/ops.hpp>
// in no file twice
#include <adjoin/kit/grad.hpp>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>
