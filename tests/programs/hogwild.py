"""tests/programs/hogwild.py: several processes train one convolutional network in shared memory, without locks."""

import argparse
import os

import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Hogwild on small pictures")
parser.add_argument("--batch-size", type=int, default=32, metavar="N")
parser.add_argument("--test-batch-size", type=int, default=200, metavar="N")
parser.add_argument("--epochs", type=int, default=4, metavar="N")
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--momentum", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--log-interval", type=int, default=5)
parser.add_argument("--num-processes", type=int, default=2)
parser.add_argument("--cuda", action="store_true")
parser.add_argument("--dry-run", action="store_true", help="one batch")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, kernel_size=3)
        self.conv2 = nn.Conv2d(8, 16, kernel_size=3)
        self.conv2_drop = nn.Dropout2d(0.2)
        self.fc1 = nn.Linear(64, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 64)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


def bars(count, seed):
    """Bars across a picture, at one of four heights, in noise."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=generator)
    pictures = torch.randn(count, 1, 14, 14, generator=generator) * 0.5
    for picture, label in zip(pictures, labels):
        picture[0, 3 * label + 1 : 3 * label + 3] += 1
    return TensorDataset(pictures, labels)


def train(rank, args, model, device, dataset, dataloader_kwargs):
    torch.manual_seed(args.seed + rank)
    train_loader = DataLoader(dataset, **dataloader_kwargs)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    for epoch in range(1, args.epochs + 1):
        train_epoch(epoch, args, model, device, train_loader, optimizer)


def train_epoch(epoch, args, model, device, data_loader, optimizer):
    model.train()
    pid = os.getpid()
    for batch_idx, (data, target) in enumerate(data_loader):
        optimizer.zero_grad()
        output = model(data.to(device))
        loss = F.nll_loss(output, target.to(device))
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            done, all_of_them = batch_idx * len(data), len(data_loader.dataset)
            percent = 100.0 * batch_idx / len(data_loader)
            print(
                f"{pid}\tTrain Epoch: {epoch} [{done}/{all_of_them} ({percent:.0f}%)]\tLoss: {loss.item():.6f}",
                flush=True,
            )
            if args.dry_run:
                break


def test(args, model, device, dataset, dataloader_kwargs):
    torch.manual_seed(args.seed)
    test_loader = DataLoader(dataset, **dataloader_kwargs)
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            test_loss += F.nll_loss(output, target.to(device), reduction="sum").item()
            pred = output.max(1)[1]
            correct += pred.eq(target.to(device)).sum().item()
    test_loss /= len(dataset)
    print(
        f"\nTest set: Average loss: {test_loss:.4f}, Accuracy: {correct}/{len(dataset)} ({100.0 * correct / len(dataset):.0f}%)\n"
    )


if __name__ == "__main__":
    args = parser.parse_args()
    use_cuda = args.cuda and torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    train_set, test_set = bars(640, 1), bars(200, 2)
    kwargs = {"batch_size": args.batch_size, "shuffle": True}
    if use_cuda:
        kwargs.update({"num_workers": 1, "pin_memory": True})

    torch.manual_seed(args.seed)
    mp.set_start_method("spawn", force=True)
    model = Net().to(device)
    model.share_memory()  # the gradients are each process's own
    processes = []
    for rank in range(args.num_processes):
        p = mp.Process(target=train, args=(rank, args, model, device, train_set, kwargs))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()

    # Once they have all ended, the model has what they learnt.
    test(args, model, device, test_set, {"batch_size": args.test_batch_size})
