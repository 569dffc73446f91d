"""adjoin.distributed.launcher.api: elastic_launch: a function's results by rank, from processes that have torchrun's variables."""

import dataclasses
import os
import pickle
import socket
import tempfile

from ...multiprocessing.spawn import ProcessException, start_processes
from ..elastic.multiprocessing.errors import ChildFailedError, ProcessFailure

__all__ = ["LaunchConfig", "elastic_launch"]


@dataclasses.dataclass
class LaunchConfig:
    """How many processes are started, and how. ``start_method`` is that of multiprocessing; what rendezvous, logs and metrics would be
    given is not needed on one machine."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: object = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict = dataclasses.field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict = dataclasses.field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    shutdown_timeout: int | None = None


class elastic_launch:
    """``elastic_launch(config, function)(*args)``: {rank: what the function returned}. Where a process fails all are started again, as
    often as ``max_restarts`` says; then ChildFailedError tells the first failure. A program's name in place of a function runs that.
    """

    def __init__(self, config, entrypoint, health_check_server=None):
        if (config.min_nodes, config.max_nodes) != (1, 1) and callable(entrypoint):
            raise NotImplementedError(
                f"elastic_launch: {config.min_nodes} to {config.max_nodes} machines; a function runs in the processes of one; for more "
                "start a program on each by `adjoin launch --nnodes`"
            )
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        if not callable(self._entrypoint):
            return self._program(args)
        for attempt in range(self._config.max_restarts + 1):
            try:
                return self._attempt(attempt, args)
            except ProcessException as error:
                failed = error
        name = getattr(self._entrypoint, "__qualname__", str(self._entrypoint))
        code = getattr(failed, "exit_code", 1)
        raise ChildFailedError(
            name, {failed.error_index: ProcessFailure(failed.error_index, failed.pid, code, failed.msg)}
        ) from failed

    def _attempt(self, attempt, args):
        count = self._config.nproc_per_node
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            port = place.getsockname()[1]
        with tempfile.TemporaryDirectory(prefix="adjoin-results-") as folder:
            told = folder, count, port, attempt, self._config.max_restarts, self._config.run_id
            start_processes(_work, (told, self._entrypoint, args), count, start_method=self._config.start_method)
            results = {}
            for rank in range(count):
                with open(f"{folder}/{rank}", "rb") as file:
                    results[rank] = pickle.load(file)
            return results

    def _program(self, args):
        from ..run import main

        config = self._config
        words = ["--nproc-per-node", config.nproc_per_node, "--max-restarts", config.max_restarts]
        if config.max_nodes > 1:
            words += ["--nnodes", f"{config.min_nodes}:{config.max_nodes}", "--rdzv-endpoint", config.rdzv_endpoint]
        if config.run_id:
            words += ["--rdzv-id", config.run_id]
        code = main([*map(str, words), "--no-python", str(self._entrypoint), *map(str, args)])
        if code:
            raise ChildFailedError(str(self._entrypoint), {0: ProcessFailure(0, -1, code, f"exit code {code}")})
        return {}


def _work(rank, told, function, args):
    """In a process of its own."""
    folder, count, port, attempt, restarts, run_id = told
    variables = {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
        "ROLE_RANK": rank, "ROLE_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": restarts, "TORCHELASTIC_RUN_ID": run_id or "none",
    }  # fmt: skip
    os.environ.pop("ADJOIN_CONTROL", None)  # of a launcher around the one that started this
    os.environ.update({name: str(value) for name, value in variables.items()})
    result = function(*args)
    with open(f"{folder}/{rank}", "wb") as file:
        pickle.dump(result, file)
