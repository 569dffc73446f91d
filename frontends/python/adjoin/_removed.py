"""adjoin._removed: functions that PyTorch has removed; they say what to use."""


def _removed(name, use):
    def removed(*args, **settings):
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is deprecated in favor of {use}"
        )

    removed.__name__ = removed.__qualname__ = name
    removed.__doc__ = f"Removed: {use}."
    return removed


lstsq = _removed("lstsq", "`torch.linalg.lstsq`, which takes the matrix first and gives no QR factors")
solve = _removed(
    "solve", "`torch.linalg.solve`, which takes the matrix first and gives no LU factors; `torch.lu` gives them"
)
eig = _removed("eig", "`torch.linalg.eig`, which gives complex tensors")
symeig = _removed("symeig", "`torch.linalg.eigh`, which reads the lower triangle unless UPLO='U' is given")
cholesky = _removed("cholesky", "`torch.linalg.cholesky`, which takes upper, too")
qr = _removed("qr", "`torch.linalg.qr`, whose mode='complete' is what some=False was")


def xpu(self, *args, **settings):
    """There is no such backend."""
    raise RuntimeError(
        "xpu: no plugin brings a device 'xpu'; x.to(device) moves to one that is there: adjoin plugins lists them"
    )
