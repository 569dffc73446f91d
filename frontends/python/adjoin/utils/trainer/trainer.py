"""adjoin.utils.trainer.trainer: Trainer: epochs of steps, plugins that are called at intervals, states that go on exactly."""

import itertools
import random

import adjoin

from . import processes

UNITS = ("batch", "iteration", "update", "epoch")


class Trainer:
    """``dataset`` gives pairs (input, target), batch by batch, anew for each epoch: a DataLoader, or a list.

    Plugins have intervals ``[(3, "iteration"), (1, "epoch")]``, and a method for each unit that is named:

    - ``batch(i, input, target)`` before step i
    - ``iteration(i, input, target, output, loss)`` and ``update(i, model)`` after it
    - ``epoch(i)`` after an epoch

    ``stats`` has what they found out, by name. ``save`` and ``load`` go on exactly where a run was, in the middle of an epoch too:
    the random state at its beginning is kept, and the batches that were seen are drawn again, not trained.

    In several processes give the model in DistributedDataParallel, and a DataLoader with a DistributedSampler, whose epoch is set here.
    All processes register the same plugins. ``stats`` are those of all together, so each process finds the same; rank 0 alone writes
    lines, bars, pictures, files. A state has everybody's random state; a file of it goes on in another number of processes, too.
    """

    def __init__(self, model=None, criterion=None, optimizer=None, dataset=None):
        self.model, self.criterion, self.optimizer, self.dataset = model, criterion, optimizer, dataset
        self.iterations = 0  # steps that were taken
        self.epochs = 0  # epochs that ended
        self.seen = 0  # batches of the epoch that is not over
        self.stats = {}
        self.plugins = []
        self.stopped = False
        self.rank, self.size = processes.place()
        self._at_start = None  # the random state at the beginning of this epoch
        self._here = None  # and where a loaded state was made

    def register_plugin(self, plugin):
        """Calls the plugin at its intervals from now on; returns the trainer."""
        for duration, unit in plugin.trigger_interval:
            if unit not in UNITS or duration < 1:
                wanted = f"a count from 1 and one of {', '.join(UNITS)}"
                raise ValueError(f"Trainer: the interval ({duration}, {unit!r}) of {plugin!r}: wanted {wanted}")
        plugin.register(self)
        self.plugins.append(plugin)
        return self

    def call_plugins(self, unit, time, *args):
        """Calls those whose interval in that unit is over."""
        for plugin in self.plugins:
            if plugin.first_alone and self.rank:
                continue
            if any(name == unit and time % duration == 0 for duration, name in plugin.trigger_interval):
                getattr(plugin, unit)(time, *args)

    def run(self, epochs=1, until=None):
        """Trains that many epochs more, or until so many have ended in all. An epoch that was left in the middle is ended first and
        counts as one. ``stop()`` ends it after a step."""
        last = self.epochs + epochs if until is None else until
        self.stopped = False
        while self.epochs < last and not self.stopped:
            self.train()
            if self.stopped:
                break
            self.epochs += 1
            self.seen, self._at_start = 0, None
            self.call_plugins("epoch", self.epochs)
        return self.stats

    def stop(self):
        """For plugins: no step after this one."""
        self.stopped = True

    def train(self):
        """The steps of one epoch, those that are left of it."""
        if self._at_start is not None:
            _set_random_state(self._at_start)
        elif self._here is not None:
            _set_random_state(self._here)
            self._here = None
        self._at_start = _random_state()
        if hasattr(sampler := getattr(self.dataset, "sampler", None), "set_epoch"):
            sampler.set_epoch(self.epochs)
        batches = iter(self.dataset)
        if sum(1 for _ in itertools.islice(batches, self.seen)) < self.seen:
            raise ValueError(f"Trainer: the epoch went on after batch {self.seen}, and the dataset has fewer now")
        if self._here is not None:
            _set_random_state(self._here)
            self._here = None
        for input, target in batches:
            self.step(input, target)
            self.seen += 1
            self.call_plugins("iteration", self.iterations, input, target, *self._found)
            self.call_plugins("update", self.iterations, self.model)
            if self.stopped:
                return
        if self.seen == 0:
            raise ValueError("Trainer: the dataset gave no batch; one that can be gone through again is wanted")

    def step(self, input, target):
        """One step of the optimizer."""
        self.iterations += 1
        self.call_plugins("batch", self.iterations, input, target)
        self._found = None

        def closure():
            self.optimizer.zero_grad()
            output = self.model(input)
            loss = self.criterion(output, target)
            loss.backward()
            if self._found is None:  # some optimizers evaluate again
                detached = output.detach() if isinstance(output, adjoin.Tensor) else output
                self._found = detached, loss.detach()
            return loss

        self.optimizer.step(closure)

    # Going on.

    def state_dict(self):
        """All that a run needs to go on; all processes call it together."""
        return {
            "model": processes.bare(self.model).state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "iterations": self.iterations,
            "epochs": self.epochs,
            "seen": self.seen * self.size,  # by all
            "stats": self.stats,
            "plugins": [plugin.state_dict() for plugin in self.plugins],
            "random": processes.gathered({"at_start": self._at_start, "here": _random_state()}),
        }

    def load_state_dict(self, state):
        """Goes on from a state; plugins are registered before, the same ones in the same order."""
        if len(state["plugins"]) != len(self.plugins):
            have = f"it has {len(state['plugins'])}, here are {len(self.plugins)}"
            raise ValueError(f"Trainer: the state was made with other plugins: {have}; register the same ones first")
        random_states = state["random"]
        if state["seen"] % self.size:
            raise ValueError(
                f"Trainer: the state was made in {len(random_states)} processes after {state['seen']} batches of an epoch, which are "
                f"not to be dealt to {self.size}; go on in as many, or from a state at the end of an epoch"
            )
        processes.bare(self.model).load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.iterations, self.epochs, self.seen = state["iterations"], state["epochs"], state["seen"] // self.size
        for name, values in state["stats"].items():
            self.stats.setdefault(name, {}).update(values)
        for plugin, kept in zip(self.plugins, state["plugins"]):
            plugin.load_state_dict(kept)
        mine = random_states[self.rank % len(random_states)]
        self._at_start, self._here = mine["at_start"], mine["here"]
        if self.rank >= len(random_states):  # a process more has numbers of its own
            _set_random_state(self._here)
            adjoin.manual_seed(adjoin.randint(2**62, ()).item() + self.rank)
            random.seed(adjoin.initial_seed())
            self._here = _random_state()

    def save(self, path):
        """Writes the state; a file of that name is there whole, the old one or the new one, at any time. In several processes all call
        it, and rank 0 writes."""
        import os

        state = self.state_dict()
        if self.rank:
            return
        adjoin.save(state, f"{path}.part")
        os.replace(f"{path}.part", path)

    def load(self, path):
        """Goes on from a file that ``save`` wrote."""
        self.load_state_dict(adjoin.load(path))
        return self


def _random_state():
    kind, numbers, gauss = random.getstate()
    state = {"host": adjoin.get_rng_state(), "python": [kind, list(numbers), gauss]}
    if adjoin.cuda.is_available():
        state["cuda"] = adjoin.cuda.get_rng_state_all()
    return state


def _set_random_state(state):
    adjoin.set_rng_state(state["host"])
    kind, numbers, gauss = state["python"]
    random.setstate((kind, tuple(numbers), gauss))
    if "cuda" in state and adjoin.cuda.is_available():
        adjoin.cuda.set_rng_state_all(state["cuda"])
