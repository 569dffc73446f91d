// plugins/cpu/tune/tuner.hpp: measuring who is the fastest, and the file that remembers it.
#ifndef ADJOIN_PLUGINS_CPU_TUNE_TUNER_HPP
#define ADJOIN_PLUGINS_CPU_TUNE_TUNER_HPP
#include <adjoin/abi/tuner.h>

#include "cpu/product/choices.hpp"

namespace adjoin::cpu {

extern const aj_tuner tuner;

std::string this_processor();
// ADJOIN_TUNING, else a file in the user's cache; "": none.
std::string tuning_place();
bool exists(const std::string& path);
// Raise an error that says what is wrong. Writing replaces the file in one step.
Choices read_choices(const std::string& path);
void write_file(const std::string& path, const std::string& text);
// Raises if it was measured on another machine, or with another version of our own code.
void check_is_of_here(const Choices& choices);

}  // namespace adjoin::cpu
#endif
