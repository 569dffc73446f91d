// core/ops/index.cpp: shapes of indexing, gathering and sorting, and indexing by anything that is
// an index.
#include <adjoin/kit/fits.hpp>
#include <adjoin/kit/make.hpp>

namespace adjoin::ops {
namespace {

void check_index(const Tensor& index, std::string_view name = "index") {
  if (index.ndim() > 1)
    kit::raise(AJ_OUT_OF_RANGE, name, " must be a vector, its shape is ", shown(index));
}

// gather and scatter: index may be smaller than t in every dimension but dim.
void check_gather(const Tensor& t, const Tensor& index, int64_t dim, std::string_view name) {
  int64_t n = std::max<int64_t>(t.ndim(), 1), m = std::max<int64_t>(index.ndim(), 1);
  if (index.numel() == 0) return;
  want(n == m, "index must have as many dimensions as ", name, ": ", shown(index), " and ",
       shown(t));
  for (int64_t i = 0; i < index.ndim() && i < t.ndim(); ++i)
    want(i == dim || index.size(i) <= t.size(i), "index ", shown(index), " is larger than ", name,
         " ", shown(t), " in dimension ", i);
}

// Indices that do not fit each other are an error of the index, as one out of range is.
Sizes joined_index(const Sizes& common, const Tensor& index) {
  try {
    return broadcast(common, index.shape());
  } catch (const kit::Error& e) {
    kit::raise(AJ_OUT_OF_RANGE, e.message());
  }
}

}  // namespace

aj_status* index_at_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    Tensors indices = c.tensors(1);
    if (int64_t(indices.size()) > t.ndim())
      kit::raise(AJ_OUT_OF_RANGE, "too many indices: ", indices.size(), " for shape ", shown(t));
    Sizes common, shape;
    int64_t first = -1, last = -1, count = 0;
    for (int64_t i = 0; i < int64_t(indices.size()); ++i) {
      if (!indices[i].defined()) continue;
      want(indices[i].dtype() == int64, "indices must be int64, one is ", indices[i].dtype());
      common = joined_index(common, indices[i]);
      first = count++ ? first : i;
      last = i;
    }
    // Indices beside each other put their common shape in their place, others put it first.
    int64_t at = count == last - first + 1 ? first : 0;
    if (count == 0) at = -1;
    for (int64_t i = 0; i < t.ndim(); ++i) {
      bool indexed = i < int64_t(indices.size()) && indices[i].defined();
      if (i == at) shape.insert(shape.end(), common.begin(), common.end());
      if (!indexed) shape.push_back(t.size(i));
    }
    c.out(0, t.dtype(), shape);
  });
}

aj_status* index_put_at_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &values = c.tensor(2);
    want(t.dtype() == values.dtype(), "values must be ", t.dtype(), ", they are ", values.dtype());
    c.out(0, t.dtype(), t.shape());
  });
}

aj_status* index_select_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &index = c.tensor(2);
    check_index(index);
    Sizes shape = sizes_of(t);
    if (shape.empty())
      want(index.numel() == 1, "index must have one element for a 0-dim tensor, it has ",
           index.numel());
    else
      shape[c.integer(1)] = index.numel();
    c.out(0, t.dtype(), shape);
  });
}

aj_status* index_add_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &index = c.tensor(2), &source = c.tensor(3);
    int64_t d = c.integer(1);
    check_index(index);
    want(t.dtype() == source.dtype(), "source must be ", t.dtype(), ", it is ", source.dtype());
    Sizes shape = sizes_of(t);
    if (!shape.empty()) shape[d] = index.numel();
    want(!shape.empty() || index.numel() <= 1, "a number has one place, index has ", index.numel());
    want(std::ranges::equal(source.shape(), shape) ||
             (shape.empty() && source.numel() == 1 && source.ndim() <= 1),
         "source must have shape ", shown(shape), ", it has ", shown(source));
    want_whole(c.scalar(4), "alpha", t.dtype());
    c.out(0, t.dtype(), t.shape());
  });
}

