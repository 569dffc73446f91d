"""adjoin.distributed.pipelining._stage: one stage: its module, and what it keeps of a part of the batch until its gradients come."""

import collections
import contextlib

import adjoin

from ... import distributed as dist
from ...nn.parallel.distributed import DistributedDataParallel
from ..fsdp import FSDPModule


class PipelineStage:
    """The module ``submodule`` as stage ``stage_index`` of ``num_stages``. On which process a stage lies, its schedule says."""

    def __init__(self, submodule, stage_index, num_stages, device=None, input_args=None, output_args=None, group=None,
                 dw_builder=None):  # fmt: skip
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"PipelineStage: stage_index {stage_index} is not among {num_stages} stages")
        if dw_builder is not None:
            raise NotImplementedError("PipelineStage: dw_builder is not served; backward is one pass here")
        self.submod, self.stage_index, self.num_stages, self.device, self.group = (
            submodule,
            stage_index,
            num_stages,
            device,
            group,
        )
        self.group_size, self.group_rank = dist.get_world_size(group), dist.get_rank(group)
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.halves = False  # gradients of inputs and of weights come apart: the schedule's wish
        self.held, self.later = (
            {},
            {},
        )  # part of the batch -> (inputs, outputs, results of layers); what weights still wait for

    def forward_part(self, part, inputs, kwargs):
        """The outputs of a part, a tuple."""
        if not self.is_first:
            inputs = tuple(
                t.detach().requires_grad_(t.is_floating_point() and adjoin.is_grad_enabled()) for t in inputs
            )
        with self._alone(), self._noted() as layers:
            output = self.submod(*inputs, **kwargs)
        outputs = tuple(output) if isinstance(output, (tuple, list)) else (output,)
        self.held[part] = inputs, outputs, layers
        return output, outputs

    @contextlib.contextmanager
    def _noted(self):
        """[(result, module)] of the modules that have parameters of their own and are called meanwhile."""
        found, hooks = [], []
        if self.halves and adjoin.is_grad_enabled() and not self._is_wrapped():
            for module in self.submod.modules():
                if next(module.parameters(recurse=False), None) is not None:
                    hooks.append(module.register_forward_hook(lambda m, _, result: found.append((result, m))))
        try:
            yield found
        finally:
            for hook in hooks:
                hook.remove()

    def _is_wrapped(self):
        return isinstance(self.submod, (DistributedDataParallel, FSDPModule))

    def _alone(self):
        """Gradients of parts add up in this process; those that copy or cut the stage reduce them with the last part's."""
        return self.submod.no_sync() if isinstance(self.submod, DistributedDataParallel) else contextlib.nullcontext()

    def _reduces(self, outputs, last):
        if isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(last)
        elif last and isinstance(self.submod, DistributedDataParallel):
            self.submod._arm(outputs)

    def backward_part(self, part, loss, grads, last):
        """The gradients of a part's inputs, a tuple; None in the first stage. ``last``: of the stage's parts."""
        inputs, outputs, _ = self.held.pop(part)
        self._reduces(outputs, last)
        adjoin.autograd.backward(*_roots(loss, outputs, grads))
        return None if self.is_first else tuple(t.grad for t in inputs)

    def backward_inputs(self, part, loss, grads, last):
        """The same without the gradients of weights, which backward_weights makes. Copies and parts of a stage want all at once."""
        if self._is_wrapped():
            return self.backward_part(part, loss, grads, last)
        inputs, outputs, layers = self.held.pop(part)
        roots, seeds = _roots(loss, outputs, grads)
        own, rest = self._used_once(roots, layers)
        wanted = [] if self.is_first else [t for t in inputs if t.requires_grad]
        asked = [*wanted, *(result for result, _ in own)]
        found = adjoin.autograd.grad(roots, asked, seeds, retain_graph=True, allow_unused=True) if asked else ()
        self.later[part] = roots, seeds, list(zip(own, found[len(wanted) :], strict=True)), rest
        given = iter(found)
        return None if self.is_first else tuple(next(given) if t.requires_grad else None for t in inputs)

    def backward_weights(self, part):
        """Adds the gradients of weights of a part: of each layer from its result, as far as its own parameters."""
        if part not in self.later:
            return
        roots, seeds, own, rest = self.later.pop(part)
        for (result, params), grad in own:
            if grad is not None:
                adjoin.autograd.backward([result], [grad], retain_graph=True, inputs=params)
        if rest:
            adjoin.autograd.backward(roots, seeds, inputs=rest)

    def _used_once(self, roots, layers):
        """([(a layer's result, its parameters that nobody else uses)], the other parameters)."""
        uses, seen, todo = collections.Counter(), set(), [r.grad_fn for r in roots]
        while todo:
            node = todo.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            for following, _ in node.next_functions:
                if following is not None and getattr(following, "variable", None) is not None:
                    uses[id(following.variable)] += 1
                todo.append(following)
        owners = collections.Counter(id(p) for _, module in layers for p in module.parameters(recurse=False))
        own, done = [], set()
        for result, module in layers:
            if isinstance(result, adjoin.Tensor) and result.requires_grad:
                params = [p for p in module.parameters(recurse=False) if uses[id(p)] == owners[id(p)] == 1]
                own += [(result, params)] if params else []
                done |= set(map(id, params))
        return own, [p for p in self.submod.parameters() if p.requires_grad and id(p) not in done]

    def scale_grads(self, parts):
        """Gradients of the mean of all parts in place of their sum."""
        for p in self.submod.parameters():
            if p.grad is not None:
                p.grad.div_(parts)


def _roots(loss, outputs, grads):
    if loss is not None:
        return [loss], [None]
    pairs = [(o, g) for o, g in zip(outputs, grads, strict=True) if o.requires_grad and g is not None]
    return [o for o, _ in pairs], [g for _, g in pairs]
