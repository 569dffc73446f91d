// frontends/cli/conform/sharing.cpp: what a device need not have and many have: memory shown to
// another process, copies that are queued, copies between devices, captured graphs.
#include <sys/wait.h>
#include <unistd.h>

#include <adjoin/kit/ops.hpp>
#include <algorithm>
#include <cstring>

#include "../orphan.hpp"
#include "checks.hpp"

namespace adjoin::cli::conform {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr size_t kBytes = 50'000;
constexpr DLDevice kHost{kDLCPU, 0};

Bytes pattern(unsigned salt) {
  Bytes b(kBytes);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<unsigned char>(i * 37 + i / 251 + salt);
  return b;
}

// Memory of one kind, on one device of the plugin.
class Block {
 public:
  Block(Bench& bench, int32_t dev, uint32_t kind) : t_(*bench.table), dev_(dev), kind_(kind) {
    kit::check(t_.mem_alloc(t_.self, dev, kBytes, kind, &p));
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() {
    if (aj_status* s = t_.mem_free(t_.self, dev_, p, kBytes, kind_)) kit::core().status_free(s);
  }
  void* p = nullptr;

 private:
  const aj_device_vtbl& t_;
  int32_t dev_;
  uint32_t kind_;
};

void copy(const aj_device_vtbl& t, void* to, DLDevice dst, const void* from, DLDevice src,
          uint32_t flags = 0, void* stream = nullptr) {
  aj_copy c{};
  c.struct_size = sizeof c, c.flags = flags, c.stream = stream;
  c.dst = to, c.src = from, c.dst_device = dst, c.src_device = src;
  c.width = c.dst_pitch = c.src_pitch = kBytes, c.height = 1;
  kit::check(t.copy(t.self, &c));
}

bool has_memory(const aj_device_vtbl& t) { return t.mem_alloc && t.mem_free && t.copy; }

// In the child: reads what the handle stands for, and writes over it.
int guest(Bench& bench, int from_parent) {
  const aj_device_vtbl& t = *bench.table;
  uint8_t handle[128];
  if (read(from_parent, handle, sizeof handle) != sizeof handle) return 2;
  try {
    void* p = nullptr;
    kit::check(t.ipc_open(t.self, bench.device.device_id, handle, &p));
    Bytes seen(kBytes);
    copy(t, seen.data(), kHost, p, bench.device);
    if (seen != pattern(1)) return 3;
    copy(t, p, bench.device, pattern(2).data(), kHost);
    kit::check(t.ipc_close(t.self, bench.device.device_id, p));
    return 0;
  } catch (const kit::Error& e) {
    return e.code() == AJ_PRECONDITION || e.code() == AJ_UNAVAILABLE ? 4 : 5;
  }
}

// The child is made before this process uses the device, which some do not survive.
void between_processes(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.ipc_export || !t.ipc_open || !t.ipc_close || !has_memory(t))
    return v.skip("the device shows no memory to other processes");
  int ends[2];
  if (pipe(ends) != 0) kit::raise(AJ_UNAVAILABLE, "no pipe");
  pid_t parent = getpid(), child = fork();
  if (child < 0) kit::raise(AJ_UNAVAILABLE, "cannot fork");
  if (child == 0) {
    end_with(parent);
    close(ends[1]);
    _exit(guest(bench, ends[0]));
  }
  close(ends[0]);
  uint8_t handle[128] = {};
  int status = 0;
  {
    Block block(bench, bench.device.device_id, AJ_MEM_DEVICE);
    copy(t, block.p, bench.device, pattern(1).data(), kHost);
    kit::check(t.ipc_export(t.self, bench.device.device_id, block.p, handle));
    bool sent = write(ends[1], handle, sizeof handle) == sizeof handle;
    close(ends[1]);
    waitpid(child, &status, 0);
    if (!sent || !WIFEXITED(status)) return v.fail("the other process: it crashes");
    if (WEXITSTATUS(status) == 4)
      return v.skip("the other process cannot use the device, as this one had used it before");
    const char* words[] = {"", "", "no handle came", "it sees other bytes", "", "it is refused"};
    v.expect("the other process", words[std::min(WEXITSTATUS(status), 5)]);
    Bytes seen(kBytes);
    copy(t, seen.data(), kHost, block.p, bench.device);
    v.expect("what the other process has written",
             status || seen == pattern(2) ? "" : "it is not seen here");
  }
}

void queued_copies(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.stream_new || !has_memory(t)) return v.skip("the device has no streams");
  DLDevice d = bench.device;
  Block from(bench, d.device_id, AJ_MEM_PINNED), to(bench, d.device_id, AJ_MEM_PINNED);
  Block a(bench, d.device_id, AJ_MEM_DEVICE), b(bench, d.device_id, AJ_MEM_DEVICE);
  void* stream = nullptr;
  kit::check(t.stream_new(t.self, d.device_id, 0, &stream));
  for (void* on : {stream, static_cast<void*>(nullptr)}) {
    std::string where = on ? "on a stream" : "on the default stream";
    bench.begin("queued copies " + where);
    Bytes sent = pattern(on ? 3 : 4);
    std::memcpy(from.p, sent.data(), kBytes);
    std::memset(to.p, 0, kBytes);
    copy(t, a.p, d, from.p, kHost, AJ_COPY_QUEUED, on);
    copy(t, b.p, d, a.p, d, AJ_COPY_QUEUED, on);
    copy(t, to.p, kHost, b.p, d, AJ_COPY_QUEUED, on);
    kit::check(t.stream_sync(t.self, d.device_id, on));
    v.expect(where, std::memcmp(to.p, sent.data(), kBytes) == 0 ? "" : "wrong bytes");
  }
  kit::check(t.stream_free(t.self, d.device_id, stream));
}

