"""adjoin.utils.tensorboard._events: the bytes of an event file: records with their CRC32C, and the messages inside, which
are protocol buffers (event.proto, summary.proto and tensor.proto of TensorFlow)."""

import struct

from ..._protobuf import varint


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, bits reversed
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data):
    """The Castagnoli CRC of bytes (RFC 3720, appendix B.4)."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data):
    """The CRC as records hold it: turned and shifted, so that a CRC of data with CRCs inside stays good."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    """A record: length, its CRC, data, their CRC."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def integer(field, number):
    """A field with an integer, an enumeration or a bool."""
    return varint(field << 3) + varint(int(number))


def double(field, number):
    """A field with a float of 64 bits."""
    return varint(field << 3 | 1) + struct.pack("<d", number)


def single(field, number):
    """A field with a float of 32 bits."""
    return varint(field << 3 | 5) + struct.pack("<f", number)


def block(field, data):
    """A field with bytes, a text or a message."""
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def doubles(field, numbers):
    """A field with many floats of 64 bits."""
    return block(field, struct.pack(f"<{len(numbers)}d", *numbers))


def event(wall_time, step=None, summary=None, file_version=None):
    """An Event."""
    out = double(1, wall_time)
    if step is not None:
        out += integer(2, step)
    if file_version is not None:
        out += block(3, file_version)
    return out if summary is None else out + block(5, summary)


def value(tag, content):
    """A Summary with one value."""
    return block(1, block(1, tag) + content)


def scalar(number):
    """A value that is a number."""
    return single(2, number)


def image(height, width, channels, png):
    """A value that is a picture."""
    return block(4, integer(1, height) + integer(2, width) + integer(3, channels) + block(4, png))


def audio(rate, frames, wav):
    """A value that is a sound of one channel."""
    content = single(1, rate) + integer(2, 1) + integer(3, frames) + block(4, wav) + block(5, "audio/wav")
    return block(6, content)


def histogram(low, high, count, total, squares, limits, counts):
    """A value that is a histogram: bucket i counts what lies below limits[i] and not below limits[i - 1]."""
    content = double(1, low) + double(2, high) + double(3, count) + double(4, total) + double(5, squares)
    return block(5, content + doubles(6, limits) + doubles(7, counts))


def text(string):
    """A value that is a text: a tensor of one string for the plugin "text"."""
    tensor = integer(1, 7) + block(2, block(2, integer(1, 1))) + block(8, string)
    return block(9, block(1, block(1, "text"))) + block(8, tensor)


def array(shape, numbers):
    """A value that is a tensor of floats."""
    dims = b"".join(block(2, integer(1, size)) for size in shape)
    return block(8, integer(1, 1) + block(2, dims) + block(5, struct.pack(f"<{len(numbers)}f", *numbers)))
