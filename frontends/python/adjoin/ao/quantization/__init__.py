"""adjoin.ao.quantization: modules that pass values on, and converters that raise: there are no quantized kernels."""

from ...nn.modules.module import Module


class QuantStub(Module):
    """Passes its input on; PyTorch's convert() would put a quantizer in its place."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        """The input."""
        return x


class DeQuantStub(QuantStub):
    """Passes its input on; PyTorch's convert() would put the way back in its place."""


class QuantWrapper(Module):
    """A module between the two stubs."""

    def __init__(self, module):
        super().__init__()
        self.quant, self.dequant, self.module = QuantStub(), DeQuantStub(), module
        self.train(module.training)

    def forward(self, x):
        """The module's output."""
        return self.dequant(self.module(self.quant(x)))


def _raises(name):
    def refuse(*args, **kwargs):
        """Raises: there are no quantized kernels."""
        raise NotImplementedError(
            f"ao.quantization.{name}: there are no quantized kernels; keep the network in float32 or bfloat16"
        )

    refuse.__name__ = name
    return refuse


prepare, prepare_qat, convert, quantize, quantize_qat, quantize_dynamic = map(
    _raises, ("prepare", "prepare_qat", "convert", "quantize", "quantize_qat", "quantize_dynamic")
)
fuse_modules, fuse_modules_qat, get_default_qconfig, get_default_qat_qconfig = map(
    _raises, ("fuse_modules", "fuse_modules_qat", "get_default_qconfig", "get_default_qat_qconfig")
)


class ObserverBase(Module):
    """For isinstance: no module here watches values to quantize them."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"ao.quantization.{type(self).__name__}: there are no quantized kernels; keep the network in float32 or bfloat16"
        )


class FakeQuantizeBase(ObserverBase):
    """For isinstance: no module here rounds as quantized numbers would."""
