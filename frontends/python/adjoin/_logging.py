"""adjoin._logging: the switches of loggers that programs know: by parts of the library, and by kinds of messages (artifacts).

Few parts write messages here: a switch sets what its loggers let through, those of other packages under the same names among them.
"""

import functools
import logging

_PARTS = {
    "all": ["torch"],
    "aot": ["torch._functorch.aot_autograd", "torch._functorch._aot_autograd"],
    "autograd": ["torch.autograd"],
    "c10d": ["torch.distributed.distributed_c10d", "torch.distributed.rendezvous"],
    "ddp": ["torch.nn.parallel.distributed"],
    "distributed": ["torch.distributed", "torch.nn.parallel.distributed"],
    "dtensor": ["torch.distributed.tensor"],
    "dynamic": ["torch.fx.experimental.symbolic_shapes"],
    "dynamo": ["torch._dynamo"],
    "export": ["torch.export"],
    "fsdp": ["torch.distributed.fsdp"],
    "inductor": ["torch._inductor"],
    "onnx": ["torch.onnx"],
}
_ARTIFACTS = frozenset(
    """
    aot_graphs aot_joint_graph autotuning autotuning_inputs benchmarking bytecode caching compiled_autograd
    compiled_autograd_verbose compute_dependencies cudagraph_static_inputs cudagraphs ddp_graphs fusion graph graph_breaks
    graph_code graph_code_verbose graph_region_expansion graph_sizes guards hierarchical_compile incremental inductor_metrics
    ir_post_fusion ir_pre_fusion kernel_code onnx_diagnostics output_code overlap partitioned_scatter perf_hints
    post_grad_graphs pre_grad_graphs recompiles recompiles_verbose schedule side_effects sym_node trace_bytecode trace_call
    trace_source
    """.split()
)
_LEVELS = (logging.CRITICAL, logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG, logging.NOTSET)
_on = set()  # artifacts that are shown
_given = {}  # artifact -> its loggers
_set = set()  # loggers of parts that have a level of set_logs


class _Shown(logging.Filter):
    """Lets the messages of an artifact pass while it is on."""

    def filter(self, record):
        return record.name.rpartition(".__")[2] in _on


def getArtifactLogger(module_qname, artifact_name):
    """The logger of a kind of messages in a module: it is quiet until ``set_logs(artifact_name=True)``."""
    if artifact_name not in _ARTIFACTS:
        raise ValueError(f"Artifact name: {artifact_name!r} not registered; known are {', '.join(sorted(_ARTIFACTS))}")
    log = logging.getLogger(f"{module_qname}.__{artifact_name}")
    loggers = _given.setdefault(artifact_name, set())
    if log not in loggers:
        loggers.add(log)
        log.artifact_name = artifact_name
        log.addFilter(_Shown())
        log.setLevel(logging.DEBUG if artifact_name in _on else logging.NOTSET)
    return log


def set_logs(*, all=None, modules=None, **given):
    """Sets levels of parts (``dynamo=logging.DEBUG``) and shows artifacts (``recompiles=True``); what is not named is as at first.

    ``modules``: {name of a logger: level}.
    """
    levels, shown = {}, set()
    for name, value in {**({} if all is None else {"all": all}), **given}.items():
        if name in _ARTIFACTS:
            if not isinstance(value, bool):
                raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
            shown |= {name} if value else set()
        elif name not in _PARTS:
            raise TypeError(
                f"set_logs() got an unexpected keyword argument {name!r}; parts are {', '.join(_PARTS)}, artifacts "
                f"{', '.join(sorted(_ARTIFACTS))}"
            )
        else:
            levels.update(dict.fromkeys(_PARTS[name], (name, value)))
    levels.update({name: (name, value) for name, value in (modules or {}).items()})
    for name, value in levels.values():
        if isinstance(value, bool) or value not in _LEVELS:
            raise ValueError(
                f"Unrecognized log level for log {name}: {value}, valid level values are: {','.join(map(str, _LEVELS))}"
            )
    _on.clear()
    _on.update(shown)
    for artifact, loggers in _given.items():
        for log in loggers:
            log.setLevel(logging.DEBUG if artifact in _on else logging.NOTSET)
    for name in _set - set(levels):
        logging.getLogger(name).setLevel(logging.NOTSET)
    _set.clear()
    _set.update(levels)
    for name, (_, value) in levels.items():
        logging.getLogger(name).setLevel(value)


@functools.cache
def warning_once(logger_obj, *args, **kwargs):
    """A warning that each text is said once of."""
    logger_obj.warning(*args, **kwargs)


class LazyString:
    """A text that is made when a message is really written."""

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self):
        return str(self.func(*self.args, **self.kwargs))
