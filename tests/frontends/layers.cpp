// tests/frontends/layers.cpp: every layer of the C++ frontend, made with a seed and run once;
// results go to a file that cpp_layers_test.py compares with the same layers in Python. Behaviour
// that has no twin there is asserted here.
//
//   g++ -std=c++20 -O2 layers.cpp -o layers $(adjoin config --cflags --libs)
//   ./layers OUT.safetensors
#include <adjoin/adjoin.hpp>
#include <cstdio>

using namespace adjoin;

namespace {

TensorMap results;

void require(bool holds, const char* what) {
  if (!holds) kit::raise(AJ_INTERNAL, "it does not hold that ", what);
}

// The layer's result and, where it has parameters, the gradient of the first one.
template <class Make>
void run(const std::string& name, const Ints& shape, Make make) {
  manual_seed(7);
  auto layer = make();
  Tensor x = randn(shape);
  Tensor y = layer(x);
  results[name] = y.detach();
  std::vector<Tensor> params = layer.parameters();
  if (params.empty()) return;
  sum(y * y).backward();
  results[name + ".grad"] = params[0].grad();
}

void weighted() {
  run("linear", {3, 5}, [] { return nn::Linear(5, 4); });
  run("linear_no_bias", {3, 5}, [] { return nn::Linear(5, 4, {.bias = false}); });
  run("conv1d", {2, 4, 9},
      [] { return nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .groups = 2}); });
  run("conv2d", {2, 3, 8, 7}, [] {
    return nn::Conv2d(3, 4, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = 2});
  });
  run("conv2d_same", {2, 3, 8, 7}, [] { return nn::Conv2d(3, 4, 4, {.same = true}); });
  run("conv2d_reflect", {2, 3, 8, 7},
      [] { return nn::Conv2d(3, 4, 3, {.padding = 1, .padding_mode = "reflect"}); });
  run("conv3d", {1, 2, 4, 5, 6}, [] { return nn::Conv3d(2, 3, 3, {.padding = 1}); });
  run("convt1d", {2, 4, 5}, [] { return nn::ConvTranspose1d(4, 3, 3, {.stride = 2}); });
  run("convt2d", {2, 4, 5, 3}, [] {
    return nn::ConvTranspose2d(4, 6, 3,
                               {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
  });
  run("convt3d", {1, 2, 3, 3, 3}, [] { return nn::ConvTranspose3d(2, 2, 2); });
  run("batchnorm1d", {6, 4}, [] { return nn::BatchNorm1d(4); });
  run("batchnorm2d", {3, 4, 5, 5}, [] { return nn::BatchNorm2d(4, {.momentum = std::nullopt}); });
  run("batchnorm3d", {2, 3, 2, 3, 4}, [] { return nn::BatchNorm3d(3); });
  run("instancenorm2d", {2, 3, 4, 4},
      [] { return nn::InstanceNorm2d(3, {.affine = true, .track_running_stats = false}); });
  run("layernorm", {4, 3, 5}, [] { return nn::LayerNorm({3, 5}); });
  run("groupnorm", {2, 6, 3}, [] { return nn::GroupNorm(3, 6); });
  run("rmsnorm", {4, 5}, [] { return nn::RMSNorm(5); });
  run("prelu", {2, 3, 4}, [] { return nn::PReLU(3); });
  run("sequential", {5, 6}, [] {
    return nn::Sequential{nn::Linear(6, 8), nn::ReLU(), nn::Linear(8, 2)};
  });
  run("encoder", {5, 2, 8}, [] {
    return nn::TransformerEncoder(
        nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0}), 2);
  });
  run("encoder_norm_first", {2, 5, 8}, [] {
    return nn::TransformerEncoderLayer(8, 4,
                                       {.dim_feedforward = 16,
                                        .dropout = 0,
                                        .gelu = true,
                                        .batch_first = true,
                                        .norm_first = true});
  });
}

void losses() {
  manual_seed(7);
  Tensor x = randn({4, 3}), y = rand({4, 3}), c = randint(3, {4}), w = rand({3});
  results["mse"] = nn::MSELoss("sum")(x, y);
  results["l1"] = nn::L1Loss()(x, y);
  results["smooth_l1"] = nn::SmoothL1Loss("none", 0.5)(x, y);
  results["huber"] = nn::HuberLoss()(x, y);
  results["cross_entropy"] = nn::CrossEntropyLoss({.weight = w, .label_smoothing = 0.1})(x, c);
  results["nll"] = nn::NLLLoss()(log_softmax(x, 1), c);
  results["bce"] = nn::BCELoss()(y, y);
  results["bce_logits"] = nn::BCEWithLogitsLoss({.pos_weight = w})(x, y);
  require(nn::CrossEntropyLoss({.weight = w}).state_dict().count("weight") == 1,
          "a loss keeps its weight");
}

