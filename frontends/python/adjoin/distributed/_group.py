"""adjoin.distributed._group: groups of processes: made, asked, destroyed."""

import atexit
import os
import re
import signal
import sys
import threading
import time
import traceback

from .. import _C
from . import _methods
from ._names import Backend, DistBackendError, DistNetworkError, DistStoreError, default_pg_timeout, milliseconds
from .rendezvous import _files, _servers, all_have_come, end_servers, meet
from .store import HashStore, PrefixStore, _LinkStore

_NOBODY = "Default process group has not been initialized, please make sure to call init_process_group."


class ProcessGroup(_methods.Methods):
    """The processes that take part, in their order."""

    def __init__(self, label, backend, ranks, rank, native=None, timeout=default_pg_timeout, devices=None):
        self.group_name, self.group_desc = label, label
        self._backend, self._ranks, self._rank, self._native, self._timeout = backend, ranks, rank, native, timeout
        self._devices, self._opened = (
            devices,
            {},
        )  # engines for tensors of devices; of these each is opened with the first tensor

    def rank(self):
        """The place of this process in the group."""
        return self._rank

    def size(self):
        """How many processes there are."""
        return len(self._ranks)

    def name(self):
        """The engine's name."""
        return self._backend

    def history(self):
        """The last collectives, one a line: its state, what it is, and the line that started it."""
        return _C.dist_group_history(self._native) if self._native is not None else ""

    def _on(self, device):
        """The native group that takes a device's tensors as they are; None: they go through the processor's memory."""
        kind = device.type
        if kind == "cpu" or self._devices is None:
            return self._native if kind == "cpu" else None
        if kind not in self._opened:
            self._opened[kind] = self._devices.open(kind, device.index or 0)
        return self._opened[kind]

    def _close(self):
        natives, self._native, self._opened = [self._native, *self._opened.values()], None, {}
        for native in natives:
            if native is not None:
                _C.dist_group_close(native)
        self._ranks = None

    def __repr__(self):
        if self._ranks is None:
            return f"ProcessGroup({self.group_name!r}, destroyed)"
        processes = "one process" if len(self._ranks) == 1 else f"rank {self._rank} of {len(self._ranks)} processes"
        return f"ProcessGroup({self.group_name!r}, {processes})"


class _Devices:
    """Engines of a group for tensors of devices. ``wanted``: {device: engine} that the program names; None: what all processes have."""

    def __init__(self, wanted, world_store, link, name, label, ranks, rank, timeout):
        self.wanted, self.store, self.link, self.name = wanted, world_store, link, name
        self.label, self.ranks, self.rank, self.timeout = label, ranks, rank, timeout

    def open(self, kind, index):
        """The native group; None: some process cannot, and nobody has asked for it."""
        engine, error = (engines_of_devices() if self.wanted is None else self.wanted).get(kind), None
        if engine is None:
            return None
        try:
            _C.dist_engine(engine, kind)
        except RuntimeError as e:
            error = DistBackendError(str(e))
        key = f"{self.name}/{kind}"
        if error is None:
            self.store.add(f"{key}/can", 1)
        if self.store.add(f"{key}/come", 1) == len(self.ranks):
            self.store.set(f"{key}/all", b"1")
        self.store.wait([f"{key}/all"])
        if error is None and self.store.add(f"{key}/can", 0) == len(self.ranks):
            return _open(
                self.link, key, f"{self.label} on {kind}", engine, self.ranks, self.rank, self.timeout, kind, index
            )
        if self.wanted is None:
            return None
        raise error or DistBackendError(f"{engine}: another process of the group {self.label} has no such engine")


class _World:
    """The default group, the others, and the link to the control server."""

    def __init__(self, name, link, default, store):
        self.name, self.link, self.default, self.store = name, link, default, store
        self.groups, self.made, self.meetings = (
            [default],
            {},
            {},
        )  # groups, and meetings of checkpoints, by their members


class _Group:
    """``group.WORLD``: the default group, or None."""

    WORLD = property(lambda self: here().world.default if here().world else None)


