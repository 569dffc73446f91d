// frontends/cli/conform/values.cpp: a row in one dtype on the device beside the reference backend:
// values, layouts, sizes, out= and in-place forms, and what must not be written.
#include <algorithm>
#include <random>

#include "checks.hpp"

namespace adjoin::cli {
namespace {

constexpr Lay kLays[] = {Lay::kStrided, Lay::kTransposed, Lay::kOffset};
constexpr double kScale = 4, kLargeScale = 100;  // of the tolerance; long sums differ by more
constexpr int64_t kLargeSize = 1201;

std::string refusal(const Outcome& o) { return "refused: " + o.message; }

// Two outcomes side by side. "" is agreement; counts what is not a comparison by itself.
class Comparison {
 public:
  Comparison(const Row& row, const std::string& dtype, Verdict& v, double scale)
      : row_(row), v_(v), scale_(scale) {
    if (!dtype.empty()) dtype_ = dtype_named(dtype);
  }

  void operator()(const std::string& where, const Outcome& got, const Outcome& wanted) const {
    if (!got.ok && !wanted.ok) {
      if (got.code == AJ_UNIMPLEMENTED && wanted.code != AJ_UNIMPLEMENTED)
        ++v_.unsupported, v_.reason = got.message;
      else
        ++v_.refused;
    } else if (!got.ok && got.code == AJ_UNIMPLEMENTED) {
      ++v_.unsupported, v_.reason = got.message;
    } else if (!got.ok) {
      v_.fail(where + ": " + refusal(got) + "; the reference computes it");
    } else if (!wanted.ok && wanted.code == AJ_UNIMPLEMENTED) {
      ++v_.beyond, v_.reason = "not compared: the reference backend has no kernel for it";
    } else if (!wanted.ok) {
      v_.fail(where + ": must be refused as the reference does: " + wanted.message);
    } else {
      v_.expect(where, different(got, wanted));
    }
  }

  std::string different(const Outcome& got, const Outcome& wanted) const {
    if (got.values.size() != wanted.values.size())
      return std::to_string(got.values.size()) + " results, wanted " +
             std::to_string(wanted.values.size());
    for (size_t i = 0; i < got.values.size(); ++i) {
      std::string d =
          difference(got.values[i], wanted.values[i], scale_, row_.compared(), least(i));
      if (!d.empty()) return got.values.size() > 1 ? "result " + std::to_string(i) + ": " + d : d;
    }
    return {};
  }

 private:
  // A hidden result may be wider than what it was computed from.
  DLDataType least(size_t result) const {
    bool hidden = result < row_.results.size() && (row_.results[result].flags & AJ_PARAM_AUX);
    return hidden ? dtype_ : DLDataType{};
  }

  const Row& row_;
  DLDataType dtype_{};
  Verdict& v_;
  double scale_;
};

// Views of an argument's memory have strides as a part of their meaning.
bool aliases(const Outcome& o, const Call& call) {
  for (const Tensor& t : o.tensors)
    for (const Call::Input& in : call.inputs()) {
      void* data;
      uint64_t bytes, offset, a = 0, b = 1;
      kit::check(kit::core().tensor_storage(t.get(), &data, &bytes, &offset, &a));
      kit::check(kit::core().tensor_storage(in.placed.memory.get(), &data, &bytes, &offset, &b));
      if (a == b) return true;
    }
  return false;
}

class Values {
 public:
  Values(Bench& bench, const Row& row, const std::string& dtype, Verdict& v)
      : bench_(bench), row_(row), dtype_(dtype), v_(v), same_(row, dtype, v, kScale) {}

  void sample(const Sample& s, const Comparison& same, bool layouts) {
    Given given = fill(row_, s, dtype_, bench_.settings.seed);
    complete(row_, given, bench_.reference);
    std::string where = row_.name + " " + dtype_ + " " + s.text();
    bench_.begin(where);
    Outcome wanted = run_plain(row_, given, bench_.reference);
    Call call(row_, given, bench_.device, Lay::kDense);
    Outcome got = call.run();
    same(where, got, wanted);
    if (!got.ok || !wanted.ok) return;
    v_.expect(where, trespass(call, given, Lay::kDense));
    if (!layouts) return;
    for (Lay lay : kLays) laid(where, given, wanted, lay);
    expanded(where, given);
    if (row_.flags & AJ_INFO_OUT) written_into(where, given, wanted);
    if (row_.flags & AJ_INFO_IN_PLACE) in_place(where, given, wanted);
    other_stream(where, given, wanted);
  }

