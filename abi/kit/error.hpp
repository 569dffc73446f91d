// adjoin/kit/error.hpp: exceptions on this side of the contract, statuses on the other, and the one
// place that turns each into the other.
#ifndef ADJOIN_KIT_ERROR_HPP
#define ADJOIN_KIT_ERROR_HPP
#include <cxxabi.h>

#include <adjoin/kit/env.hpp>
#include <charconv>
#include <concepts>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace adjoin {
namespace AJ_HIDDEN kit {

inline std::string plugin_path;  // of this shared library: where its statuses say they were made

inline std::string_view view_of(aj_str s) { return {s.data ? s.data : "", size_t(s.len)}; }
inline aj_str str(std::string_view s) { return {s.data(), s.size()}; }

// Text of one part of a message. Overload for a type of yours: namespaces are searched by argument.
inline void put(std::string& out, std::string_view s) { out += s; }
inline void put(std::string& out, const char* s) { out += s; }
inline void put(std::string& out, aj_str s) { out += view_of(s); }
inline void put(std::string& out, bool b) { out += b ? "True" : "False"; }

template <class T>
requires((std::integral<T> ||
          std::floating_point<T>)&&!std::same_as<T, bool>) void put(std::string& out, T number) {
  char text[40];
  auto end = std::to_chars(text, text + sizeof text, number).ptr;
  out.append(text, end);
}

inline void put(std::string& out, DLDataType d) {
  aj_dtype_info info = {};
  info.struct_size = sizeof info;
  if (env.core && !env.core->dtype_info(d, &info)) return put(out, info.name);
  put(out, "dtype(");
  put(out, int(d.code));
  put(out, ", ");
  put(out, int(d.bits));
  put(out, ")");
}

struct Shape {  // prints as [2, 3]
  const int64_t* sizes;
  int64_t n;
};

inline void put(std::string& out, Shape s) {
  out += '[';
  for (int64_t i = 0; i < s.n; ++i) {
    if (i) out += ", ";
    put(out, s.sizes[i]);
  }
  out += ']';
}

template <class... Part>
std::string text(const Part&... parts) {
  std::string out;
  (put(out, parts), ...);
  return out;
}

// Whose line a call is. Plugins and bodies of ops have none, and pay nothing; the C++ frontend
// defines ADJOIN_CALL_SITES: then an Error tells the caller's file and line.
struct Nowhere {
  static constexpr Nowhere current() { return {}; }
};
struct CallSite {
  const char* file;
  uint32_t line;
  static constexpr CallSite current(const char* file = __builtin_FILE(),
                                    uint32_t line = __builtin_LINE()) {
    return {file, line};
  }
};
#ifdef ADJOIN_CALL_SITES
using Here = CallSite;
#else
using Here = Nowhere;
#endif

// A status as an exception. Copies share the status; the first to cross the boundary hands on the
// original, cause and all.
class Error : public std::exception {
 public:
  Error(int32_t code, std::string_view kind, std::string message)
      : body_(std::make_shared<Body>(code, std::string(kind), std::move(message))) {}
  explicit Error(aj_status* owned) : body_(std::make_shared<Body>(owned)) {}
  Error(aj_status* owned, CallSite site) : Error(owned) {
    if (!site.file) return;
    body_->where = text(site.file, ":", site.line);
    body_->shown = text(body_->message, " (", body_->where, ")");
  }

  int32_t code() const { return body_->code; }
  const std::string& kind() const { return body_->kind; }
  const std::string& message() const { return body_->message; }
  const std::string& where() const { return body_->where; }  // "train.cpp:41", may be empty
  const char* what() const noexcept override {
    return (body_->where.empty() ? body_->message : body_->shown).c_str();
  }
  const aj_status* status() const { return body_->status; }  // NULL unless it came from a table
  aj_status* take_status() const { return std::exchange(body_->status, nullptr); }

 private:
  struct Body {
    Body(int32_t c, std::string k, std::string m)
        : code(c), kind(std::move(k)), message(std::move(m)) {}
    explicit Body(aj_status* s) : code(env.core->status_code(s)), status(s) {
      kind = view_of(env.core->status_kind(s));
      message = view_of(env.core->status_message(s));
    }
    Body(const Body&) = delete;
    ~Body() {
      if (status) env.core->status_free(status);
    }
    int32_t code;
    std::string kind, message, where, shown;
    aj_status* status = nullptr;
  };
  std::shared_ptr<Body> body_;
};

// What only runs when something is wrong: small, and apart from what runs.
template <class... Part>
[[noreturn, gnu::cold, gnu::noinline]] void raise(int32_t code, const Part&... parts) {
  throw Error(code, "", text(parts...));
}
template <class... Part>
[[noreturn, gnu::cold, gnu::noinline]] void raise_as(std::string_view kind, int32_t code,
                                                     const Part&... parts) {
  throw Error(code, kind, text(parts...));
}

inline aj_status* make_status(int32_t code, std::string_view kind, std::string_view message) {
  return env.core->status_new(code, str(kind), str(message), plugin_path.c_str(), 0);
}

template <class... Part>
[[gnu::cold, gnu::noinline]] aj_status* fail(int32_t code, const Part&... parts) {
  return make_status(code, "", text(parts...));
}

inline void check(aj_status* status) {
  if (status) throw Error(status);
}
inline void check(aj_status* status, Nowhere) { check(status); }
inline void check(aj_status* status, CallSite site) {
  if (status) [[unlikely]]
    throw Error(status, site);
}

// The exception in flight as a status. `who` stands before the message of an error that was raised
// here; one that came out of a table says already who it is.
[[gnu::cold, gnu::noinline]] inline aj_status* status_of_exception(std::string_view who) {
  std::string prefix = who.empty() ? std::string() : std::string(who) + ": ";
  try {
    throw;
  } catch (const Error& e) {
    if (aj_status* s = e.take_status()) return s;
    return make_status(e.code(), e.kind(), prefix + e.message());
  } catch (const std::bad_alloc&) {
    return make_status(AJ_OUT_OF_MEMORY, "", prefix + "out of host memory");
  } catch (const abi::__forced_unwind&) {
    throw;  // a thread that is being cancelled: swallowing it would kill the process
  } catch (const std::exception& e) {
    return make_status(AJ_INTERNAL, "", prefix + e.what());
  } catch (...) {
    return make_status(AJ_INTERNAL, "",
                       prefix + "an exception that is no std::exception left a callback");
  }
}

template <class F>
aj_status* guard(std::string_view who, F&& f) {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_exception(who);
  }
}

// As users write it: without space and overload.
inline std::string_view op_name(const aj_op* op) {
  aj_op_info info = {};
  info.struct_size = sizeof info;
  if (aj_status* s = env.op->op_info(op, &info)) {
    env.core->status_free(s);
    return {};
  }
  std::string_view name = view_of(info.name);
  name.remove_prefix(name.rfind(':') + 1);
  return name.substr(0, name.find('.'));
}

// For kernels: the name is looked up only when something went wrong.
template <class F>
aj_status* guard(const aj_call* call, F&& f) {
  try {
    f();
    return nullptr;
  } catch (...) {
    return status_of_exception(op_name(call->op));
  }
}

}  // namespace kit
}  // namespace adjoin
#endif