class GroupMember:
    """``NON_GROUP_MEMBER``: what new_group gives a process that is not in it."""

    NON_GROUP_MEMBER = -100


class _Place:
    """Where a process stands: in a world, or in none; how many it has been in. A thread of ``simulation.run`` is a process here."""

    def __init__(self):
        self.world, self.made = None, 0


group = _Group()
_process, _thread = _Place(), threading.local()


def here():
    """The place of the process that this thread belongs to."""
    return getattr(_thread, "place", _process)


# The engine that serves where none is named comes first; the last two are for tests.
_ORDER = ("gloo", "shm", "mpi", "simulated", "faulty")


def engines():
    """Names of the engines that plugins offer for tensors of the cpu; no plugin is loaded for the answer."""
    found = [p["name"] for p in _C.plugin_list() if "service:aj.comm/cpu" in p["provides"] and p["state"] < 2]
    return sorted(found, key=lambda name: _ORDER.index(name) if name in _ORDER else 0)


def engines_of_devices():
    """{device: engine} that plugins offer for tensors of devices, whether its library is there or not."""
    found = {}
    for p in _C.plugin_list():
        for device in re.findall(r"service:aj\.comm/(\w+)", p["provides"]) if p["state"] < 2 else ():
            if device != "cpu":
                found.setdefault(device, p["name"])
    return found


def is_available():
    """Whether there is an engine for several processes. A group of one can be made without."""
    return bool(engines())


def is_initialized():
    """Whether init_process_group was called."""
    return here().world is not None


def is_backend_available(backend):
    """Whether a plugin offers the engine."""
    return is_nccl_available() if backend.lower() == "nccl" else backend.lower() in engines()


def is_gloo_available():
    """Whether the plugin gloo is there."""
    return is_backend_available("gloo")


def is_nccl_available():
    """Whether NCCL, or RCCL, is found."""
    for device, name in engines_of_devices().items():
        try:
            if name in ("nccl", "rccl") and _C.dist_engine(name, device):
                return True
        except RuntimeError:  # the plugin is there, the library is not
            pass
    return False


def is_mpi_available():
    """Whether a plugin offers MPI, and mpirun or its kin has started the process: others have nobody to talk to by it."""
    return is_backend_available("mpi") and any(name in os.environ for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))


def is_ucc_available():
    """Whether a plugin offers UCC."""
    return is_backend_available("ucc")


def get_default_backend_for_device(device):
    """The engine that serves a device's tensors where the program names none."""
    kind = str(getattr(device, "type", device)).partition(":")[0]
    return engines_of_devices().get(kind) or (engines() or ["gloo"])[0]


