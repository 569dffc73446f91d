// core/plugin/note.hpp: a plugin's note, read from its file and judged before any of its code runs.
#pragma once

#include <adjoin/abi/plugin.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/elf.hpp"

namespace adjoin::plugin {

// What this libadjoin offers; a test may pretend an older one.
struct Host {
  uint16_t major = AJ_ABI_MAJOR;
  uint16_t minor = AJ_ABI_MINOR;
  uint32_t build_flags = AJ_BUILD_FLAGS_;
};
Host this_host();

// Each returns what is wrong, or an empty string. read_note gives a note whose strings end inside
// their fields, so it may be shown even when judge_note refuses it.
std::string read_note(const ElfFile& file, aj_plugin_note* out);
std::string judge_note(const aj_plugin_note& note, const Host& host);
// The schemas of its section .adjoin.ops, a line each; nothing if it has none.
std::string read_ops(const ElfFile& file, std::string* out);
bool names_op(std::string_view ops, std::string_view name);

// Rules that a plugin breaks in what it exports and imports: they do not stop it from loading
// unless `fatal` says so.
struct SymbolReport {
  std::vector<std::string> exports;  // beside its note, init and drain
  std::vector<std::string> imports;  // undefined names that begin with aj_
  std::vector<std::string> unique;   // STB_GNU_UNIQUE
  std::string fatal;                 // no init, or no note, to call for
};
SymbolReport check_symbols(const ElfFile& file);

// "a;b;c" without empty parts.
std::vector<std::string_view> split(std::string_view text, char separator);
bool provides(const aj_plugin_note& note, std::string_view what);

// A name is a word of a-z, 0-9, '_' and '-', beginning with a letter: it becomes part of files' and
// variables' names.
bool good_name(std::string_view name);

}  // namespace adjoin::plugin
