// frontends/cli/explain.cpp: `adjoin explain`: runs a program and tells which plugin served which
// op, and why.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "child.hpp"
#include "cli.hpp"

namespace adjoin::cli {
namespace {

constexpr const char* kAbout =
    "Runs a program and tells afterwards who served its ops: the plugin (or the op's body, or "
    "copies\n"
    "to another device), how often, for how long, how many bytes went through, and why it was "
    "them.\n"
    "The time of a body contains that of the ops that it calls. Views are served by libadjoin "
    "itself\n"
    "and not listed. The exit code is the program's.\n"
    "\n"
    "  adjoin explain train.py --epochs 1\n"
    "  adjoin explain --fallback 'host:100MB,softmax=error' train.py";

struct Row {
  std::string op, key, server, why;
  double calls = 0, ns = 0, bytes = 0;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (char c : line)
    if (c == '\t')
      cells.emplace_back();
    else
      cells.back() += c;
  return cells;
}

// By the names of the columns: a later libadjoin may write others.
std::vector<Row> read_rows(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n'), names;
  std::vector<Row> rows;
  for (const std::string& line : lines) {
    std::vector<std::string> cells = cells_of(line);
    if (names.empty()) {
      names = cells;
      continue;
    }
    auto cell = [&](const char* name) -> std::string {
      auto at = size_t(std::find(names.begin(), names.end(), name) - names.begin());
      return at < cells.size() ? cells[at] : "";
    };
    auto number = [&](const char* name) { return std::atof(cell(name).c_str()); };
    rows.push_back({cell("op"), cell("key"), cell("served by"), cell("why"), number("calls"),
                    number("ns"), number("bytes")});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.ns > b.ns; });
  return rows;
}

std::string to_json(const std::vector<Row>& rows) {
  std::vector<std::string> items;
  auto whole = [](double v) { return std::to_string(uint64_t(v)); };
  for (const Row& r : rows)
    items.push_back(json({{"op", quote(r.op)},
                          {"key", quote(r.key)},
                          {"served_by", quote(r.server)},
                          {"calls", whole(r.calls)},
                          {"nanoseconds", whole(r.ns)},
                          {"bytes", whole(r.bytes)},
                          {"why", quote(r.why)}}));
  return json_list(items);
}

void print(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"op", "key", "served by", "calls", "time", "bytes", "why"}};
  for (const Row& r : rows)
    table.push_back({r.op, r.key, r.server, std::to_string(uint64_t(r.calls)),
                     short_number(r.ns, "ns"), short_number(r.bytes, "B"), r.why});
  print_table(table);
}

}  // namespace

int explain_command(const Words& all) {
  Arguments args("adjoin explain [--json] [--output FILE] [--fallback RULES] SCRIPT [argument]...",
                 kAbout);
  args.add()("json", "prints JSON");
  args.add()("output", options::value<std::string>()->value_name("FILE"),
             "writes there, not to stdout");
  args.add()("fallback", options::value<std::string>()->value_name("RULES"),
             "ADJOIN_FALLBACK for the program: [OP][@DEVICE]=error|decompose|host[:BYTES],...");
  // What follows the program's name is its own.
  auto at = all.begin();
  while (at != all.end() && at->starts_with("-"))
    at += at + 1 != all.end() && (*at == "--output" || *at == "--fallback") ? 2 : 1;
  Words words(all.begin(), at), command(at, all.end());
  if (!args.parse(words)) return 0;
  if (command.empty()) throw args.misuse("explain: which SCRIPT?");
  if (args.has("fallback")) setenv("ADJOIN_FALLBACK", args.get<std::string>("fallback").c_str(), 1);
  Child child = run_child(command, "ADJOIN_TRACE");
  if (child.written.empty())
    throw std::runtime_error("explain: " + command[0] + " ended with code " +
                             std::to_string(child.code) +
                             (child.code ? "" : " and did not use libadjoin"));
  std::vector<Row> rows = read_rows(child.written);
  std::ofstream file;
  std::streambuf* shown = nullptr;
  if (args.has("output")) {
    file.open(args.get<std::string>("output"));
    if (!file)
      throw std::runtime_error("explain: '" + args.get<std::string>("output") +
                               "' cannot be written");
    shown = std::cout.rdbuf(file.rdbuf());
  }
  if (args.has("json"))
    std::cout << to_json(rows) << '\n';
  else
    print(rows);
  if (shown) std::cout.rdbuf(shown);
  return child.code;
}

}  // namespace adjoin::cli
