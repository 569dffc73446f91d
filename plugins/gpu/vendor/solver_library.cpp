// plugins/gpu/vendor/solver_library.cpp: opens the libraries that factor matrices, and binds every
// function for the four types of number.
#include "solver_library.hpp"

namespace adjoin::vendor {
namespace {

constexpr const char* kLetters = "SDCZ";

std::string bind_solver(const SharedLibrary& file, SolverLibrary* table) {
  const std::string prefix = solver_words.solver;
  for (int i = 0; i < 4; ++i) {
    [[maybe_unused]] const bool real = i < 2;
#define AJ_BIND_(name, of_real, of_complex, parameters)                                \
  {                                                                                    \
    const std::string symbol = prefix + kLetters[i] + (real ? #of_real : #of_complex); \
    if (!file.bind(symbol.c_str(), &table->name[i])) return "it has no " + symbol;     \
  }
    AJ_SOLVER_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
  }
  if (!file.bind((prefix + "Create").c_str(), &table->create) ||
      !file.bind((prefix + "SetStream").c_str(), &table->set_stream) ||
      !file.bind((prefix + "CreateSyevjInfo").c_str(), &table->new_syevj) ||
      !file.bind((prefix + "CreateGesvdjInfo").c_str(), &table->new_gesvdj))
    return "it cannot make its handles (" + prefix + "Create and three more)";
  return {};
}

std::string bind_triangles(const SharedLibrary& file, SolverLibrary* table) {
  const std::string prefix = solver_words.blas, ending = solver_words.blas_ending;
  for (int i = 0; i < 4; ++i) {
#define AJ_BIND_(name, symbol_, ending_, parameters)                               \
  {                                                                                \
    const std::string symbol = prefix + kLetters[i] + #symbol_ + ending_;          \
    if (!file.bind(symbol.c_str(), &table->name[i])) return "it has no " + symbol; \
  }
    AJ_TRIANGLE_FUNCTIONS_(AJ_BIND_)
#undef AJ_BIND_
  }
  if (!file.bind((prefix + "Create" + ending).c_str(), &table->create_blas) ||
      !file.bind((prefix + "SetStream" + ending).c_str(), &table->set_blas_stream))
    return "it has no " + prefix + "SetStream" + ending;
  file.bind((prefix + "SetWorkspace" + ending).c_str(), &table->set_blas_workspace);
  return {};
}

struct Opened {
  SolverLibrary table = {};
  bool usable = false;

  Opened() {
    SharedLibrary &solver = solver_file_to_open(), &triangles = triangle_file_to_open();
    const bool both = solver.open() & triangles.open();
    if (!both) return;
    const std::string lacks = bind_solver(solver, &table), also = bind_triangles(triangles, &table);
    if (!lacks.empty()) solver.close_for(lacks);
    if (!also.empty()) triangles.close_for(also);
    usable = lacks.empty() && also.empty();
  }
};

}  // namespace

const SolverLibrary* SolverLibrary::find() {
  static auto* one = new Opened;  // never destroyed: threads may still compute at exit
  return one->usable ? &one->table : nullptr;
}
const SharedLibrary& solver_file() { return solver_file_to_open(); }
const SharedLibrary& triangle_file() { return triangle_file_to_open(); }

std::string describe_solvers() {
  const bool usable = SolverLibrary::find();
  std::string lines =
      kit::text("library ", solver_file().where(), "\nlibrary ", triangle_file().where(), "\n");
  if (!usable)
    lines += kit::text("missing: ", solver_file().name(), ", ", triangle_file().name(),
                       ": nothing factors matrices; ", solver_words.remedy, "\n");
  return lines;
}

}  // namespace adjoin::vendor
