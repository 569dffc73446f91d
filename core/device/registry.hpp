// core/device/registry.hpp: kinds of devices, their providers, their numbers.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device/device.hpp"

namespace adjoin {

constexpr int kMaxDevices = 64;  // of one kind

// One plugin's word for one name.
struct Provider {
  std::string name, plugin;
  aj_device_vtbl own;   // as the plugin filled it, clamped
  aj_device_vtbl vtbl;  // what everybody calls: says so while a function of its own runs; `self` is
                        // this provider
  bool on = true;       // false: its plugin was disabled; its functions may be unmapped unless the
                        // device is open
};

// A device number: a name, and the provider that is active for it.
struct DeviceKind {
  std::string name;  // "acme", or "acme@plugin" for one that is not active
  std::shared_ptr<Provider> provider;
  bool opened = false;            // tensors may exist: the provider stays
  std::atomic<bool> gone{false};  // nobody provides it now
  std::vector<Device*> open{};    // also while it is gone: what lives there keeps its memory

  DeviceKind(std::string n, std::shared_ptr<Provider> p)
      : name(std::move(n)), provider(std::move(p)) {}
};

struct DeviceRegistry {
  std::mutex lock;
  std::vector<std::shared_ptr<Provider>> providers;
  std::atomic<DeviceKind*> kinds[kMetaType + 1]{};  // by number
  std::vector<std::unique_ptr<DeviceKind>> made;    // all that ever were: names were given out
  std::atomic<Device*> devices[kMetaType + 1][kMaxDevices]{};
  std::vector<std::pair<std::string, std::string>> preferred;  // device, plugin

  int32_t number_of(std::string_view name) const;
  int32_t free_number(int32_t wanted, std::string_view name) const;  // 0: none left
  std::shared_ptr<Provider> best(std::string_view name) const;       // of those that are on
  DeviceKind* make(std::string name, std::shared_ptr<Provider> provider);
};
DeviceRegistry& device_registry();

void watch_table(Provider* p);  // makes vtbl of own
// Whose code it is that a device's table calls.
inline const aj_device_vtbl& own_table(const aj_device_vtbl& v) {
  return static_cast<const Provider*>(v.self)->own;
}

}  // namespace adjoin
