// core/device/device.cpp: kinds of devices by name and number, and the devices that are open.
#include "core/device/device.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/tls.hpp"
#include "core/device/registry.hpp"
#include "core/guest/caught.hpp"
#include "core/guest/pins.hpp"
#include "core/guest/provider.hpp"

namespace adjoin {
namespace {

constexpr uint32_t kKnownFlags = AJ_DEV_HOST_MEMORY | AJ_DEV_HOST_THREADS | AJ_DEV_SYNCHRONOUS |
                                 AJ_DEV_OPAQUE_POINTERS | AJ_DEV_PEER_COPY;
std::atomic<Device*> fallback_device{nullptr};

// Memory of a device is of no use without the functions that belong to it.
aj_status* whole(const aj_device_vtbl* v, std::string_view name) {
  if (!AJ_HAS_FN(v, aj_device_vtbl, mem_alloc)) return nullptr;
  const char* lacks =
      !AJ_HAS_FN(v, aj_device_vtbl, mem_free) ? "mem_free, needed with mem_alloc"
      : !(v->flags & AJ_DEV_HOST_MEMORY) && !AJ_HAS_FN(v, aj_device_vtbl, copy)
          ? "copy, needed without the flag AJ_DEV_HOST_MEMORY"
      : !(v->flags & AJ_DEV_SYNCHRONOUS) && !AJ_HAS_FN(v, aj_device_vtbl, stream_sync)
          ? "stream_sync, needed without the flag AJ_DEV_SYNCHRONOUS"
          : nullptr;
  if (!lacks) return nullptr;
  return fail(AJ_INVALID_ARGUMENT, "def_device: device '", name, "' has no ", lacks);
}

aj_status* check(const aj_device_vtbl* v) {
  if (!v || !AJ_HAS_FN(v, aj_device_vtbl, count))
    return fail(AJ_INVALID_ARGUMENT, "def_device: a name and count are needed");
  std::string_view name = view(v->name);
  auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (name.empty() || name.size() > 32 || name[0] < 'a' ||
      !std::all_of(name.begin(), name.end(), plain))
    return fail(AJ_INVALID_ARGUMENT, "def_device: the name '", name,
                "' is not of the form [a-z][a-z0-9_]*");
  constexpr uint32_t kBoth = AJ_DEV_HOST_MEMORY | AJ_DEV_OPAQUE_POINTERS;
  if ((v->flags & kBoth) == kBoth)
    return fail(AJ_INVALID_ARGUMENT, "def_device: device '", name,
                "' has memory of the host and handles; it is one of the two");
  if (name == "meta")
    return fail(AJ_INVALID_ARGUMENT, "def_device: the name 'meta' is libadjoin's own");
  if (uint32_t unknown = v->flags & 0xffff & ~kKnownFlags)
    return fail(AJ_UNIMPLEMENTED, "def_device: device '", name,
                "' sets flags that this libadjoin does not know: ", unknown);
  return whole(v, name);
}

std::shared_ptr<Provider> clamp(const aj_device_vtbl* v, std::string_view plugin) {
  auto p = std::make_shared<Provider>();
  p->name = view(v->name);
  p->plugin = plugin;
  std::memset(&p->own, 0, sizeof p->own);
  std::memcpy(&p->own, v, std::min<size_t>(v->struct_size, sizeof p->own));
  p->own.struct_size = sizeof p->own;
  p->own.name = {};
  watch_table(p.get());
  return p;
}

// "acme@plugin": a number of its own for a provider that is not the active one. Wants the lock.
int32_t other_provider(DeviceRegistry& r, std::string_view name, std::string_view plugin) {
  for (auto& p : r.providers) {
    if (p->name != name || p->plugin != plugin || !p->on) continue;
    int32_t active = r.number_of(name);
    if (active && r.kinds[active].load()->provider == p) return active;
    int32_t number = r.free_number(0, {});
    if (number) r.kinds[number] = r.make(std::string(name) + "@" + std::string(plugin), p);
    return number;
  }
  return 0;
}

aj_status* open_locked(DeviceRegistry& r, DeviceKind* kind, DLDevice id, Device** out) {
  if ((*out = r.devices[id.device_type][id.device_id].load(std::memory_order_relaxed)))
    return nullptr;
  if (kind->gone) return fail(AJ_UNAVAILABLE, "device '", kind->name, "': its plugin was disabled");
  auto d = std::make_unique<Device>();
  *d = Device{};
  d->id = id;
  d->vtbl = kind->provider->vtbl;
  d->flags = d->vtbl.flags;
  d->plugin = kind->provider->plugin.c_str();
  if (!(d->memory = memory_new(d.get())))
    return fail(AJ_OUT_OF_RANGE, "device ", id, ": too many devices are open");
  kind->opened = true;
  kind->open.push_back(d.get());
  r.devices[id.device_type][id.device_id].store(*out = d.release(), std::memory_order_release);
  return nullptr;
}

std::atomic<Device*> chosen{nullptr};  // the default device, once somebody has asked for it

}  // namespace

DeviceRegistry& device_registry() {
  static auto* r = new DeviceRegistry;
  return *r;
}

int32_t DeviceRegistry::number_of(std::string_view name) const {
  for (int32_t n = 1; n <= kMaxKinds; n++)
    if (DeviceKind* k = kinds[n].load(std::memory_order_acquire); k && k->name == name) return n;
  return 0;
}

int32_t DeviceRegistry::free_number(int32_t wanted, std::string_view name) const {
  auto kept = [name](int32_t n) {
    return n == kDLCPU && name != "cpu";
  };  // the host's, whoever is loaded first
  if (wanted >= 1 && wanted <= kMaxKinds && !kinds[wanted].load() && !kept(wanted)) return wanted;
  for (int32_t n = kMaxKinds; n >= 1; n--)
    if (!kinds[n].load() && !kept(n)) return n;
  return 0;
}

std::shared_ptr<Provider> DeviceRegistry::best(std::string_view name) const {
  std::string_view wanted;
  for (auto& [device, plugin] : preferred)
    if (device == name) wanted = plugin;
  std::shared_ptr<Provider> best;
  for (auto& p : providers) {
    if (p->name != name || !p->on) continue;
    if (p->plugin == wanted) return p;
    if (!best || p->vtbl.priority > best->vtbl.priority) best = p;
  }
  return best;
}

DeviceKind* DeviceRegistry::make(std::string name, std::shared_ptr<Provider> provider) {
  made.push_back(std::make_unique<DeviceKind>(std::move(name), std::move(provider)));
  return made.back().get();
}

namespace {

// What is open is found only while somebody provides it. An open device keeps its functions, but a
// host may lose one provider of two.
void show_open(DeviceRegistry& r, int32_t number, DeviceKind* k, bool gone) {
  k->gone = gone;
  for (Device* d : k->open)
    r.devices[number][d->id.device_id].store(gone ? nullptr : d, std::memory_order_release);
}

// After any change of providers or preferences; devices that are open keep theirs. A name whose
// providers are all disabled keeps its number: kernels and keys know it.
void choose_active(DeviceRegistry& r, std::string_view name) {
  int32_t number = r.number_of(name);
  if (!number) return;
  DeviceKind* k = r.kinds[number].load();
  auto best = r.best(name);
  bool known = std::ranges::any_of(r.providers, [&](auto& p) { return p->name == name; });
  if (k->opened || (!best && known)) {
    show_open(r, number, k, !best);
  } else if (!best || k->provider != best) {
    r.kinds[number].store(best ? r.make(std::string(name), best) : nullptr,
                          std::memory_order_release);
  } else {
    k->gone = false;
  }
}

void set_on(DeviceRegistry& r, Provider* p, bool on) {
  p->on = on;
  choose_active(r, p->name);
  if (int32_t n = r.number_of(p->name + "@" + p->plugin)) show_open(r, n, r.kinds[n].load(), !on);
  fallback_device = nullptr;
}

}  // namespace

namespace {

bool in_use(const DeviceRegistry& r, const std::shared_ptr<Provider>& p) {
  for (auto& kind : r.kinds)
    if (DeviceKind* k = kind.load(); k && k->opened && k->provider == p) return true;
  return false;
}

// A plugin that was disabled registers its device again. Tensors of an open device live in memory
// that its first functions made, so only the same ones may follow.
aj_status* add_again(DeviceRegistry& r, std::shared_ptr<Provider>& old,
                     const std::shared_ptr<Provider>& p) {
  if (std::memcmp(&old->own, &p->own, sizeof p->own) == 0) {
    set_on(r, old.get(), true);
    return nullptr;
  }
  if (in_use(r, old))
    return fail(AJ_PRECONDITION, "def_device: device '", p->name, "' is open, and plugin ",
                p->plugin, " comes back with other functions; its new file needs a new process");
  for (auto& kind : r.kinds)
    if (DeviceKind* k = kind.load(); k && k->provider == old) kind.store(r.make(k->name, p));
  old = p;
  set_on(r, p.get(), true);
  return nullptr;
}

}  // namespace

aj_status* device_kind_add(const aj_device_vtbl* v, std::string_view plugin, bool* again) {
  AJ_TRY(check(v));
  DeviceRegistry& r = device_registry();
  std::string_view name = view(v->name);
  std::lock_guard held(r.lock);
  auto p = clamp(v, plugin);
  if (again) *again = false;
  for (auto& old : r.providers)
    if (old->name == name && old->plugin == plugin) {
      if (!again)
        return fail(AJ_ALREADY_EXISTS, "def_device: plugin ", plugin, " has defined device '", name,
                    "' already");
      AJ_TRY(add_again(r, old, p));
      *again = true;
      return nullptr;
    }
  if (!r.number_of(name)) {
    int32_t number = r.free_number(v->dlpack_type, name);
    if (!number)
      return fail(AJ_OUT_OF_RANGE, "def_device: '", name, "' would be the ", kMaxKinds + 1,
                  "th kind of device; a process has ", kMaxKinds);
    r.kinds[number].store(r.make(std::string(name), p), std::memory_order_release);
  }
  r.providers.push_back(std::move(p));
  choose_active(r, name);
  fallback_device = nullptr;
  return nullptr;
}

void devices_end(std::string_view plugin) {
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  for (auto& p : r.providers)
    if (p->plugin == plugin) set_on(r, p.get(), false);
}

std::string device_summary(std::string_view plugin) {
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  std::string lines;
  for (auto& p : r.providers) {
    if (p->plugin != plugin) continue;
    int32_t n = r.number_of(p->name);
    const Provider* active = n ? r.kinds[n].load()->provider.get() : nullptr;
    lines += text("  device ", p->name, ": priority ", p->vtbl.priority);
    if (active == p.get())
      lines += text(", active", r.kinds[n].load()->opened ? ", in use\n" : "\n");
    else
      lines += text(", reached as ", p->name, "@", plugin,
                    active ? ", since plugin " + active->plugin + " serves it, with priority " +
                                 std::to_string(active->vtbl.priority)
                           : "",
                    "\n");
  }
  return lines;
}

std::string provider_device_open(std::string_view plugin) {
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  for (auto& p : r.providers)
    if (p->plugin == plugin && in_use(r, p)) return p->name;
  return {};
}

void device_kind_remove(std::string_view name, std::string_view plugin) {
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  std::string other = std::string(name) + "@" + std::string(plugin);
  if (int32_t n = r.number_of(other); n && !r.kinds[n].load()->opened) r.kinds[n] = nullptr;
  std::erase_if(r.providers, [&](auto& p) { return p->name == name && p->plugin == plugin; });
  choose_active(r, name);
  fallback_device = nullptr;
}

aj_status* set_device_provider(std::string_view device, std::string_view plugin) {
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  int32_t n = r.number_of(device);
  DeviceKind* kind = n ? r.kinds[n].load() : nullptr;
  if (kind && kind->opened && !plugin.empty() && kind->provider->plugin != plugin)
    return fail(
        AJ_PRECONDITION, "device '", device, "' is in use by plugin ", kind->provider->plugin,
        "; choose the provider before the first tensor, or name it: '", device, "@", plugin, "'");
  std::erase_if(r.preferred, [&](auto& p) { return p.first == device; });
  if (!plugin.empty()) r.preferred.emplace_back(device, plugin);
  choose_active(r, device);
  fallback_device = nullptr;
  return nullptr;
}

int32_t device_kind_peek(std::string_view name) {
  if (name == "meta") return kMetaType;
  DeviceRegistry& r = device_registry();
  if (int32_t n = r.number_of(name)) return n;
  size_t at = name.find('@');
  if (at == std::string_view::npos) return 0;
  std::lock_guard held(r.lock);
  return other_provider(r, name.substr(0, at), name.substr(at + 1));
}

namespace {

DeviceKind* kind_gone(int32_t type) {  // or null
  DeviceKind* k = type >= 1 && type <= kMaxKinds
                      ? device_registry().kinds[type].load(std::memory_order_acquire)
                      : nullptr;
  return k && k->gone ? k : nullptr;
}

// A plugin's note may not have promised its device: whose it was is known here.
aj_status* tell_gone(int32_t type, aj_status* otherwise) {
  DeviceKind* k = kind_gone(type);
  if (!k) return otherwise;
  free_status(otherwise);
  return fail(AJ_UNAVAILABLE, "device '", k->name, "': ", plugin_verdict(k->provider->plugin));
}

}  // namespace

aj_status* device_kind_find(std::string_view name, int32_t* out_type) {
  if ((*out_type = device_kind_peek(name)) && !kind_gone(*out_type)) return nullptr;
  std::string base(name.substr(0, name.find('@')));
  if (aj_status* s = load_provider_of("device:" + base))
    return tell_gone(*out_type, prefix(s, text("device '", name, "': ")));
  if ((*out_type = device_kind_peek(name)) && !kind_gone(*out_type)) return nullptr;
  if (kind_gone(*out_type)) return tell_gone(*out_type, nullptr);
  std::string have;
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  for (auto& p : r.providers)
    if (p->name == base && p->on) have += (have.empty() ? "" : ", ") + base + "@" + p->plugin;
  return fail(AJ_NOT_FOUND, "device '", name, "': no loaded plugin provides it; there is ",
              have.empty() ? "none" : have);
}

std::string_view device_kind_name(int32_t type) {
  if (type == kMetaType) return "meta";
  if (type < 1 || type > kMaxKinds) return {};
  DeviceKind* k = device_registry().kinds[type].load(std::memory_order_acquire);
  return k ? std::string_view(k->name) : std::string_view();
}

aj_status* device_kind_count(int32_t type, int32_t* out) {
  *out = 1;
  if (type == kMetaType) return nullptr;
  DeviceKind* k = type >= 1 && type <= kMaxKinds
                      ? device_registry().kinds[type].load(std::memory_order_acquire)
                      : nullptr;
  if (!k) return fail(AJ_NOT_FOUND, "device_count: no device kind has the number ", type);
  std::string name = k->name;
  if (k->gone) {
    AJ_TRY(device_kind_find(name, &type));  // says why, or finds another plugin's
    k = device_registry().kinds[type].load(std::memory_order_acquire);
  }
  const aj_device_vtbl& v = k->provider->vtbl;
  register_thread();  // often its first call of all: the watchdog knows it from now on
  Pin pin(Holder::call, own_table(v).count);  // who unmaps says `gone` before it counts
  if (k->gone) return fail(AJ_UNAVAILABLE, "device '", name, "': its plugin was disabled");
  auto count = [&] {
    aj_status* s = v.count(v.self, out);
    if (s && s->code == AJ_UNAVAILABLE && !s->is_static)
      s->placed = true;  // a reason for people, no fault of the plugin's
    return s;
  };
  if (aj_status* s = caught(own_table(v).count, "count", count))
    return prefix(s, text("device '", k->name, "': "));
  if (*out >= 0) return nullptr;
  return fail(AJ_INTERNAL, "device '", k->name, "': plugin '", k->provider->plugin, "' counts ",
              *out, " devices");
}

Device* device_at(DLDevice id) {
  auto type = uint32_t(id.device_type), index = uint32_t(id.device_id);
  if (__builtin_expect(type > uint32_t(kMetaType) || index >= uint32_t(kMaxDevices), 0))
    return nullptr;
  if (type == uint32_t(kMetaType)) return index == 0 ? meta_device() : nullptr;
  static DeviceRegistry& r = device_registry();
  return r.devices[type][index].load(std::memory_order_acquire);
}

Device* meta_device() {
  static Device* d = [] {
    auto* m = new Device{};
    m->id = {DLDeviceType(kMetaType), 0};
    m->flags = AJ_DEV_SYNCHRONOUS;
    m->plugin = "";
    return m;
  }();
  return d;
}

Device* device_open_already(int32_t type) {
  if (type < 1 || type > kMaxKinds) return nullptr;
  for (auto& d : device_registry().devices[type])
    if (Device* open = d.load(std::memory_order_acquire)) return open;
  return nullptr;
}

aj_status* device_open(DLDevice id, Device** out) {
  if ((*out = device_at(id))) return nullptr;
  if (int32_t host = kDLCPU; id.device_type == host && device_kind_name(host).empty())
    AJ_TRY(device_kind_find("cpu", &host));  // the host's number is known before its plugin is
  std::string_view name = device_kind_name(id.device_type);
  if (name.empty())
    return fail(AJ_NOT_FOUND, "device: no device kind has the number ", int32_t(id.device_type));
  int32_t count = 0;
  AJ_TRY(device_kind_count(id.device_type, &count));
  if (id.device_id < 0 ||
      id.device_id >= std::min(count, id.device_type == kMetaType ? 1 : kMaxDevices))
    return fail(
        AJ_OUT_OF_RANGE, "device '", name, ":", int32_t(id.device_id), "': there ",
        count == 1 ? text("is 1 ", name, " device") : text("are ", count, " ", name, " devices"));
  register_thread();  // a fork is prepared for from now on; it takes this lock, too
  DeviceRegistry& r = device_registry();
  std::lock_guard held(r.lock);
  DeviceKind* kind = r.kinds[id.device_type].load();
  if (!kind) return fail(AJ_NOT_FOUND, "device: '", name, "' was taken back by its plugin");
  return open_locked(r, kind, id, out);
}

Device* host_fallback_device() {
  if (Device* d = fallback_device.load(std::memory_order_acquire)) return d;
  DeviceRegistry& r = device_registry();
  int32_t best = 0, priority = 0;
  {
    std::lock_guard held(r.lock);
    for (int32_t n = 1; n <= kMaxKinds; n++) {
      DeviceKind* k = r.kinds[n].load();
      if (!k || k->gone) continue;
      const aj_device_vtbl& v = k->provider->vtbl;
      if (!(v.flags & AJ_DEV_HOST_MEMORY) || !(v.flags & AJ_DEV_HOST_FALLBACK)) continue;
      if (!best || v.priority > priority) best = n, priority = v.priority;
    }
  }
  Device* d = nullptr;
  if (!best) return nullptr;
  if (aj_status* s = device_open({DLDeviceType(best), 0}, &d)) {
    free_status(s);
    return nullptr;
  }
  fallback_device.store(d, std::memory_order_release);
  return d;
}

aj_status* default_host(Device** out) {
  if (Device* d = device_at({kDLCPU, 0})) {
    *out = d;
    return nullptr;
  }
  int32_t type;
  AJ_TRY(device_kind_find("cpu", &type));
  return device_open({DLDeviceType(type), 0}, out);
}

aj_status* default_device(Device** out) {
  if (Device* d = chosen.load(std::memory_order_acquire)) {
    *out = d;
    return nullptr;
  }
  AJ_TRY(default_host(out));
  chosen.store(*out, std::memory_order_release);
  return nullptr;
}

std::string device_text(DLDevice id) {
  std::string_view name = device_kind_name(id.device_type);
  if (name.empty()) return text("device ", int32_t(id.device_type), ":", int32_t(id.device_id));
  Device* d = device_at(id);
  if (id.device_type == kMetaType || (id.device_id == 0 && d && d->host()))
    return std::string(name);
  return text(name, ":", int32_t(id.device_id));
}

void append(std::string& out, DLDevice d) { out += device_text(d); }

}  // namespace adjoin
