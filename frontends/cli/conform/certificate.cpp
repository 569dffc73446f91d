// frontends/cli/conform/certificate.cpp: the report as one page of HTML that stands alone.
#include <algorithm>
#include <ctime>
#include <set>

#include "report.hpp"

namespace adjoin::cli::conform {
namespace {

constexpr const char* kStyle = R"css(
:root{--ink:#1c2430;--dim:#687385;--line:#e3e7ee;--paper:#fff;--wash:#f6f8fb;--good:#157f4f;
--bad:#c2342c;--soft:#b9c2cf;--part:#c98a10}@media(prefers-color-scheme:dark){:root{
--ink:#e6eaf1;--dim:#93a0b4;--line:#2a3342;--paper:#12171f;--wash:#182029;--good:#43c68a;
--bad:#ff7a70;--soft:#46536a;--part:#e0ac45}}*{box-sizing:border-box}body{margin:0;
background:var(--wash);color:var(--ink);font:15px/1.5 system-ui,sans-serif}main{
max-width:1060px;margin:32px auto;background:var(--paper);border:1px solid var(--line);
border-radius:14px;padding:40px 48px}header{display:flex;justify-content:space-between;gap:24px;
border-bottom:1px solid var(--line);padding-bottom:24px}h1{font-size:28px;margin:0 0 4px;
letter-spacing:-.02em}h2{font-size:15px;margin:36px 0 12px;text-transform:uppercase;
letter-spacing:.08em;color:var(--dim)}.seal{border:2px solid currentColor;border-radius:12px;
padding:10px 22px;font-weight:700;font-size:19px;align-self:center;white-space:nowrap}.good{
color:var(--good)}.bad{color:var(--bad)}.dim{color:var(--dim)}code{font-family:ui-monospace,
monospace;font-size:13px;overflow-wrap:anywhere}.figures{display:flex;flex-wrap:wrap;gap:12px;
margin-top:24px}.figures div{flex:1;min-width:130px;background:var(--wash);border-radius:10px;
padding:12px 16px}.figures b{display:block;font-size:24px;letter-spacing:-.02em}.figures span{
color:var(--dim);font-size:13px}table{border-collapse:collapse;width:100%;font-size:13px}td,th{
text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{color:var(--dim);font-weight:600}.n{text-align:right;font-variant-numeric:tabular-nums}.map{
columns:3;column-gap:28px;font-size:12px}.map p{margin:0;display:flex;
justify-content:space-between;gap:8px;break-inside:avoid}.map code{font-size:11.5px;
white-space:nowrap;overflow:hidden;text-overflow:ellipsis}i{display:inline-block;width:9px;
height:9px;border-radius:2px;margin-left:2px;background:var(--line)}i.p{background:var(--good)}
i.f{background:var(--bad)}i.u{background:var(--soft)}i.r{background:transparent;
box-shadow:inset 0 0 0 1.5px var(--soft)}i.m{background:var(--part)}.legend{color:var(--dim);
font-size:13px;margin:0 0 10px}li{margin:4px 0}@media(max-width:800px){main{padding:24px;
margin:0;border-radius:0}.map{columns:1}header{flex-direction:column}}@media print{body{
background:none}main{border:0;margin:0}}
)css";

std::string figure(const std::string& number, const std::string& of) {
  return "<div><b>" + number + "</b><span>" + of + "</span></div>";
}

std::string grouped(int64_t n) {
  std::string digits = std::to_string(n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % 3 == 0) out += "&#8239;";
    out += digits[i];
  }
  return out;
}

// One square: passed, failed, no kernel, refused by both, in parts.
const char* mark(const Verdict& v) {
  if (v.failed) return "f";
  if (v.passed && v.unsupported) return "m";
  if (v.passed) return "p";
  return v.unsupported ? "u" : v.refused ? "r" : "";
}

std::string checks_table(const Report& report) {
  std::string out = "<table><tr><th>check<th class=n>passed<th class=n>failed<th>remark</tr>";
  std::vector<std::string> order;
  std::map<std::string, Verdict> by;
  for (const Record& r : report.records) {
    if (!by.count(r.check)) order.push_back(r.check);
    Verdict& to = by[r.check];
    to.passed += r.verdict.passed, to.failed += r.verdict.failed;
    if (r.row.empty()) to.reason = r.verdict.reason;
  }
  for (const std::string& name : order) {
    const Verdict& v = by[name];
    out += "<tr><td>" + escaped(name) + "<td class=n>" + grouped(v.passed) + "<td class='n " +
           (v.failed ? "bad" : "dim") + "'>" + grouped(v.failed) + "<td class=dim>" +
           escaped(v.reason) + "</tr>";
  }
  return out + "</table>";
}

std::string rows_map(const Report& report) {
  std::map<std::string, std::map<std::string, Verdict>> rows;
  std::set<std::string> dtypes;
  for (const Record& r : report.records) {
    if (r.row.empty()) continue;
    Verdict& v = rows[r.row][r.dtype];
    v.passed += r.verdict.passed, v.failed += r.verdict.failed;
    v.unsupported += r.verdict.unsupported, v.refused += r.verdict.refused;
    dtypes.insert(r.dtype);
  }
  if (rows.empty()) return {};
  std::vector<std::string> order;
  for (const std::string& d : kDtypes)
    if (dtypes.count(d)) order.push_back(d);
  std::string list;
  for (const std::string& d : order) list += (list.empty() ? "" : ", ") + d;
  std::string out = "<h2>Rows and dtypes</h2><p class=legend>Squares from the left: " + list +
                    ". <i class=p></i> agrees <i class=f></i> fails <i class=m></i> in parts "
                    "<i class=u></i> no kernel <i class=r></i> both refuse</p><div class=map>";
  for (const auto& [name, by] : rows) {
    out += "<p><code>" + escaped(name) + "</code><span>";
    for (const auto& [dtype, v] : by)
      if (dtype.empty()) out += std::string("<i class='") + mark(v) + "'></i>";
    for (const std::string& d : order) {
      auto at = by.find(d);
      if (at == by.end()) continue;
      out += std::string("<i class='") + mark(at->second) + "' title='" + d + ": " +
             std::to_string(at->second.passed) + " passed'></i>";
    }
    out += "</span></p>";
  }
  return out + "</div>";
}

std::string failures(const Report& report) {
  std::string out;
  for (const Record* r : report.failed())
    for (const std::string& f : r->verdict.failures) out += "<li><code>" + escaped(f) + "</code>";
  return out.empty() ? "" : "<h2>Failures</h2><ul>" + out + "</ul>";
}

std::string tolerances() {
  std::string out;
  for (const char* name : {"float64", "float32", "float16", "bfloat16", "complex128", "complex64"})
    out += (out.empty() ? "" : ", ") + std::string(name) + " " +
           kit::text(4 * tolerance(dtype_named(name)));
  return out;
}

}  // namespace

