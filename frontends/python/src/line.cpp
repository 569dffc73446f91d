// frontends/python/src/line.cpp: interns (code, instruction) pairs; text is made only when a
// message needs it.
#include "line.hpp"

#include <deque>
#include <unordered_map>

#include "errors.hpp"

namespace adjoin::py {

static const uint64_t other_devices = ((1ull << 23) - 1) & ~(1ull << (kDLCPU - 1));
const uint64_t* line_keys = &other_devices;
LineEntry line_cache[1024];
thread_local uint32_t call_site = 0;

namespace {

struct Place {
  PyCodeObject* code;
  int lasti;
};
struct PlaceKey {
  PyCodeObject* code;
  int lasti;
  bool operator==(const PlaceKey&) const = default;
};
struct PlaceHash {
  size_t operator()(const PlaceKey& k) const {
    return std::hash<void*>()(k.code) * 31 + static_cast<size_t>(k.lasti);
  }
};

std::deque<Place>& places() {
  static auto& list = *new std::deque<Place>{{nullptr, 0}};
  return list;
}

const std::string& package_folder() {
  static const std::string& folder = *new std::string([] {
    Ref package(PyImport_ImportModule("adjoin"));
    Ref file(package ? PyObject_GetAttrString(package.get(), "__file__") : nullptr);
    const char* path = file ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (!path) {
      forget_error();
      return std::string("/adjoin/");
    }
    std::string_view p(path);
    return std::string(p.substr(0, p.rfind('/') + 1));
  }());
  return folder;
}

bool is_ours(PyCodeObject* code) {
  const char* file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) {
    forget_error();
    return false;
  }
  return std::string_view(file).starts_with(package_folder());
}

uint32_t intern(PyCodeObject* code, int lasti) {
  static auto& known = *new std::unordered_map<PlaceKey, uint32_t, PlaceHash>;
  auto [it, fresh] = known.try_emplace({code, lasti}, 0);
  if (fresh) {
    Py_INCREF(code);
    places().push_back({code, lasti});
    it->second = static_cast<uint32_t>(places().size() - 1);
  }
  return it->second;
}

// Walks outwards over frames of the package; rare, because module calls leave their caller's line
// in call_site.
uint32_t walk_out(PyFrameObject* frame) {
  Ref held = Ref::borrow(reinterpret_cast<PyObject*>(frame));
  uint32_t last = 0;
  while (held) {
    auto* f = reinterpret_cast<PyFrameObject*>(held.get());
    LineEntry* e = line_of(f);
    last = e->id;
    if (!e->ours) return last;
    held = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
  }
  return last;
}

}  // namespace

LineEntry* line_miss(PyCodeObject* code, int lasti) {
  auto slot = ((reinterpret_cast<uintptr_t>(code) >> 5) ^ static_cast<unsigned>(lasti) * 7) & 1023;
  LineEntry* e = &line_cache[slot];
  *e = {code, lasti, intern(code, lasti), is_ours(code)};
  return e;
}

void note_line() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (!frame) return;
  LineEntry* e = line_of(frame);
  if (likely(!e->ours)) {
    core->set_line(e->id, 0);
  } else {
    uint32_t inner = e->id;
    core->set_line(inner, call_site ? call_site : walk_out(frame));
  }
}

PyObject* line_text(uint32_t line) {
  if (line == 0 || line >= places().size()) return PyUnicode_FromString("");
  Place p = places()[line];
  Ref name(PyObject_GetAttrString(reinterpret_cast<PyObject*>(p.code), "co_name"));
  if (!name) return nullptr;
  return PyUnicode_FromFormat("%U:%d in %U", p.code->co_filename, PyCode_Addr2Line(p.code, p.lasti),
                              name.get());
}

aj_status* describe_line(uint32_t line, aj_object** out) {
  if (!is_python_thread()) return core->string_new(str(""), out);
  Gil gil;
  // May be asked for while an exception is on its way through the core.
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref text(line_text(line));
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!words) forget_error();
  aj_status* s = core->string_new(str(words ? words : ""), out);
  PyErr_Restore(type, value, traceback);
  return s;
}

}  // namespace adjoin::py
