// core/base/status.cpp: error values and how values look inside their messages.
#include "core/base/status.hpp"

#include <charconv>
#include <cstring>
#include <new>

#include "core/base/dtype.hpp"
#include "core/base/guarded.hpp"

namespace adjoin {
namespace {

aj_status no_memory{
    AJ_OUT_OF_MEMORY, true, "OutOfMemoryError", "out of memory while reporting an error", "",
    nullptr};

std::string_view kind_of(int32_t code) {
  switch (code) {
    case AJ_CANCELLED:
      return "KeyboardInterrupt";
    case AJ_OUT_OF_RANGE:
      return "IndexError";
    case AJ_WRONG_TYPE:
      return "TypeError";
    case AJ_UNIMPLEMENTED:
      return "NotImplementedError";
    case AJ_OUT_OF_MEMORY:
      return "OutOfMemoryError";
    default:
      return "RuntimeError";
  }
}

template <class T>
void append_number(std::string& out, T v) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  out.append(buffer, end);
}

}  // namespace

aj_status* make_status(int32_t code, std::string_view kind, std::string_view message,
                       const char* file, uint64_t line) {
  try {
    std::string where;
    if (file && *file) where = text(file, ":", line);
    if (kind.empty()) kind = kind_of(code);
    return new aj_status{code == AJ_OK ? int32_t(AJ_UNKNOWN) : code,
                         false,
                         std::string(kind),
                         std::string(message),
                         where,
                         nullptr};
  } catch (...) {
    return &no_memory;
  }
}

void free_status(aj_status* s) {
  while (s && !s->is_static) {
    aj_status* cause = s->cause;
    delete s;
    s = cause;
  }
}

aj_status* refuse_words(std::string_view who, std::string_view what, uint64_t unknown,
                        uint64_t reserved) {
  std::string at = text(who, ": ", what, what.empty() ? "" : ": ");
  if (unknown)
    return fail(AJ_UNIMPLEMENTED, at, "this libadjoin does not know the flags ", unknown,
                "; is it older than the headers?");
  return fail(AJ_INVALID_ARGUMENT, at, "a reserved word is ", reserved, "; it must be 0");
}

aj_status* prefix(aj_status* steal, std::string_view before) {
  if (steal && !steal->is_static) steal->message.insert(0, before);
  return steal;
}

aj_status* name_body(aj_status* steal, std::string_view op) {
  if (!steal || steal->is_static) return steal;
  std::string name = text(op, ": ");
  steal->message.erase(0, steal->body_name);
  bool named = steal->message.starts_with(name);
  steal->body_name = named ? 0 : uint32_t(name.size());
  if (!named) steal->message.insert(0, name);
  return steal;
}

void append(std::string& out, std::string_view s) { out += s; }
void append(std::string& out, const char* s) { out += s ? s : ""; }
void append(std::string& out, int64_t v) { append_number(out, v); }
void append(std::string& out, uint64_t v) { append_number(out, v); }
void append(std::string& out, double v) { append_number(out, v); }

void append(std::string& out, DLDataType d) {
  if (const DType* t = find_dtype(d)) {
    out += t->name;
  } else {
    out += text("dtype(code ", int32_t(d.code), ", ", int32_t(d.bits), " bits");
    if (d.lanes != 1) out += text(", ", int32_t(d.lanes), " lanes, wanted 1");
    out += ')';
  }
}

void append(std::string& out, std::span<const int64_t> shape) {
  out += '[';
  for (size_t i = 0; i < shape.size(); i++) {
    if (i) out += ", ";
    append_number(out, shape[i]);
  }
  out += ']';
}

namespace {

template <class T>
const T& at(const void* p) {
  return *static_cast<const T*>(p);
}

void append_part(std::string& out, Part kind, const void* p) {
  switch (kind) {
    case Part::chars:
      return append(out, static_cast<const char*>(p));
    case Part::pointer:
      return append(out, at<const char*>(p));
    case Part::string:
      return append(out, at<std::string>(p));
    case Part::view:
      return append(out, at<std::string_view>(p));
    case Part::str:
      return append(out, at<aj_str>(p));
    case Part::dtype:
      return append(out, at<DLDataType>(p));
    case Part::device:
      return append(out, at<DLDevice>(p));
    case Part::shape:
      return append(out, at<std::span<const int64_t>>(p));
    case Part::real:
      return append(out, at<double>(p));
    case Part::i1:
      return append(out, at<int8_t>(p));
    case Part::i2:
      return append(out, at<int16_t>(p));
    case Part::i4:
      return append(out, at<int32_t>(p));
    case Part::i8:
      return append(out, at<int64_t>(p));
    case Part::u1:
      return append(out, at<uint8_t>(p));
    case Part::u2:
      return append(out, at<uint16_t>(p));
    case Part::u4:
      return append(out, at<uint32_t>(p));
    case Part::u8:
      return append(out, at<uint64_t>(p));
  }
}

}  // namespace

std::string text_of(const Part* kinds, const void* const* parts, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; i++) append_part(out, kinds[i], parts[i]);
  return out;
}

aj_status* fail_of(int32_t code, std::string_view kind, const Part* kinds, const void* const* parts,
                   size_t n) {
  return make_status(code, kind, text_of(kinds, parts, n));
}

aj_status* status_of_exception() try { throw; } catch (const std::bad_alloc&) {
  return make_status(AJ_OUT_OF_MEMORY, {},
                     "the system has no memory for what libadjoin itself needs");
} catch (const std::exception& e) {
  return fail(AJ_INTERNAL, "libadjoin: ", e.what());
}

}  // namespace adjoin
