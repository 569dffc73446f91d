// frontends/cli/conform/report.cpp: totals, lines between parent and child, text, JSON and JUnit.
#include "report.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <set>

#include "../cli.hpp"

namespace adjoin::cli::conform {

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n')
      out += c;
  }
  return out;
}

namespace {

constexpr size_t kMostFailures = 5;  // told of a group

std::string members_of(const Record& r) {
  const Verdict& v = r.verdict;
  std::vector<std::pair<const char*, std::string>> figures;
  for (const auto& [name, value] : v.figures) figures.emplace_back(name.c_str(), kit::text(value));
  std::vector<std::pair<const char*, std::string>> m = {
      {"check", quote(r.check)},
      {"row", quote(r.row)},
      {"dtype", quote(r.dtype)},
      {"passed", std::to_string(v.passed)},
      {"failed", std::to_string(v.failed)},
      {"refused", std::to_string(v.refused)},
      {"unsupported", std::to_string(v.unsupported)},
      {"beyond", std::to_string(v.beyond)},
      {"skipped", std::to_string(v.skipped)},
      {"reason", quote(v.reason)},
      {"failures", quote_all(v.failures)},
      {"seconds", kit::text(r.seconds)}};
  if (!figures.empty()) m.emplace_back("figures", json(figures));
  return json(m);
}

void add(Verdict& to, const Verdict& v) {
  to.passed += v.passed, to.failed += v.failed, to.refused += v.refused;
  to.unsupported += v.unsupported, to.beyond += v.beyond, to.skipped += v.skipped;
}

std::string count(int64_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

}  // namespace

void Verdict::fail(const std::string& what) {
  ++failed;
  if (failures.size() >= kMostFailures) return;
  failures.push_back(what);
  if (told) told(what);
}

void Verdict::figure(const std::string& name, double value) {
  for (auto& [known, largest] : figures)
    if (known == name) {
      largest = std::max(largest, value);
      return;
    }
  figures.emplace_back(name, value);
}

std::string Record::name() const {
  std::string out = check;
  if (!row.empty()) out += " " + row;
  if (!dtype.empty()) out += " " + dtype;
  return out;
}

Verdict Report::total() const {
  Verdict all;
  for (const Record& r : records) add(all, r.verdict);
  return all;
}

bool Report::good() const {
  Verdict all = total();
  return all.failed == 0 && all.passed > 0;
}

std::string Report::verdict() const {
  if (total().failed) return "does not conform";
  if (!good()) return "nothing was checked";
  return not_checked().empty() ? "conforms" : "no fault found in what was checked";
}

std::vector<std::string> Report::checked() const {
  std::set<std::string> device;
  std::map<std::string, std::set<std::string>> rows;  // by check
  for (const Record& r : records) {
    if (r.verdict.passed + r.verdict.failed == 0) continue;
    r.row.empty() ? device.insert(r.check) : rows[r.check].insert(r.row);
  }
  std::vector<std::string> list;
  if (!device.empty()) {
    std::string names;
    for (const std::string& name : device) names += (names.empty() ? "" : ", ") + name;
    list.push_back("the device (" + names + ")");
  }
  for (const auto& [check, names] : rows)
    list.push_back(check + " of " +
                   (names.size() == 1 ? *names.begin() : count(int64_t(names.size()), "op")));
  return list;
}

std::vector<std::string> Report::not_checked() const {
  std::vector<std::string> list;
  auto but = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    list.push_back(std::string(what) + " but " + all);
  };
  const std::string& mode = settings.mode;
  if (mode == "test") list.emplace_back("derivatives (--mode grad)");
  if (mode == "grad") list.emplace_back("values (--mode test)");
  if (mode == "device") list.emplace_back("ops");
  if (mode == "perf" || mode == "support")
    list.emplace_back("whether anything is right (--mode all)");
  but("all ops", settings.ops);
  but("all dtypes", settings.dtypes);
  if (left_out)
    list.push_back(count(int64_t(left_out), "group") +
                   " of op and dtype that there was no time for");
  return list;
}

std::vector<const Record*> Report::failed() const {
  std::vector<const Record*> list;
  for (const Record& r : records)
    if (r.verdict.failed) list.push_back(&r);
  return list;
}

std::map<std::string, int64_t> Report::reasons() const {
  std::map<std::string, int64_t> all;
  for (const Record& r : records)
    if (!r.verdict.reason.empty()) ++all[r.verdict.reason];
  return all;
}

std::string to_line(const Record& record) {
  std::string line = members_of(record);
  for (char& c : line)
    if (c == '\n') c = ' ';
  return line;
}

