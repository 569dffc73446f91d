"""adjoin.distributed.store: keys and values that processes share."""

import datetime
import json
import os
import threading
import time
import uuid
import weakref

from .. import _C
from ._names import DistNetworkError, DistStoreError, QueueEmptyError, milliseconds

_DEFAULT = datetime.timedelta(seconds=300)


def _bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """What every store has; a store of your own needs ``set``, ``get``, ``add``, ``delete_key``, ``compare_set``, ``check``."""

    def __init__(self):
        self._timeout = _DEFAULT

    timeout = property(lambda self: self._timeout)

    def set_timeout(self, timeout):
        """How long ``get`` and ``wait`` wait."""
        self._timeout = timeout

    def wait(self, keys, timeout=None):
        """Waits until all keys are there."""
        until = time.monotonic() + milliseconds(timeout, self._timeout) / 1000
        while not self.check(keys):
            if time.monotonic() > until:
                missing = [key for key in keys if not self.check([key])]
                raise DistStoreError(f"wait: the store has no {missing} after {timeout or self._timeout} (timeout)")
            time.sleep(0.005)

    def multi_get(self, keys):
        """The values of all keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        """Sets all keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key, value):
        """Puts a value at the end of a queue."""
        self.set(f"{key}/{self.add(f'{key}/pushed', 1)}", value)

    def queue_pop(self, key, block=True):
        """Takes the first value of a queue, as soon as there is one; without ``block`` an empty queue raises QueueEmptyError."""
        head, until = f"{key}/head", time.monotonic() + milliseconds(self.timeout) / 1000
        while True:
            now = self.get(head) if self.check([head]) else b""
            first = int(now.split()[0]) + 1 if now else 1
            if first <= self.add(f"{key}/pushed", 0):
                mine = f"{first} {uuid.uuid4().hex}".encode()  # others who take the same one have other words
                if self.compare_set(head, now, mine) == mine:
                    value = self.get(f"{key}/{first}")
                    self.delete_key(f"{key}/{first}")
                    return value
            elif not block:
                raise QueueEmptyError(f"queue_pop: the queue {key!r} is empty")
            elif time.monotonic() > until:
                raise DistStoreError(
                    f"queue_pop: nothing has come to the queue {key!r} within {self.timeout} (timeout)"
                )
            else:
                time.sleep(0.005)

    def queue_len(self, key):
        """How many values a queue has."""
        head = f"{key}/head"
        return self.add(f"{key}/pushed", 0) - (int(self.get(head).split()[0]) if self.check([head]) else 0)

    def barrier(self, key, world_size, timeout=None):
        """Waits until so many have come to the key."""
        if self.add(f"{key}/come", 1) >= world_size:
            self.set(f"{key}/all", b"1")
        self.wait([f"{key}/all"], timeout)

    def clone(self):
        """The store: several threads may use it at once."""
        return self

    def has_extended_api(self):
        """True: multi_get and multi_set are there."""
        return True

    def append(self, key, value):
        """Adds to the end of a value."""
        before = b""
        while True:
            if self.check([key]):
                before = self.get(key)
            after = before + _bytes(value)
            if self.compare_set(key, before, after) == after:
                return


