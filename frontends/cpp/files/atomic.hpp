// adjoin/files/atomic.hpp: a file that appears whole or not at all: written without a name, flushed
// to the disk, renamed over the old one. Whoever is killed meanwhile leaves the old file and, where
// the file system can, nothing else.
#ifndef ADJOIN_FILES_ATOMIC_HPP
#define ADJOIN_FILES_ATOMIC_HPP
#include <sys/statvfs.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "direct.hpp"
#include "mapping.hpp"

namespace adjoin {
namespace AJ_HIDDEN files {

class AtomicFile {
 public:
  // nameless: while it is written, where the file system can; otherwise a hidden name beside the
  // old file.
  explicit AtomicFile(const std::string& path, bool nameless = true) : shown_(path), path_(path) {
    char target[PATH_MAX];
    if (realpath(path.c_str(), target))
      path_ = target;  // a link stays a link
    else if (errno == ELOOP)
      wrong(errno);
    else
      follow_links();
    size_t slash = path_.rfind('/');
    folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path_.substr(0, slash);
    struct stat old {};
    bool there = stat(path_.c_str(), &old) == 0;
    if (there && S_ISDIR(old.st_mode)) wrong(EISDIR);
    if (there && access(path_.c_str(), W_OK) != 0) wrong(errno);  // a rename would not ask
    plain_ = there && !S_ISREG(old.st_mode);                      // a device or a pipe
    if (plain_) {
      file_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    } else {
      open_new(nameless && access("/proc/self/fd", X_OK) == 0);
    }
    if (file_ < 0) wrong(errno);
    if (there && !plain_) (void)!fchmod(file_, old.st_mode & 07777);
  }
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() {
    direct_.stop();
    if (file_ >= 0) close(file_);
    if (!name_.empty()) unlink(name_.c_str());
  }

  // Takes the room before the work is done, where the file system can.
  void reserve(uint64_t bytes) {
    wanted_ = bytes;
    if (plain_ || bytes == 0) return;
    bool taken = fallocate(file_, 0, 0, off_t(bytes)) == 0;
    if (!taken && (errno == ENOSPC || errno == EFBIG || errno == EDQUOT)) wrong(errno);
    // Without its room a file grows block by block, and each waits for the one before.
    if (taken && bytes >= kLarge && at_ == 0) direct_.start(file_);
  }

  // Memory for the next bytes, which advance() takes over without a copy; empty where write() is
  // the way.
  std::span<char> space() {
    if (!direct_.on()) return {};
    std::span<char> found = direct_.space();
    if (found.empty()) wrong(direct_.error());
    return found;
  }
  void advance(size_t n) {
    at_ += n;
    if (int error = direct_.advance(n)) wrong(error);
  }

  void write(const void* data, size_t n) {
    auto* p = static_cast<const char*>(data);
    while (n && direct_.on()) {
      std::span<char> to = space();
      size_t part = std::min(n, to.size());
      std::memcpy(to.data(), p, part);
      advance(part);
      p += part, n -= part;
    }
    if (direct_.on()) return;
    while (n) {
      ssize_t done = ::write(file_, p, std::min(n, size_t(1) << 30));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) wrong(errno);
      p += done, n -= size_t(done), at_ += uint64_t(done);
    }
    if (!plain_ && at_ - started_ >= kAhead) {  // the disk works while the next bytes are made
      sync_file_range(file_, off64_t(started_), off64_t(at_ - started_), SYNC_FILE_RANGE_WRITE);
      started_ = at_;
    }
  }

  // Until here nothing has happened to the old file; after it the new one is there.
  void commit() {
    if (plain_) return;
    if (direct_.on())
      if (int error = direct_.finish()) wrong(error);
    if (ftruncate(file_, off_t(at_)) != 0 || fsync(file_) != 0) wrong(errno);
    if (name_.empty()) give_name();
    if (rename(name_.c_str(), path_.c_str()) != 0) wrong(errno);
    name_.clear();
    int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) fsync(folder), close(folder);
  }

 private:
  // Links that lead to a file that is not there yet.
  void follow_links() {
    char to[PATH_MAX];
    for (ssize_t n; (n = readlink(path_.c_str(), to, sizeof to)) > 0;) {
      size_t slash = *to == '/' ? 0 : path_.rfind('/') + 1;
      path_.replace(slash, std::string::npos, to, size_t(n));
    }
  }

  static constexpr uint64_t kAhead = 16u << 20, kLarge = 32u << 20;

  std::string temporary(int turn) const {
    size_t slash = path_.rfind('/');
    std::string last = slash == std::string::npos ? path_ : path_.substr(slash + 1);
    return kit::text(folder_, "/.", last.substr(0, 200), ".", int64_t(getpid()), "-", turn,
                     ".part");
  }

  void open_new(bool nameless) {
    if (nameless) {
      file_ = open(folder_.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
      if (file_ >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return;
    }
    for (int turn = 0; file_ < 0 && turn < 100; ++turn) {
      name_ = temporary(turn);
      file_ = open(name_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
      if (file_ < 0 && errno != EEXIST) break;
    }
    if (file_ < 0) name_.clear();
  }

  void give_name() {
    std::string self = kit::text("/proc/self/fd/", file_);
    for (int turn = 0; turn < 100; ++turn) {
      std::string name = temporary(turn);
      if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        name_ = name;
        return;
      }
      if (errno != EEXIST) break;
    }
    wrong(errno);
  }

  [[noreturn]] void wrong(int error) const {
    struct stat info {};
    if (error == ENOENT && stat(folder_.c_str(), &info) != 0)
      kit::raise_as("FileNotFoundError", AJ_NOT_FOUND, "save: '", shown_, "': the folder '",
                    folder_, "' does not exist; make it first");
    struct statvfs room {};
    if (error == ENOSPC && statvfs(folder_.c_str(), &room) == 0)
      kit::raise_as("OSError", AJ_UNAVAILABLE, "save: '", shown_,
                    "': the disk is full: ", wanted_ >> 20, " MB wanted, ",
                    uint64_t(room.f_bavail) * room.f_frsize >> 20,
                    " MB free; what was there before is untouched");
    if (error == EFBIG)
      kit::raise_as("OSError", AJ_UNAVAILABLE, "save: '", shown_, "': ", wanted_ >> 20,
                    " MB are more than a file may have here (ulimit -f, or the file system's "
                    "limit); what was there before is untouched");
    raise_errno(error, "save: '", shown_, "': ");
  }

  std::string shown_, path_, folder_, name_;
  int file_ = -1;
  bool plain_ = false;
  uint64_t at_ = 0, started_ = 0, wanted_ = 0;
  DirectBlocks direct_;
};

}  // namespace files
}  // namespace adjoin
#endif
