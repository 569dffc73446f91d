"""adjoin.utils.tensorboard._file_writer: event files for programs that make their messages themselves."""

import os
import time

from . import _events
from .writer import _File


def _bytes(message):
    """The bytes of a protocol buffer, or bytes."""
    return message if isinstance(message, (bytes, bytearray)) else message.SerializeToString()


class RecordWriter:
    """Writes records, each with its length and check sums, to an open binary file."""

    def __init__(self, writer):
        self._writer = writer

    def write(self, data):
        """One record."""
        self._writer.write(_events.record(bytes(data)))

    def flush(self):
        """Brings what was written to the file."""
        self._writer.flush()

    def close(self):
        """Closes the file."""
        self._writer.close()


class FileWriter:
    """An event file in a folder, to which Events and Summaries are added: protocol buffers, or their bytes."""

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._folder = os.fspath(log_dir)
        self._file = _File(self._folder, max_queue, flush_secs, filename_suffix)

    @classmethod
    def _of(cls, file):
        """One that adds to an open file."""
        made = cls.__new__(cls)
        made._folder, made._file = file.folder, file
        return made

    def get_logdir(self):
        """The folder."""
        return self._folder

    def add_event(self, event, step=None, walltime=None):
        """Adds an Event, with the time and the step that are given; bytes get them as later fields, which take their place."""
        extra = _events.double(1, time.time() if walltime is None else walltime)
        if step is not None:
            extra += _events.integer(2, int(step))
        self._file.add(_bytes(event) + extra)

    def add_summary(self, summary, global_step=None, walltime=None):
        """Adds an Event with a Summary."""
        self.add_event(_events.block(5, _bytes(summary)), global_step, walltime)

    def flush(self):
        """Brings what was added to the file."""
        self._file.flush()

    def close(self):
        """Closes the file."""
        self._file.close()

    def reopen(self):
        """Begins a new file in the folder, if this one is closed."""
        if self._file.file.closed:
            self._file = _File(self._folder, self._file.max_queue, self._file.flush_secs, "")
