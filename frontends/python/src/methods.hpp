// frontends/python/src/methods.hpp: the tables that together make up the Tensor type, each filled
// in its own file.
#pragma once

#include "tensor.hpp"

namespace adjoin::py {

extern PyNumberMethods number_methods;       // number.cpp
extern PySequenceMethods sequence_methods;   // index.cpp
extern PyMappingMethods mapping_methods;     // index.cpp
extern PyBufferProcs buffer_methods;         // buffer.cpp
extern PyGetSetDef shape_properties[];       // properties.cpp
extern PyGetSetDef grad_properties[];        // grad_methods.cpp
extern PyMethodDef shape_methods[];          // properties.cpp
extern PyMethodDef grad_methods[];           // grad_methods.cpp
extern PyMethodDef in_place_view_methods[];  // in_place_view.cpp
extern PyMethodDef value_methods[];          // value.cpp
extern PyMethodDef exchange_methods[];       // interop.cpp
extern PyMethodDef conversion_methods[];     // conversion.cpp

bool says_requires_grad(
    aj_tensor* t);  // grad_methods.cpp: as the property, which looks at a view's base
PyObject* compare(PyObject* a, PyObject* b, int op);  // number.cpp
PyObject* iterate(PyObject* self);                    // index.cpp
void drop_word(void* word);  // tensor.cpp: the core's message that a tensor died

}  // namespace adjoin::py
