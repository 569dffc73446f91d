// extensions/distributed/launch.cpp: starts the processes, passes on what they print, and tells the
// first cause when one fails.
#include "launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>

#include "link.hpp"
#include "server.hpp"

extern char** environ;

namespace adjoin::distributed {

using kit::raise;
using kit::text;

namespace {

// So long the others have to say what they found themselves: as long as the server waits for one
// that is silent, for on a busy machine who is about to speak is slow; never less than this.
constexpr int64_t kOwnErrors = 2500;
int64_t own_errors_ms() { return std::max(kOwnErrors, silence_ms()); }

// Who presses Ctrl-C interrupts all processes of his terminal; a signal to the launcher is passed
// on, after a moment, for it may have been sent to all, too, and an interrupt disturbs the end of
// one that ends already.
constexpr int64_t kToAll = 150;

volatile sig_atomic_t asked_to_end = 0, by_terminal = 0;
void note_signal(int number, siginfo_t* from, void*) {
  by_terminal = from->si_code == SI_KERNEL;
  asked_to_end = number;
}

// What a process prints, in whole lines.
struct Stream {
  Socket end;
  int to;
  std::string prefix, held, last;
  std::ofstream file;

  // False: it has ended.
  bool pass() {
    char room[65536];
    const ssize_t n = read(end.get(), room, sizeof room);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
      if (!held.empty()) write_out(held + "\n");
      held.clear();
      end.close();
      return false;
    }
    held.append(room, size_t(n));
    const size_t whole = held.find_last_of("\n\r");
    if (whole != std::string::npos) {
      write_out(held.substr(0, whole + 1));
      held.erase(0, whole + 1);
    }
    return true;
  }

 private:
  void write_out(const std::string& lines) {
    if (file.is_open()) file << lines << std::flush;
    std::string shown;
    for (size_t at = 0; at < lines.size();) {
      const size_t after = std::min(lines.find_first_of("\n\r", at), lines.size() - 1) + 1;
      shown += prefix + lines.substr(at, after - at);
      if (after - at > 1) last = lines.substr(at, after - at - 1);
      at = after;
    }
    for (std::string_view rest = shown; !rest.empty();) {
      const ssize_t n = write(to, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      rest.remove_prefix(size_t(n));
    }
  }
};

struct Process {
  pid_t id = -1;
  int rank = 0;
  bool running = false;
  int status = 0;
  int64_t ended = 0;
  bool by_us = false;  // ended because it was told to
  Stream out, error;
};

std::string how(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return text("was killed by signal ", number, " (SIG",
                sigabbrev_np(number) ? sigabbrev_np(number) : "?", ")",
                number == SIGKILL ? "; if nobody sent it, the machine was out of memory" : "");
  }
  return text("ended with exit code ", WEXITSTATUS(status));
}

bool good(const Process& p) { return WIFEXITED(p.status) && WEXITSTATUS(p.status) == 0; }

class Job {
 public:
  explicit Job(const LaunchOptions& options) : options_(options) {}

  int run() {
    meet();
    for (int attempt = 0;; attempt++) {
      const int code = once(attempt);
      if (code == 0 || asked_to_end || attempt >= options_.restarts) return code;
      std::cerr << "adjoin launch: starting all again (" << attempt + 1 << " of "
                << options_.restarts << ")\n";
      server_ = nullptr;
      link_ = nullptr;
      port_ = 0;
      meet();
    }
  }

 private:
  // Finds the control server, or becomes it.
  void meet() {
    address_ = options_.master.empty() ? "127.0.0.1" : options_.master;
    port_ = options_.nodes > 1 || options_.master_port ? options_.master_port : 0;
    node_ = options_.node_rank;
    if (node_ <= 0) {
      try {
        // Other machines may know this one by an address that is not the name's here.
        server_ = std::make_unique<Server>(node_ == 0 && options_.nodes > 1 ? "" : address_, port_);
        port_ = server_->port();
      } catch (const kit::Error&) {
        if (node_ == 0) throw;  // another machine may have it
      }
    }
    link_ = std::make_unique<Link>(address_, port_, 300000);
    if (node_ < 0) {
      int64_t n = 0;
      kit::check(
          link_->store()->add(link_->store()->self, AJ_STR_LIT("adjoin/launch/nodes"), 1, &n));
      node_ = int(n) - 1;
      if (node_ >= options_.nodes)
        raise(AJ_PRECONDITION, "the job at ", address_, ":", port_, " has its ", options_.nodes,
              " machines already; --nnodes says how many there are");
    }
  }

