// frontends/python/src/device.hpp: devices as Python objects; names become numbers of this process
// in the core.
#pragma once

#include "py.hpp"

namespace adjoin::py {

struct DeviceObject {
  PyObject_HEAD DLDevice device;  // device_id -1: no index was said; device_type below 0: named,
                                  // but no plugin provides it
  PyObject*
      entered;  // the default devices that `with` replaced, innermost last; NULL before the first
};
extern PyTypeObject device_type;

// The device of a tensor, new reference.
PyObject* device_object(DLDevice device);

// A device object or a name, of a device that is there. False with an error set if it is not,
// without one if o is no device at all.
bool as_device(PyObject* o, DLDevice* out);

// The number of a device among those of its kind. False with an error set if none has it.
bool device_index(PyObject* number, int32_t* out);

// Which device of a kind a name without an index means in this thread; by the kind's number.
constexpr int kDeviceKinds = 32;
aj_status* find_kind(std::string_view name, DLDevice* out);  // "cuda": sets the number of its kind
extern thread_local int32_t current_index[kDeviceKinds];

// For the core, which knows no missing index.
inline DLDevice concrete(DLDevice d) {
  auto kind = static_cast<uint32_t>(d.device_type) %
              kDeviceKinds;  // of a device that is not there it is negative
  return {d.device_type, d.device_id < 0 ? current_index[kind] : d.device_id};
}

// Memory that Python can read. The first use loads the plugin that provides it.
DLDevice host_device();

// Where factory functions make tensors when nobody says; device_type 0: the core decides.
extern constinit thread_local DLDevice default_device __attribute__((tls_model("initial-exec")));

}  // namespace adjoin::py
