// tests/plugins/paper_card/kernels.cpp: what a kernel does. The plugin `emulated` has the same
// kernels compiled for the host, so nothing is compiled a second time: its file's table of symbols
// says where each stands. ADJOIN_PAPER_CARD_BODIES names the file.
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "card.hpp"
#include "plugins/emulated/fibers.hpp"

namespace paper {
namespace {

using adjoin::emulated::Dim3;
using Body = void (*)(const void*);
constexpr size_t kMostArguments = 4096;

std::string readable(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// "...launch_grid<&(KERNEL), P>(aj_call const*, ...)::{lambda(void const*)#1}::_FUN(void const*)".
// A kernel that is no template stands there as its name alone: it is called with a P.
std::string kernel_of(const std::string& symbol) {
  const std::string_view before = "launch_grid<&", behind = ">(aj_call";
  size_t begin = symbol.find(before), end = symbol.find(behind);
  if (begin == std::string::npos || end == std::string::npos) return {};
  std::string both = symbol.substr(begin + before.size(), end - begin - before.size());
  size_t at = 0;
  for (int depth = 0; at < both.size() && (depth || both[at] != ','); ++at)
    depth += (both[at] == '(' || both[at] == '<') - (both[at] == ')' || both[at] == '>');
  std::string kernel = both.substr(0, at);
  if (kernel[0] == '(') return kernel.substr(1, at - 2);
  return kernel + "(" + both.substr(at + 2) + ")";
}

struct Bodies {
  std::unordered_map<std::string, Body> by_name;
  decltype(&adjoin::emulated::run_grid) run_grid = nullptr;
  decltype(&adjoin::emulated::set_order) set_order = nullptr;

  explicit Bodies(const char* file) {
    void* library = file ? dlopen(file, RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library) return;
    link_map* map = nullptr;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (fd < 0 || fstat(fd, &about) != 0) return;
    size_t bytes = size_t(about.st_size);
    auto* start = static_cast<const char*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    auto* head = reinterpret_cast<const Elf64_Ehdr*>(start);
    auto* sections = reinterpret_cast<const Elf64_Shdr*>(start + head->e_shoff);
    for (int i = 0; i < head->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      const char* names = start + sections[sections[i].sh_link].sh_offset;
      auto* symbols = reinterpret_cast<const Elf64_Sym*>(start + sections[i].sh_offset);
      for (size_t k = 0; k < sections[i].sh_size / sizeof *symbols; ++k)
        if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && symbols[k].st_value)
          enter(names + symbols[k].st_name, map->l_addr + symbols[k].st_value);
    }
    munmap(const_cast<char*>(start), bytes);
  }

  void enter(const char* name, uintptr_t at) {
    if (std::strstr(name, "emulated8run_grid"))
      run_grid = reinterpret_cast<decltype(run_grid)>(at);
    else if (std::strstr(name, "emulated9set_order"))
      set_order = reinterpret_cast<decltype(set_order)>(at);
    else if (std::strstr(name, "launch_grid") &&
             (std::strstr(name, "_FUN") || std::strstr(name, "__invoke")))
      if (std::string kernel = kernel_of(readable(name)); !kernel.empty())
        by_name[kernel] = reinterpret_cast<Body>(at);
  }
};
Bodies& bodies() {
  static auto* all = new Bodies(std::getenv("ADJOIN_PAPER_CARD_BODIES"));
  return *all;
}

struct Function {
  std::string name;
  Body body;
  int device;
};
struct Module {
  int device;
};

// A kernel's arguments are one struct, whose size nobody says: as much as can be read there.
std::shared_ptr<void> kept(const void* argument) {
  static int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::shared_ptr<void> room(std::aligned_alloc(64, kMostArguments), std::free);
  ssize_t got =
      pread(memory, room.get(), kMostArguments, off_t(reinterpret_cast<uintptr_t>(argument)));
  return got > 0 ? room : nullptr;
}

// The pieces of memory that addresses among the arguments lie in: " OFFSET:BEGIN:BYTES"; what lies
// behind the struct is the host's stack, and whoever knows its size leaves that out.
std::string reached(const void* arguments) {
  std::string text;
  for (size_t at = 0; at < kMostArguments; at += sizeof(void*)) {
    void *p, *base = nullptr;
    size_t bytes = 0;
    std::memcpy(&p, static_cast<const char*>(arguments) + at, sizeof p);
    if (range_of(&base, &bytes, p) != kSuccess) continue;
    text += " " + std::to_string(at) + ":" + std::to_string(reinterpret_cast<uintptr_t>(base)) +
            ":" + std::to_string(bytes);
  }
  return text;
}

void run(const Function& f, Dim3 grid, Dim3 block, int warp, const void* argument, bool hangs) {
  while (hangs && orders.hang < 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (is_due(orders.fail_kernel)) return lose_device(kLaunchFailure, f.device);
  if (idle_now) return;
  static std::mutex one;
  std::lock_guard held(one);
  bodies().set_order(unsigned(warp), 0);
  std::string wrong = bodies().run_grid(grid, block, f.body, argument);
  if (wrong.empty()) return;
  std::fprintf(stderr, "paper card: %s: %s\n", f.name.c_str(), wrong.c_str());
  lose_device(kLaunchFailure, f.device);
}

bool is_code(const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  return magic == 0xba55ed50 || std::memcmp(image, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0;
}

}  // namespace

int load_module(void** out, const void* image) {
  if (int wrong = check_device()) return wrong;
  if (!image || !is_code(image)) return kInvalidImage;
  if (orders.no_image || !bodies().run_grid) return kNoImage;
  *out = new Module{current_device};
  return kSuccess;
}

int get_function(void** out, void* module, const char* name) {
  if (int wrong = check_device()) return wrong;
  std::string text = readable(name);
  auto it = bodies().by_name.find(text);
  if (it == bodies().by_name.end()) {
    std::fprintf(stderr, "paper card: no body for %s\n", text.c_str());
    return kNotFound;
  }
  *out = new Function{text, it->second, static_cast<Module*>(module)->device};
  return kSuccess;
}

int launch(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
           unsigned bz, unsigned shared, Stream* s, void** arguments) {
  if (int wrong = check_device()) return wrong;
  auto* f = static_cast<Function*>(function);
  if (!f || f->device != current_device) return kInvalidHandle;
  uint64_t threads = uint64_t(bx) * by * bz;
  bool fits = gx && gy && gz && gx <= 0x7fffffff && gy <= 65535 && gz <= 65535 && threads &&
              threads <= 1024 && bz <= 64 && shared <= 48 << 10;
  if (orders.idle == 2 && fits && !orders.record) return ++counts.launches, int(kSuccess);
  std::shared_ptr<void> argument = fits && arguments ? kept(arguments[0]) : nullptr;
  if (!argument) return kInvalidValue;
  ++counts.launches;
  if (orders.record) {
    std::string line = "kernel";
    for (unsigned n : {gx * gy * gz, bx * by * bz, shared}) line += " " + std::to_string(n);
    note(line + reached(argument.get()) + " " + f->name);
  }
  if (orders.idle == 2) return kSuccess;
  // Who hangs is settled here: streams run in no order, and another's kernel could come first.
  bool hangs = is_due(orders.hang);
  if (hangs) orders.hang = -1;
  auto work = [=, warp = warp_size, f = *f] {
    run(f, {gx, gy, gz}, {bx, by, bz}, warp, argument.get(), hangs);
  };
  return submit(s, traced(Task::kernel, f->name, 0, s, work));
}

}  // namespace paper
