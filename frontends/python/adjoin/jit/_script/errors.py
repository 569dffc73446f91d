"""adjoin.jit._script.errors: what is not in the subset is told at the user's own line."""


class NotSupportedError(RuntimeError):
    """A function uses something that scripted programs do not have."""


class Place:
    """Where a piece of source stands: file, first line, function."""

    def __init__(self, file, first, function):
        self.file, self.first, self.function = file, first, function

    def line(self, node):
        number = self.first + getattr(node, "lineno", 1) - 1
        return f"{self.file}:{number} in {self.function}"


def refuse(place, node, what, instead=""):
    raise NotSupportedError(f"jit.script: {place.line(node)}: {what}{'; ' + instead if instead else ''}")
