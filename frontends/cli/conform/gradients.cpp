// frontends/cli/conform/gradients.cpp: first and second derivatives on the device: beside the
// reference backend, and beside central differences along a random direction.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

constexpr double kScale = 100;        // of the tolerance, against the reference backend
constexpr double kDifference = 1e-5;  // relative error allowed
// Of central differences. A root near zero bends within the first: the next one says more of it.
constexpr double kSteps[] = {1e-6, 1e-7, 1e-8};
constexpr int64_t kMostElements = 400;

using Numbers = std::vector<std::complex<double>>;

struct Derivatives {
  bool first_ok = false, second_ok = false;
  int32_t code = 0;
  std::string message;
  std::vector<size_t> kept;               // results that depend on the inputs
  std::vector<HostTensor> first, second;  // one for each input; without bytes where there is none
};

HostTensor weights(const HostTensor& like, uint64_t salt) {
  std::mt19937_64 rng(salt);
  Numbers x(size_t(like.numel()));
  for (auto& z : x) {
    z.real(double(rng() >> 11) * 0x1p-52 - 1);
    if (like.complex()) z.imag(double(rng() >> 11) * 0x1p-52 - 1);
  }
  return from_numbers(like.dtype, like.shape, x);
}

// Re <a, b>
double inner(const HostTensor& a, const HostTensor& b) {
  Numbers x = to_numbers(a), y = to_numbers(b);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += (std::conj(x[i]) * y[i]).real();
  return sum;
}

std::vector<HostTensor> run_back(const std::vector<Tensor>& roots, const std::vector<Tensor>& grads,
                                 const std::vector<Tensor>& inputs, std::vector<Tensor>* keep) {
  std::vector<aj_tensor*> r, g, x, out(inputs.size());
  for (const Tensor& t : roots) r.push_back(t.get());
  for (const Tensor& t : grads) g.push_back(t.get());
  for (const Tensor& t : inputs) x.push_back(t.get());
  aj_backward b{};
  b.struct_size = sizeof b;
  b.flags =
      AJ_BACKWARD_ALLOW_UNUSED | (keep ? AJ_BACKWARD_CREATE_GRAPH | AJ_BACKWARD_RETAIN_GRAPH : 0u);
  b.roots = r.data(), b.grads = g.data(), b.nroots = uint32_t(r.size());
  b.inputs = x.data(), b.out = out.data(), b.ninputs = uint32_t(x.size());
  kit::check(kit::autograd().backward(&b));
  std::vector<HostTensor> values;
  for (size_t i = 0; i < out.size(); ++i) {
    Tensor t = Tensor::steal(out[i]);
    values.push_back(t.defined() ? fetch(t) : HostTensor{inputs[i].dtype(), {}, {}});
    if (keep) keep->push_back(t);
  }
  return values;
}

class Gradient {
 public:
  Gradient(Bench& bench, const Row& row, const Given& given, const std::set<size_t>& wanted)
      : bench_(bench), row_(row), given_(given), wanted_(wanted) {}

  Derivatives at(DLDevice device, const Given& given, bool second) const {
    Derivatives d;
    try {
      Call call(row_, given, device, Lay::kDense);
      for (size_t p : wanted_) call.require_grad(p);
      Outcome out = call.run({}, false);
      if (!out.ok) {
        d.code = out.code, d.message = out.message;
        return d;
      }
      compute(d, call, out, device, second);
    } catch (const kit::Error& e) {
      d.code = e.code(), d.message = e.message();
    }
    return d;
  }

  // The results that are kept, without recording.
  double weighed(const Given& given, const Derivatives& d) const {
    Call call(row_, given, bench_.device, Lay::kDense);
    Outcome out = call.run();
    if (!out.ok)
      kit::raise(out.code, out.message);  // an op that only an unrecorded call asks for may lack
    double sum = 0;
    for (size_t i : d.kept) sum += inner(weights(out.values[i], i), out.values[i]);
    return sum;
  }

