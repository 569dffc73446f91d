"""adjoin.distributed.store: keys and values that processes share."""

import datetime
import json
import os
import threading
import time

from .. import _C
from ._names import DistNetworkError, DistStoreError, milliseconds

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
                raise DistStoreError(f"wait: the store has no {missing} after {timeout or self._timeout}")
            time.sleep(0.005)

    def multi_get(self, keys):
        """The values of all keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        """Sets all keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

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
                raise DistStoreError(f"get: the store has no {key!r} after {self._timeout}")
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
        self.path, self._world_size = file_name, world_size

    def _change(self, f):
        import fcntl

        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644), "r+") as file:
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

    def set(self, key, value):
        """Sets a key."""
        self._change(lambda held: held.update({key: _bytes(value).hex()}))

    def get(self, key):
        """The value, as soon as it is there."""
        self.wait([key])
        return bytes.fromhex(self._change(lambda held: held[key]))

    def add(self, key, amount):
        """Adds to a number, which begins at 0."""

        def add(held):
            total = int(bytes.fromhex(held.get(key, "30"))) + amount
            held[key] = str(total).encode().hex()
            return total

        return self._change(add)

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
        return self._change(len)


class _LinkStore(Store):
    """Keys of a control server."""

    def __init__(self, link):
        super().__init__()
        self._link = link

    def _ask(self, f, *args):
        try:
            return f(self._link, *args)
        except RuntimeError as error:
            raise DistStoreError(str(error)) from None

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
        self._server = None
        if is_master:
            self._server, port = serve(host_name, port)
        super().__init__(connect(host_name, port, timeout))
        self.host, self.port, self._timeout = host_name, port, timeout
        if wait_for_workers and world_size and world_size > 0:
            if self.add("adjoin/workers", 1) % world_size == 0:
                self.set("adjoin/all_workers", b"1")
            self.wait(["adjoin/all_workers"])

    def num_keys(self):
        """How many keys there are."""
        return super().num_keys() - self._ask(_C.dist_store_number, "count", "adjoin/")

    def __del__(self):
        try:
            if self._link is not None:
                _C.dist_disconnect(self._link)
            if self._server is not None:
                _C.dist_end_server(self._server, 0)
        except (AttributeError, TypeError):  # it was never made, or the interpreter ends
            pass


class PrefixStore(Store):
    """A store whose keys all begin with a prefix in another one."""

    def __init__(self, prefix, store):
        super().__init__()
        self.prefix, self.underlying_store = prefix, store

    def _name(self, key):
        return f"{self.prefix}/{key}"

    timeout = property(lambda self: self.underlying_store.timeout)

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
