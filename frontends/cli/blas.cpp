// frontends/cli/blas.cpp: `adjoin blas compare`: speed and error of everybody who multiplies
// matrices.
#include <adjoin/abi/tuner.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

constexpr const char* kUsage =
    "adjoin blas compare [--shapes MxNxK,...] [--dtypes float32,float64] [--providers NAME,...] "
    "[--json]";
constexpr const char* kAbout =
    "Multiplies matrices with each provider and tells its speed and its error in units in the "
    "last\n"
    "place. Elements are between 0.5 and 1.5, so nothing cancels; the error is that of up to "
    "4,096\n"
    "elements of each result beside sums in twice the precision. 'served by' says who really "
    "computed:\n"
    "a library that declines a product leaves it to our own code.\n"
    "NAME: own, onednn, openblas, blis, mkl, blas, a path, or several by routine: blis,dgemm=own "
    "is\n"
    "written blis+dgemm=own here.";

const aj_services& services() {
  static auto* table =
      static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
  if (!table) throw std::runtime_error("blas: this libadjoin has no interface aj.service");
  return *table;
}
constexpr std::string_view kSlot = "aj.blas/cpu";

// "library" is another name of one of them; who serves only by name has priority -100, and is there
// if it has a file.
std::vector<std::string> everybody() {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < services().count(borrow(kSlot)); ++i) {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    check(services().at(borrow(kSlot), i, &def));
    auto* blas = static_cast<const aj_blas*>(def.table);
    bool there =
        def.priority > -100 || (AJ_HAS_FN(blas, aj_blas, path) && blas->path(blas->self).len > 0);
    if (there && text(def.name) != "library") names.push_back(text(def.name));
  }
  return names;
}

struct Shape {
  int64_t m, n, k;
};

Shape parse_shape(const Arguments& args, const std::string& word) {
  Shape s = {};
  char more;
  if (std::sscanf(word.c_str(), "%ldx%ldx%ld%c", &s.m, &s.n, &s.k, &more) != 3 || s.m < 1 ||
      s.n < 1 || s.k < 1 || s.m > 32768 || s.n > 32768 || s.k > 32768)
    throw args.misuse("--shapes: '" + word +
                      "', wanted 256x256x256: m, n and k, at most 32768 each");
  return s;
}

struct Result {
  std::string provider, served;
  double seconds = INFINITY, most = 0, mean = 0;
};

// One product of T, with what it is compared with.
template <class T, class Wide>
class Product {
 public:
  Product(const char* dtype, Shape s)
      : s_(s), a_(size_t(s.m * s.k)), b_(size_t(s.k * s.n)), c_(size_t(s.m * s.n)) {
    check(core().dtype_find(borrow(dtype), &dtype_));
    std::mt19937_64 random(1);
    for (auto* v : {&a_, &b_})
      for (T& x : *v) x = T(0.5) + T(random() >> 11) * T(0x1p-53);
    size_t all = c_.size(), step = std::max<size_t>(1, all / 4096) | 1;
    for (size_t i = 0; i < all && wanted_.size() < 4096; i += step) {
      Wide sum = 0;
      for (int64_t p = 0; p < s.k; ++p)
        sum += Wide(a_[size_t(int64_t(i) / s.n * s.k + p)]) *
               Wide(b_[size_t(p * s.n + int64_t(i) % s.n)]);
      wanted_.push_back({i, sum});
    }
    op_ = dispatch().find_op(borrow("mm"));
    args_[0] = tensor(a_, s.m, s.k), args_[1] = tensor(b_, s.k, s.n), out_ = tensor(c_, s.m, s.n);
  }
  ~Product() {
    for (aj_value* v : {&args_[0], &args_[1], &out_}) core().release(v->v.tensor);
  }
  Product(const Product&) = delete;

  double run() {
    auto from = std::chrono::steady_clock::now();
    aj_value ret = out_;
    check(dispatch().call(op_, args_, 2, &ret, 1));
    core().release(ret.v.tensor);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  }
  void measure_error(Result* r) {
    std::fill(c_.begin(), c_.end(), std::numeric_limits<T>::quiet_NaN());
    run();
    double sum = 0;
    for (const auto& [i, wanted] : wanted_) {
      T near = T(wanted);
      double ulp = double(std::nextafter(near, std::numeric_limits<T>::infinity()) - near);
      double error = double(std::abs(Wide(c_[i]) - wanted)) / ulp;
      if (!(error <= r->most)) r->most = error;  // NaN too
      sum += error;
    }
    r->mean = sum / double(wanted_.size());
  }
  std::string serving() const {
    aj_service_def def = {};
    def.struct_size = sizeof def;
    check(services().at(borrow("aj.tuner/cpu"), 0, &def));
    auto* tuner = static_cast<const aj_tuner*>(def.table);
    aj_gemm g = {};
    g.struct_size = sizeof g;
    g.dtype = dtype_;
    g.batch = 1, g.m = s_.m, g.n = s_.n, g.k = s_.k, g.alpha = 1;
    g.lda = s_.k, g.ldb = s_.n, g.ldc = s_.n;
    aj_object* name = nullptr;
    check(tuner->serving(tuner->self, &g, &name));
    return take(name);
  }

