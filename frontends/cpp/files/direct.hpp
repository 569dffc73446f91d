// adjoin/files/direct.hpp: large files go to the disk past the page cache: several blocks under way
// at a time, while the next one is filled. Who has to wait for the disk anyway gains nothing by a
// copy in the cache, and half a gigabyte of fresh pages costs more than the disk itself.
//
// Linux's own asynchronous calls (io_setup(2)) need no thread and are there in containers too.
#ifndef ADJOIN_FILES_DIRECT_HPP
#define ADJOIN_FILES_DIRECT_HPP
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace adjoin {
namespace AJ_HIDDEN files {

// A context to give requests to. Ending one costs the kernel some 30 ms, so the last is kept for
// the next file; a forked child has none of its parent's.
class RequestContext {
 public:
  static aio_context_t take(size_t requests) {
    aio_context_t found = spare().exchange(0);
    if (found && owner().load() == getpid()) return found;
    found = 0;
    return syscall(SYS_io_setup, requests, &found) == 0 ? found : 0;
  }
  // idle: nothing is under way.
  static void give(aio_context_t context, bool idle) {
    if (idle) {
      owner().store(getpid());
      context = spare().exchange(context);
    }
    if (context) syscall(SYS_io_destroy, context);  // waits for what is under way
  }

 private:
  static std::atomic<aio_context_t>& spare() {
    static std::atomic<aio_context_t> kept{0};
    return kept;
  }
  static std::atomic<pid_t>& owner() {
    static std::atomic<pid_t> pid{0};
    return pid;
  }
};

// Writes a file from its begin to its end. Functions give an errno, 0 for success.
class DirectBlocks {
 public:
  static constexpr size_t kBlock = 512u << 10, kBlocks = 16, kAlign = 4096;

  DirectBlocks() = default;
  DirectBlocks(const DirectBlocks&) = delete;
  DirectBlocks& operator=(const DirectBlocks&) = delete;
  ~DirectBlocks() { stop(); }

  // Whether the file system and the kernel can; if not, nothing has changed.
  bool start(int file) {
    int flags = fcntl(file, F_GETFL);
    if (flags < 0 || fcntl(file, F_SETFL, flags | O_DIRECT) != 0) return false;
    file_ = file, flags_ = flags, direct_ = true;
    memory_ = static_cast<char*>(std::aligned_alloc(kAlign, kBlock * kBlocks));
    if (!memory_ || !(context_ = RequestContext::take(kBlocks))) {
      stop();
      return false;
    }
    requests_.resize(kBlocks);
    for (size_t i = 0; i < kBlocks; ++i) free_.push_back(i);
    return true;
  }
  bool on() const { return memory_ != nullptr; }

  // Where the next bytes belong; empty after an error.
  std::span<char> space() {
    if (filled_ == kBlock || !open_) {
      while (free_.empty() && !error_) reap();
      if (error_) return {};
      block_ = free_.back();
      free_.pop_back();
      filled_ = 0, open_ = true;
    }
    return {memory_ + block_ * kBlock + filled_, kBlock - filled_};
  }

  // So many bytes of space() are there.
  int advance(size_t n) {
    filled_ += n;
    if (filled_ == kBlock) submit();
    return error_;
  }

  // All bytes have gone to the disk, except for the last few: fsync() brings those.
  int finish() {
    size_t last = open_ ? filled_ : 0;
    if (!error_ && last >= kAlign) {
      size_t whole = last / kAlign * kAlign;
      put(memory_ + block_ * kBlock, whole, at_);  // one call more is nothing
      std::copy_n(memory_ + block_ * kBlock + whole, last - whole, memory_ + block_ * kBlock);
      at_ += whole, last -= whole;
    }
    while (under_way_ && !lost_) reap();
    through_cache();
    if (!error_ && last) put(memory_ + block_ * kBlock, last, at_);
    stop();
    return error_;
  }

  int error() const { return error_; }

  // Before the file is closed.
  void stop() {
    if (context_) RequestContext::give(context_, under_way_ == 0);
    context_ = 0, under_way_ = 0, open_ = false;
    through_cache();
    std::free(memory_);
    memory_ = nullptr;
  }

 private:
  void through_cache() {
    if (direct_) fcntl(file_, F_SETFL, flags_);
    direct_ = false;
  }

  void submit() {
    iocb& r = requests_[block_];
    r = {};
    r.aio_data = block_;
    r.aio_lio_opcode = IOCB_CMD_PWRITE;
    r.aio_fildes = uint32_t(file_);
    r.aio_buf = reinterpret_cast<uint64_t>(memory_ + block_ * kBlock);
    r.aio_nbytes = kBlock;
    r.aio_offset = int64_t(at_);
    iocb* list = &r;
    at_ += kBlock;
    open_ = false;
    if (direct_ && syscall(SYS_io_submit, context_, 1L, &list) == 1) {
      ++under_way_;
    } else {
      put(memory_ + block_ * kBlock, kBlock, uint64_t(r.aio_offset));
      free_.push_back(block_);
    }
  }

  // Waits until a block is free again.
  void reap() {
    io_event events[kBlocks];
    long n = syscall(SYS_io_getevents, context_, 1L, long(kBlocks), events, nullptr);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) {
      error_ = error_ ? error_ : EIO, lost_ = true;
      return;
    }
    for (long i = 0; i < n; ++i) {
      size_t block = size_t(events[i].data);
      size_t done = events[i].res < 0 ? 0 : size_t(events[i].res);
      int refused = events[i].res < 0 ? int(-events[i].res) : 0;
      if (refused && refused != EINVAL)
        error_ = error_ ? error_ : refused;
      else if (done < kBlock)  // a file system with needs of its own: by way of the cache, then
        put(memory_ + block * kBlock + done, kBlock - done,
            uint64_t(requests_[block].aio_offset) + done);
      free_.push_back(block);
      --under_way_;
    }
  }

  void put(const char* data, size_t n, uint64_t at) {
    while (n && !error_) {
      ssize_t done = pwrite(file_, data, n, off_t(at));
      if (done >= 0)
        data += done, n -= size_t(done), at += uint64_t(done);
      else if (errno == EINVAL && direct_)
        through_cache();
      else if (errno != EINTR)
        error_ = errno;
    }
  }

  int file_ = -1, flags_ = 0, error_ = 0;
  bool direct_ = false, open_ = false, lost_ = false;  // lost: nobody tells how requests ended
  char* memory_ = nullptr;
  aio_context_t context_ = 0;
  std::vector<iocb> requests_;
  std::vector<size_t> free_;
  size_t block_ = 0, filled_ = 0, under_way_ = 0;
  uint64_t at_ = 0;
};

}  // namespace files
}  // namespace adjoin
#endif
