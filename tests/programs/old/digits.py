"""tests/programs/old/digits.py: 2017, the customary program: switches, Variables, volatile ones to test with, sums of losses."""

from __future__ import print_function
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.autograd import Variable

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=50)
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--no-cuda", action="store_true", default=False)
args = parser.parse_args()
args.cuda = not args.no_cuda and torch.cuda.is_available()

torch.manual_seed(1)
if args.cuda:
    torch.cuda.manual_seed(1)

# Bars across a picture, at one of four heights, in noise.
labels = torch.LongTensor(range(4)).repeat(100)
pictures = torch.randn(400, 1, 8, 8) * 0.3
for i, label in enumerate(labels):
    pictures[i, 0, 2 * label : 2 * label + 2] += 1
loader = lambda part: torch.utils.data.DataLoader(torch.utils.data.TensorDataset(pictures[part], labels[part]),
                                                  batch_size=args.batch_size, shuffle=True, **({"pin_memory": True} if args.cuda else {}))
train_loader, test_loader = loader(slice(0, 300)), loader(slice(300, 400))


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 6, kernel_size=3)
        self.drop = nn.Dropout2d(p=0.2)
        self.fc1 = nn.Linear(54, 20)
        self.fc2 = nn.Linear(20, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.drop(self.conv1(x)), 2))
        x = x.view(-1, 54)
        x = F.dropout(F.relu(self.fc1(x)), training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


model = Net()
if args.cuda:
    model.cuda()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)


def train(epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        if args.cuda:
            data, target = data.cuda(async=True), target.cuda(async=True)
        data, target = Variable(data), Variable(target)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx == 0:
            print('Train Epoch: {}\tLoss: {:.6f}'.format(epoch, loss.data[0]))
            assert type(loss.data[0]) is float


def test():
    model.eval()
    test_loss = 0
    correct = 0
    for data, target in test_loader:
        data, target = Variable(data, volatile=True), Variable(target)
        output = model(data)
        assert output.volatile and not output.requires_grad and output.grad_fn is None
        test_loss += F.nll_loss(output, target, size_average=False).data[0]
        pred = output.data.max(1, keepdim=True)[1]
        correct += pred.eq(target.data.view_as(pred)).cpu().sum()
    test_loss /= len(test_loader.dataset)
    print('Average loss: {:.4f}, Accuracy: {}/{} ({:.0f}%)'.format(
        test_loss, correct, len(test_loader.dataset), 100. * correct / len(test_loader.dataset)))
    return correct


for epoch in range(1, args.epochs + 1):
    train(epoch)
    correct = test()
assert correct >= 95
# Outside of a module dropout was off unless somebody asked for it.
ones = Variable(torch.ones(1000))
assert F.dropout(ones).data.sum() == 1000 and F.dropout(ones, training=True).data.sum() != 1000
