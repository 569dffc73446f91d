// frontends/cli/tune.cpp: `adjoin tune`: measures which provider of matrix products is the fastest
// for which sizes, and writes the file that a device's plugin reads at its first product.
#include <adjoin/abi/tuner.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "child.hpp"
#include "cli.hpp"

namespace adjoin::cli {
namespace {

constexpr const char* kAbout =
    "Times matrix products by every provider that is there (a BLAS, oneDNN, our own code) and\n"
    "writes down the fastest for each class of problems. Sizes count by the nearest power of two.\n"
    "The file is read when a program computes its first product; one of another processor, or of\n"
    "other versions of the libraries, is ignored (--show says why). ADJOIN_BLAS=NAME overrides "
    "it,\n"
    "ADJOIN_TUNING=FILE names another file, ADJOIN_TUNING= none.\n"
    "\n"
    "  adjoin tune                                  all usual sizes and dtypes: some minutes\n"
    "  adjoin tune --dtypes float32 --threads 2     less\n"
    "  adjoin tune --add -- python train.py         only what the program multiplies\n"
    "  adjoin tune --show                           what is known and whether it is used";

// A problem to measure; threads are set apart from it.
struct Job {
  std::string dtype, turned;
  int64_t m = 0, n = 0, k = 0;
  auto operator<=>(const Job&) const = default;
};

class Tuner {
 public:
  explicit Tuner(const std::string& device) {
    int32_t type;
    check(core().device_find(borrow(device), &type));
    auto* services = static_cast<const aj_services*>(aj_get_interface("aj.service", AJ_ABI_MAJOR));
    std::string slot = "aj.tuner/" + device;
    aj_service_def def = {};
    def.struct_size = sizeof def;
    if (!services || services->count(borrow(slot)) == 0)
      throw std::runtime_error("tune: the device '" + device + "' measures no products");
    check(services->at(borrow(slot), 0, &def));
    table_ = static_cast<const aj_tuner*>(def.table);
  }
  std::string place() const { return text(table_->place(table_->self)); }
  void load(const std::string& path) const { check(table_->load(table_->self, borrow(path))); }
  void save(const std::string& path) const { check(table_->save(table_->self, borrow(path))); }
  std::string show(bool all) const {
    aj_object* out = nullptr;
    check(table_->show(table_->self, all, &out));
    return take(out);
  }
  // The name of the fastest.
  std::string measure(const Job& job, double seconds) const {
    aj_gemm g = {};
    g.struct_size = sizeof g;
    check(core().dtype_find(borrow(job.dtype), &g.dtype));
    g.trans_a = job.turned[0] == 't', g.trans_b = job.turned[1] == 't';
    g.batch = 1, g.m = job.m, g.n = job.n, g.k = job.k;
    aj_object* out = nullptr;
    check(table_->measure(table_->self, &g, seconds, &out));
    std::string lines = take(out);
    return lines.substr(0, lines.find(' '));
  }

 private:
  const aj_tuner* table_;
};

// One line that is written over, on a terminal; else nothing.
class Bar {
 public:
  Bar(size_t total, bool quiet) : total_(total), shown_(!quiet && isatty(STDERR_FILENO)) {}
  ~Bar() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  void step(const std::string& what) {
    size_t percent = 100 * ++done_ / std::max<size_t>(1, total_);
    if (!shown_) return;
    std::string filled(percent * 30 / 100, '#');
    std::fprintf(stderr, "\r\033[K[%-30s] %3zu %%  %s", filled.c_str(), percent, what.c_str());
    std::fflush(stderr);
  }

