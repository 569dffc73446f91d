// core/plugin/trust.hpp: who else could have put this file there?
#pragma once

#include <string>

namespace adjoin::plugin {

// Names the first of the file and the folders above it that somebody other than root and the user
// may write, and who; empty if there is none. `path` is absolute and has no links in it. Sticky
// folders let nobody replace what is another's.
// `trusted` may own them too: libadjoin's own file, whose owner we run the code of anyway.
std::string who_else_may_write(const std::string& path, const std::string& trusted = {});

// The owner of libadjoin's own folder answers for it: a folder with the same owner as libadjoin's
// file needs no other check.
bool same_owner(const std::string& a, const std::string& b);

}  // namespace adjoin::plugin
