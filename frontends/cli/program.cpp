// frontends/cli/program.cpp: captured programs: `adjoin run MODEL.aj`, `adjoin graph show | check`.
// Nothing of Python is started.
#include "../cpp/program.hpp"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <sstream>

#include "../cpp/files/npy.hpp"
#include "../cpp/script.hpp"
#include "cli.hpp"

namespace adjoin::cli {
namespace {

std::string shown(const aj_program_value& v) {
  return kit::text(v.name, ": ", v.type.dtype, kit::Shape{v.type.shape, v.type.ndim});
}

// A file of an archive, or of text alone.
Program open_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(2, '\0');
  if (file.read(begin.data(), 2) && begin != "PK") {
    std::stringstream all;
    all << begin << file.rdbuf();
    return Program::parse(all.str());
  }
  return Program(path);
}

// What --input gives to a scripted program: a file of NumPy's, a number, a word.
Value value_of(const std::string& word) {
  if (word.ends_with(".npy")) return files::load_npy(word);
  if (word == "None") return {};
  if (word == "true" || word == "false") return word == "true";
  const char* end = word.data() + word.size();
  int64_t whole = 0;
  if (std::from_chars(word.data(), end, whole).ptr == end && !word.empty()) return whole;
  double real = 0;
  if (std::from_chars(word.data(), end, real).ptr == end && !word.empty()) return real;
  return word;
}

// The tensors of a result, in order.
void tensors_in(const Value& v, std::vector<Tensor>& out) {
  if (v.get().tag == AJ_TENSOR) out.push_back(v.to_tensor());
  if (v.get().tag != AJ_OBJECT) return;
  for (const Value& item : v.items()) tensors_in(item, out);
}

int run_script(const Script& script, const Arguments& a, const Words& inputs,
               const Words& outputs) {
  std::vector<Value> given;
  for (const std::string& word : inputs) given.push_back(value_of(word));
  const Value result = script.call(a.get<std::string>("function"), given);
  std::vector<Tensor> made;
  tensors_in(result, made);
  if (outputs.size() > made.size())
    throw a.misuse(kit::text("run: ", uint64_t(outputs.size()),
                             " outputs are asked for, the result has ", uint64_t(made.size()),
                             " tensors"));
  for (size_t i = 0; i < outputs.size(); ++i) files::save_npy(made[i], outputs[i]);
  if (outputs.empty()) std::cout << result.text() << "\n";
  return 0;
}

// What `adjoin run` does with a program.
int run_program(const Words& words) {
  Arguments a(
      "adjoin run MODEL.aj --input X.npy [--output Y.npy]",
      "Runs a program that jit.save has written. The i-th --input and --output are those of the "
      "program; a result without --output is printed.");
  a.add()("function", options::value<std::string>()->default_value("forward"),
          "of a scripted program: which function runs")(
      "input,i", options::value<Words>()->composing(),
      "a .npy file for each input; of a scripted program also a number or a word")(
      "output,o", options::value<Words>()->composing(), "a .npy file for each result")(
      "no-fusion", "calls run one by one")("stats",
                                           "tells how many passes over memory the run took");
  a.positional("file", 1);
  if (!a.parse(words)) return 0;
  if (!a.has("file")) throw a.misuse("run: which file?");
  Program program = open_program(a.get<Words>("file").at(0));
  const Words inputs = a.has("input") ? a.get<Words>("input") : Words();
  const Words outputs = a.has("output") ? a.get<Words>("output") : Words();
  if (Script::is(program)) return run_script(Script(std::move(program)), a, inputs, outputs);
  NoGradGuard off;  // nobody asks for gradients
  const uint32_t wanted = program.count(AJ_PROGRAM_INPUT);
  if (inputs.size() != wanted) {
    std::string list;
    for (uint32_t i = 0; i < wanted; ++i)
      list += "\n  " + shown(program.value(AJ_PROGRAM_INPUT, i));
    throw a.misuse(kit::text("run: ", uint64_t(inputs.size()),
                             " inputs are given, the program takes ", wanted, list));
  }
  std::vector<Tensor> given;
  for (const std::string& path : inputs) given.push_back(files::load_npy(path));
  std::vector<Tensor> results = program.run(given, a.has("no-fusion") ? AJ_RUN_NO_FUSION : 0);
  if (outputs.size() > results.size())
    throw a.misuse(kit::text("run: ", uint64_t(outputs.size()),
                             " outputs are asked for, the program has ", uint64_t(results.size()),
                             " results"));
  for (size_t i = 0; i < results.size(); ++i) {
    if (i < outputs.size()) {
      files::save_npy(results[i], outputs[i]);
      continue;
    }
    std::cout << kit::text("result ", uint64_t(i), ": ", results[i].dtype(),
                           kit::Shape{results[i].shape().data(), results[i].ndim()}, "\n");
    Tensor flat = reshape(to(results[i], float64), {-1});
    const int64_t n = std::min<int64_t>(flat.numel(), 16);
    for (int64_t j = 0; j < n; ++j) std::cout << kit::text(j ? " " : "  ", flat.data<double>()[j]);
    std::cout << (n < flat.numel() ? " ...\n" : "\n");
  }
  if (a.has("stats")) {
    const aj_program_stats s = program.stats();
    std::cout << kit::text("calls ", s.nodes, ", passes ", s.passes, ", groups ", s.groups,
                           ", fused calls ", s.fused, "\n");
  }
  return 0;
}

}  // namespace