  int once(int attempt) {
    processes_.clear();
    processes_.resize(size_t(options_.processes));
    for (int i = 0; i < options_.processes; i++) start(processes_[size_t(i)], i, attempt);
    first_ = nullptr;
    int64_t told_to_end = 0, failed_at = 0, interrupted_at = 0;
    bool killed = false;
    while (running()) {
      pass_output();
      reap();
      if (first_ && !failed_at) failed_at = now_ms();
      const bool end_now = asked_to_end || (failed_at && now_ms() - failed_at > own_errors_ms());
      if (end_now && !told_to_end) {
        told_to_end = now_ms();
        if (asked_to_end == SIGINT)
          interrupted_at = told_to_end;
        else
          signal_all(asked_to_end ? int(asked_to_end) : SIGTERM);
      }
      if (interrupted_at && !by_terminal && now_ms() - interrupted_at > kToAll) {
        interrupted_at = 0;
        signal_all(SIGINT);
      }
      if (told_to_end && now_ms() - told_to_end > options_.shutdown_seconds * 1000) {
        if (asked_to_end && !killed)
          std::cerr << "adjoin launch: some processes did not end within "
                    << options_.shutdown_seconds << " s and are killed\n";
        killed = true;
        signal_all(SIGKILL);
      }
    }
    for (Process& p : processes_)
      while ((p.out.end && p.out.pass()) || (p.error.end && p.error.pass())) {
      }
    if (asked_to_end) return 128 + asked_to_end;
    if (!first_) return 0;
    // Who heard of an error may be gone before who made it.
    for (const Process& p : processes_)
      if (server_ && p.id == server_->first_lost() && !good(p) && !p.by_us) first_ = &p;
    summary();
    return WIFEXITED(first_->status) ? WEXITSTATUS(first_->status) : 128 + WTERMSIG(first_->status);
  }

  void start(Process& p, int local, int attempt) {
    p.rank = node_ * options_.processes + local;
    const int world = options_.nodes * options_.processes;
    const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::string> variables;
    for (char** v = environ; *v; v++) variables.emplace_back(*v);
    auto set = [&](const std::string& name, const auto& value) {
      std::erase_if(variables, [&](const std::string& v) { return v.starts_with(name + "="); });
      variables.push_back(text(name, "=", value));
    };
    const std::string control = text(address_, ":", port_);
    set("RANK", p.rank), set("LOCAL_RANK", local), set("WORLD_SIZE", world);
    set("LOCAL_WORLD_SIZE", options_.processes), set("GROUP_RANK", node_),
        set("GROUP_WORLD_SIZE", options_.nodes);
    set("ROLE_RANK", p.rank), set("ROLE_WORLD_SIZE", world), set("ROLE_NAME", options_.role);
    set("MASTER_ADDR", address_), set("MASTER_PORT", port_), set("ADJOIN_CONTROL", control);
    set("TORCHELASTIC_RESTART_COUNT", attempt), set("TORCHELASTIC_MAX_RESTARTS", options_.restarts);
    set("TORCHELASTIC_RUN_ID", options_.run_id), set("TORCHELASTIC_USE_AGENT_STORE", "True");
    if (!secure_getenv("OMP_NUM_THREADS") && !secure_getenv("ADJOIN_NUM_THREADS"))
      set("OMP_NUM_THREADS", std::max(1u, cores / unsigned(options_.processes)));
    if (!secure_getenv("PYTHONUNBUFFERED")) set("PYTHONUNBUFFERED", 1);

    std::vector<std::string> line;
    if (!options_.plain_program) {
      const char* python = secure_getenv("ADJOIN_PYTHON");
      line = {python && *python ? python : "python3", "-m", "adjoin.torch"};
      if (options_.is_module) line.push_back("-m");
    }
    line.insert(line.end(), options_.program.begin(), options_.program.end());
    open_streams(p, attempt);
    spawn(p, line, variables);
  }

  void open_streams(Process& p, int attempt) {
    const std::string prefix = options_.prefix ? text("[", options_.role, p.rank, "]: ") : "";
    p.out.to = 1, p.error.to = 2;
    p.out.prefix = p.error.prefix = prefix;
    if (options_.log_folder.empty()) return;
    const auto folder =
        std::filesystem::path(options_.log_folder) / text("attempt_", attempt) / text(p.rank);
    std::filesystem::create_directories(folder);
    p.out.file.open(folder / "stdout.log");
    p.error.file.open(folder / "stderr.log");
  }

