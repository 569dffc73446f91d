"""adjoin.distributed._methods: the collectives as a group's own methods, in the lists and options that PyTorch's engines take.

A list holds one tensor: a process has one part in a collective. Every method gives a work, whose result is the list of tensors.
"""

import datetime

import adjoin

from ._names import ReduceOp


class _Options:
    """What a collective is told besides its tensors; fields that are not named keep their defaults."""

    _fields: dict = {}

    def __init__(self, **given):
        unknown = sorted(set(given) - set(self._fields) - {"timeout", "asyncOp"})
        if unknown:
            raise TypeError(
                f"{type(self).__name__}: there is no {', '.join(unknown)}; there are {', '.join(self._fields)}"
            )
        self.timeout, self.asyncOp = datetime.timedelta(milliseconds=-1), True
        self.__dict__.update({**self._fields, **given})

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _options(name, **fields):
    return type(
        name,
        (_Options,),
        {"_fields": fields, "__module__": "adjoin.distributed", "__doc__": f"What {name[:-7]} is told."},
    )


AllreduceOptions = _options("AllreduceOptions", reduceOp=ReduceOp.SUM, sparseIndices=None)
AllreduceCoalescedOptions = _options("AllreduceCoalescedOptions", reduceOp=ReduceOp.SUM)
ReduceOptions = _options("ReduceOptions", reduceOp=ReduceOp.SUM, rootRank=0, rootTensor=0)
ReduceScatterOptions = _options("ReduceScatterOptions", reduceOp=ReduceOp.SUM)
BroadcastOptions = _options("BroadcastOptions", rootRank=0, rootTensor=0)
GatherOptions = _options("GatherOptions", rootRank=0)
ScatterOptions = _options("ScatterOptions", rootRank=0)
AllgatherOptions = _options("AllgatherOptions")
AllToAllOptions = _options("AllToAllOptions")
BarrierOptions = _options("BarrierOptions", device_ids=(), device=None)


def _one(tensors, who):
    if isinstance(tensors, adjoin.Tensor):
        return tensors
    if len(tensors) != 1:
        raise ValueError(
            f"{who}: the list has {len(tensors)} tensors; a process gives one tensor (cat or stack joins several)"
        )
    return tensors[0]


def _lists(lists, who):
    """The tensors of the one list in a list, or of a plain list."""
    lists = list(lists)
    if lists and not isinstance(lists[0], adjoin.Tensor):
        if len(lists) != 1:
            raise ValueError(f"{who}: there are {len(lists)} lists of tensors; a process has one")
        return list(lists[0])
    return lists


def _told(options, name, otherwise):
    return getattr(options, name) if isinstance(options, _Options) else otherwise if options is None else options