void unweighted() {
  Ints shape{4, 6};
  run("relu", shape, [] { return nn::ReLU(); });
  run("relu6", shape, [] { return nn::ReLU6(); });
  run("selu", shape, [] { return nn::SELU(); });
  run("silu", shape, [] { return nn::SiLU(); });
  run("mish", shape, [] { return nn::Mish(); });
  run("hardswish", shape, [] { return nn::Hardswish(); });
  run("hardsigmoid", shape, [] { return nn::Hardsigmoid(); });
  run("logsigmoid", shape, [] { return nn::LogSigmoid(); });
  run("sigmoid", shape, [] { return nn::Sigmoid(); });
  run("tanh", shape, [] { return nn::Tanh(); });
  run("softsign", shape, [] { return nn::Softsign(); });
  run("tanhshrink", shape, [] { return nn::Tanhshrink(); });
  run("elu", shape, [] { return nn::ELU(0.7); });
  run("celu", shape, [] { return nn::CELU(); });
  run("leaky_relu", shape, [] { return nn::LeakyReLU(); });
  run("hardshrink", shape, [] { return nn::Hardshrink(); });
  run("softshrink", shape, [] { return nn::Softshrink(0.3); });
  run("gelu", shape, [] { return nn::GELU("tanh"); });
  run("softplus", shape, [] { return nn::Softplus(2, 10); });
  run("hardtanh", shape, [] { return nn::Hardtanh(-0.5, 0.7); });
  run("threshold", shape, [] { return nn::Threshold(0.1, -3); });
  run("glu", shape, [] { return nn::GLU(); });
  run("softmax", shape, [] { return nn::Softmax(1); });
  run("log_softmax", shape, [] { return nn::LogSoftmax(0); });
  run("softmin", shape, [] { return nn::Softmin(-1); });
  run("dropout", shape, [] { return nn::Dropout(0.3); });
  run("dropout2d", {2, 5, 3, 3}, [] { return nn::Dropout2d(0.4); });
  run("pad1d", {2, 3, 4}, [] { return nn::Pad1d({1, 2}, "reflect"); });
  run("pad2d", {2, 3, 4, 4}, [] { return nn::Pad2d(2, "constant", 1.5); });
  run("pad3d", {2, 3, 3, 4, 2}, [] { return nn::Pad3d({1, 0, 2, 1, 0, 1}, "replicate"); });
  run("flatten", {2, 3, 4}, [] { return nn::Flatten(); });
  run("unflatten", shape, [] { return nn::Unflatten(1, {2, 3}); });
  run("max_pool1d", {2, 3, 9}, [] { return nn::MaxPool1d(3, {.stride = 2, .padding = 1}); });
  run("max_pool2d", {2, 3, 9, 8}, [] { return nn::MaxPool2d({3, 2}, {.dilation = 2}); });
  run("avg_pool1d", {2, 3, 9}, [] { return nn::AvgPool1d(2); });
  run("avg_pool2d", {2, 3, 9, 8}, [] {
    return nn::AvgPool2d(3, {.padding = 1, .ceil_mode = true, .count_include_pad = false});
  });
  run("adaptive_avg_pool2d", {2, 3, 9, 8}, [] { return nn::AdaptiveAvgPool2d({3, 2}); });
  run("adaptive_max_pool2d", {2, 3, 9, 8}, [] { return nn::AdaptiveMaxPool2d(2); });
}

