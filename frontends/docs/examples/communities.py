"""A graph network finds three communities, of which two members each are known.

Neighbours are averaged by a sparse matrix.
"""

import torch
from torch import nn
from torch.nn import functional as F


def society(count=90, within=0.25, between=0.02):
    group = torch.arange(count) % 3
    chance = torch.where(group[:, None] == group[None], within, between)
    friends = torch.bernoulli(chance).triu(1)
    friends = friends + friends.t() + torch.eye(count)
    weight = friends.sum(1) ** -0.5
    return group, (weight[:, None] * friends * weight[None]).to_sparse()


class Graph(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.first, self.second = nn.Linear(count, 16), nn.Linear(16, 3)

    def forward(self, neighbours, x):
        x = F.dropout(F.relu(torch.sparse.mm(neighbours, self.first(x))), 0.3, self.training)
        return torch.sparse.mm(neighbours, self.second(x))


def run(steps=150):
    torch.manual_seed(0)
    group, neighbours = society()
    known = torch.arange(6)
    model, x = Graph(len(group)), torch.eye(len(group))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=1e-3)
    losses, right = [], []
    for _ in range(steps):
        model.train()
        loss = F.cross_entropy(model(neighbours, x)[known], group[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right.append((model(neighbours, x).argmax(1) == group)[6:].float().mean().item())
    return {"loss of the six": losses, "share of the others that are placed rightly": right}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