aj_status* gather_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    check_gather(c.tensor(0), c.tensor(2), c.integer(1), "input");
    c.out(0, c.tensor(0).dtype(), c.tensor(2).shape());
  });
}

aj_status* scatter_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor &t = c.tensor(0), &index = c.tensor(2);
    Operand src = c.operand(3);
    check_gather(t, index, c.integer(1), "input");
    if (src.is_tensor()) {
      check_gather(src.tensor(), index, -1, "src");
      want(t.dtype() == src.tensor().dtype(), "src must be ", t.dtype(), ", it is ",
           src.tensor().dtype());
    } else {
      want_fits(src.number(), "the number", t.dtype());
    }
    c.out(0, t.dtype(), t.shape());
  });
}

aj_status* sort_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    if (t.is_complex()) kit::raise(AJ_UNIMPLEMENTED, "complex numbers have no order");
    c.out(0, t.dtype(), t.shape());
    c.out(1, int64, t.shape());
  });
}

aj_status* topk_shape(void*, aj_call* call) {
  return infer(call, [](const Infer& c) {
    const Tensor& t = c.tensor(0);
    int64_t k = c.integer(1), d = c.integer(2), n = t.ndim() ? t.size(d) : 1;
    if (t.is_complex()) kit::raise(AJ_UNIMPLEMENTED, "complex numbers have no order");
    want(k <= n, "k is ", k, ", dimension ", d, " of shape ", shown(t), " has only ", n,
         " elements");
    Sizes shape = sizes_of(t);
    if (!shape.empty()) shape[d] = k;
    c.out(0, t.dtype(), shape);
    c.out(1, int64, shape);
  });
}

