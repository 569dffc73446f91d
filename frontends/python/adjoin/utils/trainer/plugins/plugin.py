"""adjoin.utils.trainer.plugins.plugin: what every plugin has."""


class Plugin:
    """Defines ``register(trainer)`` and a method for each unit among its intervals. ``first_alone``: of several processes rank 0 calls it,
    and it may ask the others nothing."""

    first_alone = False

    def __init__(self, interval=None):
        self.trigger_interval = [interval] if isinstance(interval, tuple) else list(interval or ())

    def register(self, trainer):
        """Called once, when the trainer gets it."""
        self.trainer = trainer

    def state_dict(self):
        """What it needs to go on, in plain values and tensors."""
        return {}

    def load_state_dict(self, state):
        """Takes that."""


def value_of(stats, field):
    """The number at ``loss.last``, or the last one of ``loss``."""
    name, _, part = field.partition(".")
    if name not in stats:
        have = ", ".join(sorted(stats)) or "nothing"
        raise KeyError(
            f"Trainer: there is no {name!r} in stats, which have {have}; register the monitor of that name first"
        )
    found = stats[name]
    if not isinstance(found, dict):
        return found
    return found.get(part or "last")
