"""adjoin.distributed.fsdp.fully_sharded_data_parallel: the older class, over fully_shard."""

import contextlib
import dataclasses
import enum
import os

import adjoin

from ... import distributed as dist
from ...nn.utils import clip_grad_norm_
from ..device_mesh import DeviceMesh
from ..tensor import DTensor
from .wrap import CustomPolicy, _chosen
from ._fully_shard import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard  # noqa: F401


class ShardingStrategy(enum.Enum):
    """What is cut: parameters all the time, or but for forward and backward."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class StateDictType(enum.Enum):
    """Whole tensors, or parts."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclasses.dataclass
class MixedPrecision:
    """The dtypes of parameters in use and of gradients that are reduced."""

    param_dtype: adjoin.dtype | None = None
    reduce_dtype: adjoin.dtype | None = None
    buffer_dtype: adjoin.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = True
    cast_root_forward_inputs: bool = True


class BackwardPrefetch(enum.Enum):
    """When parameters are gathered for backward: here, when they are needed."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


@dataclasses.dataclass
class CPUOffload:
    """Whether parts lie on the processor."""

    offload_params: bool = False


@dataclasses.dataclass
class StateDictConfig:
    """What state_dict() gives besides."""

    offload_to_cpu: bool = False


class OptimStateDictConfig(StateDictConfig):
    """The same for an optimizer's state."""


@dataclasses.dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors, in process 0 alone if ``rank0_only``."""

    rank0_only: bool = False


@dataclasses.dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Parts."""

    _use_dtensor: bool = True


class FullOptimStateDictConfig(FullStateDictConfig):
    """The same for an optimizer's state."""


class ShardedOptimStateDictConfig(ShardedStateDictConfig):
    """The same for an optimizer's state."""


