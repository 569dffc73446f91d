// frontends/cli/bindgen.cpp: `adjoin bindgen`: typed functions of another language for every op of
// the running library.
#include "bindgen.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

namespace adjoin::cli::bindgen {
namespace {

constexpr std::string_view kOps = "@OPS@", kInclude = "@INCLUDE ";

OpParam read_param(aj_status* (*get)(const aj_op*, uint32_t, aj_param*), const aj_op* op,
                   uint32_t i) {
  OpParam p{};
  p.info.struct_size = sizeof p.info;
  check(get(op, i, &p.info));
  p.name = text(p.info.name);
  return p;
}

OpModel read_op(const aj_op* op) {
  aj_op_info info = {};
  info.struct_size = sizeof info;
  check(dispatch().op_info(op, &info));
  OpModel m{text(info.name), "", text(info.name), text(info.schema), text(info.doc), {}, {}, false};
  if (size_t colon = m.name.find("::"); colon != m.name.npos) {
    m.space = m.name.substr(0, colon);
    m.name.erase(0, colon + 2);
  }
  std::replace(m.name.begin(), m.name.end(), '.', '_');
  std::replace(m.doc.begin(), m.doc.end(), '\n', ' ');
  m.in_place = info.flags & AJ_INFO_IN_PLACE;
  for (uint32_t i = 0; i < info.nparams; ++i)
    m.params.push_back(read_param(dispatch().op_param, op, i));
  for (uint32_t i = 0; i < info.nresults; ++i)
    m.results.push_back(read_param(dispatch().op_result, op, i));
  return m;
}

std::vector<OpModel> read_ops() {
  std::vector<OpModel> ops;
  for (uint32_t i = 0; i < dispatch().op_count(); ++i) ops.push_back(read_op(dispatch().op_at(i)));
  std::sort(ops.begin(), ops.end(), [](const OpModel& a, const OpModel& b) {
    return std::tie(a.space, a.name, a.op) < std::tie(b.space, b.name, b.op);
  });
  return ops;
}

struct Language {
  const char *name, *source;
  std::string (*functions)(const std::vector<OpModel>&);
};
constexpr Language kLanguages[] = {
    {"lua", "share/adjoin/templates/bindings/lua/adjoin.lua", lua_functions},
    {"rust", "share/adjoin/templates/bindings/rust/src/adjoin.rs", rust_functions}};

// A file of the part that is written by hand: the ops stand in the place of the line with @OPS@,
// another file of the folder in that of @INCLUDE name@.
std::string expanded(const std::filesystem::path& path, const Language& language) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("bindgen: cannot read " + path.string());
  std::string out, line;
  while (std::getline(file, line)) {
    if (size_t at = line.find(kInclude); at != line.npos) {
      at += kInclude.size();
      out += expanded(path.parent_path() / line.substr(at, line.rfind('@') - at), language);
    } else {
      out += line.find(kOps) != line.npos ? language.functions(read_ops()) : line + '\n';
    }
  }
  return out;
}

}  // namespace

bool OpParam::known() const {
  if (!info.list) return info.base >= AJ_PARAM_TENSOR && info.base <= AJ_PARAM_OBJECT;
  return info.base == AJ_PARAM_TENSOR || info.base == AJ_PARAM_OPERAND ||
         (info.base >= AJ_PARAM_INT && info.base <= AJ_PARAM_BOOL);
}

std::string number_text(double x, const char* infinity, const char* nan) {
  if (std::isnan(x)) return nan;
  if (std::isinf(x)) return (x < 0 ? "-" : "") + std::string(infinity);
  char digits[40];
  std::string s(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

static int command(const Words& words) {
  Arguments args(
      "adjoin bindgen --lang lua|rust [--load PLUGIN.so]... [--out FILE]",
      "Writes a binding: a function for every op that is registered, with its "
      "documentation, defaults and\n"
      "types, over a small part written by hand (share/adjoin/templates/bindings). Ops of a "
      "plugin come with --load.");
  args.add()("lang", options::value<std::string>(), "lua (LuaJIT's ffi) or rust (2021, no crates)");
  args.add()("load", options::value<Words>(), "a plugin whose ops are wanted, too");
  args.add()("out", options::value<std::string>(), "the file to write; default: standard output");
  if (!args.parse(words)) return 0;
  if (!args.has("lang")) throw args.misuse("which language?");
  for (const Language& language : kLanguages) {
    if (args.get<std::string>("lang") != language.name) continue;
    if (args.has("load"))
      for (const std::string& path : args.get<Words>("load")) check(aj_load_plugin(path.c_str()));
    std::string all = expanded(prefix_with(language.source) / language.source, language);
    if (!args.has("out")) {
      std::cout << all;
      return 0;
    }
    std::ofstream file(args.get<std::string>("out"), std::ios::binary);
    file << all;
    file.close();
    if (!file) throw std::runtime_error("bindgen: cannot write " + args.get<std::string>("out"));
    return 0;
  }
  throw args.misuse("there is no binding for '" + args.get<std::string>("lang") + "'");
}

}  // namespace adjoin::cli::bindgen

int adjoin::cli::bindgen_command(const Words& words) { return bindgen::command(words); }
