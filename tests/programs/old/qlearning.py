"""tests/programs/old/qlearning.py: 2017, Q-learning: the next state's values are volatile, and are not any more when they are targets."""

import random
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.autograd import Variable

random.seed(0)
torch.manual_seed(0)
Transition = namedtuple('Transition', ('state', 'action', 'next_state', 'reward'))
N, GAMMA = 5, 0.8  # a corridor: the way right ends with a reward of one


def play(state, action):
    next_state = max(state + (1 if action else -1), 0)
    return (None, 1.0) if next_state == N else (next_state, 0.0)


def one_hot(state):
    return torch.eye(N)[state:state + 1]


memory = []
for state in range(N):
    for action in range(2):
        next_state, reward = play(state, action)
        memory.append(Transition(one_hot(state), torch.LongTensor([[action]]),
                                 None if next_state is None else one_hot(next_state), torch.FloatTensor([reward])))
model = nn.Linear(N, 2, bias=False)
optimizer = optim.RMSprop(model.parameters(), lr=0.01)
for step in range(800):
    batch = Transition(*zip(*random.sample(memory, 8)))
    non_final_mask = torch.ByteTensor(tuple(map(lambda s: s is not None, batch.next_state)))
    non_final_next_states = Variable(torch.cat([s for s in batch.next_state if s is not None]), volatile=True)
    state_batch = Variable(torch.cat(batch.state))
    action_batch = Variable(torch.cat(batch.action))
    reward_batch = Variable(torch.cat(batch.reward))
    state_action_values = model(state_batch).gather(1, action_batch)
    next_state_values = Variable(torch.zeros(8).type(torch.FloatTensor))
    found = model(non_final_next_states).max(1)[0]
    assert found.volatile
    next_state_values[non_final_mask] = found
    next_state_values.volatile = False
    expected_state_action_values = (next_state_values * GAMMA) + reward_batch
    loss = F.smooth_l1_loss(state_action_values, expected_state_action_values.view(-1, 1))
    optimizer.zero_grad()
    loss.backward()
    for param in model.parameters():
        param.grad.data.clamp_(-1, 1)
    optimizer.step()

wanted = torch.FloatTensor([GAMMA ** (N - 1 - s) for s in range(N)])
found = model(Variable(torch.eye(N), volatile=True)).data[:, 1]
print(loss.data[0], found.tolist())
assert (found - wanted).abs().max() < 0.1