@dataclasses.dataclass
class StateDictSettings:
    """What state_dict() and optim_state_dict() give."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: StateDictConfig | None


class FullyShardedDataParallel(adjoin.nn.Module):
    """A module around one that fully_shard has cut, and before it those parts of it that ``auto_wrap_policy`` names."""

    def __init__(self, module, process_group=None, sharding_strategy=None, cpu_offload=None, auto_wrap_policy=None,
                 backward_prefetch=None, mixed_precision=None, ignored_modules=None, param_init_fn=None, device_id=None,
                 sync_module_states=False, forward_prefetch=False, limit_all_gathers=True, use_orig_params=False,
                 ignored_states=None, device_mesh=None):  # fmt: skip
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh(strategy, process_group, device_mesh)
        if (
            cpu_offload is not None
            and cpu_offload.offload_params
            and any(p.device.type != "cpu" for p in module.parameters())
        ):
            raise NotImplementedError(
                "FullyShardedDataParallel: parts are not taken from a device to the processor; leave cpu_offload out"
            )
        if param_init_fn is not None:
            _fill(module, param_init_fn, ignored_modules or ())
        if sync_module_states:
            with adjoin.no_grad():
                for t in (*module.parameters(), *module.buffers()):
                    dist.broadcast(t.detach(), group=process_group, group_src=0)
        mixed = mixed_precision or MixedPrecision()
        policy = MixedPrecisionPolicy(mixed.param_dtype, mixed.reduce_dtype, None, mixed.cast_forward_inputs)
        ignored = {p for m in ignored_modules or () for p in m.parameters()} | {
            p for p in ignored_states or () if isinstance(p, adjoin.Tensor)
        }
        keep = {"mesh": mesh, "mp_policy": policy, "ignored_params": ignored}
        lets_go = strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)
        parts = () if auto_wrap_policy is None else _chosen(module, auto_wrap_policy, ignored_modules or (), ignored)
        for part in parts:
            if not isinstance(part, FSDPModule):
                fully_shard(part, **{"reshard_after_forward": lets_go, **keep, **_own(auto_wrap_policy, part)})
        self.module = fully_shard(module, reshard_after_forward=lets_go, **keep)
        self.sharding_strategy, self.process_group = strategy, mesh.get_group(mesh.ndim - 1) if mesh else None
        self._kind, self._config, self._optim_config = StateDictType.FULL_STATE_DICT, FullStateDictConfig(), None

    def forward(self, *args, **kwargs):
        """The module's."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def named_parameters(self, *args, **kwargs):
        """By the names that they have in the module."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.removeprefix("module."), p

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, gradients are kept, and reduced with those of the first pass after it."""
        self.module.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.module.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, max_norm, norm_type=2.0):
        """Clips the norm of all processes' gradients; the norm."""
        norm = clip_grad_norm_(list(self.parameters()), max_norm, norm_type)
        return norm.full_tensor() if isinstance(norm, DTensor) else norm

    @classmethod
    @contextlib.contextmanager
    def state_dict_type(cls, module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """Inside, state_dict() gives whole tensors, or parts."""
        held = [m for m in module.modules() if isinstance(m, cls)]
        before = [(m._kind, m._config, m._optim_config) for m in held]
        cls.set_state_dict_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            for m, settings in zip(held, before, strict=True):
                m._kind, m._config, m._optim_config = settings

    @classmethod
    def set_state_dict_type(cls, module, state_dict_type, state_dict_config=None, optim_state_dict_config=None):
        """What state_dict() gives from now on."""
        if state_dict_type is StateDictType.LOCAL_STATE_DICT:
            raise NotImplementedError(
                "state_dict_type: LOCAL_STATE_DICT is not served; SHARDED_STATE_DICT gives parts that know their places"
            )
        before = cls.get_state_dict_type(module)
        for m in module.modules():
            if isinstance(m, cls):
                m._kind, m._config = state_dict_type, state_dict_config or FullStateDictConfig()
                m._optim_config = optim_state_dict_config
        return before

    @classmethod
    def get_state_dict_type(cls, module):
        """What state_dict() gives, with its settings."""
        held = next(m for m in module.modules() if isinstance(m, cls))
        return StateDictSettings(held._kind, held._config, held._optim_config)

    @classmethod
    def fsdp_modules(cls, module, root_only=False):
        """The FullyShardedDataParallel modules in a module; those that are in no other one."""
        held = [m for m in module.modules() if isinstance(m, cls)]
        inner = {id(m) for one in held for m in one.modules() if m is not one} if root_only else ()
        return [m for m in held if id(m) not in inner]

    def check_is_root(self):
        """Whether the module is in no other one; nobody knows of what is around it, so it is."""
        return True

    def state_dict(self, *args, **kwargs):
        """By the module's names; whole tensors unless state_dict_type says otherwise."""
        state = self.module.state_dict(*args, **kwargs)
        if self._kind is not StateDictType.FULL_STATE_DICT:
            return state
        whole = {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in state.items()}
        if getattr(self._config, "offload_to_cpu", False):
            whole = {k: v.cpu() for k, v in whole.items()}
        return {} if getattr(self._config, "rank0_only", False) and dist.get_rank() else whole

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Takes whole tensors, or parts."""
        from ..checkpoint.state_dict import StateDictOptions, set_model_state_dict

        return set_model_state_dict(
            self.module, state_dict, options=StateDictOptions(full_state_dict=True, strict=strict)
        )

    @classmethod
    def optim_state_dict(cls, model, optim, optim_state_dict=None, group=None):
        """The optimizer's state by the parameters' names; whole tensors unless state_dict_type says otherwise."""
        from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        held = next(m for m in model.modules() if isinstance(m, cls))
        full = held._kind is StateDictType.FULL_STATE_DICT
        state = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=full))
        config = held._optim_config or held._config
        return {} if full and getattr(config, "rank0_only", False) and dist.get_rank() else state

    @classmethod
    def optim_state_dict_to_load(
        cls, model, optim, optim_state_dict, is_named_optimizer=False, load_directly=False, group=None
    ):
        """What ``optim.load_state_dict`` takes, of a state by names."""
        from ..checkpoint.state_dict import _named_state, _numbered

        made = _numbered(optim_state_dict, _named_state(model, optim), optim)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @classmethod
    def full_optim_state_dict(cls, model, optim, optim_input=None, rank0_only=True, group=None):
        """The optimizer's whole state by the parameters' names, in process 0 alone if ``rank0_only``."""
        from ..checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

        state = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=True))
        return {} if rank0_only and dist.get_rank(group) else state

    @classmethod
    def sharded_optim_state_dict(cls, model, optim, group=None):
        """The parts of the optimizer's state by the parameters' names."""
        from ..checkpoint.state_dict import get_optimizer_state_dict

        return get_optimizer_state_dict(model, optim)

    @classmethod
    def shard_full_optim_state_dict(cls, full_optim_state_dict, model, optim_input=None, optim=None):
        """What ``optim.load_state_dict`` takes, of a whole state that every process has."""
        if optim is None:
            raise ValueError("shard_full_optim_state_dict: optim= is wanted, the optimizer that is to take the state")
        return cls.optim_state_dict_to_load(model, optim, full_optim_state_dict)

    @classmethod
    def scatter_full_optim_state_dict(cls, full_optim_state_dict, model, optim_input=None, optim=None, group=None):
        """The same of a whole state that process 0 has, None the others."""
        held = [full_optim_state_dict if dist.get_rank(group) == 0 else None]
        dist.broadcast_object_list(held, group=group, group_src=0)
        return cls.shard_full_optim_state_dict(held[0], model, optim_input, optim)

    @classmethod
    @contextlib.contextmanager
    def summon_full_params(
        cls, module, recurse=True, writeback=True, rank0_only=False, offload_to_cpu=False, with_grads=False
    ):
        """Inside, the modules have whole parameters; with ``writeback`` what is written to them goes to the parts."""
        held = [m._fsdp.params for m in module.modules() if isinstance(m, FSDPModule)]
        with adjoin.no_grad():
            for params in held:
                params.enter()
        try:
            yield
        finally:
            for params in held:
                for s in params.slots:
                    owner, name = s.holders[0]
                    whole = owner._parameters[name]
                    if writeback:
                        from ..tensor import distribute_tensor

                        part = distribute_tensor(whole.detach(), params.mesh, s.sharded.placements, src_data_rank=None)
                        with adjoin.no_grad():
                            s.sharded._local_tensor.copy_(part._local_tensor)
                params.leave()


def _mesh(strategy, group, mesh):
    """One dimension: parts; two: copies, and parts within each."""
    hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if mesh is not None:
        if mesh.ndim != 1 + hybrid:
            raise ValueError(
                f"FullyShardedDataParallel: {strategy} wants a mesh of {1 + hybrid} dimensions; it has {mesh.ndim}"
                f"{' (copies first, then parts)' if hybrid else ''}"
            )
        return mesh
    if hybrid:
        if isinstance(group, (tuple, list)):  # (parts, copies), as PyTorch has them
            parts, copies = group
            mine, n = dist.get_process_group_ranks(parts), dist.get_world_size(copies)
            grid = adjoin.empty(n, len(mine), dtype=adjoin.int64)
            lines = [None] * n
            dist.all_gather_object(lines, mine, copies)
            for i, line in enumerate(lines):
                grid[i] = adjoin.tensor(line)
            return DeviceMesh("cpu", grid, _groups=[copies, parts])
        ranks = dist.get_process_group_ranks(group)
        local = int(os.environ.get("LOCAL_WORLD_SIZE", len(ranks)))
        return DeviceMesh("cpu", adjoin.tensor(ranks).reshape(-1, local))
    if strategy is ShardingStrategy.NO_SHARD:  # copies alone
        return DeviceMesh("cpu", adjoin.tensor(dist.get_process_group_ranks(group)).reshape(-1, 1))
    if group is None:
        return None
    return DeviceMesh("cpu", dist.get_process_group_ranks(group), _groups=[group])


def _fill(module, init, ignored):
    """Calls ``init`` for each module that has a tensor without values."""
    left_out = {inner for m in ignored for inner in m.modules()}
    for m in [m for m in module.modules() if m not in left_out]:
        if any(t.is_meta for t in (*m.parameters(recurse=False), *m.buffers(recurse=False))):
            init(m)
    for name, p in module.named_parameters():
        if p.is_meta:
            raise ValueError(
                f"FullyShardedDataParallel: param_init_fn has left {name} without values (device meta); "
                "m.to_empty(device=..., recurse=False) and m.reset_parameters() give a module's own ones"
            )


def _own(policy, module):
    """What a CustomPolicy says of one module."""
    said = policy.keywords(module) if isinstance(policy, CustomPolicy) else {}
    made = {}
    for name, value in said.items():
        if name == "sharding_strategy" and value in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP):
            made["reshard_after_forward"] = value is ShardingStrategy.FULL_SHARD
        elif name == "mixed_precision" and value is not None:
            made["mp_policy"] = MixedPrecisionPolicy(
                value.param_dtype, value.reduce_dtype, None, value.cast_forward_inputs
            )
        elif name not in ("mixed_precision", "backward_prefetch"):
            raise NotImplementedError(
                f"CustomPolicy: {name}={value!r} of one module is not served; sharding_strategy and mixed_precision are"
            )
    return made