 private:
  // An argument is not written, unless the op writes it on the reference backend too: the same.
  std::string trespass(const Call& call, const Given& given, Lay lay) const {
    std::string wrong = call.trespass();
    if (wrong.empty()) return wrong;
    Call beside(row_, given, bench_.reference, lay);
    if (!beside.run({}, false).ok || beside.trespass() != wrong) return wrong;
    for (size_t i = 0; i < call.inputs().size(); ++i) {
      wrong = difference(fetch(call.inputs()[i].placed.tensor),
                         fetch(beside.inputs()[i].placed.tensor), kScale, true);
      if (!wrong.empty()) return row_.params[call.inputs()[i].param].name + " afterwards: " + wrong;
    }
    return {};
  }

  void laid(const std::string& where, const Given& given, const Outcome& wanted, Lay lay) {
    std::string here = where + " " + lay_name(lay);
    bench_.begin(here);
    Call call(row_, given, bench_.device, lay);
    if (call.inputs().empty()) return;
    Outcome got = call.run();
    if (got.ok && same_.different(got, wanted).empty()) {
      v_.expect(here, trespass(call, given, lay));
      return;
    }
    Call beside(row_, given, bench_.reference, lay);  // does this layout mean something else?
    Outcome there = beside.run();
    if (!there.ok || aliases(there, beside))
      same_(here, got, there);
    else
      same_(here, got, wanted);
  }

  void expanded(const std::string& where, const Given& given) {
    Given once = given;
    const Json* ints = row_.test.find("ints");
    bool any = false;
    for (size_t i = 0; i < once.size(); ++i) {
      if (row_.params[i].written() || (ints && ints->find(row_.params[i].name))) return;
      for (auto& t : once[i].tensors)
        if (t && !t->shape.empty() && t->shape[0] > 1) *t = repeated(*t), any = true;
    }
    if (!any || row_.test.find("after")) return;
    std::string here = where + " expanded";
    bench_.begin(here);
    Call beside(row_, once, bench_.reference, Lay::kDense);
    Outcome wanted = beside.run();
    if (!wanted.ok || !beside.trespass().empty()) return;  // what is written must not overlap
    laid(where, once, wanted, Lay::kExpanded);
  }

  void written_into(const std::string& where, const Given& given, const Outcome& wanted) {
    if (wanted.tensors.size() != row_.results.size()) return;
    for (Lay lay : {Lay::kOffset, Lay::kStrided}) {
      std::string here = where + " out= " + lay_name(lay);
      bench_.begin(here);
      Call call(row_, given, bench_.device, Lay::kDense);
      std::vector<Placed> outs;
      std::vector<Tensor> rets;
      for (const HostTensor& t : wanted.values) {
        outs.push_back(place_empty(t.dtype, t.shape, bench_.device, lay));
        rets.push_back(outs.back().tensor);
      }
      Outcome got = call.run(rets);
      same_(here, got, wanted);
      if (!got.ok) continue;
      int64_t bytes = 0;
      for (const Placed& p : outs) bytes += touched(p);
      v_.expect(here, bytes ? std::to_string(bytes) + " bytes outside of it were written" : "");
    }
  }

  void in_place(const std::string& where, const Given& given, const Outcome& wanted) {
    if (given[0].kind != Argument::kTensor || wanted.values.size() != 1) return;
    const HostTensor& first = *given[0].tensors[0];
    if (!(first.dtype == wanted.values[0].dtype) || first.shape != wanted.values[0].shape) return;
    for (Lay lay : {Lay::kDense, Lay::kStrided}) {
      std::string here = where + " in place " + lay_name(lay);
      bench_.begin(here);
      Call call(row_, given, bench_.device, lay);
      Outcome got = call.run({call.first()});
      same_(here, got, wanted);
      if (!got.ok) continue;
      int64_t bytes = touched(call.inputs()[0].placed);
      v_.expect(here, bytes ? std::to_string(bytes) + " bytes around it were written" : "");
    }
  }

