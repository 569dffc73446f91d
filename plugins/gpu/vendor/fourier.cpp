// plugins/gpu/vendor/fourier.cpp: the service aj.fft/DEVICE: plans of a vendor's library, run with
// memory of the core's.
#include "fourier.hpp"

#include <adjoin/kit/make.hpp>
#include <mutex>
#include <new>

#include "capture.hpp"
#include "fourier_library.hpp"
#include "on_stream.hpp"
#include "workspace.hpp"

namespace adjoin::vendor {
namespace {

enum : int { kForward = -1, kBackward = 1 };
// The library's words for a single's kinds; those of double are 64 more.
constexpr int kTypes[] = {/* complex */ 0x29, /* to half */ 0x2a, /* from half */ 0x2c};
constexpr int kDouble = 0x40;

int plan_type = -1;

void must(int status, const char* doing) {
  if (status == 0) return;
  const char* says = fourier_says(status);
  constexpr int no_memory = 2;
  kit::raise(status == no_memory ? AJ_OUT_OF_MEMORY : AJ_INTERNAL, kDevice, ": ",
             fourier_file().name(), ": ", doing, ": ", says ? says : "an unknown error", " (",
             status, "), found as ", fourier_file().where());
}

// One side as the library describes it: steps between elements, and of what array it is a part.
struct Side {
  long long embed[3], step, distance;
  bool good = false;

  // Each dimension's step must be a multiple of the next one's.
  Side(int rank, const int64_t* sizes, const int64_t* strides, int64_t batch, int64_t apart)
      : embed{}, step(rank > 0 ? strides[rank - 1] : 1), distance(batch > 1 ? apart : 1) {
    if (sizes[rank - 1] == 1 && rank > 1) step = 1;
    if (step <= 0 || distance <= 0) return;
    embed[0] = sizes[0];
    int64_t inner = step;  // the step of the dimension behind
    for (int d = rank - 2; d >= 0; --d) {
      const int64_t mine = sizes[d] == 1 ? inner * sizes[d + 1] : strides[d];
      if (mine % inner || mine / inner < sizes[d + 1]) return;
      embed[d + 1] = mine / inner;
      inner = mine;
    }
    good = true;
  }
};

struct Problem {
  aj_fft_desc d;
  int64_t in[3], out[3];  // sizes on either side

  explicit Problem(const aj_fft_desc& desc) : d(desc) {
    for (int i = 0; i < 3; ++i) in[i] = out[i] = i < d.rank ? d.sizes[i] : 1;
    const int last = d.rank - 1;
    if (d.kind == AJ_FFT_TO_HALF) out[last] = d.sizes[last] / 2 + 1;
    if (d.kind == AJ_FFT_FROM_HALF) {
      in[last] = d.sizes[last] / 2 + 1;
      // It is read from a copy: the library reads what it does not promise to ignore.
      d.stride_in[0] = 1;
      d.batch_in = in[0];
    }
  }
  Side side_in() const { return {d.rank, in, d.stride_in, d.batch, d.batch_in}; }
  Side side_out() const { return {d.rank, out, d.stride_out, d.batch, d.batch_out}; }
};

int32_t score(void*, const aj_fft_desc* d) {
  if (d->struct_size < sizeof *d || d->rank < 1 || d->rank > 3 || d->dtype.code != kDLFloat ||
      (d->dtype.bits != 32 && d->dtype.bits != 64) || d->batch < 1)
    return 0;
  // Of more dimensions the library wants symmetry in all of them.
  if (d->kind == AJ_FFT_FROM_HALF && d->rank > 1) return 0;
  for (int i = 0; i < d->rank; ++i)
    if (d->sizes[i] < 1) return 0;
  const Problem p(*d);
  return p.side_in().good && p.side_out().good && FourierLibrary::find() ? 100 : 0;
}

class Planned {
 public:
  explicit Planned(const aj_fft_desc& desc) : problem(desc), from_(desc) {
    const FourierLibrary& library = *FourierLibrary::find();
    must(library.Create(&handle_), "a plan");
    alive_ = true;
    must(library.SetAutoAllocation(handle_, 0), "a plan");
    const aj_fft_desc& d = problem.d;
    long long sizes[3];
    for (int i = 0; i < 3; ++i) sizes[i] = d.sizes[i];
    Side in = problem.side_in(), out = problem.side_out();
    must(library.MakePlanMany64(
             handle_, d.rank, sizes, in.embed, in.step, in.distance, out.embed, out.step,
             out.distance, kTypes[d.kind] + (d.dtype.bits == 64 ? kDouble : 0), d.batch, &bytes_),
         "a plan");
  }
  ~Planned() {
    const On here(problem.d.device.device_id);
    if (alive_ && !here.failed()) (void)FourierLibrary::find()->Destroy(handle_);
  }
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;

