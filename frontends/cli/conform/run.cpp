// frontends/cli/conform/run.cpp: the parent's half: starts children, listens, and outlives them.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <iostream>

#include "../cli.hpp"
#include "report.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;

class Child {
 public:
  Child(const Words& words, size_t from) {
    int ends[2];
    if (pipe(ends) != 0)
      throw std::runtime_error(std::string("conform: no pipe: ") + strerror(errno));
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    Words all = {"adjoin", "conform", "--serve", std::to_string(ends[1]), std::to_string(from)};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& w : all) argv.push_back(w.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error(std::string("conform: cannot fork: ") + strerror(errno));
    if (pid_ == 0) {
      setpgid(0, 0);
      int quiet = open("/dev/null", O_WRONLY);  // what a plugin prints is no report
      if (quiet >= 0) dup2(quiet, 1);
      execv("/proc/self/exe", argv.data());
      _exit(127);
    }
    close(ends[1]);
    fd_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    end();
    close(fd_);
  }

  // The next line; false when there are none any more, or not within the time.
  bool line(std::string& out, double seconds) {
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

  // Waits for it, or ends it with its own children; says how it ended, "" if well.
  std::string end() {
    if (pid_ == 0) return {};
    int status = 0;
    bool gone = false;
    for (int i = 0; i < 1000 && !late_ && !gone; ++i) {
      gone = waitpid(pid_, &status, WNOHANG) == pid_;
      if (!gone) usleep(5000);
    }
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

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  bool late_ = false;
  std::string buffer_;
};

void progress(size_t done, size_t all, const Record& r) {
  std::string text = std::to_string(done) + "/" + std::to_string(all) + " " + r.name();
  text.resize(70, ' ');
  std::cerr << '\r' << text << std::flush;
}

}  // namespace

Report run_plan(const Settings& settings, const Words& words, double timeout, bool show_progress) {
  Report report;
  report.settings = settings;
  constexpr int kHopeless = 5;
  size_t all = 0, next = 0;
  int in_a_row = 0;  // groups that hang
  for (bool finished = false; !finished;) {
    Child child(words, next);
    Record now;
    bool running = false;
    std::string line, where, failure;
    while (!finished && child.line(line, timeout)) {
      char what = line.empty() ? ' ' : line[0];
      line.erase(0, 1);
      if (what == 'N') all = std::stoul(line);
      if (what == 'X') failure = line;
      if (what == 'C') where = line;
      if (what == 'B') now = from_line(line), running = true, where.clear();
      if (what == 'R') {
        report.records.push_back(from_line(line));
        running = false, ++next, in_a_row = 0;
        if (show_progress) progress(next, all, report.records.back());
      }
      finished = what == 'E';
    }
    std::string ending = child.end();
    if (!failure.empty()) throw std::runtime_error("conform: " + failure);
    if (!finished && !running)
      throw std::runtime_error("conform: the plugin " +
                               (ending.empty() ? "ends the process" : ending) +
                               " while it is loaded or between two checks");
    if (finished && ending.empty()) break;
    if (finished) now = {"end of the process", "", "", {}, 0};
    in_a_row = ending == "does not come back" ? in_a_row + 1 : 0;
    now.verdict.fail((where.empty() ? now.check : where) + ": " +
                     (ending.empty() ? "the process ended" : ending));
    report.records.push_back(now);
    ++next;
    if (in_a_row == kHopeless) {
      Record rest{"the rest", "", "", {}, 0};
      rest.verdict.fail(std::to_string(all - std::min(all, next)) + " groups were not tried: " +
                        std::to_string(kHopeless) + " in a row did not come back");
      report.records.push_back(rest);
      break;
    }
  }
  if (show_progress) std::cerr << '\r' << std::string(72, ' ') << '\r';
  return report;
}

}  // namespace adjoin::cli::conform
