// adjoin/files/mapping.hpp: a file in memory: mapped privately, so that pages are read when they
// are used and what is written to them stays in the process.
#ifndef ADJOIN_FILES_MAPPING_HPP
#define ADJOIN_FILES_MAPPING_HPP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace adjoin {
namespace AJ_HIDDEN files {

// An errno as an error that Python shows as its own kind of OSError.
template <class... Part>
[[noreturn]] void raise_errno(int error, const Part&... parts) {
  bool absent = error == ENOENT || error == ENOTDIR,
       denied = error == EACCES || error == EPERM || error == EROFS;
  kit::raise_as(absent            ? "FileNotFoundError"
                : denied          ? "PermissionError"
                : error == EISDIR ? "IsADirectoryError"
                                  : "OSError",
                absent   ? AJ_NOT_FOUND
                : denied ? AJ_PERMISSION
                         : AJ_UNAVAILABLE,
                parts..., std::strerror(error));
}

// What uses the memory keeps the mapping alive by a shared_ptr.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) raise_errno(errno, "load: '", path, "': ");
    struct stat info {};
    int error = fstat(file, &info) ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
    if (!error && !S_ISREG(info.st_mode)) {
      close(file);
      kit::raise_as("OSError", AJ_INVALID_ARGUMENT, "load: '", path,
                    "' is no ordinary file and cannot be mapped; open it and give the open file");
    }
    size = size_t(info.st_size);
    void* p = !error && size ? mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_NORESERVE, file, 0)
                             : nullptr;
    if (p == MAP_FAILED) error = errno;
    close(file);
    if (error) raise_errno(error, "load: '", path, "': ");
    data = static_cast<char*>(p);
  }
  // A copy of bytes in memory, for those who have no file.
  static std::shared_ptr<Mapping> of(std::string_view bytes) {
    auto made = std::make_shared<Mapping>();
    made->data = static_cast<char*>(std::malloc(std::max<size_t>(bytes.size(), 1)));
    if (!made->data) throw std::bad_alloc();
    std::memcpy(made->data, bytes.data(), bytes.size());
    made->size = bytes.size();
    made->heap_ = true;
    return made;
  }
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (heap_)
      std::free(data);
    else if (data)
      munmap(data, size);
  }
  std::string_view text() const { return {data, size}; }

  // The bytes will be read soon: the disk may bring them while others are still asked for.
  void expect(uint64_t at, uint64_t n) const {
    static const auto page = uint64_t(sysconf(_SC_PAGESIZE));
    if (heap_ || at >= size) return;
    uint64_t begin = at / page * page;
    madvise(data + begin, std::min(at + n, uint64_t(size)) - begin, MADV_WILLNEED);
  }

  char* data = nullptr;
  size_t size = 0;

 private:
  bool heap_ = false;
};

}  // namespace files
}  // namespace adjoin
#endif
