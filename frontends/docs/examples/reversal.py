"""A transformer turns sequences of digits round.

An encoder, a decoder with a causal mask, and an answer that is read off symbol by symbol.
"""

import torch
from torch import nn
from torch.nn import functional as F

LENGTH, START = 5, 10


class Reversal(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.symbols = nn.Embedding(11, width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        self.transformer = nn.Transformer(width, 4, 1, 1, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 10)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, source, target):
        length = target.shape[1]
        mask = self.mask[:length, :length]
        source, target = self.symbols(source) + self.places, self.symbols(target) + self.places[:length]
        return self.head(self.transformer(source, target, tgt_mask=mask, tgt_is_causal=True))

    @torch.no_grad()
    def answer(self, source):
        answer = torch.full((len(source), 1), START)
        for _ in range(LENGTH):
            answer = torch.cat([answer, self(source, answer)[:, -1:].argmax(-1)], 1)
        return answer[:, 1:]


def run(steps=300):
    torch.manual_seed(0)
    model = Reversal()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses, right = [], []
    for step in range(steps):
        source = torch.randint(0, 10, (64, LENGTH))
        wanted = source.flip(1)
        given = torch.cat([torch.full((64, 1), START), wanted[:, :-1]], 1)
        loss = F.cross_entropy(model(source, given).flatten(0, 1), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if step % 20 == 19:
            model.eval()
            source = torch.randint(0, 10, (100, LENGTH))
            right.append((model.answer(source) == source.flip(1)).all(1).float().mean().item())
            model.train()
    return {"loss": losses, "share of sequences without a fault": right}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
