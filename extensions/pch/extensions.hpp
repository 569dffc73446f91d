// extensions/pch/extensions.hpp: what most files of an extension read, compiled once where a build
// asks for it (-Db_pch=true).
#include <adjoin/kit/ops.hpp>
// in no file twice
#include <adjoin/kit/grad.hpp>
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>