 private:
  aj_value tensor(std::vector<T>& data, int64_t rows, int64_t columns) {
    int64_t shape[] = {rows, columns};
    DLTensor like = {};
    like.data = data.data();
    like.device = {kDLCPU, 0};
    like.ndim = 2;
    like.dtype = dtype_;
    like.shape = shape;
    aj_value v = {AJ_TENSOR, 0, {0}};
    check(core().tensor_from_memory(&like, data.size() * sizeof(T), 0, nullptr, nullptr,
                                    &v.v.tensor));
    return v;
  }

  Shape s_;
  DLDataType dtype_ = {};
  std::vector<T> a_, b_, c_;
  std::vector<std::pair<size_t, Wide>> wanted_;
  const aj_op* op_ = nullptr;
  aj_value args_[2] = {}, out_ = {};
};

// In turn, so that a disturbance of the machine meets everybody.
template <class T, class Wide>
std::vector<Result> compare(const char* dtype, Shape shape, const std::vector<std::string>& names,
                            double seconds) {
  Product<T, Wide> product(dtype, shape);
  std::vector<Result> results;
  for (const std::string& name : names) {
    check(services().choose(borrow(kSlot), borrow(name)));
    Result r{name, product.serving()};
    product.measure_error(&r);
    results.push_back(r);
  }
  for (int round = 0; round < 5; ++round)
    for (Result& r : results) {
      check(services().choose(borrow(kSlot), borrow(r.provider)));
      product.run();
      double spent = 0;
      do {
        double one = product.run();
        spent += one;
        r.seconds = std::min(r.seconds, one);
      } while (spent < seconds / 5);
    }
  check(services().choose(borrow(kSlot), borrow("")));
  return results;
}

std::string fixed(double v, int digits) {
  char out[32];
  std::snprintf(out, sizeof out, "%.*f", digits, v);
  return out;
}

void print(const std::string& title, Shape s, const std::vector<Result>& results) {
  double best = INFINITY, work = 2.0 * double(s.m) * double(s.n) * double(s.k);
  for (const Result& r : results) best = std::min(best, r.seconds);
  std::cout << title << '\n';
  std::vector<std::vector<std::string>> rows = {
      {"  provider", "served by", "us", "GFLOP/s", "times the fastest", "max ULP", "mean ULP"}};
  for (const Result& r : results)
    rows.push_back({"  " + r.provider, r.served, fixed(r.seconds * 1e6, 1),
                    fixed(work / r.seconds / 1e9, 1), fixed(r.seconds / best, 2), fixed(r.most, 1),
                    fixed(r.mean, 2)});
  print_table(rows);
}

int compare_command(const Words& words) {
  namespace po = options;
  Arguments args(kUsage, kAbout);
  args.add()("shapes",
             po::value<std::string>()->default_value("64x64x64,256x256x256,1024x1024x1024"),
             "m, n and k of each product");
  args.add()("dtypes", po::value<std::string>()->default_value("float32,float64"),
             "float32, float64");
  args.add()("providers", po::value<std::string>(), "who; else everybody that is there");
  args.add()("threads", po::value<int>()->default_value(1), "how many may compute");
  args.add()("seconds", po::value<double>()->default_value(0.05, "0.05"), "how long each is timed");
  args.add()("json", "prints JSON");
  if (!args.parse(words)) return 0;
  int32_t cpu;
  check(core().device_find(borrow("cpu"), &cpu));
  check(core().set_num_threads(args.get<int>("threads")));
  std::vector<std::string> names =
      args.has("providers") ? split(args.get<std::string>("providers"), ',') : everybody();
  for (std::string& name : names) std::replace(name.begin(), name.end(), '+', ',');
  std::vector<std::string> items;
  for (const std::string& dtype : split(args.get<std::string>("dtypes"), ','))
    for (const std::string& word : split(args.get<std::string>("shapes"), ',')) {
      Shape s = parse_shape(args, word);
      std::vector<Result> results;
      if (dtype == "float32")
        results = compare<float, double>("float32", s, names, args.get<double>("seconds"));
      else if (dtype == "float64")
        results = compare<double, long double>("float64", s, names, args.get<double>("seconds"));
      else
        throw args.misuse("--dtypes: '" + dtype + "', wanted float32 or float64");
      if (!args.has("json")) print(dtype + " " + word, s, results);
      for (const Result& r : results)
        items.push_back(json({{"dtype", quote(dtype)},
                              {"shape", quote(word)},
                              {"provider", quote(r.provider)},
                              {"served_by", quote(r.served)},
                              {"seconds", fixed(r.seconds, 9)},
                              {"max_ulp", fixed(r.most, 3)},
                              {"mean_ulp", fixed(r.mean, 3)}}));
    }
  if (args.has("json")) std::cout << json_list(items) << '\n';
  return 0;
}

}  // namespace

int blas_command(const Words& words) {
  const std::string usage = std::string("usage: ") + kUsage;
  if (words.empty()) throw UsageError("blas: which of its commands?\n" + usage);
  if (words[0] == "compare") return compare_command({words.begin() + 1, words.end()});
  if (words[0] != "--help" && words[0] != "-h")
    throw UsageError("blas: there is no '" + words[0] + "'\n" + usage);
  std::cout << usage << '\n';
  return 0;
}

}  // namespace adjoin::cli