void peers(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  int32_t n = 0;
  kit::check(t.count(t.self, &n));
  if (!(t.flags & AJ_DEV_PEER_COPY) || n < 2 || !has_memory(t))
    return v.skip("there are no two devices that reach each other");
  DLDevice one = bench.device, two = one;
  two.device_id = one.device_id ? 0 : 1;
  Block a(bench, one.device_id, AJ_MEM_DEVICE), b(bench, two.device_id, AJ_MEM_DEVICE);
  Bytes seen(kBytes);
  copy(t, a.p, one, pattern(5).data(), kHost);
  copy(t, b.p, two, a.p, one);
  copy(t, seen.data(), kHost, b.p, two);
  v.expect("from one device to another", seen == pattern(5) ? "" : "wrong bytes");
  HostTensor x = from_numbers(float32, {3}, {1, 2, 3});
  Tensor here = place(x, one, Lay::kDense).tensor, there = place(x, two, Lay::kDense).tensor;
  copy_(there, here + 1);
  HostTensor wanted = from_numbers(float32, {3}, {2, 3, 4});
  v.expect("after a kernel, as tensors", difference(fetch(there), wanted, 1, true));
}

void graphs(Bench& bench, Verdict& v) {
  const aj_device_vtbl& t = *bench.table;
  if (!t.capture_begin || !t.capture_end || !t.graph_launch || !t.graph_free || !t.stream_new)
    return v.skip("the device captures no graphs");
  DLDevice d = bench.device;
  void *stream = nullptr, *graph = nullptr;
  kit::check(t.stream_new(t.self, d.device_id, 0, &stream));
  Tensor x = place(from_numbers(float32, {3}, {1, 2, 3}), d, Lay::kDense).tensor;
  kit::check(kit::core().stream_set(d, stream));
  copy_(x, x + 0);  // libraries and memory are there before the capture
  kit::check(t.stream_sync(t.self, d.device_id, stream));
  bench.begin("capture");
  kit::check(t.capture_begin(t.self, d.device_id, stream));
  copy_(x, x * 2);
  kit::check(t.capture_end(t.self, d.device_id, stream, &graph));
  kit::check(t.stream_sync(t.self, d.device_id, stream));
  auto is = [&](const std::vector<std::complex<double>>& numbers) {
    return difference(fetch(x), from_numbers(float32, {3}, numbers), 1, true);
  };
  v.expect("captured work", is({1, 2, 3}).empty() ? "" : "it ran while it was captured");
  bench.begin("replay");
  for (int i = 0; i < 3; ++i) kit::check(t.graph_launch(t.self, d.device_id, graph, stream));
  kit::check(t.stream_sync(t.self, d.device_id, stream));
  v.expect("three replays", is({8, 16, 24}));
  kit::check(t.graph_free(t.self, d.device_id, graph));
  kit::check(kit::core().stream_set(d, nullptr));
}

}  // namespace

void add_sharing_groups(std::vector<Group>& plan) {
  plan.push_back({"memory between processes", "", "", between_processes});
  plan.push_back({"queued copies", "", "", queued_copies});
  plan.push_back({"peer copies", "", "", peers});
  plan.push_back({"captured graphs", "", "", graphs});
}

}  // namespace adjoin::cli::conform
