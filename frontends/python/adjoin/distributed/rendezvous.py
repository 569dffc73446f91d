"""adjoin.distributed.rendezvous: how the processes of a program find each other."""

import os
import re
import socket
import time
from urllib.parse import parse_qs, urlparse

from . import store as _store
from ._names import DistNetworkError, milliseconds

# Who starts processes, and where he says which this is, and of how many.
_STARTERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("JOB_COMPLETION_INDEX", "WORLD_SIZE"),  # an indexed job of Kubernetes, which does not say of how many
)

# Servers of this process by their address: a program that destroys its group and makes another meets at the same one.
_servers = {}
_files = {}  # the addresses that this process has written to files
_met = []  # files whose names are ours: they are gone when all have come, whatever becomes of the processes


def place(rank=-1, world_size=-1):
    """(rank, world size), by the arguments, or by the variables of who started the process; 0 of 1 without any."""
    for names in _STARTERS:
        if rank >= 0 and world_size >= 0:
            break
        if all(name in os.environ for name in names):
            rank = int(os.environ[names[0]]) if rank < 0 else rank
            world_size = int(os.environ[names[1]]) if world_size < 0 else world_size
            break
    world_size = int(os.environ.get("WORLD_SIZE", 1)) if world_size < 0 else world_size
    if rank < 0 and "RANK" in os.environ:
        rank = int(os.environ["RANK"])
    if rank < 0 and world_size != 1:
        raise ValueError(
            f"init_process_group: the world has {world_size} processes, and nobody says which one this is: "
            "pass rank=, set RANK, or start the program with `adjoin launch`"
        )
    rank = max(rank, 0)
    if not 0 <= rank < world_size:
        raise ValueError(
            f"init_process_group: rank {rank} in a world of {world_size}; it must be from 0 to {world_size - 1}"
        )
    return rank, world_size


def _host_at(host, port, rank, timeout):
    if rank == 0 and (host, port) not in _servers:
        server, got = _store.serve(host, port)
        _servers[host, got] = server
        port = got
    return _store.connect(host, port, timeout)


def _by_environment(rank, timeout):
    if control := os.environ.get("ADJOIN_CONTROL"):  # of `adjoin launch`
        host, _, port = control.rpartition(":")
        return _store.connect(host, int(port), timeout)
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing and (found := _by_starter()):
        return _by_file(found, rank, timeout, own=True) if isinstance(found, str) else _host_at(*found, rank, timeout)
    if missing:
        raise ValueError(
            f"init_process_group: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: the address of "
            "the machine of rank 0, and a free port of it; `adjoin launch` sets them"
        )
    return _host_at(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), rank, timeout)


def _by_starter():
    """Where the processes of mpirun on one machine (a file) and those of srun (an address) meet; None of others."""
    env = os.environ
    if "OMPI_COMM_WORLD_SIZE" in env and env["OMPI_COMM_WORLD_SIZE"] == env.get("OMPI_COMM_WORLD_LOCAL_SIZE"):
        job = "".join(
            c if c.isalnum() else "-" for c in env.get("PMIX_NAMESPACE", env.get("OMPI_MCA_ess_base_jobid", ""))
        )
        return f"{env.get('TMPDIR', '/tmp')}/adjoin-{os.getuid()}-{job}" if job else None
    nodes = env.get("SLURM_STEP_NODELIST", env.get("SLURM_NODELIST"))
    if "SLURM_PROCID" in env and "SLURM_JOB_ID" in env and nodes:
        port = 20000 + (int(env["SLURM_JOB_ID"]) * 31 + int(env.get("SLURM_STEP_ID", 0))) % 20000
        return _first_of(nodes), port
    return None


def _first_of(nodes):
    """The first name in SLURM's list: "gpu[07-09,12],login" begins with gpu07."""
    name, _, rest = nodes.split(",")[0].partition("[")
    return name + re.match(r"\w*", rest).group() if rest else name


def _own_name():
    """An address by which others reach this machine."""
    name = socket.gethostname()
    try:
        return socket.gethostbyname(name)
    except OSError:
        return "127.0.0.1"


def _new_server():
    server, port = _store.serve("", 0)
    address = _own_name()
    _servers[address, port] = server
    return address, port


def _by_file(path, rank, timeout, own=False):
    until = time.monotonic() + milliseconds(timeout) / 1000
    if rank == 0:
        if path not in _files:  # a second group meets where the first one did
            _files[path] = _new_server()
            _forget_at_end(path)
        with open(f"{path}.{os.getpid()}", "w") as file:
            file.write("%s %d\n" % _files[path])
        os.replace(f"{path}.{os.getpid()}", path)
        if own:
            _met.append(path)
        return _store.connect(*_files[path], timeout)
    said = "nothing"
    while time.monotonic() < until:
        try:
            with open(path) as file:
                if own and os.fstat(file.fileno()).st_uid != os.getuid():
                    raise ValueError(f"{path} is another user's")
                host, port = file.read().split()
            return _store.connect(host, int(port), 0.2)
        except (OSError, ValueError) as error:
            said = error
        except DistNetworkError as error:  # a file that an earlier run left
            said = error
        time.sleep(0.01)
    raise DistNetworkError(f"init_process_group: rank 0 has not come to {path} within {timeout}: {said}")


