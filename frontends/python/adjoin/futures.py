"""adjoin.futures: results that come later, from other threads."""

import logging
import threading
import types

__all__ = ["Future", "collect_all", "wait_all"]

_log = logging.getLogger("adjoin.futures")


class Future:
    """A value, or an error, that somebody sets once; ``wait()`` gives or raises it."""

    __class_getitem__ = classmethod(types.GenericAlias)  # Future[Tensor] in annotations

    def __init__(self, *, devices=None):
        self._changed = threading.Condition()
        self._done, self._value, self._error, self._callbacks = False, None, None, []

    def done(self):
        """Whether the value or the error is there."""
        return self._done

    def wait(self):
        """The value, as soon as it is there; an error is raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self):
        """The value, which has to be there."""
        if not self._done:
            raise RuntimeError("Future: the value is not there yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def set_result(self, result):
        """Gives the value to who waits."""
        self._finish(result, None)

    def set_exception(self, result):
        """Gives an error to who waits."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value, error):
        with self._changed:
            if self._done:
                raise RuntimeError("Future: it is done already; a result can be set once")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            self._call(callback)

    def _call(self, callback):
        """Whoever sets a value is not to suffer from a callback's error; it is told."""
        try:
            callback(self)
        except Exception as error:
            _log.error("Got the following error when running the callback: %s: %s", type(error).__name__, error)

    def add_done_callback(self, callback):
        """callback(self) is called when the value is there: at once if it is. Its error is logged, and goes nowhere else."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        self._call(callback)

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future: it belongs to its process; send its value()")

    def then(self, callback):
        """The future of callback(self); where that raises, a RuntimeError that tells of it, with the error as its cause."""
        after = Future()

        def run(before):
            try:
                result = callback(before)
            except Exception as error:
                told = RuntimeError(
                    f"Got the following error when running the callback: {type(error).__name__}: {error}"
                )
                told.__cause__ = error
                after.set_exception(told)
            else:
                after.set_result(result)

        self.add_done_callback(run)
        return after


def collect_all(futures):
    """The future of the list of all of them, done."""
    futures, together = list(futures), Future()
    left, lock = [len(futures)], threading.Lock()

    def one_is_done(future):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            together.set_result(futures)

    for future in futures:
        future.add_done_callback(one_is_done)
    if not futures:
        together.set_result(futures)
    return together


def wait_all(futures):
    """The values of all; the first error of one is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
