"""adjoin.nn.modules._tree: walking a module's parameters, buffers and children by name.

Networks whose classes walk as Tree does are walked in _C, in one go; module_tree.cpp asks.
"""

from ... import _C


def _each(found):
    """What was found, as a generator: programs tell one from a list by its type."""
    return (one for one in found)


class Tree:
    """The part of Module that finds parts: iterators, look-ups by dotted name, modes and
    gradients."""

    # Look-ups by dotted name

    def get_submodule(self, target):
        """The module at a dotted name such as ``"net.0.conv"``; the empty name is this module."""
        module = self
        for item in target.split(".") if target else ():
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{item}` is not an nn.Module")  # noqa: TRY004  (PyTorch's class)
        return module

    def set_submodule(self, target, module, strict=False):
        """Puts ``module`` at a dotted name; with ``strict`` there has to be one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")  # noqa: TRY004  (PyTorch's class)
        parent_name, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_name)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at a dotted name."""
        return self._get_tensor(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target):
        """The buffer at a dotted name."""
        return self._get_tensor(target, "_buffers", "a buffer")

    def _get_tensor(self, target, kind, what):
        parent, _, name = target.rpartition(".")
        module = self.get_submodule(parent)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in getattr(module, kind):
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, kind)[name]

    # Iterators

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Yields (dotted name, module), this module first; each module once unless told
        otherwise."""
        found = None if memo is not None else _C.module_named(self, None, prefix, bool(remove_duplicate))
        return self._walk(set() if memo is None else memo, prefix, remove_duplicate) if found is None else _each(found)

    def _walk(self, memo, prefix, remove_duplicate):
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def _named_members(self, get_members, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        else:
            modules = [(prefix, self)]
        for path, module in modules:
            for name, member in get_members(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def _named_tensors(self, part, prefix, recurse, remove_duplicate):
        found = _C.module_named(self, part, prefix, bool(remove_duplicate)) if recurse else None
        if found is not None:
            return _each(found)
        return self._named_members(lambda module: getattr(module, part).items(), prefix, recurse, remove_duplicate)

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (dotted name, parameter); a shared parameter once, under its first name."""
        return self._named_tensors("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """Yields every parameter once."""
        found = _C.module_tensors(self, "_parameters") if recurse else None
        return _each([p for _, p in self.named_parameters(recurse=recurse)] if found is None else found)

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Yields (dotted name, buffer)."""
        return self._named_tensors("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Yields every buffer once."""
        found = _C.module_tensors(self, "_buffers") if recurse else None
        return _each([b for _, b in self.named_buffers(recurse=recurse)] if found is None else found)

    def named_children(self):
        """Yields (name, child) of the modules directly below, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """Yields the modules directly below, each once."""
        for _, module in self.named_children():
            yield module

    def modules(self):
        """Yields this module and all below, each once."""
        found = _C.module_list(self)
        return _each([module for _, module in self.named_modules()] if found is None else found)

    # Modes and gradients

    def train(self, mode=True):
        """Sets ``training`` here and below; layers like dropout and batch norm act by it."""
        if not isinstance(mode, bool):
            raise ValueError(f"train: training mode is expected to be boolean, not {mode!r}; use train() or eval()")  # noqa: TRY004
        if _C.set_training(self, mode) is None:
            self.training = mode
            for module in self.children():
                module.train(mode)
        return self

    def eval(self):
        """The same as ``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Freezes or unfreezes every parameter."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drops the gradients of all parameters, or zeroes them in place."""
        if set_to_none:
            _C.drop_grads(list(self.parameters()))
            return
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if grad.grad_fn is not None:
                grad.detach_().zero_()
            else:
                grad.requires_grad_(False).zero_()

    def apply(self, fn):
        """Calls ``fn`` on every module, children first, and returns this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def share_memory(self):
        """Moves parameters and buffers to memory that other processes see."""
        from ..._shared import share

        return self._apply(lambda tensor: share(tensor, warn=False))  # a graph may look at it too
