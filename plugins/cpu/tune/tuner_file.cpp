// plugins/cpu/tune/tuner_file.cpp: where measured choices lie, and whether they are this machine's.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <cerrno>
#include <cstdlib>

#include "cpu/product/gemm.hpp"
#include "cpu/product/providers.hpp"
#include "tuner.hpp"
#include "vector/isa.hpp"

namespace adjoin::cpu {
namespace {

using namespace kit;

constexpr size_t kLargestFile = 64 << 20;

struct File {
  int fd;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

std::string why() { return std::strerror(errno); }

std::string read_all(int fd, size_t most) {
  std::string text;
  char block[1 << 16];
  while (text.size() <= most) {
    ssize_t n = read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) raise(AJ_UNAVAILABLE, why());
    if (n == 0) return text;
    text.append(block, size_t(n));
  }
  raise(AJ_INVALID_ARGUMENT, "it is larger than ", most, " bytes");
}

void make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1); at != path.npos; at = path.find('/', at + 1))
    if (mkdir(path.substr(0, at).c_str(), 0755) != 0 && errno != EEXIST)
      raise(AJ_UNAVAILABLE, "the folder ", path.substr(0, at), " cannot be made: ", why());
}

}  // namespace

std::string this_processor() {
  static const std::string found = [] {
    File file{open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC)};
    std::string all = file.fd < 0 ? "" : read_all(file.fd, kLargestFile), out;
    for (const char* field :
         {"vendor_id", "cpu family", "model\t", "model name", "CPU implementer", "CPU part"}) {
      size_t at = all.find(std::string("\n") + field);
      if (all.compare(0, std::strlen(field), field) == 0) at = 0;
      size_t value = at == all.npos ? at : all.find(": ", at);
      if (value == all.npos) continue;
      if (!out.empty()) out += ' ';
      out += all.substr(value + 2, all.find('\n', value) - value - 2);
    }
    const char* sets[] = {"none", "base", "avx2", "avx512"};
    return out + ", " + sets[int(isa())];
  }();
  return found;
}

std::string tuning_place() {
  if (const char* set = secure_getenv("ADJOIN_TUNING")) return set;
  const char* cache = secure_getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/adjoin/products";
  const char* home = secure_getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/adjoin/products" : "";
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

Choices read_choices(const std::string& path) {
  File file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};  // a pipe would never end
  struct stat found;
  if (file.fd < 0 || fstat(file.fd, &found) != 0) raise(AJ_UNAVAILABLE, why());
  if (!S_ISREG(found.st_mode)) raise(AJ_INVALID_ARGUMENT, "it is no plain file");
  if ((found.st_uid != 0 && found.st_uid != geteuid()) || (found.st_mode & S_IWOTH))
    raise(AJ_PERMISSION, "it belongs to somebody else, or may be written by everybody");
  return Choices::parse(read_all(file.fd, kLargestFile));
}

void write_file(const std::string& path, const std::string& text) {
  make_folders(path);
  std::string temporary = path + ".XXXXXX";
  File file{mkostemp(temporary.data(), O_CLOEXEC)};
  if (file.fd < 0) raise(AJ_UNAVAILABLE, path, " cannot be written: ", why());
  bool good = fchmod(file.fd, 0644) == 0;
  for (size_t at = 0; good && at < text.size();) {
    ssize_t n = write(file.fd, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    at += good ? size_t(n) : 0;
  }
  good = good && fsync(file.fd) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return;
  std::string reason = why();
  unlink(temporary.c_str());
  raise(AJ_UNAVAILABLE, path, " cannot be written: ", reason);
}

void check_is_of_here(const Choices& choices) {
  if (choices.processor != this_processor())
    raise(AJ_INVALID_ARGUMENT, "it was measured on another processor (", choices.processor,
          "), here is ", this_processor());
  Choices::Provider own = described({"own", &own_blas});
  for (const Choices::Provider& p : choices.providers)
    if (p.name == own.name && (p.bytes != own.bytes || p.file != own.file))
      raise(AJ_INVALID_ARGUMENT, "it was measured with another version of ", own.file, " (",
            p.bytes, " bytes, here ", own.bytes, ")");
}

}  // namespace adjoin::cpu