  void spawn(Process& p, const std::vector<std::string>& line,
             const std::vector<std::string>& variables) {
    std::vector<char*> words, names;
    for (const std::string& w : line) words.push_back(const_cast<char*>(w.c_str()));
    for (const std::string& v : variables) names.push_back(const_cast<char*>(v.c_str()));
    words.push_back(nullptr), names.push_back(nullptr);
    int out[2], error[2], problem[2];
    if (pipe2(out, O_CLOEXEC) || pipe2(error, O_CLOEXEC) || pipe2(problem, O_CLOEXEC))
      raise(AJ_UNAVAILABLE, "no pipe: ", std::strerror(errno));
    const pid_t parent = getpid();
    p.id = fork();
    if (p.id == 0) {                     // nothing that takes a lock, from here to exec
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped process would not hear a softer one
      if (getppid() != parent) _exit(1);
      dup2(out[1], 1), dup2(error[1], 2);
      signal(SIGINT, SIG_DFL), signal(SIGTERM, SIG_DFL), signal(SIGPIPE, SIG_DFL);
      execvpe(words[0], words.data(), names.data());
      const int why = errno;
      (void)!write(problem[1], &why, sizeof why);
      _exit(127);
    }
    ::close(out[1]), ::close(error[1]), ::close(problem[1]);
    p.out.end = Socket(out[0]), p.error.end = Socket(error[0]);
    Socket asked(problem[0]);
    int why = 0;
    if (p.id < 0) raise(AJ_UNAVAILABLE, "no process could be made: ", std::strerror(errno));
    if (read(asked.get(), &why, sizeof why) == sizeof why) {
      waitpid(p.id, nullptr, 0);
      signal_all(SIGKILL);
      raise(AJ_NOT_FOUND, "cannot run ", line[0], ": ", std::strerror(why));
    }
    for (int fd : {out[0], error[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);
    p.running = true;
  }

  bool running() const {
    return std::any_of(processes_.begin(), processes_.end(),
                       [](const Process& p) { return p.running; });
  }

  void signal_all(int number) {
    for (Process& p : processes_)
      if (p.running) {
        p.by_us = true;
        kill(p.id, SIGCONT);  // a stopped one hears it, too
        kill(p.id, number);
      }
  }

  void pass_output() {
    std::vector<pollfd> waits;
    std::vector<Stream*> streams;
    for (Process& p : processes_)
      for (Stream* s : {&p.out, &p.error})
        if (s->end) {
          waits.push_back({s->end.get(), POLLIN, 0});
          streams.push_back(s);
        }
    poll(waits.data(), waits.size(), 20);
    for (size_t i = 0; i < streams.size(); i++)
      if (waits[i].revents) streams[i]->pass();
    if (streams.empty()) std::this_thread::sleep_for(milliseconds(10));
  }

  void reap() {
    for (Process& p : processes_) {
      int status = 0;
      if (!p.running || waitpid(p.id, &status, WNOHANG) != p.id) continue;
      p.running = false;
      p.status = status;
      p.ended = now_ms();
      if (good(p)) continue;
      tell_end(p);
      if (!first_ && !p.by_us) first_ = &p;
    }
  }

  // So that the others hear how it ended, not only that it is gone.
  void tell_end(const Process& p) {
    try {
      const uint32_t id = link_->ticket();
      Frame f(Ask::ended, id);
      link_->ask(id, std::move(f.number(p.id).text(host_name()).text(how(p.status))), 1000);
    } catch (const kit::Error&) {  // the server's machine is gone, and says so itself
    }
  }

  void summary() {
    const Process& f = *first_;
    std::string said = text("adjoin launch: the job failed\n  first cause: rank ", f.rank, " (pid ",
                            f.id, ") ", how(f.status), "\n");
    if (!f.error.last.empty()) said += text("    its last line: ", f.error.last, "\n");
    for (const Process& p : processes_) {
      if (&p == first_) continue;
      said += text(
          "  rank ", p.rank, " (pid ", p.id, ") ", p.by_us ? "was told to end" : how(p.status),
          p.ended > f.ended ? text(" after ", double((p.ended - f.ended) / 10) / 100, " s") : "",
          "\n");
      if (!p.by_us && !good(p) && !p.error.last.empty())
        said += text("    its last line: ", p.error.last, "\n");
    }
    std::cerr << said << std::flush;
  }

  const LaunchOptions& options_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Link> link_;
  std::string address_;
  int port_ = 0, node_ = 0;
  std::vector<Process> processes_;
  const Process* first_ = nullptr;
};

}  // namespace

int launch(const std::vector<std::string>& words) {
  LaunchOptions options = parse_launch(words);
  if (options.help) {
    std::cout << kLaunchHelp << std::flush;
    return 0;
  }
  struct sigaction note = {}, before_int, before_term;
  note.sa_sigaction = note_signal;
  note.sa_flags = SA_SIGINFO;
  sigaction(SIGINT, &note, &before_int), sigaction(SIGTERM, &note, &before_term);
  signal(SIGPIPE, SIG_IGN);
  const int code = Job(options).run();
  sigaction(SIGINT, &before_int, nullptr), sigaction(SIGTERM, &before_term, nullptr);
  return code;
}

}  // namespace adjoin::distributed
