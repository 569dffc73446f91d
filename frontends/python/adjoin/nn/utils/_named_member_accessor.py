"""adjoin.nn.utils._named_member_accessor: parameters and buffers of a module by their path, exchanged in place."""

import adjoin

_missing = object()


def _check(module, name, tensor):
    if not isinstance(module, adjoin.nn.Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _missing and tensor is not None and not isinstance(tensor, adjoin.Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name or not name:
        raise KeyError(f'a tensor name is one part of a path and not empty, not "{name}"')


def swap_tensor(module, name, tensor, allow_missing=False):
    """Puts a tensor in the place of a parameter, a buffer or an attribute; gives what stood there."""
    _check(module, name, tensor)
    for home in (module._parameters, module._buffers):
        if name in home:
            before = home[name]
            if tensor is _missing:
                del home[name]
            else:
                home[name] = tensor
            return before
    before = getattr(module, name, _missing)
    if before is _missing and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not _missing and not isinstance(before, adjoin.Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not _missing:
        setattr(module, name, tensor)
    elif before is not _missing:
        delattr(module, name)
    return before


class NamedMemberAccessor:
    """The tensors and modules inside of a module by their paths."""

    def __init__(self, module):
        self.module = module

    def home(self, path):
        """The module that has what stands at a path, and its name there."""
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name):
        """The module at a path."""
        module = self.module
        for part in name.split(".") if name else ():
            inner = getattr(module, part, _missing)
            if inner is _missing:
                raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
            if not isinstance(inner, adjoin.nn.Module):
                raise TypeError(f"submodule `{part}`: {inner} is not an instance of torch.nn.Module")
            module = inner
        return module

    def get_tensor(self, name):
        """The tensor at a path."""
        home, last = self.home(name)
        return getattr(home, last)

    def set_tensor(self, name, value):
        """Puts a tensor at a path."""
        swap_tensor(*self.home(name), value, allow_missing=True)

    def swap_tensor(self, name, value, allow_missing=False):
        """Puts a tensor at a path; gives what stood there."""
        return swap_tensor(*self.home(name), value, allow_missing)

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """The same of several: (what stood there, the names that were not there)."""
        before = {name: self.swap_tensor(name, value, allow_missing) for name, value in named_tensors.items()}
        return before, [name for name, value in before.items() if value is _missing]

    def named_tensors(self, remove_duplicate=True):
        """Parameters and buffers with their paths."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)