// Layers with other results than one tensor.
void others() {
  manual_seed(7);
  nn::LSTM lstm(4, 6, {.layers = 2, .bidirectional = true, .proj_size = 3});
  nn::GRU gru(4, 5, {.batch_first = true});
  nn::RNN rnn(4, 5, {.relu = true});
  nn::LSTMCell cell(4, 3);
  nn::Bilinear bilinear(3, 4, 2);
  nn::Embedding table(10, 4, {.padding_idx = -1});
  nn::MultiheadAttention attention(8, 2, {.kdim = 4, .vdim = 6});
  Tensor x = randn({7, 3, 4});
  nn::LSTMResult out = lstm(x);
  results["lstm"] = out.output, results["lstm_h"] = out.state.hidden,
  results["lstm_c"] = out.state.cell;
  results["gru"] = gru(x).hidden;
  results["rnn"] = rnn(select(x, 1, 0)).output;
  results["lstm_cell"] = cell(select(x, 0, 0)).cell;
  Tensor left = randn({2, 3}), right = randn({2, 4});  // as arguments: in any order
  results["bilinear"] = bilinear(left, right);
  results["embedding"] = table(arange(10));
  Tensor mask = triu(ones({5, 7}, boolean), 3), padding = zeros({2, 7}, boolean);
  fill_(select(padding, 1, 6), true);
  Tensor query = randn({5, 2, 8}), key = randn({7, 2, 4}), value = randn({7, 2, 6});
  nn::Attended seen = attention(
      query, key, value, {.attn_mask = mask, .key_padding_mask = padding, .need_weights = true});
  results["attention"] = seen.output, results["attention_weights"] = seen.weights;
  for (auto& [name, tensor] : lstm.state_dict()) results["lstm." + name] = tensor;
  for (auto& [name, t] : results) t = t.detach();
}

void initial() {
  manual_seed(7);
  results["trunc_normal"] = nn::init::trunc_normal_(empty({20, 30}), 0.1, 0.5, -0.7, 0.9);
  results["xavier_normal"] = nn::init::xavier_normal_(empty({4, 5, 3}));
  results["kaiming_normal"] =
      nn::init::kaiming_normal_(empty({4, 5}), {.fan_out = true, .nonlinearity = "relu"});
  results["orthogonal"] = nn::init::orthogonal_(empty({4, 6}));
}

template <class Optimizer, class Options>
void steps(const std::string& name, Options options) {
  manual_seed(7);
  nn::Linear layer(4, 3);
  Tensor x = randn({5, 4});
  Optimizer optimizer(layer.parameters(), options);
  optim::Schedule schedule(optimizer, optim::exponential(0.9));
  auto step = [&] {
    optimizer.zero_grad();
    sum(tanh(layer(x))).backward();
    optim::clip_grad_norm(layer.parameters(), 0.5);
    optimizer.step();
    schedule.step();
  };
  step(), step();
  TensorMap state = optimizer.state_dict();  // saved, loaded elsewhere, and gone on with
  Optimizer again(layer.parameters(), options);
  again.load_state_dict(state);
  again.set_lr(optimizer.lr());
  again.zero_grad();
  sum(tanh(layer(x))).backward();
  again.step();
  results[name] = layer.weight.detach();
}

void optimizers() {
  steps<optim::SGD>(
      "sgd", optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.1, .weight_decay = 0.01});
  steps<optim::SGD>("sgd_nesterov",
                    optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
  steps<optim::Adam>("adam", optim::AdamOptions{.lr = 0.1, .weight_decay = 0.01, .amsgrad = true});
  steps<optim::AdamW>("adamw", optim::AdamWOptions{.lr = 0.1, .weight_decay = 0.01});

  Tensor x = Tensor(zeros({3})).requires_grad_();
  sum(x * full({3}, 5.0)).backward();
  optim::clip_grad_value({x}, 2);
  require(equal(x.grad(), full({3}, 2.0)), "clip_grad_value keeps every element within bounds");
  optim::SGD optimizer({x}, {.lr = 1});
  optim::Schedule schedule(optimizer, optim::warmup(1, optim::every(2, 0.5)));
  require(optimizer.lr() == 0.5, "a rise begins below");
  schedule.set_steps(5);
  require(optimizer.lr() == 0.25 && schedule.steps() == 5,
          "a schedule goes on where it is told to");
  require(device_or("nothing:0", "cpu").device_type == kDLCPU, "the other device serves");
}

struct Inner : nn::Module<Inner> {
  int64_t width = 3;
  nn::Linear first{width, 4};
  nn::Buffer counts{zeros({2})};
  nn::Parameter scale{ones({4})};
  Tensor nobodys = ones({1});
};
struct Outer : nn::Module<Outer> {
  std::vector<Inner> inner{{.width = 3}, {.width = 5}};
  nn::ModuleDict<nn::Linear> heads{{"a", nn::Linear(2, 2, {.bias = false})}};
  std::optional<nn::Dropout> drop{nn::Dropout(0.5)};
  std::shared_ptr<nn::Linear> held = std::make_shared<nn::Linear>(1, 1);
  bool training = true;
};

