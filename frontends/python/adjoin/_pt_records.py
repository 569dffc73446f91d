"""adjoin._pt_records: the records of a `.pt` file by their names, read and written one by one."""

import os
import sys
import zipfile

import adjoin

from . import _C


class PyTorchFileReader:
    """A `.pt` file that is open: ``get_record("data.pkl")`` gives the bytes of one record."""

    def __init__(self, name_or_buffer):
        try:
            self._zip = zipfile.ZipFile(name_or_buffer)
        except zipfile.BadZipFile:
            name = os.fspath(name_or_buffer) if isinstance(name_or_buffer, (str, os.PathLike)) else "the buffer"
            raise RuntimeError(
                f"PyTorchFileReader: {name!r} is no zip archive: it is of the old layout, or was not copied whole; load() reads the old one"
            ) from None
        names = self._zip.namelist()
        self._folder = names[0].partition("/")[0] + "/" if names else ""

    def get_all_records(self):
        """The names of all records."""
        return [name.removeprefix(self._folder) for name in self._zip.namelist()]

    def has_record(self, name):
        """Whether there is a record of a name."""
        return self._folder + name in self._zip.NameToInfo

    def _bytes(self, name):
        if not self.has_record(name):
            raise RuntimeError(
                f"PyTorchFileReader: the file has no record {name!r}; get_all_records() lists what it has"
            )
        return self._zip.read(self._folder + name)

    def get_record(self, name):
        """The bytes of a record."""
        return self._bytes(name)

    def get_storage_from_record(self, name, numel, dtype):
        """The elements of a record as a tensor, whose memory is its storage's."""
        data = bytearray(self._bytes(name))
        return _C.frombuffer(data, dtype=dtype, count=numel) if numel else adjoin.empty(0, dtype=dtype)

    def version(self):
        """The version of the layout, as text."""
        return self._bytes("version").decode().strip()

    def serialization_id(self):
        """What identifies what was saved, as text; none where the file has none."""
        return self._bytes(".data/serialization_id").decode() if self.has_record(".data/serialization_id") else ""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._zip.close()


class PyTorchFileWriter:
    """A `.pt` file that is written record by record: ``write_record("data.pkl", data, len(data))``, then ``write_end_of_file()``.

    Records stand uncompressed, and begin at multiples of 64 bytes, as `load` maps them.
    """

    _STEP = 64

    def __init__(self, name_or_buffer):
        path = isinstance(name_or_buffer, (str, os.PathLike))
        self._folder = (os.path.basename(os.fspath(name_or_buffer)).rpartition(".")[0] if path else "") or "archive"
        self._zip = zipfile.ZipFile(name_or_buffer, "w", zipfile.ZIP_STORED)
        self._ended = False

    def archive_name(self):
        """The folder that the records stand in."""
        return self._folder

    def write_record(self, name, data, size):
        """Writes the first ``size`` bytes of a buffer, or of a storage, as a record."""
        if hasattr(data, "untyped"):
            data = memoryview(data.untyped()._all().cpu().numpy())
        info = zipfile.ZipInfo(f"{self._folder}/{name}", (1980, 1, 1, 0, 0, 0))
        header = self._zip.fp.tell() + zipfile.sizeFileHeader + len(info.filename.encode())
        gap = -header % self._STEP
        gap += self._STEP if 0 < gap < 4 else 0  # a field has four bytes of its own
        info.extra = b"FB" + (gap - 4).to_bytes(2, "little") + b"Z" * (gap - 4) if gap else b""
        self._zip.writestr(info, bytes(memoryview(data)[:size]))

    def write_end_of_file(self):
        """Writes what every archive has besides, and its directory."""
        if not self._ended:
            self._ended = True
            for name, data in (("version", b"3\n"), ("byteorder", sys.byteorder.encode())):
                if f"{self._folder}/{name}" not in self._zip.NameToInfo:
                    self.write_record(name, data, len(data))
            self._zip.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *error):
        if kind is None:
            self.write_end_of_file()
        else:
            self._zip.close()