class Methods:
    """What a group does itself; roots are places in the group."""

    def _root(self, options, who):
        root, tensor = _told(options, "rootRank", 0), getattr(options, "rootTensor", 0)
        if not 0 <= root < self.size():
            raise ValueError(f"{who}: invalid root rank: {root}; the group has {self.size()} processes")
        if tensor != 0:
            raise ValueError(f"{who}: invalid root tensor: {tensor}; a list has one tensor")
        return root

    def broadcast(self, tensors, opts=None, *, root=None):
        """The tensor of the root goes to all."""
        root = self._root(root if opts is None else opts, "broadcast")
        return _c().broadcast(_one(tensors, "broadcast"), group=self, group_src=root, async_op=True)

    def allreduce(self, tensors, opts=None, *, op=None):
        """The tensor gets what the reduction makes of all processes' tensors."""
        op = _told(op if opts is None else opts, "reduceOp", ReduceOp.SUM)
        return _c().all_reduce(_one(tensors, "allreduce"), op, self, async_op=True)

    def allreduce_coalesced(self, tensors, opts=None):
        """The same, for each tensor of a list."""
        tensors = list(tensors)
        once = list({id(t): t for t in tensors}.values())  # one that stands twice in the list is reduced once
        return _together(lambda t, _: self.allreduce([t], opts), once, once)

    def reduce(self, tensors, opts=None, op=None, *, root=None):
        """The root's tensor gets what the reduction makes of all."""
        opts = root if opts is None else opts
        root, op = self._root(opts, "reduce"), getattr(opts, "reduceOp", op or ReduceOp.SUM)
        return _c().reduce(_one(tensors, "reduce"), op=op, group=self, group_dst=root, async_op=True)

    def allgather(self, output_tensors, input_tensors, opts=None):
        """Place i of the output list gets the tensor of process i."""
        given = _one(input_tensors, "allgather")
        return _c().all_gather(_lists(output_tensors, "allgather"), given, self, async_op=True)

    def allgather_coalesced(self, output_lists, input_list, opts=None):
        """output_lists[i][j] gets tensor j of process i."""
        places = [[line[j] for line in output_lists] for j in range(len(input_list))]
        return _together(lambda to, t: self.allgather(to, t), places, input_list)

    def _allgather_base(self, output, input, opts=None):
        """The output gets the inputs of all, one behind the other."""
        return _c().all_gather_into_tensor(output, input, self, async_op=True)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        """_allgather_base of each."""
        return _together(self._allgather_base, outputs, inputs)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        """_reduce_scatter_base of each."""
        return _together(lambda o, i: self._reduce_scatter_base(o, i, opts), outputs, inputs)

    def _get_backend(self, device):
        return self

    def gather(self, output_tensors, input_tensors, opts=None, *, root=None):
        """Place i of the root's output list gets the tensor of process i."""
        opts = root if opts is None else opts
        root, given = self._root(opts, "gather"), _one(input_tensors, "gather")
        places = _lists(output_tensors, "gather") if output_tensors else None
        return _c().gather(given, places, group=self, group_dst=root, async_op=True)

    def scatter(self, output_tensors, input_tensors, opts=None, *, root=None):
        """The output gets the root's tensor at this process's place."""
        opts = root if opts is None else opts
        root, place = self._root(opts, "scatter"), _one(output_tensors, "scatter")
        given = _lists(input_tensors, "scatter") if input_tensors else None
        return _c().scatter(place, given, group=self, group_src=root, async_op=True)

    def reduce_scatter(self, output_tensors, input_tensors, opts=None):
        """The output gets this process's place of the reduced input lists."""
        place, op = _one(output_tensors, "reduce_scatter"), _told(opts, "reduceOp", ReduceOp.SUM)
        return _c().reduce_scatter(place, _lists(input_tensors, "reduce_scatter"), op, self, async_op=True)

    def _reduce_scatter_base(self, output, input, opts=None):
        """The output gets this process's part of the reduced inputs."""
        return _c().reduce_scatter_tensor(output, input, _told(opts, "reduceOp", ReduceOp.SUM), self, async_op=True)

    def alltoall(self, output_tensors, input_tensors, opts=None):
        """output_tensors[i] gets what process i has at this process's place."""
        return _c().all_to_all(list(output_tensors), list(input_tensors), self, async_op=True)

    def alltoall_base(self, output, input, output_split_sizes, input_split_sizes, opts=None):
        """The same, with parts of the first dimension."""
        sizes = output_split_sizes or None, input_split_sizes or None
        return _c().all_to_all_single(output, input, *sizes, self, async_op=True)

    def send(self, tensors, dst, tag=0):
        """Starts to send a tensor to a place of the group."""
        return _c().isend(_one(tensors, "send"), group=self, tag=tag, group_dst=dst)

    def recv(self, tensors, src, tag=0):
        """Starts to receive a tensor of a place of the group."""
        return _c().irecv(_one(tensors, "recv"), group=self, tag=tag, group_src=src)

    def barrier(self, opts=None):
        """Done when all have come."""
        return _c().barrier(self, async_op=True)

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        """Waits until all have come; the error names who is missing."""
        _c().monitored_barrier(self, timeout, wait_all_ranks)


def _together(one, outputs, inputs):
    from ._work import Together

    return Together([one(o, i) for o, i in zip(outputs, inputs, strict=True)], outputs)


def _c():
    from . import _collectives

    return _collectives
