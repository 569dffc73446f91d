"""adjoin.nn.utils.memory_format: the weights of convolutions in another order of memory."""

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module, memory_format):
    """Puts the weights of every Conv2d and ConvTranspose2d into ``memory_format``."""
    from ..modules.conv import Conv2d, ConvTranspose2d

    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Puts the weights of every Conv3d and ConvTranspose3d into ``memory_format``."""
    from ..modules.conv import Conv3d, ConvTranspose3d

    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module, kinds, memory_format):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module
