"""adjoin.distributed.checkpoint.stateful: objects that give their state and take it back."""

import typing


@typing.runtime_checkable
class Stateful(typing.Protocol):
    """Has ``state_dict()`` and ``load_state_dict(state)``: modules, optimizers, and classes of the user's."""

    def state_dict(self):
        """The state."""

    def load_state_dict(self, state_dict):
        """Takes the state."""
