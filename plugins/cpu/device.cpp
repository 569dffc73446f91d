// plugins/cpu/device.cpp: memory of the host. Large blocks are aligned to huge pages: fresh small
// pages cost more than the work that fills them.
#include "device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <cstdlib>

namespace adjoin::cpu {
namespace {

using kit::fail;
constexpr uint64_t kHuge = 2 << 20, kAlign = 64;

aj_status* count(void*, int32_t* out) {
  *out = 1;
  return nullptr;
}

aj_status* props(void*, int32_t, aj_device_props* io) {
  aj_device_props known = {};
  known.struct_size = io->struct_size;
  known.total_memory = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
  known.min_alignment = kAlign;
  known.multiprocessors = uint32_t(sysconf(_SC_NPROCESSORS_ONLN));
  std::memcpy(known.name, "processor", 10);
#if defined(__x86_64__)
  std::memcpy(known.arch, "x86-64", 7);
#elif defined(__aarch64__)
  std::memcpy(known.arch, "aarch64", 8);
#endif
  std::memcpy(io, &known, std::min<size_t>(io->struct_size, sizeof known));
  return nullptr;
}

uint64_t rounded(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

aj_status* out_of_memory(uint64_t bytes) {
  return fail(AJ_OUT_OF_MEMORY, "cpu: out of memory: asked for ", bytes, " bytes");
}

aj_status* mem_alloc(void*, int32_t, uint64_t bytes, uint32_t, void** out) {
  if (bytes > uint64_t(1) << 62) return out_of_memory(bytes);
  if (bytes < kHuge) {
    *out = std::aligned_alloc(
        kAlign, rounded(bytes + 1, kAlign));  // never 0, so every tensor has an address
    return *out ? nullptr : out_of_memory(bytes);
  }
  uint64_t size = rounded(bytes, kHuge);
  void* raw =
      mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return out_of_memory(bytes);
  auto begin = reinterpret_cast<uint64_t>(raw), aligned = rounded(begin, kHuge);
  if (aligned > begin) munmap(raw, aligned - begin);
  if (uint64_t behind = begin + kHuge - aligned)
    munmap(reinterpret_cast<void*>(aligned + size), behind);
  *out = reinterpret_cast<void*>(aligned);
  madvise(*out, size, MADV_HUGEPAGE);
  return nullptr;
}

aj_status* mem_free(void*, int32_t, void* p, uint64_t bytes, uint32_t) {
  if (bytes < kHuge)
    std::free(p);
  else
    munmap(p, rounded(bytes, kHuge));
  return nullptr;
}

aj_status* mem_info(void*, int32_t, uint64_t* free_bytes, uint64_t* total_bytes) {
  auto page = uint64_t(sysconf(_SC_PAGESIZE));
  *free_bytes = uint64_t(sysconf(_SC_AVPHYS_PAGES)) * page;
  *total_bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * page;
  return nullptr;
}

aj_status* mem_idle(void*, int32_t, void* p, uint64_t bytes) {
  auto page = uint64_t(sysconf(_SC_PAGESIZE)), begin = rounded(reinterpret_cast<uint64_t>(p), page);
  uint64_t end = (reinterpret_cast<uint64_t>(p) + bytes) / page * page;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  return nullptr;
}

aj_status* copy(void*, const aj_copy* c) {
  if (c->height <= 1) {
    std::memcpy(c->dst, c->src, c->width * c->height);
    return nullptr;
  }
  for (uint64_t row = 0; row < c->height; ++row)
    std::memcpy(static_cast<char*>(c->dst) + row * c->dst_pitch,
                static_cast<const char*>(c->src) + row * c->src_pitch, c->width);
  return nullptr;
}

aj_status* fill(void*, int32_t, void* p, uint64_t offset, const void* pattern,
                uint64_t pattern_bytes, uint64_t bytes, void*) {
  p = static_cast<char*>(p) + offset;
  if (pattern_bytes == 0)
    return fail(AJ_INVALID_ARGUMENT, "cpu: the pattern to fill with is empty");
  if (pattern_bytes == 1) {
    std::memset(p, *static_cast<const unsigned char*>(pattern), bytes);
    return nullptr;
  }
  for (uint64_t at = 0; at < bytes; at += pattern_bytes)
    std::memcpy(static_cast<char*>(p) + at, pattern, std::min(pattern_bytes, bytes - at));
  return nullptr;
}

// Nothing here runs on its own: memory is copied by the kernel, and the pool belongs to the core.
aj_status* fork_prepare(void*) { return nullptr; }
void fork_done(void*) {}

}  // namespace

// Products gain from bfloat16; for most of the rest the vectors are float32 anyway, so a cast is
// work and no precision. Results are float32 where PyTorch's are: of what would lose many digits,
// or has no narrow kernel.
constexpr std::string_view kAutocast =
    "dtype bfloat16;"
    "low mm bmm matmul addmm baddbmm addbmm nn::linear convolution convolution_backward rnn_layer "
    "nn::scaled_dot_product_attention;"
    "float32 prod trace polar view_as_complex nn::binary_cross_entropy nn::cross_entropy "
    "nn::nll_loss "
    "nn::binary_cross_entropy_with_logits nn::mse_loss nn::l1_loss nn::smooth_l1_loss "
    "nn::huber_loss "
    "nn::kl_div nn::poisson_nll_loss nn::soft_margin_loss nn::hinge_embedding_loss "
    "nn::margin_ranking_loss nn::cosine_embedding_loss nn::triplet_margin_loss "
    "nn::multi_margin_loss nn::multilabel_margin_loss ctc_loss "
    "nn::avg_pool3d nn::max_pool3d nn::max_pool3d_with_indices nn::max_unpool "
    "nn::adaptive_avg_pool3d nn::adaptive_max_pool3d nn::adaptive_max_pool3d_with_indices "
    "nn::fractional_max_pool nn::grid_sample "
    "quantile quantile.scalar nanquantile nanquantile.scalar stft cdist "
    "cholesky_inverse cholesky_solve inverse orgqr ormqr pinverse geqrf qr svd triangular_solve "
    "lu_solve "
    "fft::fft fft::ifft fft::fft2 fft::ifft2 fft::fftn fft::ifftn fft::rfft fft::irfft fft::rfft2 "
    "fft::irfft2 fft::rfftn fft::irfftn fft::hfft fft::ihfft "
    "linalg::matrix_norm linalg::matrix_norm.ord linalg::cond linalg::cond.name "
    "linalg::matrix_rank linalg::matrix_rank.tol linalg::solve linalg::cholesky "
    "linalg::cholesky_ex linalg::svd linalg::svdvals linalg::eig linalg::eigvals linalg::eigh "
    "linalg::eigvalsh linalg::inv linalg::inv_ex linalg::householder_product linalg::tensorinv "
    "linalg::tensorsolve linalg::lstsq;"
    "widest cat stack index_copy";

const aj_autocast_lists autocast_lists = {
    sizeof(aj_autocast_lists), 0, {kAutocast.data(), kAutocast.size()}};

const aj_device_vtbl device = [] {
  aj_device_vtbl v = {};
  v.struct_size = sizeof v;
  v.flags = AJ_DEV_HOST_MEMORY | AJ_DEV_HOST_THREADS | AJ_DEV_SYNCHRONOUS | AJ_DEV_HOST_FALLBACK;
  v.name = AJ_STR_LIT("cpu");
  v.dlpack_type = kDLCPU;
  v.priority = 100;
  v.count = count;
  v.props = props;
  v.mem_alloc = mem_alloc;
  v.mem_free = mem_free;
  v.mem_info = mem_info;
  v.mem_idle = mem_idle;
  v.copy = copy;
  v.fill = fill;
  v.fork_prepare = fork_prepare;
  v.fork_parent = fork_done;
  v.fork_child = fork_done;
  return v;
}();

}  // namespace adjoin::cpu
