// adjoin/kit/kit.hpp: everything that a plugin's author writes with.
#ifndef ADJOIN_KIT_KIT_HPP
#define ADJOIN_KIT_KIT_HPP
#include <adjoin/kit/parallel.hpp>
#include <adjoin/kit/plugin.hpp>
#include <adjoin/kit/scalar_math.hpp>
#endif