  Given moved(double by) const {
    Given g = given_;
    for_inputs(g, [&](HostTensor& t, size_t i) {
      Numbers x = to_numbers(t), v = to_numbers(weights(t, 1000 + i));
      for (size_t k = 0; k < x.size(); ++k) x[k] += by * v[k];
      t = from_numbers(t.dtype, t.shape, x);
    });
    complete(row_, g, bench_.reference);
    return g;
  }
  // What gradients say of a step along the direction.
  double along(const std::vector<HostTensor>& grads) const {
    double sum = 0;
    Given g = given_;
    for_inputs(g, [&](HostTensor& t, size_t i) {
      if (!grads[i].bytes.empty()) sum += inner(grads[i], weights(t, 1000 + i));
    });
    return sum;
  }

 private:
  template <class F>
  void for_inputs(Given& g, F f) const {
    size_t n = 0;
    for (size_t p : wanted_)
      for (auto& t : g[p].tensors)
        if (t && t->exact()) f(*t, n++);
  }

  void compute(Derivatives& d, const Call& call, const Outcome& out, DLDevice device,
               bool second) const {
    std::vector<Tensor> roots, seeds, leaves, grads;
    for (size_t p : wanted_)
      for (const Call::Input& in : call.inputs())
        if (in.param == p && in.placed.tensor.requires_grad()) leaves.push_back(in.placed.tensor);
    for (size_t i = 0; i < out.tensors.size(); ++i) {
      const Tensor& t = out.tensors[i];
      if (!t.defined() || !t.requires_grad() || !same_width(t)) continue;
      d.kept.push_back(i);
      roots.push_back(t);
      HostTensor like{t.dtype(), {t.shape().begin(), t.shape().end()}, {}};
      seeds.push_back(place(weights(like, i), device, Lay::kDense).tensor);
      if (second) kit::check(kit::autograd().set_requires_grad(seeds.back().get(), 1));
    }
    if (roots.empty()) return;
    d.first = run_back(roots, seeds, leaves, second ? &grads : nullptr);
    d.first_ok = true;
    if (!second) return;
    std::vector<Tensor> again, by;
    for (size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !grads[i].requires_grad()) continue;
      again.push_back(grads[i]);
      by.push_back(place(weights(d.first[i], 500 + i), device, Lay::kDense).tensor);
    }
    if (again.empty()) return;
    std::vector<Tensor> inputs = leaves;
    inputs.insert(inputs.end(), seeds.begin(), seeds.end());
    d.second = run_back(again, by, inputs, nullptr);
    d.second_ok = true;
  }

  // Differences say nothing of a cast to fewer bits.
  bool same_width(const Tensor& t) const {
    auto width = [](DLDataType d) { return d.code == kDLComplex ? d.bits / 2 : int(d.bits); };
    for (size_t p : wanted_)
      for (const auto& x : given_[p].tensors)
        if (x && x->exact()) return width(t.dtype()) >= width(x->dtype);
    return true;
  }

  Bench& bench_;
  const Row& row_;
  const Given& given_;
  const std::set<size_t>& wanted_;
};

// Parameters whose gradients are asked for: floating, and neither chosen signs, nor said to be
// fixed, nor made by the forward row, nor statistics that are kept.
std::set<size_t> inputs_of(const Row& row, const Given& before, const Given& given) {
  std::set<size_t> wanted;
  for (size_t i = 0; i < given.size(); ++i) {
    const Param& p = row.params[i];
    bool fixed = (i > 0 && p.written()) || p.name.starts_with("running_");
    for (const char* key : {"signs", "fixed"})
      if (const Json* names = row.test.find(key))
        for (const Json& name : names->items) fixed |= name.text == p.name;
    const Json* after = row.test.find("after");
    if (after)  // what complete() has replaced
      for (size_t k = 0; k < given[i].tensors.size(); ++k)
        fixed |= k >= before[i].tensors.size() || !before[i].tensors[k] ||
                 before[i].tensors[k]->bytes != given[i].tensors[k]->bytes;
    bool exact = false;
    for (const auto& t : given[i].tensors) exact |= t && t->exact();
    if (exact && !fixed) wanted.insert(i);
  }
  return wanted;
}

