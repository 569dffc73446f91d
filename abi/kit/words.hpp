// adjoin/kit/words.hpp: the words of a line, as an op's tags are one.
#ifndef ADJOIN_KIT_WORDS_HPP
#define ADJOIN_KIT_WORDS_HPP
#include <string_view>

namespace adjoin::kit {

// "a b:1 c" has "b:1" and "b:", the beginning of a word that goes on, but not "b". A comma parts
// words as a space does.
inline bool has_word(std::string_view line, std::string_view word) {
  auto ends = [&](size_t i) { return i >= line.size() || line[i] == ' ' || line[i] == ','; };
  for (size_t at = 0; (at = line.find(word, at)) != line.npos; ++at)
    if ((at == 0 || ends(at - 1)) && (word.ends_with(':') || ends(at + word.size()))) return true;
  return false;
}

}  // namespace adjoin::kit
#endif
