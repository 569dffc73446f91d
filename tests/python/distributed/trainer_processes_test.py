"""tests/python/distributed/trainer_processes_test.py: a Trainer in several processes: rank 0 alone writes, numbers are those of all, a run
goes on exactly, in another number of processes, too."""

import os

PROGRAM = """
import io, os, random, sys
import torch, torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from torch.utils.trainer import Trainer
from torch.utils.trainer.plugins import Logger, LossMonitor, ProgressMonitor, Plugin, SaverPlugin, TensorBoard, Validation

folder, what = sys.argv[1:3]
dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)  # of its own, for dropout
random.seed(rank)
g = torch.Generator().manual_seed(5)
x = torch.randn(48, 2, generator=g)
data = TensorDataset(x, (x[:, 0] > x[:, 1]).long())
net = nn.Sequential(nn.Linear(2, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.2), nn.Linear(8, 2)).double()
with torch.no_grad():
    for p in net.parameters():
        p.copy_(torch.randn(p.shape, generator=g))
net = nn.parallel.DistributedDataParallel(net)
class Data(TensorDataset):
    def __getitem__(self, i):
        x, y = super().__getitem__(i)
        return x.double() + random.random() / 8, y
data = Data(*data.tensors)
loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data))
trainer = Trainer(net, nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=0.05), loader)

class Seen(Plugin):
    rows = []
    def batch(self, i, input, target):
        self.rows.append(input)
        if what == "half" and i == int(12 / size) + 2:
            trainer.stop()  # in the second epoch

saver = SaverPlugin(folder + "/run", interval=[(1, "epoch")], best="loss.epoch_mean")
for plugin in (LossMonitor(), ProgressMonitor(), Seen((1, "batch")), Validation([(x[rank:7 + rank].double(), x[rank:7 + rank, 0].long() * 0)] * (rank + 1)),
               Logger(["loss.last", "progress", "validation_loss"]), TensorBoard(folder + "/board"), saver):
    trainer.register_plugin(plugin)
if what == "on":
    trainer.load(folder + "/half.pt")
elif what == "again":
    assert saver.resume() and trainer.epochs == 3
trainer.run(until=4 if what == "again" else 3)
if what == "half":
    trainer.save(folder + "/half.pt")
if what == "whole":  # each epoch has an order of its own, beside which the noise is small
    assert (Seen.rows[0] - Seen.rows[6]).abs().max() > 0.2
every = [None] * size
dist.all_gather_object(every, trainer.stats)
assert all(stats == every[0] for stats in every), every
total = sum(p.double().sum().item() for p in net.parameters())
drawn = torch.rand(()).item() + random.random()
print("END", rank, trainer.iterations, total.hex(), float(drawn).hex(), repr(trainer.stats["loss"]["last"]), flush=True)
"""


def test_a_trainer_in_two_processes(launch, tmp_path):
    def run(n, folder, what):
        (tmp_path / folder).mkdir(exist_ok=True)
        got = launch(n, PROGRAM, arguments=[str(tmp_path / folder), what])
        assert got.code == 0, got.err
        lines = got.out.splitlines()
        return [line for line in lines if not line.startswith("END")], sorted(
            li for li in lines if li.startswith("END")
        )

    said, whole = run(2, "whole", "whole")
    # 48 rows in parts of 24, batches of 4: six steps an epoch; each line once, with the rows of both.
    assert len(said) == 3 * 7 and said[0].startswith("step 1 ") and "8/48 (16.67%)" in said[0], said
    assert "48/48 (100.00%)" in said[5] and said[6].startswith("epoch 1 ") and "validation_loss" in said[6]
    assert len(os.listdir(tmp_path / "whole/board")) == 1
    assert sorted(os.listdir(tmp_path / "whole/run")) == ["best.pt", "last.pt"]
    _, half = run(2, "broken", "half")
    assert [line.split()[2] for line in half] == ["8", "8"] and half[0].split()[4] != half[1].split()[4]
    _, on = run(2, "broken", "on")
    assert on == whole  # parameters, the random state of each, the loss
    # In one process: the rows that both have seen are not seen again.
    said, alone = run(1, "broken", "on")
    assert [line.split()[0:2] for line in said][0] == ["step", "9"] and "20/48" in said[0]
    assert [line.split()[2] for line in alone] == [str(8 + (48 - 16) // 4 + 12)]
    _, again = run(3, "whole", "again")
    assert len({line.split()[3] for line in again}) == 1 and len({line.split()[4] for line in again}) == 3
