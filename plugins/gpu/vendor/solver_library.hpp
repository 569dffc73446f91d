// plugins/gpu/vendor/solver_library.hpp: the libraries that factor matrices, opened when first
// asked for: cuSOLVER and cuBLAS, or hipSOLVER and hipBLAS, which have the same functions under
// other names. The prototypes are our own; plugins/cuda compares them with NVIDIA's headers.
#ifndef ADJOIN_PLUGINS_GPU_VENDOR_SOLVER_LIBRARY_HPP
#define ADJOIN_PLUGINS_GPU_VENDOR_SOLVER_LIBRARY_HPP
#include <adjoin/abi/linalg.h>

#include "libraries.hpp"
#include "status.hpp"

namespace adjoin::vendor {

using Handle = void*;
using Pointers = void* const*;

// F(name here, name of real numbers in the library, of complex ones, parameters). What ends with
// _size says how many numbers of work memory its routine wants.
#define AJ_SOLVER_FUNCTIONS_(F)                                                                    \
  F(potrf_size, potrf_bufferSize, potrf_bufferSize, (Handle, int, int, void*, int, int*))          \
  F(potrf, potrf, potrf, (Handle, int, int, void*, int, void*, int, int*))                         \
  F(potrf_batch, potrfBatched, potrfBatched, (Handle, int, int, Pointers, int, int*, int))         \
  F(getrf_size, getrf_bufferSize, getrf_bufferSize, (Handle, int, int, void*, int, int*))          \
  F(getrf, getrf, getrf, (Handle, int, int, void*, int, void*, int*, int*))                        \
  F(geqrf_size, geqrf_bufferSize, geqrf_bufferSize, (Handle, int, int, void*, int, int*))          \
  F(geqrf, geqrf, geqrf, (Handle, int, int, void*, int, void*, void*, int, int*))                  \
  F(orgqr_size, orgqr_bufferSize, ungqr_bufferSize,                                                \
    (Handle, int, int, int, const void*, int, const void*, int*))                                  \
  F(orgqr, orgqr, ungqr, (Handle, int, int, int, void*, int, const void*, void*, int, int*))       \
  F(syevd_size, syevd_bufferSize, heevd_bufferSize,                                                \
    (Handle, int, int, int, const void*, int, const void*, int*))                                  \
  F(syevd, syevd, heevd, (Handle, int, int, int, void*, int, void*, void*, int, int*))             \
  F(syevj_size, syevjBatched_bufferSize, heevjBatched_bufferSize,                                  \
    (Handle, int, int, int, const void*, int, const void*, int*, void*, int))                      \
  F(syevj, syevjBatched, heevjBatched,                                                             \
    (Handle, int, int, int, void*, int, void*, void*, int, int*, void*, int))                      \
  F(gesvd_size, gesvd_bufferSize, gesvd_bufferSize, (Handle, int, int, int*))                      \
  F(gesvd, gesvd, gesvd,                                                                           \
    (Handle, signed char, signed char, int, int, void*, int, void*, void*, int, void*, int, void*, \
     int, void*, int*))                                                                            \
  F(gesvdj_size, gesvdjBatched_bufferSize, gesvdjBatched_bufferSize,                               \
    (Handle, int, int, int, const void*, int, const void*, const void*, int, const void*, int,     \
     int*, void*, int))                                                                            \
  F(gesvdj, gesvdjBatched, gesvdjBatched,                                                          \
    (Handle, int, int, int, void*, int, void*, void*, int, void*, int, void*, int, int*, void*,    \
     int))

// Of the library of products: all four types of number have one name, which may have an ending.
#define AJ_TRIANGLE_FUNCTIONS_(F)                                                           \
  F(trsm, trsm, solver_words.blas_ending,                                                   \
    (Handle, int, int, int, int, int, int, const void*, const void*, int, void*, int))      \
  F(trsm_batch, trsmBatched, "",                                                            \
    (Handle, int, int, int, int, int, int, const void*, Pointers, int, Pointers, int, int)) \
  F(getrf_batch, getrfBatched, "", (Handle, int, Pointers, int, int*, int*, int))

// One for each type of number, in the order S D C Z.
struct SolverLibrary {
#define AJ_POINTER_(name, real, complex, parameters) int(*name[4]) parameters;
  AJ_SOLVER_FUNCTIONS_(AJ_POINTER_)
  AJ_TRIANGLE_FUNCTIONS_(AJ_POINTER_)
#undef AJ_POINTER_
  int (*create)(Handle*);
  int (*set_stream)(Handle, Stream);
  int (*new_syevj)(void**);
  int (*new_gesvdj)(void**);
  int (*create_blas)(Handle*);
  int (*set_blas_stream)(Handle, Stream);
  int (*set_blas_workspace)(Handle, void*, size_t);  // null: the library has none of the caller's

  static const SolverLibrary* find();  // null if there is none that can be used
};
const SharedLibrary& solver_file();
const SharedLibrary& triangle_file();  // of the library of products
std::string describe_solvers();        // lines for the report; opens them

// What differs between the vendors, the plugin's own.
struct SolverWords {
  const char* name;                         // of the service
  const char *solver, *blas, *blas_ending;  // what names of functions begin and end with
  int lower, upper, left, right, plain, not_unit, unit, no_vectors, vectors;
  const char* remedy;  // what brings both libraries
};
extern const SolverWords solver_words;
SharedLibrary& solver_file_to_open();
SharedLibrary& triangle_file_to_open();
const char* solver_says(int status);  // null: nothing that is known
const char* triangle_says(int status);
bool lacks_memory(int status, bool solver);

// Eigenvalues of matrices that are not symmetric: the plugin's own, where its library has them.
int32_t scores_eigen(const aj_linalg_problem& p);
uint64_t eigen_workspace(const aj_linalg_problem& p, Handle handle);
void run_eigen(const aj_linalg_problem& p, Handle handle, void* work);

}  // namespace adjoin::vendor
#endif
