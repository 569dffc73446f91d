// core/plugin/catalog.hpp: every plugin that was found, in search order, and what was decided about
// it.
#pragma once

#include <adjoin/abi/capi.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/guest/pins.hpp"
#include "core/plugin/folders.hpp"
#include "core/plugin/note.hpp"
#include "core/plugin/policy.hpp"

namespace adjoin::plugin {

// Strings that live as long as the process.
const std::string& intern(std::string text);

// One file. Never freed: it stays in the list that tools show, and its strings are handed out.
struct Candidate {
  std::string path, folder;
  Origin origin = Origin::kVariable;
  uint64_t device = 0, inode = 0;
  bool has_note = false;
  aj_plugin_note note = {};
  std::string ops;   // schemas that its file names
  std::string name;  // the note's, or what the file's name promises
  int32_t state = AJ_PLUGIN_FOUND;
  const char* busy = nullptr;  // "initialised", "unloaded": what is being done with it
  aj_plugin_drain_fn drain = nullptr;
  void* handle = nullptr;  // of dlopen
  uint32_t inits = 0;      // how often init has run
  bool drained = false;    // since then
  PinnedFile* pins = nullptr;

  void set(int32_t new_state, std::string why);
  const std::string& reason() const { return *reason_; }
  std::string label() const;  // "acme 0.1 (/opt/libaj_acme.so)"
  bool is_pack() const;       // a part of libadjoin that stands in a file of its own

 private:
  const std::string* reason_ = &intern({});
};

// Reads the file and judges it: sets everything above, runs nothing.
void examine(Candidate* c, const Policy& policy);

// All functions below want load_lock() to be held.
class Catalog {
 public:
  void discover();  // once
  void add_folder(Folder folder);
  Candidate* add_asked(const std::string& path);  // the one already known if it is the same file

  std::vector<Candidate*> all() const { return candidates_; }
  std::vector<Candidate*> offering(
      std::string_view what) const;  // in search order, whatever their state
  std::vector<Candidate*> named(std::string_view name) const;
  const Candidate* shadowing(
      const Candidate* c) const;  // an earlier one of the same name that serves, or null
  const std::vector<Folder>& folders() const { return folders_; }
  const Policy& policy() const { return policy_; }
  void examine_again(Candidate* c);  // the file may be another one by now

 private:
  void add_file(const Folder& folder, const std::string& path);
  Candidate* same_file(const Candidate* c) const;
  void insert(Candidate* c);

  bool discovered_ = false;
  Policy policy_;
  std::vector<Folder> folders_;
  std::vector<Candidate*> candidates_;
};
Catalog& catalog();

// Why nobody serves "device:acme", for the error of whoever asked for it.
std::string why_nobody(const Catalog& list, std::string_view what);
// The same at length, for `adjoin plugins why`: a plugin's name, or what one provides.
std::string explain(const Catalog& list, std::string_view name_or_provides);
const char* state_name(int32_t state);

}  // namespace adjoin::plugin
