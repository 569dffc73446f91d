"""adjoin.distributed._work: a collective that has been started."""

import threading

from .. import _C
from ..futures import Future
from ._names import DistBackendError, milliseconds


class Work:
    """A collective that has been started. Its tensors hold the results after ``wait()``."""

    def __init__(self, native=None, after=None, tensors=()):
        self._native, self._after, self._tensors, self._error = native, after, list(tensors), None
        if native is None:
            self._finish()

    def _finish(self):
        after, self._after = self._after, None
        if after is not None:
            after()

    def wait(self, timeout=None):
        """True when it is done; DistBackendError names the process that keeps it from that."""
        if self._native is not None:
            try:
                _C.dist_work_wait(self._native, -1 if timeout is None else milliseconds(timeout))
            except RuntimeError as error:
                self._error = DistBackendError(str(error))
                raise self._error from None
            self._native = None
            self._finish()
        return True

    def is_completed(self):
        """Whether it is done; it does not wait."""
        if self._native is None:
            return True
        try:
            if not _C.dist_work_test(self._native):
                return False
        except RuntimeError as error:
            self._error = DistBackendError(str(error))
            return True
        self._native = None
        self._finish()
        return True

    def is_success(self):
        """Whether it is done, and well."""
        return self.is_completed() and self._error is None

    def exception(self):
        """What went wrong, or None."""
        return self._error

    def result(self):
        """The tensors that hold the results."""
        self.wait()
        return self._tensors

    synchronize = wait

    def get_future(self):
        """A future of the tensors that hold the results."""
        return _Future(self, self._tensors)


class _Future(Future):
    """What futures.Future can do, without a thread that waits: but for ``add_done_callback``, nothing happens before somebody asks."""

    def __init__(self, work, value=None, callback=None):
        self._work, self._callback, self._value, self._done = work, callback, value, False

    def done(self):
        """Whether the value is there."""
        return self._done or self._work.is_completed()

    def wait(self):
        """The value, as soon as it is there."""
        if not self._done:
            self._work.wait()
            if self._callback is not None:
                self._value = self._callback(self._work)
            self._done = True
        return self._value

    value = wait
    is_completed = done

    def add_done_callback(self, callback):
        """callback(self) is called when the value is there."""
        if self.done():
            self._call(callback)
            return

        def wait():
            try:
                self.wait()
            except Exception:  # who asks for the value hears of it
                pass
            self._call(callback)

        threading.Thread(target=wait, daemon=True).start()

    def set_result(self, result):
        """Raises: the collective gives the value."""
        raise RuntimeError("Future: it is a collective's, which gives the value itself")

    set_exception = set_result

    def then(self, callback):
        """The future of callback(self), which is called when somebody waits for it."""
        return _Future(self, callback=callback)


class Together:
    """Several works as one."""

    def __init__(self, works, tensors=()):
        self._works, self._tensors = works, list(tensors)

    def wait(self, timeout=None):
        """True when all are done."""
        for work in self._works:
            work.wait(timeout)
        return True

    def is_completed(self):
        """Whether all are done."""
        return all([work.is_completed() for work in self._works])

    is_success = is_completed

    def exception(self):
        """The first thing that went wrong, or None."""
        return next((work.exception() for work in self._works if work.exception()), None)

    def get_future(self):
        """A future of the tensors that hold the results."""
        return _Future(self, self._tensors)

    def result(self):
        """The tensors that hold the results."""
        self.wait()
        return self._tensors
