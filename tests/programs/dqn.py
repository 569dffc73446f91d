"""tests/programs/dqn.py: Q-learning with a replay memory and a slowly moving target network."""
# ruff: noqa: UP004, UP008, B007  (as people write them)

import random
from collections import deque, namedtuple
from itertools import count

import adjoin as torch
import adjoin.nn as nn
import adjoin.nn.functional as F
import adjoin.optim as optim
import numpy as np

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory(object):
    def __init__(self, capacity, seed):
        self.memory = deque([], maxlen=capacity)
        self.random = random.Random(seed)

    def push(self, *args):
        """Save a transition."""
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return self.random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(n_observations, 64)
        self.layer2 = nn.Linear(64, 64)
        self.layer3 = nn.Linear(64, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


class Pole:
    """A cart that keeps a pole upright: Barto, Sutton and Anderson, 1983."""

    def __init__(self, seed):
        self.draw = np.random.RandomState(seed)

    def reset(self):
        self.state = self.draw.uniform(-0.05, 0.05, 4)
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        push = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        move = push - 0.05 * turn * np.cos(angle) / 1.1
        self.state = np.array([x + 0.02 * v, v + 0.02 * move, angle + 0.02 * spin, spin + 0.02 * turn])
        return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21


def build():
    torch.manual_seed(7)
    return DQN(4, 2)


def train(policy_net, steps):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    policy_net = policy_net.to(device)
    target_net = DQN(4, 2).to(device)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
    memory, env, choice = ReplayMemory(1000, 1), Pole(2), random.Random(3)
    BATCH_SIZE, GAMMA, TAU, losses = 32, 0.99, 0.005, []

    def select_action(state, explore):
        if explore:
            return torch.tensor([[choice.randrange(2)]], device=device, dtype=torch.long)
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)

    def optimize_model():
        if len(memory) < BATCH_SIZE:
            return
        batch = Transition(*zip(*memory.sample(BATCH_SIZE)))
        non_final_mask = torch.tensor(
            tuple(map(lambda s: s is not None, batch.next_state)), device=device, dtype=torch.bool
        )
        non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
        state_batch = torch.cat(batch.state)
        action_batch = torch.cat(batch.action)
        reward_batch = torch.cat(batch.reward)
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        next_state_values = torch.zeros(BATCH_SIZE, device=device)
        with torch.no_grad():
            next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
        expected_state_action_values = (next_state_values * GAMMA) + reward_batch
        criterion = nn.SmoothL1Loss()
        loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        losses.append(loss.item())

    while len(losses) < steps:
        state = torch.tensor(env.reset(), dtype=torch.float32, device=device).unsqueeze(0)
        for t in count():
            action = select_action(state, explore=True)  # what it learns from does not depend on it
            select_action(state, explore=False)
            observation, reward, terminated = env.step(action.item())
            reward = torch.tensor([reward], device=device)
            next_state = None
            if not terminated:
                next_state = torch.tensor(observation, dtype=torch.float32, device=device).unsqueeze(0)
            memory.push(state, action, next_state, reward)
            state = next_state
            optimize_model()
            target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
            for key in policy_state:
                target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
            target_net.load_state_dict(target_state)
            if terminated or len(losses) >= steps:
                break
    return losses


if __name__ == "__main__":
    print(train(build(), 100))
