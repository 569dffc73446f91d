// frontends/cli/doctor/python.cpp: does Python import the package that belongs to this libadjoin?
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "../orphan.hpp"
#include "doctor.hpp"

namespace adjoin::cli::doctor {
namespace {

constexpr const char* kAsk = R"(
import sys
print(sys.version.split()[0])
print(sys.executable)
try:
    import adjoin
except Exception as error:
    print('no')
    print(f'{type(error).__name__}: {error}'.splitlines()[0])
else:
    import os
    print('yes')
    print(adjoin.__version__)
    print(os.path.dirname(os.path.realpath(adjoin.__file__)))
    files = {line[line.index('/'):].rstrip() for line in open('/proc/self/maps') if '/' in line}
    print(next((os.path.realpath(f) for f in sorted(files) if f.endswith('/libadjoin.so')), '?'))
)";

std::string package_beside(const std::string& library) {
  std::filesystem::path folder = std::filesystem::path(library).parent_path() / "adjoin/python";
  std::error_code none;
  return std::filesystem::exists(folder / "adjoin/__init__.py", none) ? folder.string() : "";
}

}  // namespace

bool capture(const Words& words, double seconds, std::string* out) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::vector<char*> list;
  for (const std::string& w : words) list.push_back(const_cast<char*>(w.c_str()));
  list.push_back(nullptr);
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    end_with(parent);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 0), dup2(ends[1], 1), dup2(nothing, 2);
    close(ends[0]);
    execvp(list[0], list.data());
    _exit(127);
  }
  close(ends[1]);
  using Clock = std::chrono::steady_clock;
  auto left = [until = Clock::now() + std::chrono::duration<double>(seconds)] {
    return std::chrono::duration<double, std::milli>(until - Clock::now()).count();
  };
  bool open = child > 0;
  for (char bytes[4096]; open && left() > 0;) {
    pollfd input = {ends[0], POLLIN, 0};
    if (poll(&input, 1, int(left()) + 1) <= 0) continue;
    ssize_t n = read(ends[0], bytes, sizeof bytes);
    open = n > 0;
    if (open) out->append(bytes, size_t(n));
  }
  close(ends[0]);
  if (child < 0) return false;
  if (open) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

void look_at_python(Findings out) {
  const char* named = secure_getenv("ADJOIN_PYTHON");
  std::string told, python = named && *named ? named : "python3";
  if (!capture({python, "-c", kAsk}, 60, &told))
    return out.note("python", python + " cannot be run: no Python is looked at");
  std::vector<std::string> lines = split(told, '\n');
  if (lines.size() < 4) return out.note("python", python + " answers nothing that is understood");
  out.fine("python", lines[0] + ", " + lines[1]);
  std::string library = libadjoin_file(), package = package_beside(library);
  if (lines[2] != "yes") {
    std::string remedy = package.empty() ? "pip install the wheel, in that Python's environment"
                                         : "export PYTHONPATH=" + package;
    // A Python without the package is nobody's fault; one whose package breaks is.
    if (lines[3].starts_with("ModuleNotFoundError: No module named 'adjoin'"))
      return out.note("adjoin", "this Python has no package adjoin", remedy);
    return out.complaint("adjoin", "import adjoin fails: " + lines[3], remedy);
  }
  if (lines.size() < 6) return out.note("adjoin", "this Python answers nothing that is understood");
  out.fine("adjoin", lines[3] + ", " + lines[4]);
  std::string remedy = package.empty() ? "call the command of that environment, or install again"
                                       : "export PYTHONPATH=" + package;
  if (lines[5] != library)
    out.complaint("libadjoin", "Python uses " + lines[5] + ", this command " + library, remedy);
  else if (lines[3] != ADJOIN_VERSION)
    out.complaint("version", "the package is " + lines[3] + ", libadjoin " + ADJOIN_VERSION,
                  "install both from one source");
}

}  // namespace adjoin::cli::doctor
