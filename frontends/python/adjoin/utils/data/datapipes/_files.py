"""adjoin.utils.data.datapipes._files: files as streams of examples."""

from ._decorator import functional_datapipe
from .datapipe import IterDataPipe
from .utils.common import StreamWrapper, get_file_pathnames_from_root
from .utils.decoder import Decoder, extension_extract_fn


class _OfLength(IterDataPipe):
    """One whose length is what its maker says."""

    length = -1

    def __len__(self):
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileLister(_OfLength):
    """The paths of the files of folders whose names are as ``masks`` say."""

    def __init__(self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1):
        self.datapipe = [root] if isinstance(root, str) else root
        self.masks, self.recursive, self.abspath = masks, recursive, abspath
        self.non_deterministic, self.length = non_deterministic, length

    def __iter__(self):
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpener(_OfLength):
    """``(path, open file)`` of each path; ``mode`` is "b", "t", "r", "rb" or "rt"."""

    def __init__(self, datapipe, mode="r", encoding=None, length=-1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}: 'b', 't', 'r', 'rb' and 'rt' are there")
        if "b" in mode and encoding is not None:
            raise ValueError("open_files: binary mode doesn't take an encoding argument")
        self.datapipe, self.encoding, self.length = datapipe, encoding, length
        self.mode = "r" + mode if mode in ("b", "t") else mode

    def __iter__(self):
        for path in self.datapipe:
            if not isinstance(path, str):
                raise TypeError(f"Expected string type for pathname, but got {type(path)}")
            file = open(path, self.mode, encoding=self.encoding)  # noqa: SIM115  (StreamWrapper closes it)
            yield path, StreamWrapper(file, name=path)


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe):
    """``(path, what was read)`` of each ``(path, stream)``: all at once, or ``chunk`` at a time; the stream is closed at its end."""

    def __init__(self, datapipe, chunk=None):
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self):
        for path, stream in self.datapipe:
            while data := stream.read(self.chunk) if self.chunk is not None else stream.read():
                yield path, data
            stream.close()


@functional_datapipe("routed_decode")
class RoutedDecoder(IterDataPipe):
    """``(path, stream)`` to ``(path, what the handlers make of it by its ending)``."""

    def __init__(self, datapipe, *handlers, key_fn=extension_extract_fn):
        self.datapipe = datapipe
        self.decoder = Decoder(*handlers, key_fn=key_fn)

    def add_handler(self, *handler):
        self.decoder.add_handler(*handler)

    def __iter__(self):
        for data in self.datapipe:
            yield self.decoder(data)

    def __len__(self):
        return len(self.datapipe)