class HashStore(Store):
    """A store of one process, for its threads."""

    def __init__(self):
        super().__init__()
        self._held, self._changed = {}, threading.Condition()

    def set(self, key, value):
        """Sets a key."""
        with self._changed:
            self._held[key] = _bytes(value)
            self._changed.notify_all()

    def get(self, key):
        """The value, as soon as it is there."""
        with self._changed:
            if not self._changed.wait_for(lambda: key in self._held, self._timeout.total_seconds()):
                raise DistStoreError(f"get: the store has no {key!r} after {self._timeout} (timeout)")
            return self._held[key]

    def add(self, key, amount):
        """Adds to a number, which begins at 0."""
        with self._changed:
            total = int(self._held.get(key, b"0")) + amount
            self._held[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def check(self, keys):
        """Whether all keys are there."""
        with self._changed:
            return all(key in self._held for key in keys)

    def delete_key(self, key):
        """Whether the key was there."""
        with self._changed:
            return self._held.pop(key, None) is not None

    def compare_set(self, key, expected_value, desired_value):
        """Sets the key if its value is the expected one, or if it is new and none is expected; the value now."""
        with self._changed:
            now, expected = self._held.get(key), _bytes(expected_value)
            if now is None and expected or now is not None and now != expected:
                return expected if now is None else now
            self._held[key] = _bytes(desired_value)
            self._changed.notify_all()
            return self._held[key]

    def num_keys(self):
        """How many keys there are."""
        with self._changed:
            return len(self._held)


class FileStore(Store):
    """A store in a file that all processes reach; they look at it now and then."""

    def __init__(self, file_name, world_size=-1):
        super().__init__()
        self.path, self._world_size = os.fspath(file_name), world_size
        _change(self.path, lambda held: _count(held, _OPEN, 1))
        weakref.finalize(self, _close_file, self.path, world_size, os.getpid())

    def _change(self, f):
        return _change(self.path, f)

    def set(self, key, value):
        """Sets a key."""
        self._change(lambda held: held.update({key: _bytes(value).hex()}))

    def get(self, key):
        """The value, as soon as it is there."""
        self.wait([key])
        return bytes.fromhex(self._change(lambda held: held[key]))

    def add(self, key, amount):
        """Adds to a number, which begins at 0."""

        return self._change(lambda held: _count(held, key, amount))

    def check(self, keys):
        """Whether all keys are there."""
        return self._change(lambda held: all(key in held for key in keys))

    def delete_key(self, key):
        """Whether the key was there."""
        return self._change(lambda held: held.pop(key, None)) is not None

    def compare_set(self, key, expected_value, desired_value):
        """Sets the key if its value is the expected one, or if it is new and none is expected; the value now."""
        expected, desired = _bytes(expected_value), _bytes(desired_value)

        def swap(held):
            now = bytes.fromhex(held[key]) if key in held else None
            if now is None and expected or now is not None and now != expected:
                return expected if now is None else now
            held[key] = desired.hex()
            return desired

        return self._change(swap)

    def num_keys(self):
        """How many keys there are."""
        return self._change(lambda held: len(held) - (_CLOSED in held))  # the count of processes is a key, as PyTorch's


_OPEN, _CLOSED = "\0open", "\0closed"  # how many stores of the file there are; how many have ended


def _change(path, f):
    """What f gives for the keys in the file, which nobody else reads or writes meanwhile."""
    import fcntl

    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        text = file.read()
        held = json.loads(text) if text else {}
        before = dict(held)
        given = f(held)
        if held != before:
            file.seek(0)
            file.truncate()
            file.write(json.dumps(held))
        return given


def _count(held, key, by):
    total = int(bytes.fromhex(held.get(key, "30"))) + by
    held[key] = str(total).encode().hex()
    return total


def _close_file(path, world_size, process):
    """The last of all processes takes the file away: another program's keys are not met in it."""
    if os.getpid() != process or world_size < 0 or not os.path.exists(path):
        return
    try:
        if _change(path, lambda held: (_count(held, _CLOSED, 1), _count(held, _OPEN, -1)))[1] == 0:
            if _change(path, lambda held: _count(held, _CLOSED, 0)) >= world_size:
                os.remove(path)
    except (OSError, ValueError):  # somebody else takes it away
        pass


class _LinkStore(Store):
    """Keys of a control server."""

    def __init__(self, link):
        super().__init__()
        self._link = link

    def _ask(self, f, *args):
        try:
            return f(self._link, *args)
        except RuntimeError as error:
            late = " (timeout)" if "has no key" in str(error) else ""
            raise DistStoreError(f"{error}{late}") from None

    def set(self, key, value):
        """Sets a key."""
        self._ask(_C.dist_store_set, key, _bytes(value))

    def get(self, key):
        """The value, as soon as it is there."""
        return self._ask(_C.dist_store_get, key, milliseconds(self._timeout))

    def wait(self, keys, timeout=None):
        """Waits until all keys are there."""
        until = time.monotonic() + milliseconds(timeout, self._timeout) / 1000
        for key in keys:
            self._ask(_C.dist_store_get, key, max(0, round((until - time.monotonic()) * 1000)))

    def add(self, key, amount):
        """Adds to a number, which begins at 0."""
        return self._ask(_C.dist_store_number, "add", key, amount)

    def check(self, keys):
        """Whether all keys are there."""
        for key in keys:
            try:
                _C.dist_store_get(self._link, key, 0)
            except RuntimeError as error:
                if "has no key" in str(error):
                    return False
                raise DistStoreError(str(error)) from None
        return True

    def delete_key(self, key):
        """Whether the key was there."""
        return self._ask(_C.dist_store_number, "erase", key) > 0

    def compare_set(self, key, expected_value, desired_value):
        """Sets the key if its value is the expected one, or if it is new and none is expected; the value now."""
        return self._ask(_C.dist_store_swap, key, _bytes(expected_value), _bytes(desired_value))

    def num_keys(self):
        """How many keys there are."""
        return self._ask(_C.dist_store_number, "count", "")


class TCPStore(_LinkStore):
    """A store in a server that one process, the master, holds. ``port`` 0 takes a free one; ``store.port`` tells it."""

    def __init__(self, host_name, port, world_size=None, is_master=False, timeout=_DEFAULT, wait_for_workers=True,
                 multi_tenant=False, master_listen_fd=None, use_libuv=True):  # fmt: skip
        self._server, self._link, self.libuvBackend = None, None, use_libuv  # the server is one of ours either way
        if world_size is not None and world_size <= 0 and world_size != -1:
            raise ValueError(f"TCPStore world size cannot be {world_size}; None says that it is not known")
        if is_master and master_listen_fd is not None:
            os.close(master_listen_fd)  # it kept the port free, which the server takes now
        if is_master:
            self._server, port = (_serve_together if multi_tenant else serve)(host_name, port)
        super().__init__(connect(host_name, port, timeout))
        self.host, self.port, self._timeout = host_name, port, timeout
        if wait_for_workers and world_size and world_size > 0:
            if self.add("adjoin/workers", 1) % world_size == 0:
                self.set("adjoin/all_workers", b"1")
            if is_master:
                self._wait_for(world_size)

    def _wait_for(self, world_size):
        try:
            self.wait(["adjoin/all_workers"])
        except DistStoreError as error:
            seconds, come = round(milliseconds(self._timeout) / 1000, 3), self.add("adjoin/workers", 0)
            raise DistStoreError(
                f"Timed out after {seconds:g} seconds waiting for clients. {come}/{world_size} clients joined."
            ) from error

    def clone(self):
        """Another store of the same server."""
        return TCPStore(self.host, self.port, timeout=self._timeout, wait_for_workers=False)

    def __repr__(self):
        server = f", its server at port {self.port}" if self._server is not None else ""
        return f"TCPStore({self.host!r}, {self.port}{server})"

    def num_keys(self):
        """How many keys there are."""
        ours = self._ask(_C.dist_store_number, "count", "adjoin/")
        return super().num_keys() - max(ours - 1, 0)  # the key by which the processes meet counts, as PyTorch's

    def __del__(self):
        try:
            if self._link is not None:
                _C.dist_disconnect(self._link)
            if self._server is not None and _leave(self.host, self.port, self._server):
                _C.dist_end_server(self._server, 0)
        except (AttributeError, TypeError):  # it was never made, or the interpreter ends
            pass


_tenants = {}  # {(host, port): [server, how many stores have it]}, of stores that share their server
_tenants_lock = threading.RLock()  # a store may end while another one is made


def _serve_together(host, port):
    """(server, port): the one of another store of this process at the port, or a new one."""
    with _tenants_lock:
        if (host, port) in _tenants:
            _tenants[host, port][1] += 1
            return _tenants[host, port][0], port
        server, port = serve(host, port)
        _tenants[host, port] = [server, 1]
        return server, port


def _leave(host, port, server):
    """Whether nobody else has the server any more."""
    with _tenants_lock:
        shared = _tenants.get((host, port))
        if shared is None or shared[0] is not server:
            return True
        shared[1] -= 1
        if not shared[1]:
            del _tenants[host, port]
        return not shared[1]


class PrefixStore(Store):
    """A store whose keys all begin with a prefix in another one."""

    def __init__(self, prefix, store):
        super().__init__()
        if store is None:
            raise ValueError("PrefixStore: there is no store; wanted is one that its keys go to")
        self.prefix, self.underlying_store = prefix, store

    def _name(self, key):
        return f"{self.prefix}/{key}"

    timeout = property(lambda self: self.underlying_store.timeout)

    @property
    def _underlying_non_prefix_store(self):
        below = self.underlying_store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below

    def clone(self):
        """The same prefix in a clone of the other store."""
        return PrefixStore(self.prefix, self.underlying_store.clone())

    def set_timeout(self, timeout):
        """How long ``get`` and ``wait`` wait."""
        self.underlying_store.set_timeout(timeout)

    def set(self, key, value):
        """Sets a key."""
        self.underlying_store.set(self._name(key), value)

    def get(self, key):
        """The value, as soon as it is there."""
        return self.underlying_store.get(self._name(key))

    def wait(self, keys, timeout=None):
        """Waits until all keys are there."""
        self.underlying_store.wait([self._name(key) for key in keys], timeout)

    def add(self, key, amount):
        """Adds to a number, which begins at 0."""
        return self.underlying_store.add(self._name(key), amount)

    def check(self, keys):
        """Whether all keys are there."""
        return self.underlying_store.check([self._name(key) for key in keys])

    def delete_key(self, key):
        """Whether the key was there."""
        return self.underlying_store.delete_key(self._name(key))

    def compare_set(self, key, expected_value, desired_value):
        """Sets the key if its value is the expected one; the value now."""
        return self.underlying_store.compare_set(self._name(key), expected_value, desired_value)

    def num_keys(self):
        """How many keys the other store has."""
        return self.underlying_store.num_keys()


def serve(host, port):
    """(server, port). At an address of this machine alone if the host is one, else at all of its addresses."""
    alone = host in ("localhost", "::1") or host.startswith("127.")
    try:
        return _C.dist_serve(host if alone else "", port)
    except RuntimeError as error:
        raise DistNetworkError(str(error)) from None


def end(server):
    """Ends a server now."""
    _C.dist_end_server(server, 0)


def connect(host, port, timeout):
    """A link to a server, which may come later."""
    try:
        return _C.dist_connect(host, port, milliseconds(timeout))
    except RuntimeError as error:
        raise DistNetworkError(str(error)) from None
