// plugins/pch/packs.hpp: what most files of an op pack read, compiled once where a build asks for
// it
// (-Db_pch=true).
#include <adjoin/kit/ops.hpp>
// in no file twice
#include <adjoin/kit/grad.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
