// plugins/cuda/convolution_plan.cpp: graphs of one convolution, their plans, and the choice of one:
// the first that cuDNN proposes, or the fastest where measuring is switched on. Engines that add in
// any order are left out, and those that round float32 on the way in unless TF32 is switched on.
#include "convolution_plan.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "../gpu/vendor/capture.hpp"
#include "../gpu/vendor/status.hpp"
#include "../gpu/vendor/timing.hpp"
#include "../gpu/vendor/workspace.hpp"
#include "dnn.hpp"
#include "switches.hpp"

namespace adjoin::vendor {
namespace {

constexpr int64_t kOffers = 8;  // plans that are measured
constexpr size_t kMostWorkspace = size_t(1) << 30;
enum : int64_t { kBig = 1, kWeight = 2, kSmall = 3 };

std::optional<cudnnDataType_t> type_of(DLDataType d) {
  if (d.lanes != 1) return {};
  if (d.code == kDLBfloat && d.bits == 16) return CUDNN_DATA_BFLOAT16;
  if (d.code != kDLFloat) return {};
  if (d.bits == 16) return CUDNN_DATA_HALF;
  if (d.bits == 32) return CUDNN_DATA_FLOAT;
  if (d.bits == 64) return CUDNN_DATA_DOUBLE;
  return {};
}

// The engines that cuDNN proposes, best first, and the graph that they are for.
struct Proposals {
  Part graph, heuristic;
  std::vector<Part> configurations;
};
struct Plan {
  Part plan;
  int64_t workspace;
  std::shared_ptr<Proposals> from;  // what a plan was made of outlives it
};
using Plans = std::vector<std::shared_ptr<const Plan>>;
struct DeviceState {
  cudnnHandle_t handle = nullptr;
  std::map<std::vector<int64_t>, std::shared_ptr<const Plan>> plans;
};
std::mutex lock;
DeviceState& state_of(int32_t device) {
  static auto* all = new std::map<int32_t, DeviceState>;
  DeviceState& state = (*all)[device];
  if (!state.handle) must(dnn().Create(&state.handle), "its handle");
  return state;
}

Part tensor(const Array& a, int64_t id, cudnnDataType_t type) {
  Part t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  auto at = reinterpret_cast<uintptr_t>(a.data);
  auto alignment = int64_t(std::min<uintptr_t>(16, at & (~at + 1)));
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, a.sizes)
      .set(CUDNN_ATTR_TENSOR_STRIDES, a.strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment)
      .finalize("a tensor");
  return t;
}

Part geometry(const Convolution& c, cudnnDataType_t compute) {
  Part g(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  g.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, compute)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t(c.stride.size()))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.pad)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.pad)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation)
      .finalize("a convolution");
  return g;
}

struct Names {  // of the attributes of each way's operation
  cudnnBackendDescriptorType_t op;
  cudnnBackendAttributeName_t big, weight, small, geometry, alpha, beta;
};
constexpr Names kNames[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

Proposals propose(const Convolution& c, cudnnHandle_t handle) {
  cudnnDataType_t type = *type_of(c.dtype);
  cudnnDataType_t compute = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  auto scalar = compute == CUDNN_DATA_DOUBLE ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  Part big = tensor(c.big, kBig, type), weight = tensor(c.weight, kWeight, type),
       small = tensor(c.small, kSmall, type), shape = geometry(c, compute);
  const Names& n = kNames[size_t(c.way)];
  Part op(n.op);
  double one = 1, zero = 0;
  float narrow_one = 1, narrow_zero = 0;
  op.set(n.geometry, shape).set(n.big, big).set(n.weight, weight).set(n.small, small);
  if (scalar == CUDNN_TYPE_DOUBLE)
    op.set(n.alpha, scalar, one).set(n.beta, scalar, zero);
  else
    op.set(n.alpha, scalar, narrow_one).set(n.beta, scalar, narrow_zero);
  op.finalize("an operation");

  Part graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op)
      .finalize("a graph");
  Part heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A)
      .finalize("proposals");
  Proposals all{std::move(graph), std::move(heuristic), {}};
  std::vector<cudnnBackendDescriptor_t> handles;
  constexpr int64_t kAsked = 4 * kOffers;  // some will be left out
  for (int64_t i = 0; i < kAsked; ++i)
    handles.push_back(all.configurations.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).handle());
  int64_t found = 0;
  must(dnn().BackendGetAttribute(all.heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, kAsked, &found, handles.data()),
       "proposals");
  while (int64_t(all.configurations.size()) > found) all.configurations.pop_back();
  return all;
}

