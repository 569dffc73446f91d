// frontends/cli/trial.cpp: loads a plugin in a child process, so that whatever it does is survived
// and told.
#include "trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>

#include "orphan.hpp"

namespace adjoin::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::string plural(size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

// The child becomes the leader of a process group, so that its own children end with it.
pid_t start(const std::string& path, int write_end) {
  std::string fd = std::to_string(write_end);
  const char* words[] = {"adjoin", "plugins", kTrialCommand, path.c_str(), fd.c_str(), nullptr};
  pid_t parent = getpid(), child = fork();
  if (child < 0)
    throw std::runtime_error(std::string("plugins check: cannot fork: ") + std::strerror(errno));
  if (child > 0) return child;
  setpgid(0, 0);
  end_with(parent);
  execv("/proc/self/exe", const_cast<char**>(words));
  _exit(127);
}

struct Outcome {
  std::string report;
  int status = 0;
  bool late = false;
};

Outcome wait_for(pid_t child, int read_end, double seconds) {
  Outcome outcome;
  auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (bool open = true, running = true; running;) {
    pollfd input = {read_end, POLLIN, 0};
    char bytes[4096];
    if (open && poll(&input, 1, 10) > 0) {
      ssize_t n = read(read_end, bytes, sizeof bytes);
      if (n > 0) outcome.report.append(bytes, static_cast<size_t>(n));
      open = n > 0 || (n < 0 && errno == EINTR);
      continue;
    }
    if (!open) usleep(1000);
    running = waitpid(child, &outcome.status, WNOHANG) == 0;
    if (!running || Clock::now() < deadline) continue;
    outcome.late = true;
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    waitpid(child, &outcome.status, 0);
    running = false;
  }
  return outcome;
}

std::string ending(const Outcome& o, const std::string& when) {
  if (WIFSIGNALED(o.status)) return "crashes " + when + ": " + strsignal(WTERMSIG(o.status));
  return "ends the process " + when + ": exit code " + std::to_string(WEXITSTATUS(o.status));
}

void write_all(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) done += static_cast<size_t>(n);
  }
}

// Has the plugin a kernel for the op on a device that its note promises?
bool serves(const std::string& name, const std::string& promises, const aj_op* op) {
  for (const std::string& what :
       split(promises + ";device:cpu", ';')) {  // ops of its own serve there
    size_t at = what.find(':') + 1, end = what.find('/');
    if (!what.starts_with("device:") && !what.starts_with("kernel:")) continue;
    aj_object* told = nullptr;
    if (aj_status* none = dispatch().op_explain(op, borrow(what.substr(at, end - at)), &told)) {
      core().status_free(none);
      continue;
    }
    bool has = text(core().string_get(told)).find(" plugin " + name + ",") != std::string::npos;
    core().release(told);
    if (has) return true;
  }
  return false;
}

// What is there now that was not before: ops whose provider it is, devices that its note promises.
std::string registered(const std::string& name, const std::string& promises) {
  size_t ops = 0, kernels = 0;
  for (uint32_t i = 0; i < dispatch().op_count(); ++i) {
    aj_op_info info = {};
    info.struct_size = sizeof info;
    check(dispatch().op_info(dispatch().op_at(i), &info));
    ops += text(info.provider) == name;
    kernels += serves(name, promises, dispatch().op_at(i));
  }
  std::string summary = plural(ops, "op") + ", kernels for " + plural(kernels, "op");
  aj_object* why = nullptr;
  check(plugins().why(borrow(name), &why));
  for (const std::string& line : split(text(core().string_get(why)), '\n'))
    if (line.ends_with("an op that nobody defines"))
      summary += "," + line.substr(line.find(" has"));
  core().release(why);
  for (const std::string& what : split(promises, ';')) {
    if (!what.starts_with("device:")) continue;
    int32_t type = 0, count = 0;
    aj_status* none = core().device_find(borrow(what.substr(7)), &type);
    if (!none) none = core().device_count(type, &count);
    summary += ", ";
    summary += none ? text(core().status_message(none))
                    : "device " + what.substr(7) + ": " + std::to_string(count);
    if (none) core().status_free(none);
  }
  return summary;
}

}  // namespace

Trial try_in_child(const std::string& path, double timeout_seconds) {
  int ends[2];
  if (pipe(ends) != 0)
    throw std::runtime_error(std::string("plugins check: no pipe: ") + std::strerror(errno));
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  pid_t child = start(path, ends[1]);
  close(ends[1]);
  Outcome outcome = wait_for(child, ends[0], timeout_seconds);
  close(ends[0]);
  bool loaded = outcome.report.starts_with("ok ") && outcome.report.ends_with('\n');
  bool failed = outcome.report.starts_with("no ") && outcome.report.ends_with('\n');
  std::string told = loaded || failed ? outcome.report.substr(3, outcome.report.size() - 4) : "";
  if (failed) return {false, told};
  if (outcome.late) {
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%g", timeout_seconds);
    return {false, std::string(loaded ? "does not let the process end"
                                      : "does not come back from loading") +
                       " within " + seconds + " s"};
  }
  if (!loaded) return {false, ending(outcome, "while it is loaded")};
  if (outcome.status != 0) return {false, ending(outcome, "when the process ends")};
  return {true, "registers " + told};
}

int run_trial(const Words& words) {
  if (words.size() != 2) throw UsageError("plugins try-load: internal to plugins check");
  int fd = std::stoi(words[1]);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  try {
    check(aj_load_plugin(words[0].c_str()));
    std::string summary = "0 ops";
    for (const aj_plugin_info& p : list_plugins())
      if (p.state == AJ_PLUGIN_LOADED && text(p.path) == words[0])
        summary = registered(text(p.name), text(p.provides));
    write_all(fd, "ok " + summary + "\n");
  } catch (const std::exception& e) {
    write_all(fd, std::string("no ") + e.what() + "\n");
  }
  return 0;
}

}  // namespace adjoin::cli
