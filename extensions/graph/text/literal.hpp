// extensions/graph/text/literal.hpp: strings in the text of a program.
#pragma once
#include <string>
#include <string_view>

namespace adjoin::graph {

std::string quoted(std::string_view s);  // as the lexer reads it

}  // namespace adjoin::graph
