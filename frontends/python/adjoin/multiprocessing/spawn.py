"""adjoin.multiprocessing.spawn: several processes that run one function, of which a failure ends all."""

import concurrent.futures
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import tempfile
import time
import warnings

from .. import _tracebacks

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_log = logging.getLogger(__name__)


class ProcessException(Exception):
    """A process that was started with others did not end well."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """It raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """It ended with an exit code or by a signal."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, index, args, error_file):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent got it too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(_tracebacks.shown_as_text(), file)
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that run together; ``join`` waits for all, or for the first failure."""

    def __init__(self, processes, error_files):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        """The numbers of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """True when all have ended well, False after the timeout; raises what one raised, and ends the others."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels, timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            if not self.sentinels:
                self._clean()
            return not self.sentinels
        self._stop(grace_period)
        try:
            raise self._error(failed)
        finally:
            self._clean()

    def _stop(self, grace_period):
        for send in (multiprocessing.process.BaseProcess.terminate, multiprocessing.process.BaseProcess.kill):
            if grace_period is not None or send.__name__ == "kill":
                end = time.monotonic() + (30 if grace_period is None else grace_period)
                for process in self.processes:
                    process.join(max(0, end - time.monotonic()))
            for process in self.processes:
                if process.is_alive():
                    way = "SIGTERM" if send.__name__ == "terminate" else "SIGKILL"
                    _log.warning("Terminating process %s via signal %s", process.pid, way)
                    send(process)
        for process in self.processes:
            process.join()

    def _error(self, index):
        process = self.processes[index]
        try:
            with open(self.error_files[index], "rb") as file:
                text = pickle.load(file)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = process.exitcode
            if code < 0:
                name = _signal_name(-code)
                text = f"process {index} terminated with signal {name}"
                return ProcessExitedException(text, index, process.pid, code, name)
            text = f"process {index} terminated with exit code {code}"
            return ProcessExitedException(text, index, process.pid, code)
        text = f"\n\n-- Process {index} terminated with the following error:\n{text}"
        return ProcessRaisedException(text, index, process.pid)

    def _clean(self):
        for name in self.error_files:
            if os.path.exists(name):
                os.unlink(name)


SpawnContext = ProcessContext


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` in processes i = 0 ... nprocs - 1.

    With ``TORCH_MP_PARALLEL_START=1`` a server of forks is asked for all at once, so that what takes long to pickle takes as long once.
    """
    context = multiprocessing.get_context(start_method)

    def start(index):
        handle, name = tempfile.mkstemp(prefix="adjoin-error-")
        os.close(handle)
        os.unlink(name)
        process = context.Process(target=_run, args=(fn, index, args, name), daemon=daemon)
        process.start()
        return process, name

    if start_method == "forkserver" and nprocs > 1 and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        with concurrent.futures.ThreadPoolExecutor(nprocs) as pool:
            started = list(pool.map(start, range(nprocs)))
    else:
        started = [start(index) for index in range(nprocs)]
    processes, files = [process for process, _ in started], [name for _, name in started]
    together = ProcessContext(processes, files)
    if not join:
        return together
    try:
        while not together.join():
            pass
    except KeyboardInterrupt:
        together._stop(None)
        together._clean()
        raise
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` in ``nprocs`` fresh processes; what one raises comes out of ``join`` with its traceback."""
    if start_method != "spawn":
        warnings.warn("spawn: start_method is 'spawn'; start_processes takes another one", FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