bool serves(const Part& configuration, DLDataType dtype, bool tf32) {
  Part engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  auto handle = engine.handle();
  int64_t n = 0;
  if (dnn().BackendGetAttribute(configuration.handle(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                &handle) != CUDNN_STATUS_SUCCESS)
    return false;
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  if (dnn().BackendGetAttribute(handle, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes) != CUDNN_STATUS_SUCCESS)
    return false;
  bool wide = dtype.bits >= 32 && !(tf32 && dtype.bits == 32);
  return std::none_of(notes, notes + n, [&](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (wide && (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                     note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
  });
}

Plans plans_for(const Convolution& c, cudnnHandle_t handle, int64_t wanted, bool tf32) {
  auto proposals = std::make_shared<Proposals>(propose(c, handle));
  Plans plans;
  for (const Part& configuration : proposals->configurations) {
    if (int64_t(plans.size()) == wanted) break;
    if (!serves(configuration, c.dtype, tf32)) continue;
    Part plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle)
        .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    int64_t bytes = 0, n = 0;
    if (plan.try_finalize() != CUDNN_STATUS_SUCCESS ||
        dnn().BackendGetAttribute(plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                  CUDNN_TYPE_INT64, 1, &n, &bytes) != CUDNN_STATUS_SUCCESS ||
        uint64_t(bytes) > kMostWorkspace)
      continue;
    plans.push_back(std::make_shared<Plan>(Plan{std::move(plan), bytes, proposals}));
  }
  if (plans.empty()) kit::raise(AJ_UNIMPLEMENTED, "cuda: cuDNN has no plan for this convolution");
  return plans;
}

// room: of the plan's size. Wants the lock: a handle works on one stream at a time.
cudnnStatus_t execute(const Convolution& c, const Plan& plan, cudnnHandle_t handle, void* stream,
                      void* room) {
  must(dnn().SetStream(handle, static_cast<cudaStream_t>(stream)), "its stream");
  void* pointers[] = {c.big.data, c.weight.data, c.small.data};
  int64_t ids[] = {kBig, kWeight, kSmall};
  Part pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  must(dnn().BackendSetAttribute(pack.handle(), CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                 CUDNN_TYPE_VOID_PTR, 3, pointers),
       "pointers");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, room)
      .finalize("pointers");
  return dnn().BackendExecute(handle, plan.plan.handle(), pack.handle());
}

size_t fastest(const Convolution& c, const Plans& plans, cudnnHandle_t handle, DLDevice device,
               Stream stream) {
  size_t best = 0;
  float least = -1;
  for (size_t i = 0; i < plans.size() && plans.size() > 1; ++i) {
    Workspace room(device, size_t(plans[i]->workspace), stream);
    std::lock_guard held(lock);
    float ms = milliseconds(stream, 2, [&] {
      return execute(c, *plans[i], handle, stream, room.data()) == CUDNN_STATUS_SUCCESS;
    });
    if (ms >= 0 && (least < 0 || ms < least)) best = i, least = ms;
  }
  return best;
}

std::vector<int64_t> key_of(const Convolution& c, bool measure, bool tf32) {
  std::vector<int64_t> key = {int64_t(c.way), c.dtype.code, c.dtype.bits, measure, tf32};
  for (const Array* a : {&c.big, &c.weight, &c.small}) {
    key.insert(key.end(), a->sizes.begin(), a->sizes.end());
    key.insert(key.end(), a->strides.begin(), a->strides.end());
    key.push_back(int64_t(reinterpret_cast<uintptr_t>(a->data) % 16));
  }
  for (const auto* list : {&c.stride, &c.pad, &c.dilation})
    key.insert(key.end(), list->begin(), list->end());
  return key;
}

// A tensor as the older interface describes it.
class Described {
 public:
  Described(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
            cudnnDataType_t type) {
    std::vector<int> n(sizes.begin(), sizes.end()), s(strides.begin(), strides.end());
    must(dnn().CreateTensorDescriptor(&handle_), "a tensor");
    must(dnn().SetTensorNdDescriptor(handle_, type, int(n.size()), n.data(), s.data()), "a tensor");
  }
  ~Described() { (void)dnn().DestroyTensorDescriptor(handle_); }
  Described(const Described&) = delete;
  operator cudnnTensorDescriptor_t() const { return handle_; }

 private:
  cudnnTensorDescriptor_t handle_ = nullptr;
};

// f(handle, the tensor, one value a channel, 1, 0) on a device's stream.
template <class F>
void with_channels(const Array& a, DLDataType dtype, int32_t device, void* stream, F f) {
  kit::check(ready());
  On here(device);
  std::lock_guard held(lock);
  DeviceState& state = state_of(device);
  must(dnn().SetStream(state.handle, static_cast<cudaStream_t>(stream)), "its stream");
  cudnnDataType_t type = *type_of(dtype);
  std::vector<int64_t> sizes(a.sizes.size(), 1), strides(a.sizes.size(), 1);
  sizes[1] = strides[0] = a.sizes[1];
  Described tensor(a.sizes, a.strides, type), channels(sizes, strides, type);
  double one = 1, zero = 0;
  float narrow_one = 1, narrow_zero = 0;
  bool wide = type == CUDNN_DATA_DOUBLE;
  f(state.handle, tensor, channels, wide ? static_cast<void*>(&one) : &narrow_one,
    wide ? static_cast<void*>(&zero) : &narrow_zero);
}

}  // namespace

