// frontends/cli/conform/speed.cpp: how fast a row is on the device, and who computes it there.
#include <chrono>

#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kSmall = 64, kLarge = 1 << 22;

double seconds_of(Bench& bench, Call& call) {
  call.run({}, false);
  kit::check(kit::core().device_synchronize(bench.device));
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    int64_t n = 0;
    auto start = Clock::now();
    double took = 0;
    do {
      call.run({}, false);
      ++n;
      took = std::chrono::duration<double>(Clock::now() - start).count();
    } while (took < 2e-3);
    kit::check(kit::core().device_synchronize(bench.device));
    took = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, took / double(n));
  }
  return best;
}

bool elementwise(const Row& row) {
  return row.kind.starts_with("unary") || row.kind.starts_with("binary") || row.kind == "compare" ||
         row.kind.starts_with("reduce") || row.kind.starts_with("scan");
}

// The row's first sample with every tensor of one dimension of n elements.
Sample flat(const Row& row, int64_t n) {
  Sample s = row.samples()[0];
  for (Json& shape : s.shapes) shape = parse_json("[" + std::to_string(n) + "]");
  for (auto& [name, value] : s.others)
    if (name == "dim" || name == "dims") value = parse_json("0");
  return s;
}

void time_sample(Bench& bench, const Row& row, const std::string& dtype, const Sample& s,
                 const std::string& what, Verdict& v) {
  Given given = fill(row, s, dtype, bench.settings.seed);
  complete(row, given, bench.reference);
  bench.begin(row.name + " " + s.text());
  Call call(row, given, bench.device, Lay::kDense);
  Outcome first = call.run({}, false);
  if (!first.ok) {
    ++v.unsupported, v.reason = first.message;
    return;
  }
  double seconds = seconds_of(bench, call);
  v.figures.emplace_back(what + ": us", seconds * 1e6);
  int64_t bytes = 0;
  for (const Call::Input& in : call.inputs())
    bytes += in.placed.tensor.numel() * item_size(in.placed.tensor.dtype());
  for (const Tensor& t : first.tensors)
    if (t.defined()) bytes += t.numel() * item_size(t.dtype());
  if (bytes > 1 << 20) v.figures.emplace_back(what + ": GB/s", double(bytes) / seconds * 1e-9);
  v.pass();
}

}  // namespace

void measure(Bench& bench, const Row& row, const std::string& dtype, Verdict& v) {
  if (!row.tested || row.samples().empty()) return v.skip("the row has no samples");
  if (!elementwise(row))
    return time_sample(bench, row, dtype, row.samples()[0], "its first sample", v);
  time_sample(bench, row, dtype, flat(row, kSmall), "64 elements", v);
  time_sample(bench, row, dtype, flat(row, kLarge), "4 Mi elements", v);
}

void explain_support(Bench& bench, const Row& row, const std::string& dtype, Verdict& v) {
  if (!row.tested) return v.skip("the row has no samples");
  aj_object* lines = nullptr;
  kit::check(kit::dispatch().op_explain(row.op, kit::str(bench.settings.device_name), &lines));
  std::string who(kit::view_of(kit::core().string_get(lines)));
  kit::core().release(lines);
  Outcome last;
  for (const Sample& s : row.samples()) {
    Given given = fill(row, s, dtype, bench.settings.seed);
    complete(row, given, bench.reference);
    bench.begin(row.name + " " + dtype + " " + s.text());
    last = run_plain(row, given, bench.device);
    if (last.ok) break;
  }
  bool own = who.find("plugin " + bench.settings.plugin) != who.npos;
  if (last.ok)
    v.pass(), v.reason = own ? "its own kernel" : "made of other ops";
  else
    ++v.unsupported, v.reason = last.message;
}

}  // namespace adjoin::cli::conform