  void run(aj_object* self, void* in, void* out, Stream stream) {
    const aj_fft_desc& d = problem.d;
    const OnStream ops_there(d.device, stream);
    const DLDataType number = {kDLComplex, uint8_t(2 * d.dtype.bits), 1};
    Tensor copied;
    if (d.kind == AJ_FFT_FROM_HALF) {
      copied = half_of(in, number);
      in = kit::MutView(copied.get()).bytes();
    }
    const size_t complex = d.dtype.bits / 4;
    for (const void* p : {in, out})
      if (reinterpret_cast<uintptr_t>(p) % complex)
        kit::raise(AJ_INVALID_ARGUMENT, kDevice, ": ", fourier_file().name(),
                   ": memory must be aligned to ", complex, " bytes, to a complex number");
    {
      Workspace room(d.device, bytes_, stream);
      std::lock_guard held(lock_);  // a plan has one stream and one work memory at a time
      const FourierLibrary& library = *FourierLibrary::find();
      must(library.SetStream(handle_, stream), "its stream");
      if (bytes_) must(library.SetWorkArea(handle_, room.data()), "its memory");
      execute(library, in, out);
      // A graph replays what reads the plan's tables.
      if (!kept_ && capturing(stream)) kit::core().retain(self), kept_ = true;
    }
    finish(out, number);
  }

  const Problem problem;

 private:
  void execute(const FourierLibrary& library, void* in, void* out) const {
    const bool single = problem.d.dtype.bits == 32;
    const int direction = problem.d.forward ? kForward : kBackward;
    switch (problem.d.kind) {
      case AJ_FFT_COMPLEX:
        return must((single ? library.ExecC2C : library.ExecZ2Z)(handle_, in, out, direction),
                    "a transform");
      case AJ_FFT_TO_HALF:
        return must((single ? library.ExecR2C : library.ExecD2Z)(handle_, in, out), "a transform");
      default:
        return must((single ? library.ExecC2R : library.ExecZ2D)(handle_, in, out), "a transform");
    }
  }

  // Without gaps; real where symmetry says so. The library's goes backward.
  Tensor half_of(void* in, DLDataType number) const {
    const aj_fft_desc& d = from_;
    const int64_t n = problem.in[0];
    Tensor given =
        over(in, d.device, number, {d.batch, n}, {d.batch > 1 ? d.batch_in : 1, d.stride_in[0]});
    Tensor made = empty({d.batch, n}, number, d.device);
    copy_(made, d.forward ? conj(given) : given);
    const Tensor imaginary = narrow(view_as_real(made), -1, 1, 1);
    zero_(narrow(imaginary, 1, 0, 1));
    if (d.sizes[0] % 2 == 0) zero_(narrow(imaginary, 1, n - 1, 1));
    return made;
  }

  // The library does not scale, and goes forward to half a spectrum.
  void finish(void* out, DLDataType number) const {
    const aj_fft_desc& d = problem.d;
    const bool turned = d.kind == AJ_FFT_TO_HALF && !d.forward;
    if (d.scale == 1 && !turned) return;
    Sizes shape = {d.batch}, strides = {d.batch > 1 ? d.batch_out : 1};
    for (int i = 0; i < d.rank; ++i) {
      shape.push_back(problem.out[i]);
      strides.push_back(d.stride_out[i]);
    }
    const Tensor t =
        over(out, d.device, d.kind == AJ_FFT_FROM_HALF ? d.dtype : number, shape, strides);
    if (d.scale != 1) mul_(t, d.scale);
    if (turned) copy_(t, conj(t));
  }

  const aj_fft_desc from_;
  FourierHandle handle_ = {};
  bool alive_ = false, kept_ = false;
  size_t bytes_ = 0;
  std::mutex lock_;
};

// The payload is zeros until its plan is made.
Planned*& planned(aj_object* plan) {
  return *static_cast<Planned**>(kit::core().object_payload(plan));
}

template <class F>
aj_status* there(int32_t device, F&& f) {
  if (aj_status* s = ready()) return s;
  On here(device);
  if (here.failed()) return status_of(here.result(), "fft");
  return kit::guard("", f);
}

aj_status* plan(void*, const aj_fft_desc* d, aj_object** out) {
  return there(d->device.device_id, [&] {
    if (!score(nullptr, d))
      kit::raise(AJ_UNIMPLEMENTED, kDevice, ": ", fourier_file().where(),
                 " does not serve this transform");
    void* payload = nullptr;
    kit::check(kit::core().object_new(plan_type, out, &payload));
    try {
      planned(*out) = new Planned(*d);
    } catch (...) {
      kit::core().release(std::exchange(*out, nullptr));
      throw;
    }
  });
}

aj_status* run(void*, aj_object* plan, const void* in, uint64_t offset_in, void* out,
               uint64_t offset_out, void* stream) {
  if (plan->type != plan_type)
    return kit::fail(AJ_INVALID_ARGUMENT, kDevice, ": the plan is another one's");
  Planned& p = *planned(plan);
  return there(p.problem.d.device.device_id, [&] {
    p.run(plan, static_cast<char*>(const_cast<void*>(in)) + offset_in,
          static_cast<char*>(out) + offset_out, static_cast<Stream>(stream));
  });
}

}  // namespace

aj_fft fourier_offer(const std::string& plugin) {
  const std::string name = plugin + "::fft_plan";
  auto end = [](void* payload) { delete *static_cast<Planned**>(payload); };
  if (plan_type < 0)
    kit::check(kit::core().type_register(kit::str(name), sizeof(Planned*), end, &plan_type));
  return {.struct_size = sizeof(aj_fft),
          .minor = 0,
          .name = kit::str(fourier_words.name),
          .self = nullptr,
          .score = score,
          .plan = plan,
          .run = run};
}

}  // namespace adjoin::vendor
