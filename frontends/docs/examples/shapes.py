"""A convolutional network tells discs, squares and crosses apart.

Batch normalization, a schedule of the rate, and a part of the pictures that is held out.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pictures(count, side=14):
    kind = torch.randint(0, 3, (count,))
    middle, size = torch.randint(5, side - 5, (count, 2, 1, 1)), torch.randint(2, 5, (count, 1, 1))
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    down, across = (rows - middle[:, 0]).abs(), (columns - middle[:, 1]).abs()
    disc = down**2 + across**2 <= size**2
    square = torch.maximum(down, across) <= size - 1
    cross = (torch.minimum(down, across) == 0) & (torch.maximum(down, across) <= size)
    drawn = torch.stack([disc, square, cross], 1)[torch.arange(count), kind]
    return drawn[:, None].float() + 0.2 * torch.randn(count, 1, side, side), kind


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Linear(64, 3)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def run(epochs=8):
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(*pictures(960)), batch_size=64, shuffle=True)
    held, kinds = pictures(300)
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=epochs * len(train))
    losses, right = [], []
    for _ in range(epochs):
        model.train()
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right.append((model(held).argmax(1) == kinds).float().mean().item())
    return {"loss": losses, "share of the held out pictures that it names rightly": right}


if __name__ == "__main__":
    for name, values in run().items():
        print(f"{name}: {values[0]:.3f} -> {values[-1]:.3f}")