void modules() {
  Outer net;
  std::string names;
  for (auto& [name, tensor] : net.named_parameters()) names += name + " ";
  require(names ==
              "inner.0.scale inner.0.first.weight inner.0.first.bias inner.1.scale "
              "inner.1.first.weight "
              "inner.1.first.bias heads.a.weight held.weight held.bias ",
          "members are found by name, own parameters first");
  require(net.named_buffers().size() == 2 && net.inner[1].first.weight.size(1) == 5,
          "buffers are found, fields are set");
  net.eval();
  require(!net.training && !net.drop->training, "eval reaches every module");
  Tensor weight = net.inner[0].first.weight;
  net.to(float64);
  require(weight.dtype() == float64 && net.inner[0].counts.dtype() == float64,
          "to() changes the same tensors");
  Outer copy = net.clone(), alias = net;
  require(copy.inner[0].scale.get() != net.inner[0].scale.get() &&
              copy.inner[0].scale.requires_grad() &&
              alias.inner[0].scale.get() == net.inner[0].scale.get(),
          "a clone has tensors of its own, a copy shares them");
  TensorMap state = net.state_dict();
  state.erase("held.bias");
  state["other"] = zeros({1});
  state["heads.a.weight"] = zeros({3});
  std::string told;
  try {
    net.load_state_dict(state);
  } catch (const Error& e) {
    told = e.what();
  }
  require(told ==
              "load_state_dict: 'heads.a.weight' is [2, 2] here and [3] there; 'held.bias' is "
              "missing; 'other' is not expected",
          "a state that does not fit is told");
}

template <class F>
Error caught(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e;
  }
  return Error(0, "", "nothing");
}

void errors() {
  Tensor a = ones({2, 3}), b = ones({4, 5});
  nn::Linear layer(4, 2);
  const int line = __LINE__;
  Error op = caught([&] { matmul(a, b); });
  Error sum = caught([&] { a + b; });
  Error inside = caught([&] { layer(a); });
  Error made = caught([&] { nn::Conv2d(3, 4, 3, {.groups = 2}); });
  auto here = [&](int n) { return std::string(__FILE__) + ":" + std::to_string(line + n); };
  std::string told = op.what();
  require(told.find("[2, 3]") != told.npos && told.ends_with("(" + here(1) + ")"),
          "an op tells shapes and line");
  require(sum.where() == here(2), "an operator tells the caller's line");
  require(inside.where() == here(3), "a layer tells the caller's line");
  require(made.message() == "Conv2d: groups must divide the channels: in 3, out 4, groups 2",
          "a layer tells what is wrong");
}

// 100 numbers, each with one of its own from the loader; 50 is not there when it shall fail.
struct Numbers {
  bool fails = false;
  int64_t size() const { return 100; }
  Tensor operator[](int64_t i) const {
    if (fails && i == 50) throw std::runtime_error("number 50 is not there");
    return full(Ints({}), double(i));
  }
};

void loading() {
  auto noisy = [](Tensor x, data::Random& random) { return std::tuple(x, x + random.uniform()); };
  auto all = [&](int threads, bool shuffle) {
    data::Loader loader(data::Mapped(Numbers(), noisy),
                        {.batch = 7, .shuffle = shuffle, .threads = threads, .seed = 3});
    std::vector<Tensor> seen;
    for (int epoch = 0; epoch < 2; ++epoch)
      for (auto [x, y] : loader) seen.push_back(stack({x, y}, 1));
    return cat(seen);
  };
  Tensor plain = all(0, true);
  require(plain.size(0) == 200 && equal(plain, all(3, true)), "threads change nothing");
  require(!equal(narrow(plain, 0, 0, 100), narrow(plain, 0, 100, 100)), "epochs differ");
  Tensor ordered = all(2, false);
  require(equal(narrow(select(ordered, 1, 0), 0, 0, 100), arange(100.0)), "batches come in order");
  for (int threads : {0, 2}) {
    int batches = 0;
    std::string told;
    try {
      for (Tensor x : data::Loader(Numbers{true}, {.batch = 10, .threads = threads}))
        batches += x.size(0) == 10;
    } catch (const std::runtime_error& e) {
      told = e.what();
    }
    require(batches == 5 && told == "number 50 is not there",
            "what a dataset throws comes out at its place");
  }
  data::Loader left(Numbers(), {.batch = 3, .threads = 2});
  for (Tensor x : left) {  // leaving early ends the threads
    require(x.numel() == 3, "a batch is full");
    break;
  }
  require(data::Loader(Numbers(), {.batch = 30, .drop_last = true}).size() == 3,
          "the last is dropped");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  weighted(), unweighted(), losses(), others(), initial(), optimizers(), modules(), errors(),
      loading();
  save_safetensors(results, argv[1]);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "layers: %s\n", error.what()), 1;
}