namespace {

bool is_mask(const Tensor& index) {
  return index.defined() && (index.dtype() == boolean || index.dtype() == uint8);
}

bool is_truth(const Tensor& index) { return is_mask(index) && index.ndim() == 0; }

bool has_truths(Tensors given) { return std::any_of(given.begin(), given.end(), is_truth); }

// A mask without dimensions stands for a dimension of size 1 that is taken or not, as NumPy has it:
// the tensor and the indices with those dimensions.
std::pair<Tensor, std::vector<Tensor>> with_truths(const Tensor& t, Tensors given) {
  Tensor wide = t;
  std::vector<Tensor> out;
  int64_t d = 0;
  for (const Tensor& index : given) {
    if (is_truth(index)) wide = unsqueeze(wide, d);
    out.push_back(is_truth(index) ? unsqueeze(index, 0) : index);
    d += is_mask(out.back()) ? out.back().ndim() : 1;
  }
  return {wide, out};
}

// Indices as a backend wants them: int64 tensors of one common shape, on the tensor's device; a
// mask of n dimensions becomes n indices.
std::vector<Tensor> plain_indices(const Tensor& t, Tensors given) {
  std::vector<Tensor> out;
  Sizes common;
  for (const Tensor& index : given) {
    if (!index.defined()) {
      out.emplace_back();
      continue;
    }
    if (!(index.device() == t.device()) && index.device().device_type != kDLCPU)
      kit::raise_as("DeviceMismatchError", AJ_INVALID_ARGUMENT,
                    "an index is on another device than the tensor, and not on the host; move it "
                    "with .to(tensor.device)");
    Tensor here = index.device() == t.device() ? index : to(index, std::nullopt, t.device());
    if (is_mask(here)) {
      for (int64_t i = 0; i < here.ndim(); ++i) {
        int64_t d = int64_t(out.size()) + i;
        if (d >= t.ndim() || here.size(i) != t.size(d))
          kit::raise(AJ_OUT_OF_RANGE, "the mask has shape ", shown(here), ", the tensor ", shown(t),
                     " does not fit it at dimension ", d);
      }
      for (const Tensor& place : unbind(nonzero(here), 1)) out.push_back(place);
    } else {
      if (!is_integral(here))
        kit::raise_as("IndexError", AJ_OUT_OF_RANGE,
                      "indices must be integers or booleans, one is ", here.dtype());
      out.push_back(here.dtype() == int64 ? here : to(here, int64));
    }
  }
  if (int64_t(out.size()) > t.ndim())
    kit::raise(AJ_OUT_OF_RANGE, "too many indices: ", out.size(), " for shape ", shown(t));
  for (size_t d = 0; d < out.size(); ++d) {
    if (!out[d].defined()) continue;
    common = joined_index(common, out[d]);
    if (t.size(int64_t(d)) == 0 && out[d].numel() > 0)
      kit::raise(AJ_OUT_OF_RANGE, "an index is out of bounds for dimension with size 0: dimension ",
                 d);
  }
  for (Tensor& index : out)
    if (index.defined() && !std::ranges::equal(index.shape(), common))
      index = expand(index, common);
  return out;
}

// A mask of the leading dimensions of a tensor that lies in order: its places count rows.
bool selects_rows(const Tensor& t, Tensors given) {
  if (given.size() != 1 || !given[0].defined()) return false;
  const Tensor& mask = given[0];
  return mask.dtype() == boolean && mask.device() == t.device() && mask.ndim() > 0 &&
         mask.ndim() <= t.ndim() && t.is_contiguous() &&
         std::equal(mask.shape().begin(), mask.shape().end(), t.shape().begin());
}

Tensor selected_rows(const Tensor& t, const Tensor& mask) {
  Sizes rows{mask.numel()};
  rows.insert(rows.end(), t.shape().begin() + mask.ndim(), t.shape().end());
  Tensor places = nonzero(mask.ndim() == 1 ? mask : reshape(mask, mask.numel()));
  return index_select(mask.ndim() == 1 ? t : reshape(t, rows), 0, select(places, 1, 0));
}

// Places in a dimension of so many elements as none of them negative. Not defined: one lies
// outside.
Tensor places_from_zero(const Tensor& given, int64_t size) {
  Tensor places = reshape(given.dtype() == int64 ? given : to(given, int64), {-1});
  const int64_t least = amin(places).item<int64_t>();
  if (least < -size || amax(places).item<int64_t>() >= size) return Tensor();
  return least < 0 ? where(lt(places, 0), places + size, places) : places;
}

// Neighbouring indices of which each varies along a dimension of its own, in their order, as in
// x[i[:, None], j]: a grid, taken dimension by dimension. Not defined: another case.
Tensor grid(const Tensor& t, Tensors given) {
  constexpr int64_t kFew = 4096;  // less is taken place by place
  if (t.device().device_type != kDLCPU || int64_t(given.size()) > t.ndim()) return Tensor();
  int64_t begin = 0, last = -1, taken = 1, dims = 0;
  while (begin < int64_t(given.size()) && !given[begin].defined()) ++begin;
  if (int64_t(given.size()) - begin < 2) return Tensor();
  for (int64_t k = begin; k < int64_t(given.size()); ++k) {
    const Tensor& index = given[k];
    if (!index.defined() || !(index.device() == t.device()) || !is_integral(index) ||
        index.dtype() == boolean || index.dtype() == uint8)
      return Tensor();
    dims = std::max(dims, index.ndim());
    taken *= index.numel();
  }
  if (taken < kFew) return Tensor();
  Sizes shape(t.shape().begin(), t.shape().begin() + begin), common(size_t(dims), 1);
  for (int64_t k = begin; k < int64_t(given.size()); ++k) {
    const Tensor& index = given[k];
    int64_t along = -1;
    for (int64_t d = 0; d < index.ndim(); ++d) {
      if (index.size(d) == 1) continue;
      if (along >= 0) return Tensor();
      along = dims - index.ndim() + d;
    }
    if (along <= last) return Tensor();
    last = along, common[size_t(along)] = index.numel();
  }
  // What is taken of one dimension still has all of the next ones: of few columns of wide rows, too
  // much.
  constexpr double kCopied = 8;
  double more = 1;  // elements of a step's result for one of the last
  for (int64_t k = int64_t(given.size()) - 1; k > begin; --k) {
    more *= double(t.size(k)) / double(given[k].numel());
    if (more > kCopied) return Tensor();
  }
  Tensor out = t;
  for (int64_t k = begin; k < int64_t(given.size()); ++k) {
    const Tensor places = places_from_zero(given[k], t.size(k));
    if (!places.defined()) return Tensor();
    out = index_select(out, k, places);
  }
  shape.insert(shape.end(), common.begin(), common.end());
  shape.insert(shape.end(), t.shape().begin() + int64_t(given.size()), t.shape().end());
  return reshape(out, shape);
}

}  // namespace