  void other_stream(const std::string& where, const Given& given, const Outcome& wanted) {
    const aj_device_vtbl& t = *bench_.table;
    if (!t.stream_new || (t.flags & AJ_DEV_SYNCHRONOUS)) return;
    std::string here = where + " on a second stream";
    bench_.begin(here);
    void* stream = nullptr;
    kit::check(t.stream_new(t.self, bench_.device.device_id, 0, &stream));
    kit::check(kit::core().stream_set(bench_.device, stream));
    Outcome got;
    {
      Call call(row_, given, bench_.device, Lay::kDense);
      got = call.run();
    }
    kit::check(kit::core().device_synchronize(bench_.device));
    kit::check(kit::core().stream_set(bench_.device, nullptr));
    same_(here, got, wanted);
    got = {};
    kit::check(t.stream_free(t.self, bench_.device.device_id, stream));
  }

  Bench& bench_;
  const Row& row_;
  const std::string& dtype_;
  Verdict& v_;
  Comparison same_;
};

// Infinities, NaN, signed zeros and the like, one element at a time.
void special(Bench& bench, const Row& row, const std::string& dtype, Verdict& v) {
  const Json* also = row.test.find("also");
  if (!also || !(dtype == "float32" || dtype == "float64")) return;
  std::vector<Sample> plain = row.samples();
  Comparison same(row, dtype, v, kScale);
  for (const Json& one : also->items) {
    const std::vector<Json> group = one.kind == Json::kList ? one.items : std::vector<Json>{one};
    Sample s;
    s.others = plain[0].others;
    for (const Json& shape : plain[0].shapes)
      if (s.shapes.size() < group.size()) s.shapes.push_back((void(shape), parse_json("[1]")));
    Given given = fill(row, s, dtype, bench.settings.seed);
    std::string where = row.name + " " + dtype + " of";
    size_t next = 0;
    for (Argument& a : given) {
      if (a.kind != Argument::kTensor || next >= group.size()) continue;
      const Json& j = group[next++];
      double x = j.kind == Json::kText ? std::strtod(j.text.c_str(), nullptr) : j.to_double();
      a.tensors[0] = from_numbers(dtype_named(dtype), {1}, {x});
      where += " " + kit::text(x);
    }
    bench.begin(where);
    same(where, run_plain(row, given, bench.device), run_plain(row, given, bench.reference));
  }
}

// The first of the row's samples that is taken with one size changed.
void sized(Bench& bench, const Row& row, const std::string& dtype, int64_t size, Verdict& v) {
  Comparison same(row, dtype, v, kLargeScale);
  size_t tries = 0;
  for (const Sample& s : row.resized(size)) {
    if (++tries > 24) return;
    Given given = fill(row, s, dtype, bench.settings.seed);
    complete(row, given, bench.reference);
    std::string where = row.name + " " + dtype + " " + s.text();
    bench.begin(where);
    Outcome wanted = run_plain(row, given, bench.reference);
    Outcome got = run_plain(row, given, bench.device);
    same(where, got, wanted);
    if (wanted.ok || got.ok || got.code == AJ_UNIMPLEMENTED) return;
  }
}

}  // namespace

std::vector<Sample> chosen(const Bench& bench, const Row& row, size_t count,
                           const std::string& salt) {
  std::vector<Sample> all = row.samples();
  if (bench.settings.full || all.size() <= count) return all;
  std::seed_seq mix{bench.settings.seed, uint64_t(std::hash<std::string>()(row.name + salt))};
  std::mt19937_64 rng(mix);
  std::shuffle(all.begin(), all.end(), rng);
  all.resize(count);
  return all;
}

void check_values(Bench& bench, const Row& row, const std::string& dtype, Verdict& v) {
  if (!row.tested) return v.skip("the row has no samples");
  Values values(bench, row, dtype, v);
  Comparison same(row, dtype, v, kScale);
  size_t i = 0;
  for (const Sample& s : chosen(bench, row, 12, dtype))
    values.sample(s, same, bench.settings.full || i++ < 4);
  special(bench, row, dtype, v);
  if (!row.takes_tensors()) return;
  sized(bench, row, dtype, 0, v);
  if (dtype == "float32" || dtype == "float64" || dtype == row.dtypes()[0])
    sized(bench, row, dtype, kLargeSize, v);
}

}  // namespace adjoin::cli
