"""tests/programs/old/wgan.py: 2017, a Wasserstein GAN with clipped weights finds the mean and the spread of a distribution."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.autograd import Variable

torch.manual_seed(3)


class G(nn.Module):
    def __init__(self):
        super(G, self).__init__()
        self.main = nn.Sequential(nn.Linear(4, 16), nn.ReLU(True), nn.Linear(16, 2))

    def forward(self, input):
        return self.main(input)


def weights_init(m):
    if m.__class__.__name__.find('Linear') != -1:
        m.weight.data.normal_(0.0, 0.3)
        m.bias.data.fill_(0)


netG = G()
netD = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1))
netG.apply(weights_init)
netD.apply(weights_init)
optimizerD = optim.RMSprop(netD.parameters(), lr=5e-3)
optimizerG = optim.RMSprop(netG.parameters(), lr=2e-3)
one = torch.FloatTensor([1])
mone = one * -1
noise = torch.FloatTensor(64, 4)
centre = torch.FloatTensor([2, -1])

for step in range(300):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(3):
        for p in netD.parameters():
            p.data.clamp_(-0.2, 0.2)
        netD.zero_grad()
        real = torch.randn(64, 2) * 0.5 + centre
        errD_real = netD(Variable(real)).mean(0).view(1)
        errD_real.backward(one)
        noise.normal_(0, 1)
        fake = Variable(netG(Variable(noise, volatile=True)).data)
        assert not fake.volatile
        errD_fake = netD(fake).mean(0).view(1)
        errD_fake.backward(mone)
        errD = errD_real - errD_fake
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    noise.resize_(64, 4).normal_(0, 1)
    errG = netD(netG(Variable(noise))).mean(0).view(1)
    errG.backward(one)
    optimizerG.step()

made = netG(Variable(torch.randn(2000, 4), volatile=True)).data
print("Loss_D: %f Loss_G: %f" % (errD.data[0], errG.data[0]), made.mean(0).tolist(), made.std(0).tolist())
assert (made.mean(0) - centre).abs().max() < 0.5
