// frontends/python/src/extension.hpp: the functions of an extension of libadjoin.
#pragma once

#include "errors.hpp"

namespace adjoin::py {

// Null until somebody asked for it: who only wants to know whether an extension is in use loads
// none.
template <class T>
inline const T* in_use = nullptr;

// Found at the first use: the question loads the library. `asks` says who wants it in the error.
template <class T>
const T* extension(const char* interface, const char* asks, const char* library) {
  if (!in_use<T>) in_use<T> = static_cast<const T*>(aj_get_interface(interface, 1));
  if (!in_use<T>)
    PyErr_Format(PyExc_NotImplementedError,
                 "%s: %s is not found; it stands beside the plugins of libadjoin "
                 "(`adjoin plugins` tells what was found)",
                 asks, library);
  return in_use<T>;
}

}  // namespace adjoin::py
