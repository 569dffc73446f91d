// frontends/cpp/examples/train_digits.cpp: the digits demo from data to accuracy: the same network,
// steps and numbers as `python -m adjoin.demo.digits`, which writes the data: python -m
// adjoin.demo.digits --data digits.safetensors
//
//   g++ -std=c++20 -O2 train_digits.cpp -o train_digits $(adjoin config --cflags --libs)
//   ./train_digits digits.safetensors [EPOCHS [SEED]]
#include <adjoin/adjoin.hpp>
#include <cstdio>

using namespace adjoin;

struct DigitNet : nn::Module<DigitNet> {
  nn::Conv2d conv1{1, 16, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm1{16};
  nn::Conv2d conv2{16, 32, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm2{32};
  nn::Conv2d conv3{32, 64, 3, {.padding = 1, .bias = false}};
  nn::BatchNorm2d norm3{64};
  nn::MaxPool2d pool{2};
  nn::Linear out{64 * 2 * 2, 10};

  Tensor operator()(const Tensor& pictures) {  // (N, 1, 8, 8) to logits (N, 10)
    Tensor x = relu(norm1(conv1(pictures)));
    x = pool(relu(norm2(conv2(x))));
    x = pool(relu(norm3(conv3(x))));
    return out(flatten(x, 1));
  }
};

// Each picture moved by -1, 0 or 1 pixel along both axes, at random; zeros come in.
Tensor shifted(const Tensor& pictures) {
  int64_t count = pictures.size(0), side = pictures.size(2);
  Tensor padded = squeeze(pad(pictures, {1, 1, 1, 1}), 1), moves = randint(0, 3, {2, count, 1});
  Tensor rows = unsqueeze(select(moves, 0, 0) + arange(side), 2);
  Tensor columns = unsqueeze(select(moves, 0, 1) + arange(side), 1);
  Tensor examples = reshape(arange(count), {count, 1, 1});
  return unsqueeze(index(padded, {examples, rows, columns}), 1);
}

double accuracy(DigitNet& net, const Tensor& pictures, const Tensor& labels) {
  NoGradGuard off;
  net.eval();
  Tensor right = eq(argmax(net(pictures), 1), labels);
  net.train();
  return mean(to(right, float64)).item<double>();
}

int main(int argc, char** argv) try {
  if (argc < 2)
    return std::fprintf(stderr, "usage: train_digits DATA.safetensors [EPOCHS [SEED]]\n"), 2;
  TensorMap digits = load(argv[1]);
  int64_t epochs = argc > 2 ? std::stoll(argv[2]) : 40;
  manual_seed(argc > 3 ? std::stoull(argv[3]) : 0);

  DigitNet net;
  data::Loader batches(data::TensorDataset(digits.at("pictures"), digits.at("labels")),
                       {.batch = 64, .shuffle = true});
  int64_t total = epochs * batches.size(), rise = std::min<int64_t>(40, total / 2);
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-2, .weight_decay = 0.05});
  optim::Schedule schedule(optimizer, optim::warmup(rise, optim::cosine(total - rise)));
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    double sum = 0;
    for (auto [pictures, labels] : batches) {
      Tensor loss = cross_entropy(net(shifted(pictures)), labels, {}, -100, "mean", 0.1);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      schedule.step();
      sum += loss.item<double>();
    }
    std::printf("epoch %lld: loss %.9g\n", static_cast<long long>(epoch),
                sum / double(batches.size()));
  }
  save(net.state_dict(), "digits_net.safetensors");
  std::printf("held-out accuracy: %.4f\n",
              accuracy(net, digits.at("held_pictures"), digits.at("held_labels")));
} catch (const std::exception& error) {
  return std::fprintf(stderr, "train_digits: %s\n", error.what()), 1;
}
