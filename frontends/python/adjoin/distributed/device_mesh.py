"""adjoin.distributed.device_mesh: the processes as a grid, with a group for each line of each dimension."""

import math
import threading

import adjoin


class DeviceMesh:
    """A grid of ranks, with names for its dimensions. Every process of the world makes the same one."""

    def __init__(self, device_type, mesh, *, mesh_dim_names=None, _init_backend=True, _groups=None):
        from . import _group

        mesh = adjoin.as_tensor(mesh, dtype=adjoin.int32)
        mesh = mesh.reshape(1) if mesh.dim() == 0 else mesh
        ranks = mesh.reshape(-1).tolist()
        if len(set(ranks)) != len(ranks):
            raise RuntimeError(f"DeviceMesh: a rank stands twice in {mesh.tolist()}")
        self.device_type, self.mesh, self._whole = device_type, mesh, None  # the mesh that it is a line of
        self._flat = {}  # {name: (names of the dimensions that are one in it, the mesh)}
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if self.mesh_dim_names and len(self.mesh_dim_names) != mesh.dim():
            raise RuntimeError(f"DeviceMesh: {len(self.mesh_dim_names)} names for {mesh.dim()} dimensions")
        _check_names(self.mesh_dim_names)
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
                names = (*(self.mesh_dim_names or ()), *self._root._flat)
                raise KeyError(f"DeviceMesh: there is no dimension {mesh_dim!r}; there are {names}")
            return self.mesh_dim_names.index(mesh_dim)
        if not -self.ndim <= mesh_dim < self.ndim:
            raise RuntimeError(f"DeviceMesh: there is no dimension {mesh_dim}; there are {self.ndim}")
        return mesh_dim % self.ndim

    _root = property(lambda self: self._whole or self)

    def _is_flat(self, name):
        return isinstance(name, str) and name not in (self.mesh_dim_names or ()) and name in self._root._flat

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
        if self._is_flat(mesh_dim):
            return self._root._flat[mesh_dim][1].get_group()
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self):
        """The group of this process along every dimension."""
        return list(self._groups)

    def __getitem__(self, names):
        """The line, or plane, of the named dimensions in which this process stands."""
        names = (names,) if isinstance(names, str) else tuple(names)
        if self.mesh_dim_names is None:
            raise RuntimeError(
                "DeviceMesh: its dimensions have no names (mesh_dim_names=), so none can be taken by name"
            )
        if self._coordinate is None:
            raise RuntimeError(f"DeviceMesh: {names} are taken of a mesh that this process is not in")
        if names == self.mesh_dim_names:
            return self
        if len(names) == 1 and self._is_flat(names[0]):
            return self._root._flat[names[0]][1]
        if any(self._is_flat(name) for name in names):
            return self._with_flat(names)
        dims = [self._dim(name) for name in names]
        groups = [self._groups[d] for d in dims]
        return self._part([[d] for d in dims], names, groups)

    def _part(self, dims, names, groups):
        """The mesh through this process whose dimensions are those of each list as one."""
        of_part = [d for one in dims for d in one]
        rest = [d for d in range(self.ndim) if d not in of_part]
        part = self.mesh.permute(rest + of_part)
        for d in rest:
            part = part[self._coordinate[d]]
        part = part.reshape([math.prod(self.mesh.shape[d] for d in one) for one in dims])
        made = DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=groups)
        made._whole = self._root
        return made

    def _with_flat(self, names):
        root = self._root
        dims, groups = [], []
        for name in names:
            flat = root._flat.get(name) if self._is_flat(name) else None
            dims.append([root._dim(n) for n in flat[0]] if flat else [root._dim(name)])
            groups.append(flat[1].get_group() if flat else root._groups[root._dim(name)])
        if len({d for one in dims for d in one}) != sum(map(len, dims)):
            raise KeyError(f"DeviceMesh: {names} name a dimension twice")
        return root._part(dims, names, groups)

    def _flatten(self, mesh_dim_name=None):
        """The mesh with its dimensions as one, which has that name in the whole mesh from now on. All processes call it."""
        from . import _group

        if self.mesh_dim_names is None:
            raise RuntimeError("DeviceMesh: its dimensions have no names (mesh_dim_names=), so they make none as one")
        root, name = self._root, mesh_dim_name or "_".join(self.mesh_dim_names)
        if name in root._flat and root._flat[name][0] == self.mesh_dim_names:
            return root._flat[name][1]
        if name in (root.mesh_dim_names or ()) or name in root._flat:
            if self.mesh_dim_names == (name,):
                return self
            raise RuntimeError(f"DeviceMesh: {name!r} is the name of another dimension; choose another name")
        dims = [root._dim(n) for n in self.mesh_dim_names]
        lines = root.mesh.permute([d for d in range(root.ndim) if d not in dims] + dims).reshape(-1, self.mesh.numel())
        made, groups = None, [self._groups[0]] if self.ndim == 1 else None
        if groups is None and _group.is_initialized():
            found = [_group.new_group(line) for line in lines.tolist()]
            groups = [g for g in found if g != _group.GroupMember.NON_GROUP_MEMBER][:1]
        made = DeviceMesh(self.device_type, self.mesh.reshape(-1), mesh_dim_names=(name,), _groups=groups or [None])
        made._whole = root
        root._flat[name] = self.mesh_dim_names, made
        return made

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """A mesh of groups that are there: of one group, or of one for each dimension, with the grid of ranks."""
        from . import _group

        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if not groups:
            raise ValueError("DeviceMesh.from_group: there is no group; pass one, or one for each dimension")
        ranks = _group.get_process_group_ranks(groups[0])
        if mesh is None and len(groups) > 1:
            raise ValueError("DeviceMesh.from_group: of several groups the grid of ranks is wanted, too (mesh=)")
        grid = adjoin.as_tensor(ranks if mesh is None else mesh, dtype=adjoin.int32)
        if len(groups) == 1 and not isinstance(group, (list, tuple)) and grid.tolist() != ranks:
            raise ValueError(f"DeviceMesh.from_group: the group has ranks {ranks}, and mesh= says {grid.tolist()}")
        if grid.dim() != len(groups):
            raise ValueError(f"DeviceMesh.from_group: {len(groups)} groups for a grid of {grid.dim()} dimensions")
        return DeviceMesh(device_type, grid, mesh_dim_names=mesh_dim_names, _groups=groups)

    def __enter__(self):
        """Inside of ``with mesh:`` it is the mesh that is meant where none is given."""
        _around().append(self)
        return self

    def __exit__(self, *error):
        _around().remove(self)

    def __eq__(self, other):
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def _key(self):
        return self.device_type, self.shape, self.mesh_dim_names, tuple(self.mesh.reshape(-1).tolist())

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.shape}, {self.mesh_dim_names})"