bool is_program(const Words& words) {
  auto named = [](const std::string& w) { return w.ends_with(".aj") || w.ends_with(".ajir"); };
  if (words.empty()) return false;
  const std::string& first = words.front();
  const bool option = first.starts_with("--input") || first.starts_with("--output") ||
                      first.starts_with("-i") || first.starts_with("-o");
  return named(first) || (option && std::any_of(words.begin(), words.end(), named));
}

int run_program_command(const Words& words) try {
  return run_program(words);
} catch (const kit::Error& e) {
  throw std::runtime_error(e.what());
}

int graph_command(const Words& words) try {
  if (!words.empty() && words[0] == "convert")
    return convert_command(Words(words.begin() + 1, words.end()));
  if (!words.empty() && (words[0] == "time" || words[0] == "diff" || words[0] == "picture"))
    return look_command(words);
  Arguments a(
      "adjoin graph show|check|time|picture FILE | diff ONE OTHER | convert FROM TO",
      "show prints the text of a program (.aj, .ajir). check reads it, without running anything, "
      "and says "
      "whether its ops are known here, its values are sound and its text is read back as it is. "
      "time says how long it takes, fused and call by call; picture draws it (SVG); diff says "
      "which calls "
      "and results differ. convert goes between .onnx, PyTorch's .pt and .pt2, and .aj. `adjoin "
      "graph WORD --help` tells more.");
  a.positional("words", 2);
  if (!a.parse(words)) return 0;
  const Words given = a.has("words") ? a.get<Words>("words") : Words();
  if (given.size() != 2 || (given[0] != "show" && given[0] != "check"))
    throw a.misuse("graph: show, check, time or picture, and a file; or diff or convert, and two");
  Program program = open_program(given[1]);
  const std::string text = program.text();
  if (given[0] == "show") {
    std::cout << text;
    return 0;
  }
  if (Program::parse(text).text() != text)
    throw std::runtime_error("graph check: '" + given[1] +
                             "': the text is not read back as it is; this is a defect, report it");
  std::cout << kit::text("sound: ", program.count(AJ_PROGRAM_INPUT), " inputs, ",
                         program.count(AJ_PROGRAM_RESULT), " results, ",
                         program.count(AJ_PROGRAM_PARAM), " parameters, ",
                         program.count(AJ_PROGRAM_CONSTANT), " constants\n");
  return 0;
} catch (const kit::Error& e) {
  throw std::runtime_error(e.what());
}

}  // namespace adjoin::cli