aj_status* index_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    if (has_truths(b.tensors(1))) {
      auto [wide, places] = with_truths(b.tensor(0), b.tensors(1));
      return b.ret(0, index(wide, places));
    }
    if (selects_rows(b.tensor(0), b.tensors(1)))
      return b.ret(0, selected_rows(b.tensor(0), b.tensors(1)[0]));
    if (Tensor made = grid(b.tensor(0), b.tensors(1)); made.defined()) return b.ret(0, made);
    std::vector<Tensor> indices = plain_indices(b.tensor(0), b.tensors(1));
    bool any = false;
    for (const Tensor& index : indices) any |= index.defined();
    b.ret(0,
          any ? in_own_name([&] { return index_at(b.tensor(0), indices); }) : alias(b.tensor(0)));
  });
}

namespace {

Tensor fitting_here(const Tensor& v, const Tensor& t) {
  bool moves = !(v.device() == t.device()) && v.ndim() == 0;
  return fitting(moves ? to(v, std::nullopt, t.device()) : v, t);
}

// One mask of the whole tensor and one value: where() needs no list of places.
bool fills_mask(const kit::Body& b) {
  const Tensor& t = b.tensor(0);
  Tensors given = b.tensors(1);
  return given.size() == 1 && given[0].defined() && given[0].dtype() == boolean &&
         given[0].device() == t.device() && !b.flag(3) && b.tensor(2).numel() == 1 &&
         b.tensor(2).ndim() <= 1 && std::ranges::equal(given[0].shape(), t.shape());
}

}  // namespace

aj_status* index_put_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    if (has_truths(b.tensors(1))) {
      auto [wide, places] = with_truths(t, b.tensors(1));
      return b.ret(0, reshape(index_put(wide, places, b.tensor(2), b.flag(3)), t.shape()));
    }
    Tensor values = fitting_here(b.tensor(2), t);
    if (fills_mask(b)) return b.ret(0, where(b.tensors(1)[0], reshape(values, Sizes()), t));
    b.ret(0, in_own_name([&] {
            return index_put_at(t, plain_indices(t, b.tensors(1)), values, b.flag(3));
          }));
  });
}

aj_status* index_put_in_place_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& t = b.tensor(0);
    if (has_truths(b.tensors(1)))
      return b.ret(0, copy_(t, index_put(t, b.tensors(1), b.tensor(2), b.flag(3))));
    Tensor values = fitting_here(b.tensor(2), t);
    if (fills_mask(b)) {
      copy_(t, where(b.tensors(1)[0], reshape(values, Sizes()), t));
      return b.ret(0, t);
    }
    static constinit kit::Op put("index_put_at");
    std::vector<Tensor> indices = plain_indices(t, b.tensors(1));
    const aj_value args[] = {kit::value(t), kit::value(Tensors(indices)), kit::value(values),
                             kit::value(b.flag(3))};
    b.ret(0, in_own_name([&] { return kit::run_into(put.get(), args, 4, t); }));
  });
}