def is_torchelastic_launched():
    """Whether a launcher with restarts has started the process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _has(kind):
    """Whether this machine has a device of the kind."""
    return getattr(sys.modules[__package__.partition(".")[0]], kind).is_available()


def _engine(backend):
    """(the engine for the cpu's memory, the name to tell, {device: engine} or None): "cpu:gloo,cuda:nccl" names one for each device."""
    if backend is None:
        return "", Backend((engines() or ["gloo"])[0]), None
    parts = dict(part.split(":") for part in backend.lower().split(",") if ":" in part)
    known, of_devices = engines(), engines_of_devices()
    name = parts.pop("cpu", "") if parts else backend.lower()
    if name == "nccl" and name not in known:  # AMD's library is called so in programs
        parts = {device: engine for device, engine in of_devices.items() if engine in ("nccl", "rccl")}
        if any(_has(device) for device in parts):
            return "", Backend("nccl"), parts
    if name and name not in known:
        missing = "it is for tensors of GPUs, and there is none here" if name == "nccl" and parts else ""
        raise ValueError(
            f"backend {backend!r}: {missing or f'no plugin offers the engine {name!r}'}; "
            + (f"there is {', '.join(known)}, which serves tensors of every device through the cpu's memory" if known
               else "there is none: apt-get install libgloo-dev, then ./run build")
        )  # fmt: skip
    wanted = {device: of_devices[device] for device in parts if device in of_devices}
    return name, Backend(name or (known or ["gloo"])[0]), wanted


def _open(link, name, label, engine, ranks, rank, timeout, device="cpu", index=0):
    try:
        return _C.dist_group_open(link, name, label, engine, device, index, tuple(ranks), rank, milliseconds(timeout))
    except RuntimeError as error:
        raise DistBackendError(str(error)) from None


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Makes the group of all processes. ``init_method`` says where they meet: env:// (MASTER_ADDR and MASTER_PORT, or
    `adjoin launch`), tcp://HOST:PORT, file:///PATH; or ``store`` does. Without several processes it is a group of one.
    """
    place = here()
    if place.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = default_pg_timeout if timeout is None else timeout
    name = f"world{place.made}"
    link, rank, size = meet(init_method, store, rank, world_size, timeout, f"adjoin/{name}")
    if link is None:
        default = ProcessGroup("world", Backend(backend or "gloo"), [0], 0, timeout=timeout)
        place.world = _World(name, None, default, store)
    else:
        place.world = _join(backend, link, rank, size, name, timeout)
    place.made += 1


def _join(backend, link, rank, size, name, timeout):
    try:
        engine, told, devices = _engine(backend)
        _C.dist_join(link, name, rank, size)
        kept = _LinkStore(link)
        kept.set_timeout(timeout)
        _wait_for_all(kept, name, rank, size, timeout)
        all_have_come()
        native = _open(link, f"{name}/default", "default", engine, range(size), rank, timeout)
    except BaseException:
        _C.dist_leave(link)
        _C.dist_disconnect(link)
        raise
    _watch_the_end()
    devices = _Devices(devices, kept, link, f"{name}/default", "default", range(size), rank, timeout)
    default = ProcessGroup("default", told, range(size), rank, native, timeout, devices)
    return _World(name, link, default, PrefixStore(f"{name}/user", kept))


def _wait_for_all(store, name, rank, size, timeout):
    store.set(f"{name}/rank{rank}", b"1")
    if store.add(f"{name}/joined", 1) == size:
        store.set(f"{name}/all", b"1")
    try:
        store.wait([f"{name}/all"])
    except DistStoreError as error:
        missing = [r for r in range(size) if not store.check([f"{name}/rank{r}"])]
        if not missing:
            raise
        raise DistNetworkError(
            f"init_process_group: {size - len(missing)} of {size} processes have come within {timeout}; "
            f"missing: rank {', '.join(map(str, missing))}"
        ) from error


_watches = False


def _watch_the_end():
    """The others hear why this process ends: an exception before it ends, an end in order as such."""
    global _watches
    if _watches:
        return
    _watches = True
    before = sys.excepthook

    def tell(kind, error, trace):
        tell_why(error, trace)
        if not _all_are_interrupted(error):
            before(kind, error, trace)
        elif os.environ.get("RANK") == "0":
            print(f"KeyboardInterrupt: rank 0 was{_place_of(trace) or ' at its end'}", file=sys.stderr, flush=True)

    sys.excepthook = tell
    atexit.register(_at_exit)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # A process of multiprocessing ends without both.
        from multiprocessing import util

        util.Finalize(None, _at_end_of_child, exitpriority=0)


def _all_are_interrupted(error):
    """Ctrl-C interrupts all processes of `adjoin launch`: one of them says so, in a line, and no more interrupts disturb its end."""
    if "ADJOIN_CONTROL" not in os.environ or threading.current_thread() is not threading.main_thread():
        return False
    if isinstance(error, DistBackendError) and "raised KeyboardInterrupt" in str(error):
        try:
            time.sleep(0.3)  # who heard of it from another one is interrupted himself
        except KeyboardInterrupt as own:
            error = own
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return isinstance(error, KeyboardInterrupt)


def _place_of(trace):
    """The user's last line of a traceback; the last one where none is the user's."""
    from .._tracebacks import _is_ours, _is_pythons

    frames = traceback.extract_tb(trace)
    last = [f for f in frames if not _is_ours(f.filename) and not _is_pythons(f.filename)][-1:] or frames[-1:]
    return f" at {last[0].filename}:{last[0].lineno}" if last else ""


def tell_why(error, trace):
    """The others hear of an exception that ends this process; not of one that they have caused."""
    world = here().world
    if world is None or world.link is None or isinstance(error, DistBackendError):
        return
    said = " ".join(str(error).split())
    try:
        _C.dist_tell(world.link, f"raised {type(error).__name__}{': ' if said else ''}{said[:500]}{_place_of(trace)}")
    except RuntimeError:  # the others have ended
        pass


def _at_end_of_child():
    error = sys.exc_info()[1]
    if error is not None and not isinstance(error, SystemExit):
        tell_why(error, error.__traceback__)
    _at_exit()


def _at_exit():
    world = _process.world
    link = world.link if world is not None else None
    if link is not None:
        world.link = None
        _C.dist_leave(link)  # groups end with the process
        _C.dist_disconnect(link)
    end_servers(10000)


def _forked():
    """A child has none of the threads: it is alone, and says so when it is asked."""
    global _watches
    _process.world, _watches = None, False
    if hasattr(_thread, "place"):
        del _thread.place
    _servers.clear()
    _files.clear()


os.register_at_fork(after_in_child=_forked)


def destroy_process_group(group=None):
    """Ends a group; without one, all of them."""
    place = here()
    world = place.world
    if world is None:
        return
    if group is not None and group is not world.default:
        if group != GroupMember.NON_GROUP_MEMBER:
            group._close()
            world.groups.remove(group)
        return
    place.world = None
    if world.link is not None:
        _C.dist_leave(world.link)
    for one in world.groups:
        one._close()
    if world.link is not None:
        _C.dist_disconnect(world.link)


def of(group):
    """The group that was given, or the default one."""
    world = here().world
    if world is None:
        raise ValueError(_NOBODY)
    group = world.default if group is None else group
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("this process is not in the group: only its members may use it")
    if group._ranks is None:
        raise ValueError(f"{group!r}: it cannot be used any more")
    return group


def _get_default_group():
    """The group of all processes; libraries of the time before groups had a default ask for it."""
    return of(None)


def _get_default_store():
    timeout, world = of(None)._timeout, here().world
    if world.store is None:  # of a world of one: nobody else writes to it
        world.store = HashStore()
        world.store.set_timeout(timeout)
    return world.store


def _rank_not_in_group(group):
    return group == GroupMember.NON_GROUP_MEMBER


def _resolve_process_group(group_name):
    of(None)
    for one in here().world.groups:
        if one.group_name == group_name:
            return one
    known = ", ".join(repr(one.group_name) for one in here().world.groups)
    raise ValueError(f"no group is called {group_name!r}; there are {known}")


def get_pg_count():
    """How many groups this process is in."""
    return len(here().world.groups) if here().world else 0


def get_backend_config(group=None):
    """The engine for each kind of device, as init_process_group takes it."""
    found = of(group)
    others = found._devices.wanted if found._devices is not None and found._devices.wanted else {}
    return ",".join(f"{device}:{engine}" for device, engine in {"cpu": str(found.name()), **others}.items())


def get_rank(group=None):
    """The place of this process; -1 in a group without it."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else of(group).rank()


