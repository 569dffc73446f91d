// frontends/cli/doctor/libraries.cpp: who multiplies matrices, and copies of BLAS and OpenMP that
// are in one process at once.
#include <adjoin/abi/service.h>
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "doctor.hpp"

namespace adjoin::cli::doctor {
namespace {

namespace fs = std::filesystem;

std::string after_link(const std::string& path) {
  std::error_code none;
  fs::path real = fs::canonical(path, none);
  return none ? path : real.string();
}

// The library's own word, else the version in the name of its file.
std::string version_of(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  std::string told;
  for (const char* name : {"openblas_get_config", "openblas_get_config64_",
                           "scipy_openblas_get_config", "bli_info_get_version_str"})
    if (void* get = handle ? dlsym(handle, name) : nullptr; get && told.empty())
      if (const char* s = reinterpret_cast<const char* (*)()>(get)()) told = s;
  if (handle) dlclose(handle);
  if (!told.empty()) return told.substr(0, told.find_last_not_of(' ') + 1);
  return fs::path(after_link(path)).filename().string();
}

// Folders of shared libraries that a wheel brings for itself, under names of its own.
bool is_private(const std::string& path) {
  return path.find(".libs/") != std::string::npos || path.find("/torch/lib/") != std::string::npos;
}

struct Kind {
  const char* begins;  // of a file's name
  const char* family;  // several files of one family in one folder are one copy
};
constexpr Kind kBlas[] = {{"libopenblas", "OpenBLAS"},
                          {"libscipy_openblas", "OpenBLAS"},
                          {"libblis", "BLIS"},
                          {"libmkl_", "MKL"},
                          {"libblas.so", "BLAS"},
                          {"libcblas.so", "BLAS"},
                          {"libarmpl", "Arm Performance Libraries"},
                          {"libnvpl_blas", "NVPL"}};
constexpr Kind kOpenMp[] = {{"libgomp", "GNU"}, {"libiomp5", "Intel"}, {"libomp", "LLVM"}};

// Family and folder -> one of its files.
template <size_t N>
std::map<std::string, std::string> copies(const std::set<std::string>& files,
                                          const Kind (&kinds)[N]) {
  std::map<std::string, std::string> found;
  for (const std::string& file : files) {
    std::string name = fs::path(file).filename().string();
    for (const Kind& kind : kinds)
      if (name.starts_with(kind.begins)) {
        found.emplace(kind.family + (" in " + fs::path(file).parent_path().string()), file);
        break;
      }
  }
  return found;
}

std::set<std::string> mapped(const std::string& maps) {
  std::set<std::string> files;
  std::ifstream from(maps);
  for (std::string line; std::getline(from, line);) {
    size_t at = line.find('/');
    if (at != line.npos && line.find(".so", at) != line.npos)
      files.insert(after_link(line.substr(at)));
  }
  return files;
}

std::string joined(const std::map<std::string, std::string>& found) {
  std::string all;
  for (const auto& [family, file] : found) all += (all.empty() ? "" : ", ") + file;
  return all;
}

void judge_blas(Findings& out, const std::map<std::string, std::string>& found) {
  std::map<std::string, std::string> shared;
  for (const auto& entry : found)
    if (!is_private(entry.second)) shared.insert(entry);
  if (found.empty()) return out.fine("BLAS in process", "none but our own");
  if (found.size() == 1) return out.fine("BLAS in process", joined(found));
  std::string text = std::to_string(found.size()) + " copies: " + joined(found);
  if (secure_getenv("ADJOIN_BLAS"))
    out.note("BLAS in process", text + "; ADJOIN_BLAS asks for some");
  else if (shared.size() < 2)
    out.note("BLAS in process", text + "; a wheel's own copy keeps its own threads",
             "OPENBLAS_NUM_THREADS=1 where both compute");
  else
    out.complaint("BLAS in process", text + "; each has its own threads and memory",
                  "ADJOIN_BLAS=own uses none of them; or keep one installed");
}

}  // namespace

void look_at_libraries(Findings out) {
  auto* services = static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
  std::set<std::string> slots;
  for (const aj_plugin_info& p : list_plugins())
    for (const std::string& what : split(text(p.provides), ';'))
      if (what.starts_with("service:aj.blas/") && p.state == AJ_PLUGIN_LOADED)
        slots.insert(what.substr(8));
  for (const std::string& slot : slots)
    for (uint32_t i = 0; services && i < services->count(borrow(slot)); ++i) {
      aj_service_def def = {};
      def.struct_size = sizeof def;
      check(services->at(borrow(slot), i, &def));
      // Those of the lowest priority serve only by name: asking would open them.
      if (def.priority <= -100) continue;
      auto* blas = static_cast<const aj_blas*>(def.table);
      std::string path = AJ_HAS_FN(blas, aj_blas, path) ? text(blas->path(blas->self)) : "";
      std::string line = text(def.name) + (i == 0 ? " (first)" : "");
      line += path.empty() ? ": not opened" : ": " + version_of(path) + ", " + path;
      out.fine(slot.substr(3), line);
    }
}

void look_at_copies(Findings out, const std::string& maps) {
  std::set<std::string> files = mapped(maps);
  if (files.empty())
    return out.complaint("libraries", maps + " cannot be read",
                         "name a process of your own that runs");
  judge_blas(out, copies(files, kBlas));
  auto openmp = copies(files, kOpenMp);
  if (openmp.size() < 2)
    out.fine("OpenMP in process", openmp.empty() ? "none" : joined(openmp));
  else
    out.complaint("OpenMP in process",
                  std::to_string(openmp.size()) + " runtimes: " + joined(openmp) +
                      "; their threads compete, and some abort",
                  "install one of the libraries that bring them in another build (adjoin plugins "
                  "why NAME tells who brought which)");
}

}  // namespace adjoin::cli::doctor
