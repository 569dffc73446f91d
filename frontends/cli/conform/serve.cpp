// frontends/cli/conform/serve.cpp: the child's half: loads the plugin and answers group by group.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "../cli.hpp"
#include "report.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;

void send(int fd, const std::string& line) {
  std::string bytes = line + "\n";
  for (size_t done = 0; done < bytes.size();) {
    ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno != EINTR) _exit(1);  // nobody listens any more
    if (n > 0) done += static_cast<size_t>(n);
  }
}

bool asked(const std::vector<std::string>& names, const std::string& name) {
  if (names.empty()) return true;
  std::string plain = name.substr(name.rfind(':') + 1);
  plain = plain.substr(0, plain.find('.'));
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& n) { return n == name || n == plain; });
}

Bench open(const Settings& settings, int fd) {
  kit::bind(aj_get_interface);
  if (!AJ_HAS_FN(&plugins(), aj_plugins, device_table))
    throw std::runtime_error("this libadjoin is too old: its aj.plugins has no device_table");
  check(aj_load_plugin(settings.file.c_str()));
  Bench bench;
  bench.settings = settings;
  check(dispatch().set_provider(borrow(settings.device_name), borrow(settings.plugin)));
  bench.device = device(settings.device_name);
  bench.reference = device("reference");
  check(plugins().device_table(bench.device, &bench.table));
  for (const char* name : {"", settings.device_name.c_str()})
    check(dispatch().set_fallback(borrow(""), borrow(name), borrow("error")));
  bench.begin = [fd](const std::string& what) { send(fd, "C" + what); };
  return bench;
}

// Does the row take dtypes of which a derivative can be asked?
std::vector<std::string> gradient_dtypes(const Row& row) {
  std::vector<std::string> all = row.dtypes();
  auto has = [&](const char* d) { return std::find(all.begin(), all.end(), d) != all.end(); };
  if (has("float64")) return {"float64", "float32"};
  return has("complex128") ? std::vector<std::string>{"complex128"} : std::vector<std::string>{};
}

void add_rows(Bench& bench, std::vector<Group>& plan) {
  using Check = void (*)(Bench&, const Row&, const std::string&, Verdict&);
  const std::string& mode = bench.settings.mode;
  auto add = [&](const char* check, const Row& row, const std::string& dtype, Check run) {
    if (!dtype.empty() && !asked(bench.settings.dtypes, dtype)) return;
    plan.push_back({check, row.name, dtype, [=](Bench& b, Verdict& v) { run(b, row, dtype, v); }});
  };
  for (const Row& row : all_rows(bench.settings.plugin)) {
    if (!asked(bench.settings.ops, row.name)) continue;
    if (mode == "test" || mode == "all")
      for (const std::string& d : row.dtypes()) add("values", row, d, check_values);
    bool slope = (row.flags & AJ_INFO_DIFFERENTIABLE) && row.takes_tensors();
    if ((mode == "grad" || mode == "all") && slope)
      for (const std::string& d : gradient_dtypes(row)) add("gradients", row, d, check_gradients);
    if (mode == "perf") add("speed", row, row.dtypes()[0] == "" ? "" : "float32", measure);
    if (mode == "support")
      for (const std::string& d : row.dtypes()) add("support", row, d, explain_support);
  }
}

void run_group(Bench& bench, const Group& group, Verdict& v) {
  std::string last;
  auto tell = bench.begin;
  bench.begin = [&](const std::string& what) { tell(last = what); };
  try {
    group.run(bench, v);
  } catch (const kit::Error& e) {
    if (e.code() == AJ_UNIMPLEMENTED)
      ++v.unsupported, v.reason = e.message();
    else
      v.fail((last.empty() ? group.check : last) + ": " + e.message());
  } catch (const std::exception& e) {
    v.fail((last.empty() ? group.check : last) + ": " + e.what());
  }
  bench.begin = tell;
}

}  // namespace

std::vector<Group> plan_of(Bench& bench) {
  std::vector<Group> plan;
  const std::string& mode = bench.settings.mode;
  if ((mode == "test" || mode == "all") && bench.settings.ops.empty()) {
    add_sharing_groups(plan);
    add_device_groups(plan);
    add_stream_groups(plan);
  }
  add_rows(bench, plan);
  if ((mode == "test" || mode == "all") && bench.settings.ops.empty()) add_process_groups(plan);
  return plan;
}

int serve(const Settings& settings, int fd, size_t from) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  try {
    Bench bench = open(settings, fd);
    std::vector<Group> plan = plan_of(bench);
    if (from == 0) send(fd, "N" + std::to_string(plan.size()));
    for (size_t i = from; i < plan.size(); ++i) {
      Record record{plan[i].check, plan[i].row, plan[i].dtype, {}, 0};
      send(fd, "B" + to_line(record));
      auto start = Clock::now();
      run_group(bench, plan[i], record.verdict);
      record.seconds = std::chrono::duration<double>(Clock::now() - start).count();
      send(fd, "R" + to_line(record));
    }
    send(fd, "E");
  } catch (const std::exception& e) {
    send(fd, std::string("X") + e.what());
    return 1;
  }
  return 0;
}

}  // namespace adjoin::cli::conform
