"""adjoin._pt_records: the records of a `.pt` file by their names, without reading the others."""

import os
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
