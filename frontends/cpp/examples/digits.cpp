// frontends/cpp/examples/digits.cpp: reads the network that `python -m adjoin.demo.digits` trained,
// and the digits held out from its training, and compares what it reads in them with what the
// Python program had read.
//
//   digits WEIGHTS.safetensors HELD_OUT.safetensors [DEVICE]
#include <adjoin/adjoin.hpp>
#include <cstdio>
#include <exception>
#include <string>

namespace {

using adjoin::Tensor;
using Weights = std::map<std::string, Tensor>;

const Tensor& find(const Weights& weights, const std::string& name) {
  auto it = weights.find(name);
  if (it == weights.end())
    adjoin::kit::raise(AJ_NOT_FOUND, "digits: the file has no tensor '", name, "'");
  return it->second;
}

// A 3 x 3 convolution that keeps the size, normalization by the statistics of training, relu.
Tensor block(const Weights& weights, const Tensor& x, const std::string& number) {
  Tensor y = adjoin::conv2d(x, find(weights, "conv" + number + ".weight"), {}, 1, 1);
  std::string norm = "norm" + number + ".";
  y = adjoin::batch_norm(y, find(weights, norm + "running_mean"),
                         find(weights, norm + "running_var"), find(weights, norm + "weight"),
                         find(weights, norm + "bias"));
  return adjoin::relu(y);
}

// Pictures (N, 1, 8, 8) to logits (N, 10), as DigitNet.forward in adjoin/demo/digits.py.
Tensor forward(const Weights& weights, const Tensor& pictures) {
  Tensor x = block(weights, pictures, "1");
  x = adjoin::max_pool2d(block(weights, x, "2"), 2);
  x = adjoin::max_pool2d(block(weights, x, "3"), 2);
  return adjoin::linear(adjoin::flatten(x, 1), find(weights, "out.weight"),
                        find(weights, "out.bias"));
}

int64_t count_equal(const Tensor& a, const Tensor& b) {
  return adjoin::sum(adjoin::eq(a, b)).item<int64_t>();
}

int run(const std::string& weights_path, const std::string& held_path, const std::string& device) {
  Weights weights = adjoin::load_safetensors(weights_path);
  Weights held = adjoin::load_safetensors(held_path);
  DLDevice where = adjoin::device(device);
  for (auto* file : {&weights, &held})
    for (auto& [name, tensor] : *file) tensor = adjoin::to(tensor, std::nullopt, where);

  Tensor answers = adjoin::argmax(forward(weights, find(held, "pictures")), 1);
  int64_t total = answers.numel();
  int64_t same = count_equal(answers, find(held, "predictions"));
  int64_t right = count_equal(answers, find(held, "labels"));
  std::printf(
      "C++ on %s: %lld of %lld predictions are those of the Python program; %lld are right\n",
      device.c_str(), static_cast<long long>(same), static_cast<long long>(total),
      static_cast<long long>(right));
  return same == total ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: digits WEIGHTS.safetensors HELD_OUT.safetensors [DEVICE]\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], argc > 3 ? argv[3] : "cpu");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 1;
  }
}
