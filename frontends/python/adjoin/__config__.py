"""adjoin.__config__: how the package was made, as text."""

from .version import __version__


def show():
    """The version and the plugins that are loaded."""
    from .plugin import available

    loaded = ", ".join(name for name, state in available().items() if state == "loaded")
    return f"Adjoin {__version__}\n  - plugins: {loaded or 'none loaded yet'}\n"


def parallel_info():
    """The number of threads."""
    from . import _C

    return f"one pool of {_C.get_num_threads()} threads\n"
