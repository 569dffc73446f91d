// frontends/cpp/examples/char_model.cpp: a small transformer that learns to continue a text,
// character by character.
//
//   g++ -std=c++20 -O2 char_model.cpp -o char_model $(adjoin config --cflags --libs)
//   ./char_model TEXT [STEPS [WEIGHTS.safetensors]]
#include <adjoin/adjoin.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

using namespace adjoin;

constexpr int64_t kSymbols = 256, kWindow = 32, kBatch = 16;

// Attention to what came before, then two layers; each adds to what passes by.
struct Block : nn::Module<Block> {
  int64_t width = 0, heads = 0;
  nn::LayerNorm norm1{width};
  nn::MultiheadAttention attention{width, heads, {.batch_first = true}};
  nn::LayerNorm norm2{width};
  nn::Linear up{width, 4 * width}, down{4 * width, width};

  Tensor operator()(Tensor x) {
    Tensor seen = norm1(x);
    x = x + attention(seen, seen, seen, {.is_causal = true}).output;
    return x + down(gelu(up(norm2(x))));
  }
};

struct CharModel : nn::Module<CharModel> {
  int64_t width = 64, heads = 4;
  nn::Embedding symbols{kSymbols, width}, places{kWindow, width};
  nn::ModuleList<Block> blocks{{.width = width, .heads = heads}, {.width = width, .heads = heads}};
  nn::LayerNorm norm{width};
  nn::Linear out{width, kSymbols};

  Tensor operator()(const Tensor& text) {  // (N, L) to logits (N, L, kSymbols)
    Tensor x = symbols(text) + places(arange(text.size(1)));
    for (Block& block : blocks) x = block(x);
    return out(norm(x));
  }
};

Tensor read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream all;
  all << file.rdbuf();
  std::string bytes = all.str();
  if (int64_t(bytes.size()) <= kWindow + 1)
    kit::raise(AJ_INVALID_ARGUMENT, "char_model: '", path, "' is too short");
  Tensor text = empty({int64_t(bytes.size())}, uint8);
  std::memcpy(text.data_ptr(), bytes.data(), bytes.size());
  return to(text, int64);
}

std::string continued(CharModel& model, const Tensor& begin, int64_t count) {
  NoGradGuard off;
  Tensor text = unsqueeze(begin, 0);
  std::string said;
  for (int64_t i = 0; i < count; ++i) {
    Tensor seen = narrow(text, 1, std::max<int64_t>(0, text.size(1) - kWindow),
                         std::min(kWindow, text.size(1)));
    Tensor next = multinomial(softmax(select(model(seen), 1, -1), -1), 1);
    text = cat({text, next}, 1);
    said += char(next.item<int64_t>());
  }
  return said;
}

int main(int argc, char** argv) try {
  if (argc < 2)
    return std::fprintf(stderr, "usage: char_model TEXT [STEPS [WEIGHTS.safetensors]]\n"), 2;
  Tensor text = read(argv[1]), window = arange(kWindow);
  int64_t steps = argc > 2 ? std::stoll(argv[2]) : 300;
  CharModel model;
  if (argc > 3) model.load_state_dict(load(argv[3]));

  manual_seed(1);
  optim::AdamW optimizer(model.parameters(), {.lr = 3e-3});
  for (int64_t step = 0; step < steps; ++step) {
    Tensor rows = unsqueeze(randint(0, text.size(0) - kWindow, {kBatch}), 1) + window;
    Tensor logits = model(index(text, {rows})), target = index(text, {rows + 1});
    Tensor loss = cross_entropy(reshape(logits, {-1, kSymbols}), flatten(target));
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm(model.parameters(), 1.0);
    optimizer.step();
    if (steps <= 20 || step % 50 == 0)
      std::printf("step %lld: loss %.9g\n", static_cast<long long>(step), loss.item<double>());
  }
  std::printf("%s\n", continued(model, narrow(text, 0, 0, 8), 200).c_str());
} catch (const std::exception& error) {
  return std::fprintf(stderr, "char_model: %s\n", error.what()), 1;
}
