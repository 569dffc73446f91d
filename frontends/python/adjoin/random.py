"""adjoin.random: seeds and states of the generators of random numbers."""

import contextlib
import copyreg

from . import _C


def __getattr__(name):
    if name == "default_generator":  # late: it loads the host's backend
        globals()[name] = _C.default_generator()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "default_generator"})


def thread_safe_generator():
    """The generator of this process's worker in a DataLoader, or None: a worker is a process here, and its default generator is
    its own."""
    return None


def _default():
    return globals().get("default_generator") or __getattr__("default_generator")


def _state_of(generator):
    seed, offset = generator._get()
    return _C.tensor(list(seed.to_bytes(8, "little") + offset.to_bytes(8, "little")), dtype=_C.uint8)


def _set_state_of(generator, state):
    data = bytes(state.tolist())
    if len(data) != 16:
        raise RuntimeError(f"set_state: the state has {len(data)} bytes, 16 are wanted")
    generator._set(int.from_bytes(data[:8], "little"), int.from_bytes(data[8:], "little"))
    return generator


def _copy_of(generator):
    made = _C.Generator(generator.device)
    made._set(*generator._get())
    return made


def _revive(device, state):
    made = _C.Generator(device)
    made._set(*state)
    return made


# pickle and copy find it here.
copyreg.pickle(_C.Generator, lambda generator: (_revive, (generator.device, generator._get())))


def manual_seed(seed):
    """Seeds the default generator of every device; returns the host's."""
    try:
        seed = int(seed)
    except ValueError:
        raise ValueError(f"manual_seed: the seed must be an int, not {seed!r}, a {type(seed).__name__}") from None
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"manual_seed: {seed} does not fit into 64 bits")
    _C.manual_seed(seed)
    return _default()


def seed():
    """Seeds every default generator from the system; returns the seed."""
    number = _default().seed()
    _C.manual_seed(number)
    return number


def initial_seed():
    """The seed of the host's default generator."""
    return _default().initial_seed()


def get_rng_state():
    """The state of the host's default generator, a tensor of bytes."""
    return _default().get_state()


def set_rng_state(new_state):
    """Sets the state of the host's default generator."""
    _default().set_state(new_state)


def _named(device, kind):
    return f"{kind}:{device}" if isinstance(device, int) else device


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda"):
    """The states of the generators are what they were before, after the with statement."""
    if not enabled:
        yield
        return
    generators = [_default(), *(_C.default_generator(_named(d, device_type)) for d in devices or ())]
    states = [g._get() for g in generators]
    try:
        yield
    finally:
        for generator, state in zip(generators, states):
            generator._set(*state)