bool convolves(DLDataType dtype) { return type_of(dtype) && Dnn::find(); }

void run(const Convolution& c, DLDevice device, void* stream, bool by_shape) {
  kit::check(ready());
  On here(device.device_id);
  if (here.failed()) kit::check(status_of(here.result(), "convolution"));
  auto queue = static_cast<Stream>(stream);
  bool measure = switches.benchmark && !switches.deterministic && !by_shape && !capturing(queue),
       tf32 = switches.tf32_convolutions;
  std::vector<int64_t> key = key_of(c, measure, tf32);
  std::shared_ptr<const Plan> plan;
  Plans offers;
  cudnnHandle_t handle = nullptr;
  {
    std::lock_guard held(lock);
    DeviceState& state = state_of(device.device_id);
    handle = state.handle;
    if (auto found = state.plans.find(key); found != state.plans.end()) plan = found->second;
    if (!plan) offers = plans_for(c, handle, measure ? kOffers : 1, tf32);
  }
  if (!plan) {
    plan = offers[measure ? fastest(c, offers, handle, device, queue) : 0];
    std::lock_guard held(lock);
    state_of(device.device_id).plans.emplace(std::move(key), plan);
  }
  Workspace room(device, size_t(plan->workspace), queue);
  std::lock_guard held(lock);
  must(execute(c, *plan, handle, stream, room.data()), "a convolution");
}

void add_bias(const Array& out, const void* bias, DLDataType dtype, int32_t device, void* stream) {
  with_channels(out, dtype, device, stream,
                [&](cudnnHandle_t h, auto& tensor, auto& channels, void* one, void*) {
                  must(dnn().AddTensor(h, one, channels, bias, one, tensor, out.data), "a bias");
                });
}

void sum_bias(const Array& grad, void* bias, DLDataType dtype, int32_t device, void* stream) {
  with_channels(
      grad, dtype, device, stream,
      [&](cudnnHandle_t h, auto& tensor, auto& channels, void* one, void* zero) {
        must(dnn().ConvolutionBackwardBias(h, one, tensor, grad.data, zero, channels, bias),
             "a bias' gradient");
      });
}

}  // namespace adjoin::vendor
