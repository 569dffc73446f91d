/* adjoin/abi/fft.h: experimental. Fourier transforms of a device, a service under "aj.fft/DEVICE": a library
 * such as MKL, FFTW or cuFFT comes as a plugin that offers one with a priority above 0. The pack ops_fft has
 * the offer "own" for the processor, and asks the others before it. */
#ifndef ADJOIN_ABI_FFT_H
#define ADJOIN_ABI_FFT_H
#include "base.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What is between the two sides. Along the last dimension half of a spectrum has size / 2 + 1 elements: sizes
 * count the real ones. */
enum { AJ_FFT_COMPLEX = 0, AJ_FFT_TO_HALF = 1, AJ_FFT_FROM_HALF = 2 };

/* Results are scale times the sums over exp(-2 pi i ...) if forward, else over exp(2 pi i ...). Strides count
 * elements of their side: complex or real ones. in and out are the same memory, with the same strides, or do
 * not overlap; AJ_FFT_FROM_HALF reads as real what symmetry says to be real, of the last dimension's first
 * element and of an even size's last one. */
typedef struct aj_fft_desc { /* EXTENSIBLE */
  uint32_t struct_size;
  int32_t kind;
  DLDataType dtype; /* of the real numbers, float32 or float64; complex ones are two of them */
  DLDevice device;
  int32_t forward;
  int32_t rank;     /* 1 to 3 */
  int32_t reserved;
  int64_t sizes[3], stride_in[3], stride_out[3];
  int64_t batch, batch_in, batch_out; /* so many, so far apart */
  double scale;
} aj_fft_desc;

typedef struct aj_fft { /* EXTENSIBLE. slot "aj.fft/DEVICE" */
  uint32_t struct_size, minor;
  aj_str name; /* "fftw 3.3.10" */
  void* self;
  int32_t (*score)(void* self, const aj_fft_desc* d); /* 0: cannot */
  /* A plan never changes: it serves any number of threads at once, for as long as the caller keeps it. An
   * object of the plugin's type (type_register). */
  aj_status* (*plan)(void* self, const aj_fft_desc* d, aj_object** out);
  /* On the calling thread, which may cut it over the pool, or queued on the stream. Offsets in bytes, 0 but
   * of handles (AJ_DEV_OPAQUE_POINTERS). */
  aj_status* (*run)(void* self, aj_object* plan, const void* in, uint64_t offset_in, void* out,
                    uint64_t offset_out, void* stream);
} aj_fft;

#ifdef __cplusplus
}
#endif
#endif
