// tests/files/joined.hpp: the file formats of the C++ frontend, as a test inside of the tree
// includes them.
#pragma once
#include "../../frontends/cpp/pt.hpp"
#include "../../frontends/cpp/safetensors.hpp"