 private:
  size_t total_, done_ = 0;
  bool shown_;
};

std::vector<int64_t> numbers(const Arguments& args, const char* name, int64_t most) {
  std::vector<int64_t> found;
  for (const std::string& word : split(args.get<std::string>(name), ',')) {
    char* end;
    long long n = std::strtoll(word.c_str(), &end, 10);
    if (*end || n < 1 || n > most)
      throw args.misuse(std::string("--") + name + ": '" + word + "' is no number of 1 to " +
                        std::to_string(most));
    found.push_back(n);
  }
  if (found.empty()) throw args.misuse(std::string("--") + name + ": nothing is named");
  return found;
}

// Lines of dtype, nn|nt|tn|tt, m, n, k; '#' begins a comment.
std::vector<Job> read_shapes(std::istream& file, const std::string& path) {
  std::vector<Job> jobs;
  std::string line;
  for (int at = 1; std::getline(file, line); ++at) {
    std::istringstream words(line.substr(0, line.find('#')));
    Job job;
    std::string more;
    if (!(words >> job.dtype)) continue;
    bool good = bool(words >> job.turned >> job.m >> job.n >> job.k) && !(words >> more) &&
                job.turned.size() == 2 && job.turned.find_first_not_of("nt") == job.turned.npos;
    if (!good)
      throw std::runtime_error("tune: " + path + ", line " + std::to_string(at) + ": '" + line +
                               "', wanted 'float32 nn 256 256 256': dtype, turned operands, m n k");
    jobs.push_back(job);
  }
  return jobs;
}

std::vector<Job> usual(const std::vector<std::string>& dtypes, const std::vector<int64_t>& sizes) {
  constexpr int64_t kMost = int64_t(1) << 30;  // multiplications: larger ones take minutes together
  std::vector<Job> jobs;
  for (const std::string& dtype : dtypes)
    for (const char* turned : {"nn", "nt", "tn"})
      for (int64_t m : sizes)
        for (int64_t n : sizes)
          for (int64_t k : sizes)
            if (m * n <= kMost / k) jobs.push_back({dtype, turned, m, n, k});
  return jobs;
}

std::vector<Job> read_shapes_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("tune: " + path + " cannot be read");
  return read_shapes(file, path);
}

// The products of a program.
std::vector<Job> record(const Words& command) {
  Child child = run_child(command, "ADJOIN_TUNE_RECORD");
  if (child.code != 0) throw std::runtime_error("tune: the program failed, nothing is measured");
  std::istringstream lines(child.written);
  std::vector<Job> jobs = read_shapes(lines, "the program's record");
  if (jobs.empty()) throw std::runtime_error("tune: the program computed no product to measure");
  return jobs;
}

int run_tune(Arguments& args, const Words& command) {
  Tuner tuner(args.get<std::string>("device"));
  if (args.has("show")) {
    if (args.has("output")) tuner.load(args.get<std::string>("output"));
    std::cout << tuner.show(args.has("all"));
    return 0;
  }
  std::string output = args.has("output") ? args.get<std::string>("output") : tuner.place();
  if (output.empty()) throw args.misuse("--output: there is no default place, name a file");
  std::vector<int64_t> threads = args.has("threads")
                                     ? numbers(args, "threads", 1024)
                                     : std::vector<int64_t>{1, core().num_threads()};
  threads.erase(std::unique(threads.begin(), threads.end()), threads.end());
  double seconds = args.get<double>("seconds");
  if (!(seconds > 0 && seconds <= 60)) throw args.misuse("--seconds: more than 0, at most 60");
  std::vector<Job> jobs;
  if (!command.empty())
    jobs = record(command);
  else if (args.has("shapes"))
    jobs = read_shapes_file(args.get<std::string>("shapes"));
  else
    jobs = usual(split(args.get<std::string>("dtypes"), ','), numbers(args, "sizes", 1 << 16));
  std::sort(jobs.begin(), jobs.end());
  jobs.erase(std::unique(jobs.begin(), jobs.end()), jobs.end());
  if (jobs.empty()) throw args.misuse("there is nothing to measure");

  tuner.load(args.has("add") && std::filesystem::exists(output) ? output : "");
  std::map<std::string, int> wins;
  {
    Bar bar(jobs.size() * threads.size(), args.has("quiet"));
    for (int64_t t : threads) {
      check(core().set_num_threads(int32_t(t)));
      for (const Job& job : jobs) {
        std::string name = tuner.measure(job, seconds);
        ++wins[name];
        bar.step(job.dtype + " " + job.turned + " " + std::to_string(job.m) + " x " +
                 std::to_string(job.n) + " x " + std::to_string(job.k) + ", " + std::to_string(t) +
                 " threads: " + name);
      }
    }
  }
  tuner.save(output);
  for (const auto& [name, count] : wins)
    std::cout << name << " is the fastest of " << count << " classes\n";
  std::cout << "written: " << output << '\n';
  return 0;
}

}  // namespace

int tune_command(const Words& all) {
  // What follows "--" is a program, with options of its own.
  auto dashes = std::find(all.begin(), all.end(), "--");
  Words words(all.begin(), dashes), command(dashes == all.end() ? dashes : dashes + 1, all.end());
  Arguments args("adjoin tune [options] [-- PROGRAM [argument]...]", kAbout);
  namespace po = options;
  args.add()("dtypes", po::value<std::string>()->default_value("float32,float64,bfloat16"),
             "which, separated by commas");
  args.add()("sizes", po::value<std::string>()->default_value("16,32,64,128,256,512,1024,2048"),
             "of m, n and k, each with each");
  args.add()(
      "shapes", po::value<std::string>()->value_name("FILE"),
      "reads them: 'float32 nt 64 256 1024' a line: dtype, which operands are turned, m n k");
  args.add()("threads", po::value<std::string>()->value_name("LIST"),
             "numbers of threads; else 1 and all");
  args.add()("seconds", po::value<double>()->default_value(0.003, "0.003"),
             "how long each provider is timed for a class");
  args.add()("output", po::value<std::string>()->value_name("FILE"),
             "where to write (with --show: what to read); else where it is looked for");
  args.add()("device", po::value<std::string>()->default_value("cpu"), "whose products");
  args.add()("add", "keeps what the file knows of other classes");
  args.add()("show", "tells what is known, and why it is not used");
  args.add()("all", "with --show: every class");
  args.add()("quiet", "no progress bar");
  if (!args.parse(words)) return 0;
  if (std::find(all.begin(), all.end(), "--") != all.end() && command.empty())
    throw args.misuse("-- wants a program");
  return run_tune(args, command);
}

}  // namespace adjoin::cli