Record from_line(const std::string& line) {
  Json j = parse_json(line);
  auto text = [&](const char* name) { return j.find(name) ? j.find(name)->text : std::string(); };
  auto whole = [&](const char* name) { return j.find(name) ? j.find(name)->whole : 0; };
  Record r{text("check"), text("row"), text("dtype"), {}, 0};
  r.verdict.passed = whole("passed"), r.verdict.failed = whole("failed");
  r.verdict.refused = whole("refused"), r.verdict.unsupported = whole("unsupported");
  r.verdict.beyond = whole("beyond"), r.verdict.skipped = whole("skipped");
  r.verdict.reason = text("reason");
  if (const Json* s = j.find("seconds")) r.seconds = s->to_double();
  if (const Json* list = j.find("failures"))
    for (const Json& f : list->items) r.verdict.failures.push_back(f.text);
  if (const Json* figures = j.find("figures"))
    for (const auto& [name, value] : figures->members)
      r.verdict.figures.emplace_back(name, value.to_double());
  return r;
}

void print_report(const Report& report) {
  std::map<std::string, Verdict> by_check;
  std::vector<std::string> order;
  for (const Record& r : report.records) {
    if (!by_check.count(r.check)) order.push_back(r.check);
    add(by_check[r.check], r.verdict);
  }
  std::vector<std::vector<std::string>> table = {
      {"check", "passed", "failed", "refused alike", "unsupported", "not compared", "skipped"}};
  for (const std::string& name : order) {
    const Verdict& v = by_check[name];
    table.push_back({name, std::to_string(v.passed), std::to_string(v.failed),
                     std::to_string(v.refused), std::to_string(v.unsupported),
                     std::to_string(v.beyond), std::to_string(v.skipped)});
  }
  print_table(table);
  for (const auto& [reason, n] : report.reasons())
    if (reason.size() < 300 && report.reasons().size() < 40)
      std::cout << "not tried (" << n << "): " << reason << '\n';
  for (const auto& [what, list] :
       {std::pair{"checked", report.checked()}, {"not checked", report.not_checked()}}) {
    std::string line;
    for (const std::string& one : list) line += (line.empty() ? ": " : "; ") + one;
    if (!line.empty()) std::cout << what << line << '\n';
  }
  std::set<std::string> rows, pairs;
  for (const Record& r : report.records)
    if (!r.row.empty() && r.verdict.passed) rows.insert(r.row), pairs.insert(r.row + " " + r.dtype);
  Verdict all = report.total();
  std::cout << report.settings.plugin << ", device " << report.settings.device_name << ": "
            << report.verdict() << ": " << count(all.passed, "case") << " passed, " << all.failed
            << " failed; " << rows.size() << " of " << count(int64_t(report.rows), "op") << ", "
            << count(int64_t(pairs.size()), "pair") << " of op and dtype; seed "
            << report.settings.seed << std::endl;
}

std::string report_json(const Report& report) {
  std::vector<std::string> records;
  for (const Record& r : report.records) records.push_back(members_of(r));
  Verdict all = report.total();
  return json({{"plugin", quote(report.settings.plugin)},
               {"version", quote(report.version)},
               {"file", quote(report.settings.file)},
               {"device", quote(report.settings.device_name)},
               {"mode", quote(report.settings.mode)},
               {"seed", std::to_string(report.settings.seed)},
               {"conforms", report.verdict() == "conforms" ? "true" : "false"},
               {"verdict", quote(report.verdict())},
               {"checked", quote_all(report.checked())},
               {"not_checked", quote_all(report.not_checked())},
               {"passed", std::to_string(all.passed)},
               {"failed", std::to_string(all.failed)},
               {"unsupported", std::to_string(all.unsupported)},
               {"records", json_list(records)}});
}

std::string report_junit(const Report& report) {
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"adjoin conform " +
      escaped(report.settings.plugin) + "\" tests=\"" + std::to_string(report.records.size()) +
      "\" failures=\"" + std::to_string(report.failed().size()) + "\">\n";
  for (const Record& r : report.records) {
    char seconds[32];
    snprintf(seconds, sizeof seconds, "%.4f", r.seconds);
    out += "  <testcase classname=\"" + escaped(r.check) + "\" name=\"" + escaped(r.name()) +
           "\" time=\"" + seconds + "\">";
    std::string text;
    for (const std::string& f : r.verdict.failures) text += f + "\n";
    if (r.verdict.failed)
      out += "<failure message=\"" + std::to_string(r.verdict.failed) + " failed\">" +
             escaped(text) + "</failure>";
    else if (!r.verdict.passed)
      out += "<skipped message=\"" + escaped(r.verdict.reason) + "\"/>";
    out += "</testcase>\n";
  }
  return out + "</testsuite>\n";
}

}  // namespace adjoin::cli::conform
