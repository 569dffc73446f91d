// adjoin/files/mapping.hpp: a file in memory: read if it is small; else mapped privately, so that
// pages are read when they are used and what is written to them stays in the process.
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

// What uses the memory keeps the mapping alive by a shared_ptr. A mapped file that somebody cuts
// short ends the process when a page that is gone is touched, so files below 64 MB are read.
class Mapping {
 public:
  static constexpr size_t kMapped = 64u << 20;

  explicit Mapping(const std::string& path, size_t mapped_from = kMapped) {
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
    heap_ = size < mapped_from;
    void* p =
        error || !size ? nullptr
        : heap_        ? std::malloc(size)
                : mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (p == MAP_FAILED || (heap_ && size && !p)) error = error ? error : errno;
    if (heap_ && !error) error = fill(file, static_cast<char*>(p));
    close(file);
    if (error) {
      if (heap_) std::free(p);
      raise_errno(error, "load: '", path, "': ");
    }
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
  // An errno or 0. A file that got shorter meanwhile is what it is now.
  int fill(int file, char* to) {
    for (size_t at = 0; at < size;) {
      ssize_t n = read(file, to + at, size - at);
      if (n < 0 && errno != EINTR) return errno;
      if (n == 0) size = at;
      if (n > 0) at += size_t(n);
    }
    return 0;
  }

  bool heap_ = false;
};

}  // namespace files
}  // namespace adjoin
#endif
