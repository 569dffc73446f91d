// frontends/python/pch/python.hpp: what most files of the module read, compiled once where a build
// asks for it (-Db_pch=true).
#include "../src/op.hpp"
// in no file twice
#include <adjoin/kit/tape.hpp>
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>
