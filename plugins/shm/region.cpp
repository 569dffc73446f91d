// plugins/shm/region.cpp: rank 0 makes the memory, a file without a name; the others find it by the
// store, as a file of rank 0's process. It is gone with the last process.
#include "region.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <cerrno>
#include <chrono>
#include <climits>
#include <fstream>
#include <sstream>

namespace adjoin::shm {

using kit::raise;
using kit::text;

namespace {

constexpr int64_t kAskAgain = 1000;  // us, while rank 0 has not come

std::string first_word_of(const char* file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

// Processes that have the same one see each other's memory and numbers.
std::string machine() {
  char space[64] = "";
  (void)!readlink("/proc/self/ns/pid", space, sizeof space - 1);
  return first_word_of("/proc/sys/kernel/random/boot_id") + "/" + space;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

int64_t now_us() {
  using namespace std::chrono;
  return duration_cast<microseconds>(steady_clock::now().time_since_epoch()).count();
}

void Bell::ring() {
  count_->fetch_add(1);
  if (waiting_->load()) syscall(SYS_futex, count_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(uint32_t seen, int64_t us) {
  const timespec most = {time_t(us / 1'000'000), long(us % 1'000'000 * 1000)};
  waiting_->fetch_add(1);
  if (count_->load() == seen) syscall(SYS_futex, count_, FUTEX_WAIT, seen, &most, nullptr, 0);
  waiting_->fetch_sub(1);
}

Region::Region(const aj_comm_config& c)
    : store_(c.store),
      key_(text("shm/", c.name)),
      rank_(c.rank),
      size_(c.size),
      until_(now_us() + c.timeout_ms * 1000) {
  const size_t each = sizeof(Progress) + kMails * (sizeof(Mail) + kLetter) + 2 * kHalf;
  bytes_ = 64 + size_t(size_) * each;
  if (rank_ == 0) offer();
}

Region::~Region() {
  if (base_) munmap(base_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

void Region::map(int descriptor) {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (at == MAP_FAILED)
    raise(AJ_OUT_OF_MEMORY, "no shared memory of ", bytes_, " bytes: ", std::strerror(errno));
  base_ = static_cast<char*>(at);
  bell_ = Bell(reinterpret_cast<Word*>(base_));
}

void Region::offer() {
  descriptor_ = int(syscall(SYS_memfd_create, "adjoin", 1u /* MFD_CLOEXEC */));
  if (descriptor_ < 0 || ftruncate(descriptor_, off_t(bytes_)) != 0)
    raise(AJ_OUT_OF_MEMORY, "no shared memory of ", bytes_, " bytes: ", std::strerror(errno));
  map(descriptor_);
  if (size_ == 1) return;
  const std::string place =
      text(machine(), " ", host_name(), " /proc/", getpid(), "/fd/", descriptor_);
  kit::check(store_->set(store_->self, kit::str(key_), kit::str(place)));
}

bool Region::open() {
  if (base_) return true;
  const int64_t now = now_us();
  if (now - asked_ < kAskAgain) return false;
  asked_ = now;
  aj_object* found = nullptr;
  if (aj_status* s = store_->get(store_->self, kit::str(key_), 0, &found)) {
    const bool late = now > until_;
    if (kit::core().status_code(s) != AJ_DEADLINE) kit::check(s);
    kit::core().status_free(s);
    if (late) raise(AJ_UNAVAILABLE, "rank 0 of the group has not come: nobody has made its memory");
    return false;
  }
  const std::string place(kit::view_of(kit::core().string_get(found)));
  kit::core().release(found);
  come_to(place);
  return true;
}

void Region::come_to(const std::string& place) {
  std::istringstream words(place);
  std::string theirs, host, file;
  words >> theirs >> host >> file;
  if (theirs != machine())
    raise(AJ_UNAVAILABLE, "shm serves the processes of one machine: rank ", rank_, " is on ",
          host_name(), ", rank 0 on ", host,
          " (or in another container); gloo and mpi serve several machines");
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0)
    raise(AJ_UNAVAILABLE, "the memory of rank 0, ", file,
          ", cannot be opened: ", std::strerror(errno),
          "; the processes must be of one user, and rank 0 must be running");
  struct stat found = {};
  fstat(descriptor, &found);
  const bool good = size_t(found.st_size) == bytes_;
  if (good) map(descriptor);
  close(descriptor);
  if (!good)
    raise(AJ_UNAVAILABLE, file, " has ", int64_t(found.st_size), " bytes, wanted are ", bytes_,
          ": rank 0 has another version of the plugin");
}

Progress& Region::progress(int rank) const { return reinterpret_cast<Progress*>(base_ + 64)[rank]; }
Mail& Region::mail(int rank, uint32_t i) const {
  char* mails = base_ + 64 + size_t(size_) * sizeof(Progress);
  return reinterpret_cast<Mail*>(mails)[size_t(rank) * kMails + i];
}
char* Region::letter(int rank, uint32_t i) const {
  char* letters = base_ + 64 + size_t(size_) * (sizeof(Progress) + kMails * sizeof(Mail));
  return letters + (size_t(rank) * kMails + i) * kLetter;
}
char* Region::half(int rank, uint64_t round) const {
  char* halves =
      base_ + 64 + size_t(size_) * (sizeof(Progress) + kMails * (sizeof(Mail) + kLetter));
  return halves + (size_t(rank) * 2 + (round & 1)) * kHalf;
}

}  // namespace adjoin::shm
