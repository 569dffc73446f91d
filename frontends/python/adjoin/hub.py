"""adjoin.hub: weights from the net, kept in a folder, their hash checked."""

import hashlib
import os
import re
import sys
import tempfile
import urllib.parse
import urllib.request
from urllib.parse import urlparse  # noqa: F401  (downloads of other libraries ask here)

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_CHUNK = 1 << 17
_folder = None


def _get_torch_home():
    """The folder of what is kept: $ADJOIN_HOME, or adjoin's of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("ADJOIN_HOME", os.path.join(cache, "adjoin")))


def get_dir():
    """The folder of downloads: what set_dir set, $ADJOIN_HOME/hub, or hub in adjoin's folder of the user's cache."""
    return os.path.join(_get_torch_home(), "hub") if _folder is None else _folder


def set_dir(d):
    """Sets the folder of downloads."""
    global _folder
    _folder = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Downloads to the file ``dst``, which appears only when it is whole and its SHA-256 begins with
    ``hash_prefix``."""
    request = urllib.request.Request(url, headers={"User-Agent": "adjoin.hub"})
    dst = os.path.expanduser(dst)
    sha256 = hashlib.sha256()
    with urllib.request.urlopen(request) as source:
        length = source.headers.get("Content-Length")
        length = int(length) if length else None
        number, partial = tempfile.mkstemp(
            prefix=os.path.basename(dst) + ".", suffix=".partial", dir=os.path.dirname(dst) or "."
        )
        try:
            with os.fdopen(number, "wb") as file:
                got = _copy(source, file, sha256, length, progress)
                file.flush()
                os.fsync(file.fileno())
            if length is not None and got != length:
                raise RuntimeError(f"download_url_to_file: {url} ended after {got} of {length} bytes; try again")
            digest = sha256.hexdigest()
            if hash_prefix is not None and digest[: len(hash_prefix)] != hash_prefix:
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest}")')
            os.chmod(partial, 0o666 & ~_umask())
            os.replace(partial, dst)
        except BaseException:
            os.unlink(partial)
            raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _copy(source, file, sha256, length, progress):
    from .utils.progress import Bar

    got = 0
    bar = Bar(length or 0, "downloading") if progress else None
    while chunk := source.read(_CHUNK):
        file.write(chunk)
        sha256.update(chunk)
        got += len(chunk)
        if bar:
            bar.update(len(chunk))
    if bar:
        bar.close()
    return got


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False,
                             file_name=None, weights_only=True):  # fmt: skip
    """What load() reads from a file that is downloaded once, into ``model_dir`` (default: checkpoints in get_dir()).

    ``check_hash``: the name is ``<name>-<the SHA-256's first digits>.<ext>``.
    """
    import adjoin

    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    name = file_name or os.path.basename(urllib.parse.urlparse(url).path)
    path = os.path.join(model_dir, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    if name.endswith(".safetensors"):
        return adjoin.safetensors.load_file(path)
    return adjoin.load(path, map_location=map_location, weights_only=weights_only)


_MODULE = "hubconf.py"


def _entries(folder, source):
    """The module hubconf of a folder, run anew."""
    if source != "local":
        raise RuntimeError(
            f"hub: source={source!r} would run code from the net; fetch the repository (git clone), look at it, and give its folder "
            "with source='local'"
        )
    path = os.path.join(os.path.expanduser(folder), _MODULE)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub: {path} is missing: a folder of models has its entry points in {_MODULE}")
    import importlib.util

    sys.path.insert(0, os.path.dirname(path))
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(path))
    absent = [
        name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(_dependency(name)) is None
    ]
    if absent:
        raise RuntimeError(f"Missing dependencies: {', '.join(absent)}")
    return module


def _dependency(name):
    """ "torch" is this package, unless a program has another."""
    return "adjoin" if name == "torch" else name


def _entry(module, name):
    found = getattr(module, name, None)
    if not isinstance(name, str) or not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf; it has {_callables(module)}")
    return found


def _callables(module):
    return sorted(n for n, f in vars(module).items() if callable(f) and not n.startswith("_"))


def list(repo_or_dir, force_reload=False, skip_validation=False, trust_repo=None, verbose=True, source="local"):  # noqa: A001
    """The entry points of a folder that has a hubconf.py."""
    return _callables(_entries(repo_or_dir, source))


def help(repo_or_dir, model, force_reload=False, skip_validation=False, trust_repo=None, source="local"):  # noqa: A001
    """What an entry point says of itself."""
    return _entry(_entries(repo_or_dir, source), model).__doc__


def load(repo_or_dir, model, *args, source="github", trust_repo=None, force_reload=False, verbose=True, skip_validation=False,
         **kwargs):  # fmt: skip
    """What an entry point of a folder's hubconf.py makes: ``load(folder, "name", source="local")``."""
    return _entry(_entries(repo_or_dir, source), model)(*args, **kwargs)


class _Progress:
    """tqdm's words over Bar, where that package is not installed."""

    def __init__(self, iterable=None, desc="", total=None, disable=False, **style):
        from .utils.progress import Bar

        self.iterable, self.n = iterable, 0
        self.total = len(iterable) if total is None and hasattr(iterable, "__len__") else total
        self._bar = None if disable else Bar(self.total or 0, desc or "")

    def update(self, n=1):
        """Goes n further."""
        self.n += n
        if self._bar:
            self._bar.update(n)

    def close(self):
        """Ends the line."""
        if self._bar:
            self._bar.close()

    def __iter__(self):
        with self:
            for item in self.iterable:
                yield item
                self.update()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


def __getattr__(name):
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tqdm import tqdm
    except ImportError:
        return _Progress
    return tqdm