def all_have_come():
    """Files by which the processes found each other are not needed any more."""
    while _met:
        try:
            os.remove(_met.pop())
        except OSError:
            pass


def _forget_at_end(path):
    import atexit

    def forget():
        try:
            os.remove(path)
        except OSError:
            pass

    atexit.register(forget)


def _by_store(store, rank, timeout, key):
    if rank == 0:
        address = _new_server()
        store.set(key, "%s %d" % address)
    else:
        host, port = store.get(key).decode().split()
        address = host, int(port)
    return _store.connect(*address, timeout)


def meet(init_method, store, rank, world_size, timeout, key):
    """(link, rank, world size): a connection to the control server; None for a world of one."""
    parts = urlparse(init_method or "env://")
    if parts.scheme in _handlers:
        return _by_handler(init_method, timeout, key)
    asked = {name: int(values[0]) for name, values in parse_qs(parts.query).items() if name in ("rank", "world_size")}
    rank = asked.get("rank", rank) if rank < 0 else rank
    world_size = asked.get("world_size", world_size) if world_size < 0 else world_size
    if store is not None and (rank < 0 or world_size < 0):
        raise ValueError("init_process_group: with store= both rank= and world_size= are wanted")
    rank, world_size = place(rank, world_size)
    if world_size == 1:
        return None, rank, world_size
    if store is not None:
        return _by_store(store, rank, timeout, key), rank, world_size
    if parts.scheme == "env":
        return _by_environment(rank, timeout), rank, world_size
    if parts.scheme == "tcp":
        if not parts.hostname or parts.port is None:
            raise ValueError(f"init_process_group: {init_method!r} wants a host and a port: tcp://10.0.0.1:29500")
        return _host_at(parts.hostname, parts.port, rank, timeout), rank, world_size
    if parts.scheme == "file":
        if not parts.path:
            raise ValueError(f"init_process_group: {init_method!r} wants a path: file:///shared/name")
        return _by_file(parts.path, rank, timeout), rank, world_size
    raise ValueError(f"init_process_group: {init_method!r}; there are {_ways()}")


def _by_handler(url, timeout, key):
    kept, rank, world_size = next(iter(_handlers[urlparse(url).scheme](url, timeout=timeout)))
    return (None if world_size == 1 else _by_store(kept, rank, timeout, key)), rank, world_size


_handlers = {}  # ways to meet that programs have added, by their scheme


def _ways():
    return ", ".join(("env://", "tcp://HOST:PORT", "file:///PATH", *(f"{scheme}://" for scheme in _handlers)))


def register_rendezvous_handler(scheme, handler):
    """Another way to meet: ``handler(url, timeout=...)`` yields (store, rank, world size) for URLs of the scheme."""
    if scheme in _handlers or scheme in ("env", "tcp", "file"):
        raise RuntimeError(f"register_rendezvous_handler: Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **options):
    """What yields (store, rank, world size): a store of all processes, by a URL as init_process_group takes it."""
    if not isinstance(url, str):
        raise RuntimeError(f"rendezvous: `url` must be a string: {url!r}")
    if not isinstance(rank, int) or not isinstance(world_size, int):
        raise RuntimeError(f"rendezvous: `rank` and `world_size` must be integers: {rank!r}, {world_size!r}")
    parts = urlparse(url)
    if parts.scheme in _handlers:
        return iter(_handlers[parts.scheme](url, **options))
    if parts.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"rendezvous: No rendezvous handler for {parts.scheme}://; there are {_ways()}")
    return _meeting(parts, rank, world_size, options.get("timeout", _store._DEFAULT))


def _meeting(parts, rank, world_size, timeout):
    asked = {name: int(values[0]) for name, values in parse_qs(parts.query).items() if name in ("rank", "world_size")}
    rank = asked.get("rank", rank) if rank < 0 else rank
    world_size = asked.get("world_size", world_size) if world_size < 0 else world_size
    env = os.environ if parts.scheme == "env" else {}
    rank = _known(rank, env.get("RANK"), parts.scheme, "rank")
    world_size = _known(world_size, env.get("WORLD_SIZE"), parts.scheme, "world size")
    if parts.scheme == "file":
        if not parts.path:
            raise ValueError("rendezvous: file:// path missing; wanted is file:///shared/name")
        yield _store.FileStore(parts.path, world_size), rank, world_size
        return
    host = _known(parts.hostname, env.get("MASTER_ADDR"), parts.scheme, "host")
    port = int(_known(parts.port, env.get("MASTER_PORT"), parts.scheme, "port number"))
    yield _store.TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True), rank, world_size


def _known(given, said, scheme, what):
    if given is not None and given != -1:
        return given
    if said is None:
        variable = {"host": "MASTER_ADDR", "port number": "MASTER_PORT"}.get(what, what.replace(" ", "_").upper())
        raise ValueError(
            f"rendezvous: environment variable {variable} expected, but not set"
            if scheme == "env" else f"rendezvous: {what} parameter missing in the {scheme}:// URL"
        )  # fmt: skip
    return int(said) if what in ("rank", "world size") else said


def end_servers(timeout_ms):
    """At the end of the process: each server waits for those that are still connected."""
    from .. import _C

    while _servers:
        _C.dist_end_server(_servers.popitem()[1], timeout_ms)