def get_world_size(group=None):
    """How many processes there are; -1 of a group without this one."""
    return -1 if group == GroupMember.NON_GROUP_MEMBER else of(group).size()


def get_backend(group=None):
    """The engine's name."""
    if group == GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified: this process is not in it")
    return of(group).name()


def get_process_group_ranks(group=None):
    """The ranks in the world of the group's processes, in its order."""
    return list(of(group)._ranks)


def get_global_rank(group, group_rank):
    """The rank in the world of a process of the group."""
    ranks = of(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"group_rank: {group_rank} is not in the group, which has {_count(ranks)}")
    return ranks[group_rank]


def get_group_rank(group, global_rank):
    """The place in the group of a process of the world."""
    ranks = of(group)._ranks
    if global_rank not in ranks:
        raise ValueError(f"global_rank: {global_rank} is not in the group, which has {_count(ranks)}")
    return ranks.index(global_rank)


def _count(ranks):
    return (
        "one process, rank 0" if list(ranks) == [0] else f"{len(ranks)} processes: ranks {', '.join(map(str, ranks))}"
    )


def place_in(group, rank, group_rank, what):
    """The place in the group of the process that is meant by its rank in the world, or in the group."""
    ranks = group._ranks
    if group_rank is not None:
        if not 0 <= group_rank < len(ranks):
            raise ValueError(f"group_{what}: {group_rank} is not in the group, which has {_count(ranks)}")
        return group_rank
    if rank not in ranks:
        raise ValueError(f"{what}: {rank} is not in the group, which has {_count(ranks)}")
    return ranks.index(rank)


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK, or the other number."""
    held = os.environ.get("LOCAL_RANK", fallback_rank)
    if held is None:
        raise RuntimeError("LOCAL_RANK is not in the environment; consider passing a fallback_rank")
    return int(held)


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
              device_id=None):  # fmt: skip
    """Another group. Every process of the world calls it, in the same order; who is not in it gets NON_GROUP_MEMBER. With
    ``use_local_synchronization`` its members alone call it, and who is none gets None."""
    everybody, world = of(None)._ranks, here().world
    ranks = sorted(everybody if ranks is None else ranks)
    for rank in ranks:
        place_in(world.default, rank, None, "ranks")
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"new_group: a rank stands twice in {ranks}")
    mine = world.default.rank()
    members = "-".join(map(str, ranks))
    number = world.made[members] = world.made.get(members, 0) + 1
    if mine not in ranks:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    timeout = world.default._timeout if timeout is None else timeout
    label = group_desc or f"{members} ({number})"
    if len(ranks) == 1:
        made = ProcessGroup(label, Backend(backend or world.default.name()), ranks, 0, timeout=timeout)
    else:
        engine, told, devices = _engine(backend or world.default.name())
        name, rank = f"{world.name}/{members}/{number}", ranks.index(mine)
        native = _open(world.link, name, label, engine, ranks, rank, timeout)
        devices = world.default._devices.wanted if backend is None else devices
        devices = _Devices(devices, world.default._devices.store, world.link, name, label, ranks, rank, timeout)
        made = ProcessGroup(label, told, ranks, rank, native, timeout, devices)
    world.groups.append(made)
    return made


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """The group of this process when ``parent_pg`` is cut into lists of its ranks; NON_GROUP_MEMBER if none of them has it."""
    parent = of(parent_pg)
    if not split_ranks:
        raise ValueError("split_group: split_ranks is empty; wanted is a list of ranks for each part")
    lines = [sorted(parent._ranks[place_in(parent, None, rank, "ranks")] for rank in line) for line in split_ranks]
    if len({rank for line in lines for rank in line}) != sum(map(len, lines)):
        raise ValueError(f"split_group: a rank stands in two parts of {split_ranks}")
    made = [new_group(line, timeout, backend or parent.name(), group_desc=group_desc) for line in lines]
    return next((g for g in made if g != GroupMember.NON_GROUP_MEMBER), GroupMember.NON_GROUP_MEMBER)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(the group of this process, all groups), of lists of ranks."""
    made = [new_group(ranks, timeout, backend) for ranks in ranks_per_subgroup_list]
    mine = [g for g in made if g != GroupMember.NON_GROUP_MEMBER]
    return (mine[0] if mine else None), made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """(the group of this process, all groups), of neighbours; a group for each machine unless told."""
    size = get_world_size()
    group_size = group_size or int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if size % group_size:
        raise ValueError(f"new_subgroups: {size} processes make no groups of {group_size}")
    return new_subgroups_by_enumeration(
        [range(first, first + group_size) for first in range(0, size, group_size)], timeout, backend
    )
