"""adjoin.legacy.nn._in_place: modules that may write their output into what they are given."""

from ._module import Module


class InPlace(Module):
    """With ``inplace`` the output is written into the input."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def _target(self, input):
        """The tensor that is written."""
        return input

    def _copied(self, input):
        """The input with a copy in the place of that tensor."""
        return input.clone()

    def updateOutput(self, input):
        if not self.inplace:
            return super().updateOutput(input)
        self._given, kept = self._target(input), self._copied(input)
        self.output = self._given.copy_(super().updateOutput(kept))
        return self.output

    def _recorded(self, input):
        same = self.inplace and self._record is not None and self._target(input) is getattr(self, "_given", None)
        return self._record if same else super()._recorded(input)

    def __getstate__(self):
        return {**super().__getstate__(), "_given": None}
