"""adjoin.utils.data.datapipes.utils.common: open files of pipes, paths below a folder."""

import fnmatch
import os

__all__ = ["StreamWrapper", "get_file_pathnames_from_root", "match_masks", "validate_input_col"]


class StreamWrapper:
    """An open file that is closed when nobody has it any more."""

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.file_obj, self.parent_stream, self.name, self.closed = file_obj, parent_stream, name, False

    def close(self, *args, **kwargs):
        """Closes the file, if that can be done."""
        self.closed = True
        if hasattr(self.file_obj, "close"):
            self.file_obj.close(*args, **kwargs)

    def autoclose(self):
        """Closes it."""
        self.close()

    @classmethod
    def close_streams(cls, v, depth=0):
        """Closes the files in lists and dictionaries."""
        if isinstance(v, cls):
            v.close()
        elif isinstance(v, dict):
            for one in v.values():
                cls.close_streams(one, depth + 1)
        elif isinstance(v, list | tuple):
            for one in v:
                cls.close_streams(one, depth + 1)

    def __getattr__(self, name):
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __del__(self):
        if not getattr(self, "closed", True):
            self.close()

    def __repr__(self):
        return f"StreamWrapper<{self.name or repr(self.file_obj)}>"

    def __getstate__(self):
        return {
            "file_obj": self.file_obj,
            "parent_stream": self.parent_stream,
            "name": self.name,
            "closed": self.closed,
        }

    def __setstate__(self, state):
        self.__dict__.update(state)


def match_masks(name, masks):
    """Whether the name is as one of the masks says; no mask says yes."""
    masks = [masks] if isinstance(masks, str) else list(masks)
    return not any(masks) or any(fnmatch.fnmatch(name, mask) for mask in masks)


def get_file_pathnames_from_root(root, masks, recursive=False, abspath=False, non_deterministic=False):
    """The paths of the files of a folder, or of one file; in order unless ``non_deterministic``."""
    where = os.path.abspath if abspath else str
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield where(root)
        return

    def fails(error):
        raise error

    for folder, folders, files in os.walk(root, onerror=fails):
        if not non_deterministic:
            folders.sort()
            files.sort()
        if not recursive:
            folders.clear()
        yield from (where(os.path.join(folder, name)) for name in files if match_masks(name, masks))


def validate_input_col(fn, input_col):
    """Raises where the function does not take as many arguments as there are columns."""
    import inspect

    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return
    given = len(input_col) if isinstance(input_col, list | tuple) else 1
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    least, rest = sum(p.default is p.empty for p in places), any(p.kind is p.VAR_POSITIONAL for p in parameters)
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    name = getattr(getattr(fn, "func", fn), "__name__", type(fn).__name__)
    if named:
        raise ValueError(f"The function {name} takes the keyword-only arguments {named}, which columns can't give")
    if given < least or (given > len(places) and not rest):
        wanted = f"at least {least}" if rest else f"{least} to {len(places)}" if least < len(places) else least
        raise ValueError(f"The function {name} takes {wanted} arguments, but {given} columns are given by input_col")
