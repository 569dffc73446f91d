// core/plugin/trust.cpp: who else could have put this file there?
#include "core/plugin/trust.hpp"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace adjoin::plugin {
namespace {

// The reentrant calls: getpwuid's static buffer belongs to the program that we are a guest of.
std::string user_name(uid_t uid) {
  std::vector<char> buffer(1 << 14);
  passwd entry, *found = nullptr;
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return {};
  return entry.pw_name;
}

// A private group is called like the user and has no other members.
bool private_group(gid_t gid) {
  std::vector<char> buffer(1 << 16);
  group entry, *found = nullptr;
  if (getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found) != 0 || !found) return false;
  std::string user = user_name(geteuid());
  if (user.empty() || user != entry.gr_name) return false;
  for (char** member = entry.gr_mem; *member; ++member)
    if (user != *member) return false;
  return true;
}

std::string writers(const struct stat& st, uid_t trusted) {
  if (st.st_uid != 0 && st.st_uid != geteuid() && st.st_uid != trusted) {
    std::string name = user_name(st.st_uid);
    return "belongs to " + (name.empty() ? "user " + std::to_string(st.st_uid) : name);
  }
  if (S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX)) return {};
  if (st.st_mode & S_IWOTH) return "may be written by everybody";
  if ((st.st_mode & S_IWGRP) && st.st_gid != 0 && !private_group(st.st_gid))
    return "may be written by group " + std::to_string(st.st_gid);
  return {};
}

}  // namespace

std::string who_else_may_write(const std::string& path, const std::string& trusted) {
  struct stat known;
  uid_t owner = !trusted.empty() && stat(trusted.c_str(), &known) == 0 ? known.st_uid : 0;
  for (std::string at = path; !at.empty();) {
    struct stat st;
    if (lstat(at.c_str(), &st) != 0)
      return "'" + at + "' cannot be examined: " + std::strerror(errno);
    if (std::string who = writers(st, owner); !who.empty()) return "'" + at + "' " + who;
    if (at == "/") break;
    size_t slash = at.rfind('/');
    at = slash == 0 ? "/" : at.substr(0, slash);
  }
  return {};
}

bool same_owner(const std::string& a, const std::string& b) {
  struct stat sa, sb;
  return stat(a.c_str(), &sa) == 0 && stat(b.c_str(), &sb) == 0 && sa.st_uid == sb.st_uid;
}

}  // namespace adjoin::plugin
