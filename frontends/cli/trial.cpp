// frontends/cli/trial.cpp: loads a plugin in a child process, so that whatever it does is survived
// and told.
#include "trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

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

// What `adjoin plugins why` tells of the plugin of that file, line by line, without blanks before.
std::vector<std::string> told_of(const std::string& name, const std::string& path) {
  aj_object* why = nullptr;
  check(plugins().why(borrow(name), &why));
  std::vector<std::string> lines;
  bool its = false;
  for (const std::string& line : split(take(why), '\n')) {
    if (!line.starts_with("  "))
      its = line.ends_with("(" + path + "): loaded");
    else if (its)
      lines.push_back(line.substr(2));
  }
  return lines;
}

// The word behind `before`, up to `end`; empty: the line is another one.
std::string word_in(const std::string& line, const std::string& before, char end) {
  size_t at = line.find(before);
  if (at == line.npos) return {};
  at += before.size();
  return line.substr(at, line.find(end, at) - at);
}

bool has_word(const std::string& words, const std::string& word) {
  std::vector<std::string> all = split(words, ';');
  return std::find(all.begin(), all.end(), word) != all.end();
}

// Devices and keys that installed plugins promise.
Words promised_keys() {
  Words all;
  for (const aj_plugin_info& p : list_plugins())
    for (const std::string& what : split(text(p.provides), ';'))
      if (what.starts_with("device:") || what.starts_with("key:"))
        all.push_back(what.substr(what.find(':') + 1));
  return all;
}

// Kernels for a device that is not installed are no fault; a misspelt key is.
void tell_of_key(const std::string& key, const std::string& line, std::vector<std::string>* odd,
                 std::vector<std::string>* missing) {
  Words known = promised_keys();
  if (dispatch().key_mask(borrow(key)) || std::find(known.begin(), known.end(), key) != known.end())
    return;
  std::string meant = hint(key, known), told = line + ", which no installed plugin has" + meant;
  (meant.empty() ? odd : missing)->push_back(told);
}

// One that says that there is none here serves where there is one.
std::string device_told(const std::string& name, std::string* fault) {
  int32_t type = 0, count = 0;
  aj_status* none = core().device_find(borrow(name), &type);
  if (!none) none = core().device_count(type, &count);
  if (!none) return "device " + name + ": " + std::to_string(count);
  std::string told = text(core().status_message(none));
  if (core().status_code(none) != AJ_UNAVAILABLE) *fault = told;
  core().status_free(none);
  return told;
}

struct Registered {
  std::string summary, fault;
};

// What is there now that was not before, and what of the note or of the definitions serves nobody.
Registered registered(const std::string& name, const std::string& path,
                      const std::string& promises) {
  Registered found;
  std::vector<std::string> defined, missing, odd;
  size_t ops = 0;
  for (uint32_t i = 0; i < dispatch().op_count(); ++i) {
    aj_op_info info = {};
    info.struct_size = sizeof info;
    check(dispatch().op_info(dispatch().op_at(i), &info));
    ops += text(info.provider) == name;
  }
  std::string kernels = "0";
  for (const std::string& line : told_of(name, path)) {
    if (line.ends_with("an op that nobody defines")) {
      odd.push_back(line);
      continue;
    }
    if (std::string n = word_in(line, "has kernels for ", ' '); !n.empty()) kernels = n;
    std::string key = word_in(line, " kernels at ", '\n') + word_in(line, " kernel at ", '\n');
    if (!key.empty()) tell_of_key(key, line, &odd, &missing);
    if (line.starts_with("device ")) defined.push_back("device:" + word_in(line, "device ", ':'));
    if (line.starts_with("defines the dispatch key "))
      defined.push_back("key:" + line.substr(line.rfind(' ') + 1));
    if (line.starts_with("service "))
      defined.push_back("service:" + word_in(line, "service ", ' '));
  }
  found.summary =
      plural(ops, "op") + ", kernels for " + kernels + (kernels == "1" ? " op" : " ops");
  for (const std::string& line : odd) found.summary += ", " + line;
  for (const std::string& what : split(promises, ';')) {
    std::string kind = what.substr(0, what.find(':')), rest = what.substr(what.find(':') + 1);
    bool there = std::find(defined.begin(), defined.end(), what) != defined.end();
    if (!there && (kind == "device" || kind == "key" || kind == "service"))
      missing.push_back("its note promises " + what + ", which its init does not define");
    else if (kind == "device")
      found.summary += ", " + device_told(rest, &found.fault);
  }
  for (const std::string& what : defined)
    if (what.starts_with("device:") && !has_word(promises, what))
      missing.push_back("its init defines " + what + ", which its note does not promise");
  if (found.fault.empty() && !missing.empty()) found.fault = missing.front();
  return found;
}

std::string in_one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\t') c = ' ';
  return text;
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
  if (failed) return {false, told, {}};
  if (outcome.late) {
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%g", timeout_seconds);
    return {
        false,
        std::string(loaded ? "does not let the process end" : "does not come back from loading") +
            " within " + seconds + " s",
        {}};
  }
  if (!loaded) return {false, ending(outcome, "while it is loaded"), {}};
  if (outcome.status != 0) return {false, ending(outcome, "when the process ends"), {}};
  size_t tab = told.find('\t');
  return {true, "registers " + told.substr(0, tab), told.substr(tab + 1)};
}

int run_trial(const Words& words) {
  if (words.size() != 2) throw UsageError("plugins try-load: internal to plugins check");
  int fd = std::stoi(words[1]);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  try {
    check(aj_load_plugin(words[0].c_str()));
    Registered all = {"0 ops", {}};
    for (const aj_plugin_info& p : list_plugins())
      if (p.state == AJ_PLUGIN_LOADED && text(p.path) == words[0])
        all = registered(text(p.name), text(p.path), text(p.provides));
    write_all(fd, "ok " + in_one_line(all.summary) + '\t' + in_one_line(all.fault) + '\n');
  } catch (const std::exception& e) {
    write_all(fd, std::string("no ") + e.what() + "\n");
  }
  return 0;
}

}  // namespace adjoin::cli
