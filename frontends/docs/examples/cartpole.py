"""A pole is kept upright: policy gradients with a baseline.

Sixteen carts at once; actions are drawn from `Categorical`, and log_prob of what was drawn carries the gradient.
"""

import torch
from torch import nn
from torch.distributions import Categorical
from torch.nn import functional as F

LIMIT = 100


def moved(state, action):
    x, speed, angle, turn = state.unbind(1)
    force = torch.where(action == 1, 10.0, -10.0)
    push = (force + 0.05 * turn**2 * angle.sin()) / 1.1
    spin = (9.8 * angle.sin() - angle.cos() * push) / (0.5 * (4 / 3 - 0.1 * angle.cos() ** 2 / 1.1))
    pull = push - 0.05 * spin * angle.cos() / 1.1
    return state + 0.02 * torch.stack([speed, pull, turn, spin], 1)


def fallen(state):
    return (state[:, 0].abs() > 2.4) | (state[:, 2].abs() > 0.21)


def played(policy, carts=16):
    state, alive = 0.1 * torch.rand(carts, 4) - 0.05, torch.ones(carts)
    chances, values, living = [], [], []
    for _ in range(LIMIT):
        logits, value = policy(state)
        choice = Categorical(logits=logits)
        action = choice.sample()
        chances.append(choice.log_prob(action))
        values.append(value)
        living.append(alive)
        with torch.no_grad():
            state = moved(state, action)
            alive = alive * (~fallen(state)).float()
        if not alive.any():
            break
    return torch.stack(chances), torch.stack(values), torch.stack(living)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 64), nn.Tanh())
        self.action, self.value = nn.Linear(64, 2), nn.Linear(64, 1)

    def forward(self, state):
        found = self.body(state)
        return self.action(found), self.value(found)[:, 0]


def run(rounds=80):
    torch.manual_seed(0)
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
    lengths = []
    for _ in range(rounds):
        chances, values, living = played(policy)
        later, total = [], torch.zeros(living.shape[1])
        for reward in reversed(living):
            total = reward + 0.97 * total
            later.append(total)
        later = torch.stack(later[::-1])
        better = (later - values.detach()) * living
        better = better / (better.std() + 1e-6)
        loss = (
            -(chances * better).sum() + 0.05 * (F.smooth_l1_loss(values, later, reduction="none") * living).sum()
        ) / living.sum()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
        lengths.append(living.sum(0).mean().item())
    return {f"steps until the pole falls (at most {LIMIT})": lengths}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.1f} -> {sum(values[-10:]) / 10:.1f}")