int64_t elements(const Given& given) {
  int64_t n = 0;
  for (const Argument& a : given)
    for (const auto& t : a.tensors) n += t ? t->numel() : 0;
  return n;
}

void compare(const std::string& where, const std::vector<HostTensor>& got,
             const std::vector<HostTensor>& wanted, Verdict& v) {
  if (got.size() != wanted.size())
    return v.fail(where + ": " + std::to_string(got.size()) + " gradients, wanted " +
                  std::to_string(wanted.size()));
  for (size_t i = 0; i < got.size(); ++i) {
    bool none = got[i].bytes.empty() || wanted[i].bytes.empty();  // absent, or no elements
    v.expect(where + " of input " + std::to_string(i),
             none ? "" : difference(got[i], wanted[i], kScale, true));
  }
}

// What differences over this step say against the derivatives; nothing if they agree.
std::string against(const Gradient& f, const Derivatives& d, DLDevice device, double step) {
  auto off = [&](const char* which, double slope, double told) {
    return std::fabs(slope - told) <= kDifference * (1 + std::fabs(told))
               ? ""
               : kit::text(which, " derivative along a direction is ", told, ", differences give ",
                           slope);
  };
  Given up = f.moved(step), down = f.moved(-step);
  std::string first =
      off("first", (f.weighed(up, d) - f.weighed(down, d)) / (2 * step), f.along(d.first));
  if (!d.second_ok || !first.empty()) return first;
  Derivatives a = f.at(device, up, false), b = f.at(device, down, false);
  double slope = 0;
  for (size_t i = 0; i < d.first.size(); ++i) {
    if (d.first[i].bytes.empty() || a.first.size() <= i || b.first.size() <= i) continue;
    if (a.first[i].bytes.empty() || b.first[i].bytes.empty()) continue;
    HostTensor w = weights(d.first[i], 500 + i);
    slope += (inner(w, a.first[i]) - inner(w, b.first[i])) / (2 * step);
  }
  return off("second", slope, f.along({d.second.begin(), d.second.end()}));
}

void differences(const std::string& where, const Gradient& f, const Derivatives& d, DLDevice device,
                 Verdict& v) {
  std::string told = against(f, d, device, kSteps[0]);
  for (double step : kSteps)
    if (told.empty() || against(f, d, device, step).empty()) return v.expect(where, "");
  v.expect(where, told);
}

}  // namespace

void check_gradients(Bench& bench, const Row& row, const std::string& dtype, Verdict& v) {
  int tried = 0;
  bool wide = dtype == "float64" || dtype == "complex128";
  for (const Sample& s : chosen(bench, row, 1000, "grad")) {
    Given before = fill(row, s, dtype, bench.settings.seed), given = before;
    if (elements(given) > kMostElements || (tried >= 4 && !bench.settings.full)) continue;
    complete(row, given, bench.reference);
    std::set<size_t> wanted = inputs_of(row, before, given);
    if (wanted.empty()) continue;
    std::string where = row.name + " " + dtype + " " + s.text();
    bench.begin(where + " gradient");
    Gradient f(bench, row, given, wanted);
    Derivatives truth = f.at(bench.reference, given, true);
    if (!truth.first_ok) continue;
    ++tried;
    Derivatives d = f.at(bench.device, given, true);
    if (!d.first_ok) {
      if (d.code == AJ_UNIMPLEMENTED)
        ++v.unsupported, v.reason = d.message;
      else
        v.fail(where + ": no gradient: " + d.message);
      continue;
    }
    compare(where + " gradient", d.first, truth.first, v);
    if (truth.second_ok && !d.second_ok) {
      if (d.code == AJ_UNIMPLEMENTED)
        ++v.unsupported, v.reason = d.message;
      else
        v.fail(where + ": no second gradient: " + d.message);
    } else if (truth.second_ok) {
      compare(where + " second gradient", d.second, truth.second, v);
    }
    if (wide && !row.random()) differences(where, f, d, bench.device, v);
  }
  if (!tried && !v.failed) v.skip("nothing of it has a derivative at the row's samples");
}

}  // namespace adjoin::cli::conform
