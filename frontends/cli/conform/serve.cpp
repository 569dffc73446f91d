// frontends/cli/conform/serve.cpp: the child's half: loads the plugin and answers group by group.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <random>

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

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
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
  bench.begin = [fd](const std::string& what) { send(fd, "C" + one_line(what)); };
  bench.failed = [fd](const std::string& what) { send(fd, "F" + one_line(what)); };
  return bench;
}

// Names that were asked for and that nothing has: "" or what to tell.
std::string mistyped(const char* what, const std::vector<std::string>& wanted,
                     const std::vector<std::string>& known) {
  for (const std::string& name : wanted) {
    std::string near;
    size_t least = 3;
    bool there = false;
    for (const std::string& k : known) {
      there |= asked({name}, k);
      for (const std::string& form : {k, k.substr(k.rfind(':') + 1)})
        if (size_t d = letters_apart(name, form); d < least) least = d, near = form;
    }
    if (!there)
      return kit::text("there is no ", what, " named '", name, "'",
                       near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?");
  }
  return {};
}

// Does the row take dtypes of which a derivative can be asked?
std::vector<std::string> gradient_dtypes(const Row& row) {
  std::vector<std::string> all = row.dtypes();
  auto has = [&](const char* d) { return std::find(all.begin(), all.end(), d) != all.end(); };
  if (has("float64")) return {"float64", "float32"};
  return has("complex128") ? std::vector<std::string>{"complex128"} : std::vector<std::string>{};
}

void add_rows(Bench& bench, const std::vector<Row>& rows, std::vector<Group>& plan) {
  using Check = void (*)(Bench&, const Row&, const std::string&, Verdict&);
  const std::string& mode = bench.settings.mode;
  auto add = [&](const char* check, const Row& row, const std::string& dtype, Check run) {
    if (!dtype.empty() && !asked(bench.settings.dtypes, dtype)) return;
    plan.push_back({check, row.name, dtype, [=](Bench& b, Verdict& v) { run(b, row, dtype, v); }});
  };
  for (const Row& row : rows) {
    if (!asked(bench.settings.ops, row.name)) continue;
    if (!row.wrong.empty()) {
      std::string told = row.name + ": its test: " + row.wrong;
      plan.push_back({"values", row.name, "", [told](Bench&, Verdict& v) { v.fail(told); }});
      continue;
    }
    if (mode == "test" || mode == "all")
      for (const std::string& d : row.dtypes()) add("values", row, d, check_values);
    bool slope = (row.flags & AJ_INFO_DIFFERENTIABLE) && row.takes_tensors();
    if ((mode == "grad" || mode == "all") && slope)
      for (const std::string& d : gradient_dtypes(row)) add("gradients", row, d, check_gradients);
    if (mode == "perf") add("speed", row, row.dtypes()[0].empty() ? "" : "float32", measure);
    if (mode == "support")
      for (const std::string& d : row.dtypes()) add("support", row, d, explain_support);
  }
}

void run_group(Bench& bench, const Group& group, Verdict& v) {
  std::string last;
  auto tell = bench.begin;
  bench.begin = [&](const std::string& what) { tell(last = what); };
  v.told = bench.failed;
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

bool checks_device(const Settings& s) { return s.mode != "perf" && s.mode != "support"; }

std::string wrong_names(const Settings& s, const std::vector<Row>& rows) {
  std::vector<std::string> names, dtypes = kDtypes;
  for (const Row& row : rows) {
    names.push_back(row.name);
    for (const std::string& d : row.dtypes()) dtypes.push_back(d);
  }
  std::string wrong = mistyped("op", s.ops, names);
  return wrong.empty() ? mistyped("dtype", s.dtypes, dtypes) : wrong;
}

// The device first: whatever is asked of ops stands on it. With a limit of time a part of the rows
// by the seed, behind all else.
std::vector<Group> plan_of(Bench& bench, const std::vector<Row>& rows) {
  std::vector<Group> plan, by_row;
  const Settings& s = bench.settings;
  if (checks_device(s)) {
    add_sharing_groups(plan);
    add_device_groups(plan);
    add_stream_groups(plan);
  }
  if (s.mode != "device") add_rows(bench, rows, by_row);
  if (s.quick > 0) {
    if (checks_device(s)) add_process_groups(plan);
    std::shuffle(by_row.begin(), by_row.end(), std::mt19937_64(s.seed));
  }
  plan.insert(plan.end(), by_row.begin(), by_row.end());
  if (s.quick == 0 && checks_device(s)) add_process_groups(plan);
  return plan;
}

}  // namespace

int serve(const Settings& settings, const Order& order) {
  int fd = order.fd;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  try {
    auto begin = Clock::now();
    Bench bench = open(settings, fd);
    std::vector<Row> rows = all_rows(settings.plugin);
    if (std::string wrong = wrong_names(settings, rows); !wrong.empty()) {
      send(fd, "U" + wrong);
      return 1;
    }
    std::vector<Group> plan = plan_of(bench, rows);
    send(fd, kit::text("N", int64_t(plan.size()), " ", int64_t(rows.size())));
    for (size_t i = order.from; i < plan.size(); ++i) {
      const Group& g = plan[i];
      if (!g.row.empty() && order.seconds >= 0 && seconds_since(begin) > order.seconds) {
        send(fd, "L");
        continue;
      }
      Record record{g.check, g.row, g.dtype, {}, 0};
      send(fd, "B" + to_line(record));
      auto start = Clock::now();
      if (std::count(order.spare.begin(), order.spare.end(), g.row))
        record.verdict.skip("the op did not come back before");
      else
        run_group(bench, g, record.verdict);
      record.seconds = seconds_since(start);
      send(fd, "R" + to_line(record));
    }
    send(fd, "E");
  } catch (const std::exception& e) {
    send(fd, "X" + one_line(e.what()));
    return 1;
  }
  return 0;
}

}  // namespace adjoin::cli::conform
