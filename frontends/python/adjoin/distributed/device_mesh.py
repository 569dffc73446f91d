"""adjoin.distributed.device_mesh: the processes as a grid, with a group for each line of each dimension."""

import math

import adjoin


class DeviceMesh:
    """A grid of ranks, with names for its dimensions. Every process of the world makes the same one."""

    def __init__(self, device_type, mesh, *, mesh_dim_names=None, _init_backend=True, _groups=None):
        from . import _group

        mesh = adjoin.as_tensor(mesh, dtype=adjoin.int32)
        self.device_type, self.mesh, self._whole = device_type, mesh, None  # the mesh that it is a line of
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if self.mesh_dim_names and len(self.mesh_dim_names) != mesh.dim():
            raise RuntimeError(f"DeviceMesh: {len(self.mesh_dim_names)} names for {mesh.dim()} dimensions")
        self._rank = _group.get_rank() if _group.is_initialized() else 0
        here = (mesh.reshape(-1) == self._rank).nonzero()
        self._coordinate = None
        if here.numel():
            place, at = int(here[0, 0]), []
            for size in reversed(mesh.shape):
                at.insert(0, place % size)
                place //= size
            self._coordinate = at
        self._groups = _groups if _groups is not None else self._make_groups()

    def _make_groups(self):
        from . import _group

        if not _group.is_initialized():
            return [None] * self.ndim
        world = _group.get_world_size()
        mine = []
        for dim in range(self.ndim):
            lines = self.mesh.movedim(dim, -1).reshape(-1, self.mesh.shape[dim]).tolist()
            if lines == [list(range(world))]:
                mine.append(_group.group.WORLD)
                continue
            made = [_group.new_group(line) for line in lines]
            of_this = [g for g in made if g != _group.GroupMember.NON_GROUP_MEMBER]
            mine.append(of_this[0] if of_this else None)
        return mine

    ndim = property(lambda self: self.mesh.dim())
    shape = property(lambda self: tuple(self.mesh.shape))

    def _dim(self, mesh_dim):
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(f"DeviceMesh: it has {self.ndim} dimensions; say which one is meant (mesh_dim=)")
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self.mesh_dim_names or ()):
                raise KeyError(f"DeviceMesh: there is no dimension {mesh_dim!r}; there are {self.mesh_dim_names}")
            return self.mesh_dim_names.index(mesh_dim)
        return mesh_dim

    def size(self, mesh_dim=None):
        """How many processes there are, in all or along a dimension."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.shape[self._dim(mesh_dim)]

    def get_rank(self):
        """The rank in the world of this process."""
        return self._rank

    def get_local_rank(self, mesh_dim=None):
        """The place of this process along a dimension."""
        if self._coordinate is None:
            raise RuntimeError("DeviceMesh: this process is not in it")
        return self._coordinate[self._dim(mesh_dim)]

    def get_coordinate(self):
        """The place of this process in every dimension; None if it is not in it."""
        return list(self._coordinate) if self._coordinate is not None else None

    def get_group(self, mesh_dim=None):
        """The group of this process along a dimension."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self):
        """The group of this process along every dimension."""
        return list(self._groups)

    def __getitem__(self, names):
        """The line, or plane, of the named dimensions in which this process stands."""
        names = (names,) if isinstance(names, str) else tuple(names)
        dims = [self._dim(name) for name in names]
        rest = [d for d in range(self.ndim) if d not in dims]
        part = self.mesh.permute(rest + dims)
        for d in rest:
            part = part[self._coordinate[d]]
        groups = [self._groups[d] for d in dims]
        made = DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=groups)
        made._whole = self._whole or self
        return made

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.shape}, {self.mesh_dim_names})"


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, **options):
    """A grid of that shape of all processes, in their order."""
    from . import _group

    if not _group.is_initialized():
        _group.init_process_group()
    world = _group.get_world_size()
    if math.prod(mesh_shape) != world:
        raise RuntimeError(
            f"init_device_mesh: a grid of {tuple(mesh_shape)} wants {math.prod(mesh_shape)} processes; there are {world}"
        )
    mesh = adjoin.arange(world, dtype=adjoin.int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
