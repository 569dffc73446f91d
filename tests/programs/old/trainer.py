"""tests/programs/old/trainer.py: 2016, the trainer of utils with plugins."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.autograd import Variable
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.trainer import Trainer
from torch.utils.trainer.plugins import AccuracyMonitor, Logger, LossMonitor, ProgressMonitor, TimeMonitor
from torch.utils.trainer.plugins.plugin import Plugin

torch.manual_seed(0)
x = torch.randn(120, 3)
dataset = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(3, 2), nn.LogSoftmax(dim=1))


class Halve(Plugin):
    def __init__(self):
        super(Halve, self).__init__([(4, 'epoch')])

    def register(self, trainer):
        self.trainer = trainer

    def epoch(self, epoch_index):
        for group in self.trainer.optimizer.param_groups:
            group['lr'] /= 2


trainer = Trainer(model, nn.NLLLoss(), optim.SGD(model.parameters(), lr=1.0, momentum=0.5), dataset)
for plugin in (LossMonitor(), AccuracyMonitor(), TimeMonitor(), ProgressMonitor(), Halve()):
    trainer.register_plugin(plugin)
trainer.register_plugin(Logger(['progress', 'loss', 'accuracy', 'time'], [(3, 'iteration'), (1, 'epoch')]))
trainer.run(8)
assert trainer.stats['accuracy']['epoch_mean'] > 97 and trainer.stats['loss']['epoch_mean'] < 0.2
assert trainer.optimizer.param_groups[0]['lr'] == 0.25 and trainer.iterations == 48
