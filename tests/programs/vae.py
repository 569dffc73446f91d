"""tests/programs/vae.py: a variational autoencoder of small pictures."""
# ruff: noqa: UP004, UP008, B007  (as people write them)

import adjoin as torch
import numpy as np
from adjoin import nn, optim
from adjoin.nn import functional as F
from adjoin.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(144, 64)
        self.fc21 = nn.Linear(64, 8)
        self.fc22 = nn.Linear(64, 8)
        self.fc3 = nn.Linear(8, 64)
        self.fc4 = nn.Linear(64, 144)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 144))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 144), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def pictures(count):
    """Blobs of random place and size."""
    draw = np.random.RandomState(1)
    y, x = np.mgrid[0:12, 0:12]
    cx, cy, r = draw.uniform(3, 9, (3, count, 1, 1)) * np.array([1, 1, 0.3]).reshape(3, 1, 1, 1)
    return np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * r * r)).astype(np.float32)


def build():
    torch.manual_seed(1)
    return VAE()


def train(model, steps):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    images = torch.from_numpy(pictures(256)).unsqueeze(1)
    train_loader = DataLoader(TensorDataset(images, torch.zeros(256)), batch_size=64)
    losses = []
    while len(losses) < steps:
        model.train()
        train_loss = 0
        for batch_idx, (data, _) in enumerate(train_loader):
            data = data.to(device)
            optimizer.zero_grad()
            recon_batch, mu, logvar = model(data)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            train_loss += loss.item()
            optimizer.step()
            losses.append(loss.item() / len(data))
            if len(losses) == steps:
                break
    with torch.no_grad():
        sample = torch.randn(4, 8).to(device)
        sample = model.decode(sample).cpu().view(4, 1, 12, 12)
        n = min(data.size(0), 8)
        comparison = torch.cat([data[:n], recon_batch.view(64, 1, 12, 12)[:n]])
    assert sample.min() >= 0 and comparison.shape == (16, 1, 12, 12)
    return losses


if __name__ == "__main__":
    print(train(build(), 100))
