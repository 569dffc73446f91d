// frontends/cli/conform/values.cpp: a row in one dtype on the device beside the reference backend:
// values, layouts, sizes, out= and in-place forms, and what must not be written.
#include <algorithm>
#include <random>

#include "checks.hpp"
#include "tolerance.hpp"

namespace adjoin::cli::conform {
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
      std::string d = one_result(i, got.values[i], wanted.values[i]);
      if (!d.empty()) return got.values.size() > 1 ? "result " + std::to_string(i) + ": " + d : d;
    }
    return {};
  }

 private:
  std::string one_result(size_t i, const HostTensor& got, const HostTensor& wanted) const {
    bool hidden = i < row_.results.size() && (row_.results[i].flags & AJ_PARAM_AUX);
    // A hidden result may be wider than what it was computed from.
    if (!row_.pointwise() || !has_steps(got.dtype) || hidden)
      return difference(got, wanted, scale_, row_.compared(), hidden ? dtype_ : DLDataType{});
    double farthest = 0;
    std::string d =
        difference(got, wanted, tolerance_of(row_, got.dtype), row_.compared(), &farthest);
    if (farthest > 0) v_.figure("ULP", farthest);
    return d;
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

  // The first sample again: is its work on the stream, and is everything given back afterwards?
  void first_sample(const Sample& s) {
    Given given = fill(row_, s, dtype_, bench_.settings.seed);
    complete(row_, given, bench_.reference);
    std::string where = row_.name + " " + dtype_ + " " + s.text();
    Outcome wanted = run_plain(row_, given, bench_.reference);
    if (!wanted.ok || !run_plain(row_, given, bench_.device).ok) return;
    late_arguments(where + " after a wait", given, wanted);
    kept_memory(where + " again and again", given);
  }

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
  // Arguments come on a stream that is held up: who queues elsewhere reads what was there before.
  void late_arguments(const std::string& here, const Given& given, const Outcome& wanted) {
    const aj_device_vtbl& t = *bench_.table;
    if (!t.stream_new || !t.stream_host_fn || (t.flags & AJ_DEV_SYNCHRONOUS)) return;
    bench_.begin(here);
    void* stream = nullptr;
    int32_t dev = bench_.device.device_id;
    kit::check(t.stream_new(t.self, dev, 0, &stream));
    Outcome got;
    {
      Call call(row_, given, bench_.device, Lay::kDense);
      std::vector<Tensor> sources;
      for (const Call::Input& in : call.inputs()) sources.push_back(emptied(in.placed));
      kit::check(kit::core().stream_set(bench_.device, stream));
      hold_up(bench_, stream, 0.001);
      for (size_t i = 0; i < sources.size(); ++i) {
        aj_copy c{};
        c.struct_size = sizeof c;
        c.dst = call.inputs()[i].placed.memory.data_ptr(), c.src = sources[i].data_ptr();
        c.dst_device = c.src_device = bench_.device;
        c.width = c.dst_pitch = c.src_pitch = uint64_t(sources[i].numel()), c.height = 1;
        c.stream = stream;
        kit::check(t.copy(t.self, &c));
      }
      got = call.run();
      kit::check(kit::core().device_synchronize(bench_.device));
    }
    kit::check(kit::core().stream_set(bench_.device, nullptr));
    same_(here, got, wanted);
    got = {};
    kit::check(t.stream_free(t.self, dev, stream));
  }

  // The tensor's memory, elsewhere on the device; zeros take its place.
  static Tensor emptied(const Placed& p) {
    Placed copy = place(HostTensor{uint8, {int64_t(p.image.size())}, p.image}, p.memory.device(),
                        Lay::kDense);
    std::vector<unsigned char> zeros(p.image.size());
    kit::check(kit::core().tensor_copy_bytes(p.memory.get(), zeros.data(), zeros.size(), 0));
    return copy.tensor;
  }

  uint64_t in_use() const {
    kit::check(kit::core().device_synchronize(bench_.device));
    aj_memory_stats stats{};
    stats.struct_size = sizeof stats;
    kit::check(kit::core().memory_stats(bench_.device, &stats));
    return stats.in_use;
  }

  // Does what is in use grow with three calls in a row? It may shrink before, while work that held
  // memory ends.
  void kept_memory(const std::string& here, const Given& given) {
    bench_.begin(here);
    uint64_t last = 0, step = 0;
    int grew = 0, stayed = 0;
    for (int i = 0; i < 16 && grew < 3 && stayed < 2; ++i) {
      (void)run_plain(row_, given, bench_.device);
      const uint64_t now = in_use();
      if (i) {
        grew = now > last ? grew + 1 : 0;
        stayed += now == last;
        step = now - last;
      }
      last = now;
    }
    v_.expect(here, grew == 3 ? "each call leaves " + std::to_string(step) +
                                    " bytes in use: a tensor is retained and not released"
                              : "");
  }

  // An argument is not written, unless the op writes it on the reference backend too: the same.
  std::string trespass(const Call& call, const Given& given, Lay lay) const {
    std::string wrong = call.trespass();
    if (wrong.empty()) return wrong;
    for (const Call::Input& in : call.inputs())
      if (row_.params[in.param].written() && touched(in.placed)) return wrong;
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
    bool by_memory = row_.param("storage_offset");  // every layout means something else
    if (!by_memory && got.ok && same_.different(got, wanted).empty()) {
      v_.expect(here, trespass(call, given, lay));
      return;
    }
    Call beside(row_, given, bench_.reference, lay);  // does this one?
    Outcome there = beside.run();
    if (!there.ok || by_memory || aliases(there, beside))
      same_(here, got, there);
    else
      same_(here, got, wanted);
  }

  void expanded(const std::string& where, const Given& given) {
    const Json* repeats = row_.test.find("repeats");
    if (repeats && !repeats->yes) return;
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
  for (const Sample& s : row.resized(size, bench.settings.largest)) {
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

// The dtype for what is not a matter of dtypes: one that every device has.
std::string customary(const Bench& bench, const Row& row) {
  std::vector<std::string> names =
      bench.settings.dtypes.empty() ? row.dtypes() : bench.settings.dtypes;
  bool there = std::find(names.begin(), names.end(), "float32") != names.end();
  return there ? "float32" : names.front();
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
  if (dtype == "bool" && row.param("storage_offset"))
    return v.skip("reads bytes around a tensor, which are no bools here");
  Values values(bench, row, dtype, v);
  Comparison same(row, dtype, v, kScale);
  bool once = bench.settings.full || dtype == customary(bench, row);
  size_t i = 0;
  for (const Sample& s : chosen(bench, row, 12, dtype)) {
    if (i == 0 && once) values.first_sample(s);
    values.sample(s, same, bench.settings.full || i < 4);
    ++i;
  }
  special(bench, row, dtype, v);
  if (!row.takes_tensors()) return;
  sized(bench, row, dtype, 0, v);
  if (dtype == "float32" || dtype == "float64" || dtype == row.dtypes()[0])
    sized(bench, row, dtype, kLargeSize, v);
}

}  // namespace adjoin::cli::conform