namespace {

// t with its slices at index replaced. A number is a vector of one element here, so that an index
// into it is looked at, and none of them writes nothing.
Tensor put_slices(const Tensor& t, int64_t d, const Tensor& index, const Tensor& values) {
  std::vector<Tensor> indices(size_t(d) + 1);
  indices[d] = reshape(index, {-1});
  if (t.ndim()) return index_put(t, indices, values);
  return reshape(index_put(reshape(t, {1}), indices, values), Sizes());
}

// Here nothing is counted from the end, as in PyTorch; on other devices their kernels see to it.
void want_from_front(const Tensor& index, int64_t n) {
  if (index.device().device_type != kDLCPU || !(index.get()->obj.flags & AJ_TENSOR_STRIDED)) return;
  const Tensor flat = contiguous(index);
  const int64_t* at = flat.data<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i)
    if (at[i] < 0)
      kit::raise(AJ_OUT_OF_RANGE, "index ", at[i], " is out of range for a dimension of size ", n,
                 "; it counts from 0");
}

}  // namespace

aj_status* index_copy_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(2), &source = b.tensor(3);
    int64_t d = b.integer(1);
    check_index(index);
    want(t.dtype() == source.dtype(), "source must be ", t.dtype(), ", it is ", source.dtype());
    Sizes shape = sizes_of(t);
    if (!shape.empty()) shape[d] = index.numel();
    const bool one = source.numel() == 1 && index.numel() == 1 && source.ndim() <= 1;
    const bool number = (shape.empty() && source.ndim() == 1 && source.numel() == index.numel()) ||
                        (one && t.ndim() <= 1);
    want(number || std::ranges::equal(source.shape(), shape), "source must have shape ",
         shown(shape), ", it has ", shown(source));
    want_from_front(index, t.ndim() ? t.size(d) : 1);
    b.ret(0, put_slices(t, d, index, number && t.ndim() == 1 ? reshape(source, {1}) : source));
  });
}

aj_status* index_fill_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor &t = b.tensor(0), &index = b.tensor(2);
    int64_t d = b.integer(1);
    Operand value = b.operand(3);
    check_index(index);
    want(value.shape().empty(), "value must be a number or a 0-dim tensor, its shape is ",
         shown(value.shape()));
    Tensor filling = value.is_tensor() ? value.tensor() : number_of(t, value.number());
    if ((filling.requires_grad() || !filling.has_memory()) && index.numel() > 1) {
      // A place that is named twice is filled once: it counts once in the value's gradient.
      Sizes line{t.ndim() ? t.size(d) : 1}, shape(size_t(t.ndim()), 1);
      Tensor none = zeros(line, boolean, t.device());
      if (t.ndim()) shape[size_t(d)] = t.size(d);
      Tensor mask = put_slices(none, 0, index, number_of(none, Scalar(true)));
      return b.ret(0, where(reshape(mask, shape), to(filling, t.dtype()), t));
    }
    b.ret(0, put_slices(t, d, index, filling));
  });
}

aj_status* gather_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    static constinit kit::Op add("scatter_add");
    const Tensor& g = b.tensor(0);
    const Tensor out = zeros_of(g, b.ints(3).vec());
    const aj_value args[] = {kit::value(out), kit::value(b.integer(1)), kit::value(b.tensor(2)),
                             kit::value(g)};
    b.ret(0, kit::run_into(add.get(), args, 4, out));
  });
}

aj_status* scatter_src_backward_body(void*, aj_call* call) {
  return kit::compose(call, [](kit::Body& b) {
    const Tensor& index = b.tensor(2);
    Ints shape = b.ints(3);
    want(int64_t(shape.size()) == index.ndim(), "src_shape ", shown(shape),
         " must have as many dimensions as index ", shown(index));
    Tensor out = gather(b.tensor(0), b.integer(1), index);
    if (std::ranges::equal(shape, index.shape())) return b.ret(0, out);
    Sizes pad;
    for (int64_t i = index.ndim() - 1; i >= 0; --i)
      pad.insert(pad.end(), {0, shape[i] - index.size(i)});
    b.ret(0, constant_pad_nd(out, pad));
  });
}

}  // namespace adjoin::ops