std::string certificate(const Report& report) {
  kit::bind(aj_get_interface);
  const Settings& s = report.settings;
  Verdict all = report.total();
  std::set<std::string> rows, pairs;
  for (const Record& r : report.records)
    if (!r.row.empty() && r.verdict.passed) rows.insert(r.row), pairs.insert(r.row + " " + r.dtype);
  bool good = report.good();
  time_t now = time(nullptr);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime(&now));
  std::string out =
      "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
      "content='width=device-width,initial-scale=1'><title>" +
      escaped(s.plugin) + ": " + report.verdict() + "</title><style>" + kStyle +
      "</style><main><header><div><h1>" + escaped(s.plugin) + " " + escaped(report.version) +
      "</h1><div class=dim>" +
      (report.vendor.empty() ? "" : escaped(report.vendor) + " &middot; ") + "device <code>" +
      escaped(s.device_name) + "</code> &middot; " + date + "</div><code class=dim>" +
      escaped(s.file) + "</code></div><div class='seal " + (good ? "good'>" : "bad'>") +
      report.verdict() + "</div></header><div class=figures>" +
      figure(grouped(all.passed), "cases passed") + figure(grouped(all.failed), "failed") +
      figure(grouped(int64_t(rows.size())), "rows of the op tables") +
      figure(grouped(int64_t(pairs.size())), "pairs of row and dtype") +
      figure(grouped(all.unsupported), "without a kernel") +
      figure(grouped(all.refused), "refused by both") + "</div>";
  std::string parts;
  for (const std::string& one : report.not_checked()) parts += "<li>" + escaped(one);
  if (!parts.empty()) out += "<h2>Not checked</h2><ul>" + parts + "</ul>";
  out += failures(report) + "<h2>Checks</h2>" + checks_table(report) + rows_map(report);
  out +=
      "<h2>How</h2><p class=dim>Every row of the op tables ran on the device and on the "
      "reference backend with the same numbers (seed " +
      std::to_string(s.seed) + ", mode " + escaped(s.mode) + (s.full ? ", all samples" : "") +
      "): dense, strided, transposed, offset, expanded, empty, without dimensions, written into "
      "a given tensor, in place; what lies around outputs and inputs was watched. Results that "
      "come "
      "from one element of each argument are within a few units of the last place (a number for "
      "each op: ULP in --json says what was found); of the others, relative and absolute "
      "tolerance: " +
      tolerances() +
      "; 25 times that where a size is large and for gradients; integers and bools exactly. "
      "Again with: <code>adjoin conform " +
      escaped(s.file) + " --mode " + escaped(s.mode) + " --seed " + std::to_string(s.seed) +
      "</code></p></main></html>\n";
  return out;
}

}  // namespace adjoin::cli::conform
