"""adjoin.distributed.device_mesh: the processes as a grid; here it has one place."""


class DeviceMesh:
    """A grid of one process, with names for its dimensions."""

    def __init__(self, device_type, mesh, *, mesh_dim_names=None, _init_backend=True):
        import adjoin

        mesh = adjoin.as_tensor(mesh, dtype=adjoin.int32)
        if mesh.numel() != 1:
            raise NotImplementedError(f"DeviceMesh: {mesh.numel()} processes; only a group of one is served yet")
        self.device_type, self.mesh, self.mesh_dim_names = device_type, mesh, mesh_dim_names

    ndim = property(lambda self: self.mesh.dim())
    shape = property(lambda self: tuple(self.mesh.shape))

    def size(self, mesh_dim=None):
        """1."""
        return 1

    def get_rank(self):
        """0."""
        return 0

    def get_local_rank(self, mesh_dim=None):
        """0."""
        return 0

    def get_coordinate(self):
        """Zeros."""
        return [0] * self.ndim

    def get_group(self, mesh_dim=None):
        """The default group."""
        from . import group

        return group.WORLD

    def __getitem__(self, names):
        names = (names,) if isinstance(names, str) else tuple(names)
        if missing := [n for n in names if n not in (self.mesh_dim_names or ())]:
            raise KeyError(f"DeviceMesh: there is no dimension {missing[0]!r}; there are {self.mesh_dim_names}")
        return DeviceMesh(self.device_type, self.mesh.reshape([1] * len(names)), mesh_dim_names=names)

    def __repr__(self):
        return f"DeviceMesh({self.device_type!r}, {self.shape}, {self.mesh_dim_names})"


def init_device_mesh(device_type, mesh_shape, *, mesh_dim_names=None, **options):
    """A grid of that shape; every size must be 1."""
    import math

    import adjoin

    from . import init_process_group, is_initialized

    if math.prod(mesh_shape) != 1:
        raise NotImplementedError(
            f"init_device_mesh: a grid of {tuple(mesh_shape)}; only a group of one process is served yet"
        )
    if not is_initialized():
        init_process_group()
    return DeviceMesh(device_type, adjoin.zeros(mesh_shape, dtype=adjoin.int32), mesh_dim_names=mesh_dim_names)
