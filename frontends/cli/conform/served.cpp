// frontends/cli/conform/served.cpp: starts the child, reads its lines, ends it; a parent that is
// killed takes it along.
#include "served.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "../orphan.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<pid_t> running;  // the group that a signal to us is meant for, too

void end_both(int number) {
  if (pid_t group = running) kill(-group, SIGKILL);
  signal(number, SIG_DFL);
  raise(number);
}

std::runtime_error failed(const char* what) {
  return std::runtime_error(std::string("conform: ") + what + ": " + strerror(errno));
}

}  // namespace

Served::Served(const std::vector<std::string>& words) {
  for (int number : {SIGINT, SIGTERM, SIGHUP})
    if (signal(number, end_both) == SIG_IGN) signal(number, SIG_IGN);
  int ends[2];
  if (pipe(ends) != 0) throw failed("no pipe");
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  std::vector<std::string> all = {"adjoin", "conform", "--serve", std::to_string(ends[1])};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& w : all) argv.push_back(w.data());
  argv.push_back(nullptr);
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw failed("cannot fork");
  if (pid_ == 0) {
    setpgid(0, 0);
    end_with(parent);
    int quiet = open("/dev/null", O_WRONLY);  // what a plugin prints is no report
    if (quiet >= 0) dup2(quiet, 1);
    execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  setpgid(pid_, pid_);  // whichever of the two is first
  running = pid_;
  close(ends[1]);
  fd_ = ends[0];
}

Served::~Served() {
  end();
  close(fd_);
}

bool Served::line(std::string& out, double seconds) {
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    size_t end = buffer_.find('\n');
    if (end != buffer_.npos) {
      out = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return true;
    }
    auto left = std::chrono::duration<double>(deadline - Clock::now()).count();
    late_ = left <= 0;
    if (late_) return false;
    pollfd input = {fd_, POLLIN, 0};
    if (poll(&input, 1, int(left * 1000) + 1) <= 0) continue;
    char bytes[65536];
    ssize_t n = read(fd_, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    buffer_.append(bytes, size_t(n));
  }
}

std::string Served::end() {
  if (pid_ == 0) return {};
  int status = 0;
  bool gone = false;
  for (int i = 0; i < 1000 && !late_ && !gone; ++i) {
    gone = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!gone) usleep(5000);
  }
  running = 0;
  kill(-pid_, SIGKILL);
  if (!gone) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  pid_ = 0;
  if (!gone) return late_ ? "does not come back" : "does not let the process end";
  if (WIFSIGNALED(status)) return std::string("crashes: ") + strsignal(WTERMSIG(status));
  if (WEXITSTATUS(status))
    return "ends the process: exit code " + std::to_string(WEXITSTATUS(status));
  return {};
}

}  // namespace adjoin::cli::conform
