"""tests/programs/old/ridge.py: 2016, by hand: descent in place meets the solution of the normal equations."""

import torch
from torch.autograd import Variable

torch.manual_seed(2)
X = torch.randn(60, 4).double()
Y = X.mm(torch.DoubleTensor([[1], [-2], [0.5], [3]])) + 0.1 * torch.randn(60, 1).double()
A = X.t().mm(X).add_(0.5, torch.eye(4).double())
solution, _ = torch.gesv(X.t().mm(Y), A)
factor = torch.potrf(A)
assert torch.allclose(factor.t().mm(factor), A) and torch.allclose(torch.potrs(X.t().mm(Y), factor), solution)
values, vectors = torch.symeig(A, eigenvectors=True)
assert torch.allclose(A.mm(vectors), vectors * values.expand_as(vectors))
lr = 1 / values.max()

W = Variable(torch.zeros(4, 1).double(), requires_grad=True)
for _ in range(300):
    loss = (Variable(X).mm(W) - Variable(Y)).pow(2).sum() / 2 + 0.25 * W.pow(2).sum()
    if W.grad is not None:
        W.grad.data.zero_()
    loss.backward()
    W.data.add_(-lr, W.grad.data)
print(loss.data[0])
assert (W.data - solution).abs().max() < 1e-8
