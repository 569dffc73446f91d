"""tests/programs/resnet.py: a small ResNet on synthetic images of CIFAR's size, with its usual recipe."""
# ruff: noqa: UP004, UP008, B007  (as people write them)

import adjoin as torch
import adjoin.nn as nn
import adjoin.nn.functional as F
import adjoin.optim as optim
import numpy as np
from adjoin.optim.lr_scheduler import OneCycleLR
from adjoin.utils.data import DataLoader, Dataset


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super(BasicBlock, self).__init__()
        self.conv1 = conv3x3(in_planes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != self.expansion * planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False),
                nn.BatchNorm2d(self.expansion * planes),
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, num_blocks, num_classes=10):
        super(ResNet, self).__init__()
        self.in_planes = 8
        self.conv1 = conv3x3(3, 8)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = self._make_layer(block, 8, num_blocks[0], stride=1)
        self.layer2 = self._make_layer(block, 16, num_blocks[1], stride=2)
        self.layer3 = self._make_layer(block, 32, num_blocks[2], stride=2)
        self.linear = nn.Linear(32 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def _make_layer(self, block, planes, num_blocks, stride):
        strides = [stride] + [1] * (num_blocks - 1)
        layers = []
        for stride in strides:
            layers.append(block(self.in_planes, planes, stride))
            self.in_planes = planes * block.expansion
        return nn.Sequential(*layers)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer3(self.layer2(self.layer1(out)))
        out = F.adaptive_avg_pool2d(out, 1)
        out = out.view(out.size(0), -1)
        return self.linear(out)


class Images(Dataset):
    """Gratings whose direction is the class; flipped and shifted as CIFAR's images are."""

    def __init__(self, count, train=True):
        draw = np.random.RandomState(0)
        self.targets = torch.tensor(draw.randint(10, size=count))
        angle = self.targets.double() * (np.pi / 10)
        y, x = torch.meshgrid(torch.linspace(-1, 1, 32), torch.linspace(-1, 1, 32), indexing="ij")
        wave = angle.cos()[:, None, None] * x + angle.sin()[:, None, None] * y
        colours = torch.from_numpy(draw.rand(count, 3, 1, 1))
        noise = torch.from_numpy(draw.randn(count, 3, 32, 32))
        self.data = (torch.sin(8 * wave)[:, None] * colours + 0.3 * noise).float()
        self.train = train
        self.flips, self.shifts = draw.rand(count) < 0.5, draw.randint(0, 9, (count, 2))

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        img, target = self.data[index], self.targets[index]
        if self.train:
            if self.flips[index]:
                img = torch.flip(img, dims=[2])
            img = F.pad(img, (4, 4, 4, 4))
            i, j = self.shifts[index]
            img = img[:, i : i + 32, j : j + 32]
        return (img - 0.1) / 0.5, int(target)


def build():
    torch.manual_seed(0)
    return ResNet(BasicBlock, [1, 1, 1])


def train(net, steps):
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    trainloader = DataLoader(Images(256), batch_size=16, shuffle=False, num_workers=0, drop_last=True)
    testloader = DataLoader(Images(64, train=False), batch_size=32)
    net = net.to(device)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    scheduler = OneCycleLR(optimizer, max_lr=0.01, total_steps=steps)
    losses, best_acc = [], 0.0
    while len(losses) < steps:
        net.train()
        for inputs, targets in trainloader:
            inputs, targets = inputs.to(device, non_blocking=True), targets.to(device)
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, targets)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    net.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            outputs = net(inputs.to(device))
            _, predicted = outputs.max(1)
            total += targets.size(0)
            correct += predicted.eq(targets).sum().item()
    best_acc = max(best_acc, 100.0 * correct / total)
    state = {"net": net.state_dict(), "acc": best_acc, "scheduler": scheduler.state_dict()}
    assert "layer2.0.shortcut.1.num_batches_tracked" in state["net"]
    return losses


if __name__ == "__main__":
    print(build())
    print(train(build(), 100))
