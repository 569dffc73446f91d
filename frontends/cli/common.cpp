// frontends/cli/common.cpp: options, tables, JSON and the interfaces of libadjoin for every
// command.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <numeric>
#include <utility>

#include "cli.hpp"

namespace adjoin::cli {
namespace {

template <class T>
const T& interface(const char* name) {
  static const void* table = aj_get_interface(name, AJ_ABI_MAJOR);
  if (!table) throw std::runtime_error(std::string("this libadjoin has no interface ") + name);
  return *static_cast<const T*>(table);
}

bool is_utf8(std::string_view s) {
  size_t wanted = 0;
  for (unsigned char c : s) {
    if (wanted > 0) {
      if ((c & 0xc0) != 0x80) return false;
      --wanted;
    } else if (c >= 0x80) {
      if (c < 0xc2 || c > 0xf4) return false;
      wanted = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    }
  }
  return wanted == 0;
}

}  // namespace

size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t before = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j)
      before = std::exchange(row[j + 1],
                             std::min({row[j + 1] + 1, row[j] + 1, before + (a[i] != b[j])}));
  }
  return row.back();
}

std::string hint(const std::string& word, const Words& known) {
  size_t least = std::max<size_t>(1, word.size() / 4) + 1;
  const std::string* best = nullptr;
  for (const std::string& name : known)
    if (size_t n = letters_apart(word, name); n < least) least = n, best = &name;
  return best ? "; did you mean '" + *best + "'?" : "";
}

const aj_core& core() { return interface<aj_core>("aj.core"); }
const aj_dispatch& dispatch() { return interface<aj_dispatch>("aj.op"); }
const aj_plugins& plugins() { return interface<aj_plugins>("aj.plugins"); }

Arguments::Arguments(std::string usage, std::string about)
    : usage_(std::move(usage)), about_(std::move(about)) {
  shown_.add_options()("help,h", "prints this and ends");
}

void Arguments::positional(const char* name, int count) {
  hidden_.add_options()(name, options::value<Words>());
  places_.add(name, count);
}

bool Arguments::parse(const Words& words) {
  options::options_description all;
  all.add(shown_).add(hidden_);
  try {
    options::store(options::command_line_parser(words).options(all).positional(places_).run(),
                   values_);
    options::notify(values_);
  } catch (const options::error& e) {
    throw misuse(e.what());
  }
  if (!has("help")) return true;
  std::cout << "usage: " << usage_ << "\n\n" << about_ << "\n\n" << shown_;
  return false;
}

void check(aj_status* s) {
  if (!s) return;
  std::string message = text(core().status_message(s));
  core().status_free(s);
  throw std::runtime_error(message);
}

std::string take(aj_object* string) {
  std::string copy = text(core().string_get(string));
  core().release(string);
  return copy;
}

std::vector<std::string> split(std::string_view all, char separator) {
  std::vector<std::string> parts;
  while (!all.empty()) {
    size_t end = std::min(all.find(separator), all.size());
    if (end > 0) parts.emplace_back(all.substr(0, end));
    all.remove_prefix(std::min(end + 1, all.size()));
  }
  return parts;
}

std::vector<aj_plugin_info> list_plugins() {
  std::vector<aj_plugin_info> infos;
  auto visit = [](void* self, const aj_plugin_info* info) -> int32_t {
    static_cast<std::vector<aj_plugin_info>*>(self)->push_back(*info);
    return 0;
  };
  check(aj_list_plugins(visit, &infos));
  return infos;
}

const char* state_name(uint32_t state) {
  switch (state) {
    case AJ_PLUGIN_FOUND:
      return "found";
    case AJ_PLUGIN_LOADED:
      return "loaded";
    case AJ_PLUGIN_REFUSED:
      return "refused";
    case AJ_PLUGIN_FAILED:
      return "failed";
    case AJ_PLUGIN_SHADOWED:
      return "shadowed";
    case AJ_PLUGIN_DISABLED:
      return "disabled";
    default:
      return "unknown";
  }
}

// A name of a file need not be UTF-8, JSON must be: such bytes become the lone surrogates that
// Python makes of them.
std::string quote(std::string_view s) {
  std::string out = "\"";
  bool utf8 = is_utf8(s);
  for (unsigned char c : s) {
    if (c >= 0x80 && !utf8) {
      char code[8];
      std::snprintf(code, sizeof code, "\\udc%02x", c);
      out += code;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + '"';
}

std::string json(const std::vector<std::pair<const char*, std::string>>& members) {
  std::string out;
  for (const auto& [name, value] : members)
    out += (out.empty() ? "{" : ", ") + quote(name) + ": " + value;
  return (out.empty() ? "{" : out) + "}";
}

std::string json_list(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ",\n " : "") + item;
  return out + "]";
}

std::string quote_all(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + quote(item);
  return out + "]";
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - row[i].size() + 2, ' ');
    }
    std::cout << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
}

}  // namespace adjoin::cli
