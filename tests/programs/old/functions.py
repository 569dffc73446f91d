"""tests/programs/old/functions.py: 2016, functions with their own derivative as instances, and what Variables told about themselves."""

import torch
from torch.autograd import Function, Variable, gradcheck


class Linear(Function):
    def forward(self, input, weight, bias):
        self.save_for_backward(input, weight)
        output = input.mm(weight.t())
        output += bias.unsqueeze(0).expand_as(output)
        return output

    def backward(self, grad_output):
        input, weight = self.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if self.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if self.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if self.needs_input_grad[2]:
            grad_bias = grad_output.sum(0).squeeze(0)
        return grad_input, grad_weight, grad_bias


class Scale(Function):
    def __init__(self, factor):
        super(Scale, self).__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor

    def backward(self, grad):
        return grad * self.factor


class Bare(Function):
    def __init__(self, slope):
        self.slope = slope

    def forward(self, x):
        self.mark_dirty(x)
        return x.clamp_(min=0)

    def backward(self, grad):
        return grad * self.slope


def linear(input, weight, bias):
    return Linear()(input, weight, bias)


x = Variable(torch.randn(4, 3).double(), requires_grad=True)
w = Variable(torch.randn(2, 3).double(), requires_grad=True)
b = Variable(torch.randn(2).double(), requires_grad=True)
assert gradcheck(linear, (x, w, b), eps=1e-6, atol=1e-4)
y = Scale(3)(linear(x, w, Variable(b.data)))
assert y.creator is not None and x.creator is None
y.sum().backward(retain_variables=True)
torch.autograd.backward(variables=[y.sum()], grad_variables=[None])
assert torch.equal(x.grad.data, 6 * w.data.sum(0).expand(4, 3)) and b.grad is None

z = x * 1
Bare(7)(z).sum().backward()
assert (z.data >= 0).all() and torch.equal(x.grad.data, 6 * w.data.sum(0).expand(4, 3) + 7)

try:
    torch.multinomial(torch.ones(3), 1).reinforce(1.0)
except RuntimeError as error:
    assert "log_prob" in str(error)

# A factor stood in front.
m, a, c = torch.randn(2, 2), torch.randn(2, 3), torch.randn(3, 2)
assert torch.allclose(torch.addmm(2, m, 3, a, c), 2 * m + 3 * a.mm(c), atol=1e-5)
assert torch.allclose(m.addmm(2, a, c), 2 * m + a.mm(c), atol=1e-5)
assert torch.allclose(m.clone().addmm_(0, 0.5, a, c), 0.5 * a.mm(c), atol=1e-5)
assert torch.allclose(torch.add(m, 2, m), 3 * m) and torch.allclose(m.sub(0.5, m), 0.5 * m)
assert torch.allclose(m.clone().addcmul_(2, m, m), m + 2 * m * m) and torch.allclose(torch.addcdiv(m, 2, m, m), m + 2)
v = torch.randn(3)
assert torch.allclose(torch.ones(2).addmv_(0.5, 2, a, v), 0.5 + 2 * a.mv(v))
# Whole numbers divide to whole ones, comparisons give bytes.
assert (torch.LongTensor([7, -7]) / 2).tolist() == [3, -3] and (torch.FloatTensor([7]) / 2)[0] == 3.5
assert (1 - (torch.LongTensor([1, 2]) == 1)).tolist() == [0, 1]
print("held")
