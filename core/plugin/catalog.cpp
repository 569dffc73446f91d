// core/plugin/catalog.cpp: every plugin that was found, in search order, and what was decided about
// it.
#include "core/plugin/catalog.hpp"

#include <algorithm>
#include <set>

#include "core/op/waiting.hpp"
#include "core/plugin/load_lock.hpp"
#include "core/plugin/requires.hpp"
#include "core/plugin/trust.hpp"
#include "core/thread/fork.hpp"

namespace adjoin::plugin {
namespace {

std::string name_from_path(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.starts_with("libaj_")) name.erase(0, 6);
  return name.substr(0, name.find(".so"));
}

std::string parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// A link and what it points to both decide what is loaded, so both places are looked at.
std::string distrust(const Candidate& c) {
  if (c.origin == Origin::kOwn && same_owner(c.folder, libadjoin_path())) return {};
  std::string real = real_path(c.path), folder = real_path(c.folder);
  std::string who = who_else_may_write(real);
  if (who.empty() && !folder.empty() && folder != parent(real)) who = who_else_may_write(folder);
  return who;
}

}  // namespace

LoadLock& load_lock() {
  static LoadLock* lock = [] {
    fork_hook_add({kForkLoader, [] { load_lock().lock(); }, [] { load_lock().unlock(); },
                   [] { load_lock().unlock(); }});
    return new LoadLock;
  }();
  return *lock;
}

Catalog& catalog() {
  static Catalog* list = new Catalog;
  return *list;
}

const std::string& intern(std::string text) {
  static auto* lock = new std::mutex;
  static auto* texts = new std::set<std::string>;
  std::lock_guard<std::mutex> guard(*lock);
  return *texts->insert(std::move(text)).first;
}

void Candidate::set(int32_t new_state, std::string why) {
  state = new_state;
  reason_ = &intern(std::move(why));
}

std::string Candidate::label() const {
  std::string version = has_note ? std::string(" ") + note.version : "";
  return name + version + " (" + path + ")";
}

bool Candidate::is_pack() const { return name.starts_with("ops_") && ops.find('\t') != ops.npos; }

void examine(Candidate* c, const Policy& policy) {
  c->name = name_from_path(c->path);
  ElfFile file;
  std::string bad = file.open(c->path);
  c->device = file.device();
  c->inode = file.inode();
  if (bad.empty()) {
    bad = read_note(file, &c->note);
    c->has_note = bad.empty();
    if (c->has_note) c->name = c->note.name;
  }
  if (bad.empty()) bad = judge_note(c->note, this_host());
  if (bad.empty()) bad = read_ops(file, &c->ops);
  if (bad.empty()) bad = check_symbols(file).fatal;
  if (bad.empty()) bad = missing_interface(c->note);
  if (bad.empty() && c->origin != Origin::kAsked)
    if (std::string who = distrust(*c); !who.empty())
      bad = who + "; only places that nobody else may write are searched";
  if (!bad.empty()) return c->set(AJ_PLUGIN_REFUSED, std::move(bad));
  bool our_part = c->origin == Origin::kOwn && c->is_pack();
  bad = policy.refuses(c->name, file.fd(), c->origin == Origin::kAsked || our_part);
  int32_t state = bad.empty() ? AJ_PLUGIN_FOUND : AJ_PLUGIN_DISABLED;
  c->set(state, std::move(bad));
}

void Catalog::discover() {
  if (discovered_) return;
  discovered_ = true;
  policy_ = Policy::from_environment();
  for (Folder& folder : search_folders()) add_folder(std::move(folder));
}

void Catalog::add_folder(Folder folder) {
  for (const Folder& known : folders_)
    if (known.path == folder.path && known.origin == folder.origin) return;
  for (const std::string& file : plugin_files(&folder)) add_file(folder, file);
  auto later = [&](const Folder& f) { return f.origin > folder.origin; };
  folders_.insert(std::find_if(folders_.begin(), folders_.end(), later), folder);
}

void Catalog::add_file(const Folder& folder, const std::string& path) {
  auto* c = new Candidate;
  c->path = path;
  c->folder = folder.path;
  c->origin = folder.origin;
  examine(c, policy_);
  if (same_file(c)) {
    delete c;
    return;
  }
  insert(c);
  // Of one that is disabled, too: a call says so.
  if (c->is_pack() && c->state != AJ_PLUGIN_REFUSED)
    for (std::string_view line : split(c->ops, '\n')) wait_for(line, c->name);
}

Candidate* Catalog::add_asked(const std::string& path) {
  auto* c = new Candidate;
  std::string real = real_path(path);
  c->path = real.empty() ? path : real;
  c->folder = parent(c->path);
  c->origin = Origin::kAsked;
  examine(c, policy_);
  if (Candidate* known = same_file(c)) {
    // Asking again may help: the file's place is no longer held against it, nor are policies that
    // name only some.
    if (known->state == AJ_PLUGIN_REFUSED || known->state == AJ_PLUGIN_DISABLED) {
      known->has_note = c->has_note;
      known->note = c->note;
      known->ops = c->ops;
      known->name = c->name;
      known->set(c->state, c->reason());
    }
    delete c;
    return known;
  }
  insert(c);
  return c;
}

void Catalog::examine_again(Candidate* c) {
  c->has_note = false;
  c->note = {};
  c->ops.clear();
  examine(c, policy_);
}

Candidate* Catalog::same_file(const Candidate* c) const {
  for (Candidate* other : candidates_) {
    bool same = other->device == c->device && other->inode == c->inode;
    if (same && (c->inode != 0 || other->path == c->path)) return other;
  }
  return nullptr;
}

void Catalog::insert(Candidate* c) {
  auto later = [&](const Candidate* other) { return other->origin > c->origin; };
  candidates_.insert(std::find_if(candidates_.begin(), candidates_.end(), later), c);
}

std::vector<Candidate*> Catalog::offering(std::string_view what) const {
  std::vector<Candidate*> found;
  for (Candidate* c : candidates_)
    if (c->has_note &&
        (what.starts_with("op:") ? names_op(c->ops, what.substr(3)) : provides(c->note, what)))
      found.push_back(c);
  return found;
}

std::vector<Candidate*> Catalog::named(std::string_view name) const {
  std::vector<Candidate*> found;
  for (Candidate* c : candidates_)
    if (c->name == name) found.push_back(c);
  return found;
}

const Candidate* Catalog::shadowing(const Candidate* c) const {
  if (c->state != AJ_PLUGIN_FOUND) return nullptr;
  bool before = true;
  for (const Candidate* other : candidates_) {
    if (other == c) {
      before = false;
    } else if (other->name == c->name) {
      if (other->state == AJ_PLUGIN_LOADED || (before && other->state == AJ_PLUGIN_FOUND))
        return other;
    }
  }
  return nullptr;
}

}  // namespace adjoin::plugin