_open = threading.local()


def _around():
    """The meshes of ``with mesh:`` that this thread is in, the innermost last."""
    if not hasattr(_open, "meshes"):
        _open.meshes = []
    return _open.meshes


def _check_names(names):
    if names and len(set(names)) != len(names):
        raise RuntimeError(f"DeviceMesh: each of mesh_dim_names must be unique: {tuple(names)}")


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, **options):
    """A grid of that shape of all processes, in their order."""
    from . import _group

    if not _group.is_initialized():
        _group.init_process_group()
    if mesh_dim_names and len(mesh_dim_names) != len(mesh_shape):
        raise RuntimeError(f"init_device_mesh: {len(mesh_dim_names)} names for {len(mesh_shape)} dimensions")
    _check_names(mesh_dim_names)
    if not isinstance(device_type, str) or not device_type.isalpha():
        raise RuntimeError(
            f"init_device_mesh: device_type is {device_type!r}; it is a kind of device, without a number: 'cpu', 'cuda'"
        )
    world = _group.get_world_size()
    if math.prod(mesh_shape) != world:
        raise RuntimeError(
            f"init_device_mesh: a grid of {tuple(mesh_shape)} wants {math.prod(mesh_shape)} processes; there are {world}"
        )
    mesh = adjoin.arange(world, dtype=adjoin.int32).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
