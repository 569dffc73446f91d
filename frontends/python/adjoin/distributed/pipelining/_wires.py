"""adjoin.distributed.pipelining._wires: tensors between stages. A wire goes one way from a process to another, in a group of its own, so
that what one waits for never stands behind another transfer."""

import adjoin

from ... import distributed as dist
from .._group import GroupMember

FORWARD, BACKWARD = "forward", "backward"
_STEP = {FORWARD: 1, BACKWARD: -1}


def _described(tensors):
    return [None if t is None else (tuple(t.shape), t.dtype) for t in tensors]


class Wires:
    """All wires of this process. ``where``: the process of each stage."""

    def __init__(self, group, where):
        self.where, self.rank = where, dist.get_rank(group)
        ranks = dist.get_process_group_ranks(group)
        self.groups, self.shapes, self.came, self.works = {}, {}, {}, []
        steps = range(len(where) - 1)
        for way, ends in (
            (FORWARD, {(where[s], where[s + 1]) for s in steps}),
            (BACKWARD, {(where[s + 1], where[s]) for s in steps}),
        ):
            for a, b in sorted(ends):
                if a == b:
                    continue
                made = dist.new_group([ranks[a], ranks[b]])
                if made != GroupMember.NON_GROUP_MEMBER and self.rank in (a, b):
                    self.groups[way, a, b] = made, ranks[a], ranks[b]

    def send(self, way, key, tensors):
        """Sends a stage's results or gradients on; ``key``: (the stage that they are for, part)."""
        tensors = [None if t is None else t.detach().contiguous() for t in tensors]
        receiver = self.where[key[0]]
        if receiver == self.rank:
            self.came[way, key] = tensors
            return
        group, _, to = self.groups[way, self.rank, receiver]
        if (way, key[0]) not in self.shapes:  # as the first part, so all
            self.shapes[way, key[0]] = _described(tensors)
            dist.send_object_list([self.shapes[way, key[0]]], to, group)
        self.works += [(dist.isend(t, to, group), t) for t in tensors if t is not None]

    def receive(self, way, key, orders, device):
        """What a stage is to get for a part. ``orders``: of each process keys in the order in which it sends."""
        sender = self.where[key[0] - _STEP[way]]
        while (way, key) not in self.came:
            following = next(orders[way, sender])
            self.came[way, following] = self._next(way, sender, following, device)
        return self.came.pop((way, key))

    def _next(self, way, sender, key, device):
        group, source, _ = self.groups[way, sender, self.rank]
        if (way, key[0], "in") not in self.shapes:
            told = [None]
            dist.recv_object_list(told, source, group)
            self.shapes[way, key[0], "in"] = told[0]
        found = []
        for shape in self.shapes[way, key[0], "in"]:
            t = None if shape is None else adjoin.empty(shape[0], dtype=shape[1], device=device)
            if t is not None:
                dist.recv(t, source, group)
            found.append(t)
        return found

    def settle(self):
        """All that was sent has left."""
        works, self.works = self.works, []
        for work, _ in works:
            work.wait()
