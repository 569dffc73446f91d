"""tests/programs/gan.py: a DCGAN on small pictures: two networks, two optimizers."""
# ruff: noqa: UP004, UP008, B007  (as people write them)

import adjoin as torch
import adjoin.nn as nn
import adjoin.optim as optim
import numpy as np

nz, ngf, ndf, nc = 8, 8, 8, 1


def weights_init(m):
    """Custom weights initialization called on netG and netD."""
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super(Discriminator, self).__init__()
        self.main = nn.Sequential(
            nn.Conv2d(nc, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 4, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input)


def pictures(count):
    draw = np.random.RandomState(2)
    y, x = np.mgrid[0:16, 0:16]
    cx, cy = draw.uniform(4, 12, (2, count, 1, 1))
    image = 2 * np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 8) - 1
    return torch.FloatTensor(image.astype(np.float32)[:, None])


def build():
    torch.manual_seed(999)
    net = nn.ModuleDict({"G": Generator(), "D": Discriminator()})
    net.apply(weights_init)
    return net


def train(net, steps):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    netG, netD = net["G"].to(device), net["D"].to(device)
    criterion = nn.BCELoss()
    real_label, fake_label = 1.0, 0.0
    optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    data, losses = pictures(128), []
    for i in range(steps):
        netD.zero_grad()
        real = data[i * 16 % 128 : i * 16 % 128 + 16].to(device)
        b_size = real.size(0)
        label = torch.full((b_size,), real_label, dtype=torch.float, device=device)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()
        noise = torch.randn(b_size, nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(fake_label)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        errD = errD_real + errD_fake
        optimizerD.step()
        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        assert 0 < D_x < 1
        losses.append(errD.item() + errG.item())
    return losses


if __name__ == "__main__":
    print(train(build(), 100))
