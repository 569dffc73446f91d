"""tests/python/toplevel/typed/program.py: an ordinary program that `mypy --strict` has nothing to say about."""

import adjoin as torch
import adjoin.nn.functional as F
from adjoin import Tensor, nn, optim


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu6(self.norm(self.first(x)))
        return self.last.forward(F.dropout(hidden, p=0.1, training=self.training))


def loss_of(net: Net, x: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(net.forward(x), labels, label_smoothing=0.1)


def train(steps: int) -> float:
    torch.manual_seed(0)
    net = Net(16).to(dtype=torch.float32).train()
    optimizer = optim.AdamW(net.parameters(), lr=1e-2)
    x, labels = torch.randn(32, 8), torch.randint(0, 3, (32,))
    total = 0.0
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(net, x, labels)
        loss.backward()
        optimizer.step()
        total += float(loss)
    return total


def shapes(x: Tensor) -> tuple[int, ...]:
    best = x.max(dim=1)
    values: Tensor = best.values
    both = (2 * x + 1) ** 2 - x @ x.T.mT
    mask: Tensor = both > 0
    parts = both[mask].reshape(-1, 1).split(1, dim=0)
    zeros = torch.zeros(2, 3, dtype=torch.int64, device="cpu")
    zeros.add_(1).clamp_(min=0)
    names: list[str] = [name for name, _ in Net(4).named_parameters()]
    with torch.no_grad():
        total = torch.cat([values, both.sum(dim=0)]).norm()
    return (x.shape[0], x.dim(), len(parts), zeros.numel(), len(names), int(total.item() > 0))


if __name__ == "__main__":
    print(train(5), shapes(torch.ones(4, 4)))
