// tests/frontends/values.cpp: tensors of numbers of C++ and back, and how they print.
//
//   g++ -std=c++20 -O2 values.cpp -o values $(adjoin config --cflags --libs)
#include <adjoin/adjoin.hpp>
#include <iostream>

using namespace adjoin;

int main() {
  using Complex = std::complex<double>;
  std::cout << tensor(2.5) << '\n'
            << tensor({1, 2, 3}) << '\n'
            << tensor({{1.0, 2.0}, {3.0, 4.0}}) << '\n'
            << tensor({{{true}}, {{false}}}) << '\n'
            << tensor({{1}}, float64) << '\n'
            << tensor({Complex(1, -2), Complex(0, 1)}) << '\n'
            << tensor(std::vector<int16_t>{-1, 2}) << '\n'
            << tensor(std::vector<double>{0.1, 1e20}) << '\n'
            << arange(2000) << '\n'
            << zeros({2, 0}) << '\n'
            << zeros({2, 2}, std::nullopt, device("meta")) << '\n'
            << Tensor() << '\n';

  std::vector<double> memory{1, 2, 3, 4, 5, 6};
  Tensor shared = from_memory(memory.data(), {2, 3});
  add_(shared, 1);
  std::cout << memory[5];
  for (float x : to_vector<float>(transpose(shared, 0, 1))) std::cout << ' ' << x;
  std::cout << '\n';

  Tensor leaf = tensor({1.0, 2.0}).requires_grad_();
  sum(leaf * leaf).backward();
  std::cout << leaf.grad() << '\n';
  try {
    tensor({{1, 2}, {3}});
  } catch (const Error& error) {
    std::cout << error.what() << '\n';
  }
}
