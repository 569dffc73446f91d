// frontends/cli/pch/cli.hpp: what most files of the command read, compiled once where a build asks
// for it (-Db_pch=true).
#include <adjoin/kit/call.hpp>
#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>
