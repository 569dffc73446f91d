"""adjoin.utils.trainer.plugins.files: states of a run in files, from which it goes on."""

import os
import pathlib

from .. import processes
from .plugin import Plugin, value_of


class SaverPlugin(Plugin):
    """Saves the trainer's state in a folder after each epoch (or as its interval says): ``last.pt``, and ``best.pt`` where ``best`` names a
    number of stats that should be small (or great, with ``greatest``). ``keep_old_checkpoints`` keeps one for each time besides.

    It saves what plugins before it found out: register it last. ``resume()``, once all plugins are registered, goes on from ``last.pt`` where there is one.
    """

    def __init__(self, checkpoint_path, keep_old_checkpoints=False, interval=(1, "epoch"), best=None, greatest=False):
        super().__init__(interval)
        self.path = pathlib.Path(checkpoint_path)
        self.keep_old_checkpoints, self.best, self.greatest, self.reached = keep_old_checkpoints, best, greatest, None

    def register(self, trainer):
        super().register(trainer)
        if trainer.rank == 0:
            self.path.mkdir(parents=True, exist_ok=True)

    def _save(self, unit, i):
        value = None if self.best is None else value_of(self.trainer.stats, self.best)
        sign = -1 if self.greatest else 1
        better = value is not None and (self.reached is None or sign * value < sign * self.reached)
        if better:
            self.reached = value
        last = self.path / "last.pt"
        self.trainer.save(last)
        if self.trainer.rank:
            return
        for name, wanted in ((f"{unit}-{i}.pt", self.keep_old_checkpoints), ("best.pt", better)):
            if wanted:
                part = self.path / f"{name}.part"
                part.unlink(missing_ok=True)
                os.link(last, part)
                os.replace(part, self.path / name)

    def epoch(self, i):
        self._save("epoch", i)

    def iteration(self, i, *step):
        self._save("step", i)

    update = iteration

    def resume(self):
        """Whether there was a state to go on from. Several processes read one file: the folder is one that all of them see."""
        last = self.path / "last.pt"
        if not processes.of_first(last.exists):
            return False
        self.trainer.load(last)
        return True

    def state_dict(self):
        return {"reached": self.reached}

    def load_state_dict(self, state):
        self.reached = state["reached"]
