"""adjoin.onnx._wire: protocol buffers, read and written by tables of fields; reading executes nothing and makes no more than the bytes hold."""

import struct
from array import array

from .._protobuf import varint

DEEPEST = 100  # messages in messages
_FIXED = {"float": ("<f", 5, 4), "double": ("<d", 1, 8)}
_PACKED = {"float": "f", "double": "d"}


class Malformed(ValueError):
    """Bytes that are no such message."""


class Kind:
    """A kind of message. fields: number -> (name, type, repeated); a type is "int", "float", "double", "bytes", "text" or a Kind."""

    def __init__(self, name, /, **fields):
        self.kind, self.fields, self.by_name = name, {}, {}
        self.add(**fields)

    def add(self, **fields):
        """name=(number, type) or name=(number, [type]), which may be there many times."""
        for name, (number, kind) in fields.items():
            many = isinstance(kind, list)
            entry = (name, kind[0] if many else kind, many)
            self.fields[number] = entry
            self.by_name[name] = (number, *entry[1:])

    def __call__(self, **values):
        made = Message(self)
        made.__dict__.update(values)
        return made


_EMPTY = {"int": 0, "float": 0.0, "double": 0.0, "bytes": b"", "text": ""}


class Message:
    """What a message says; a field that is not there has its default."""

    def __init__(self, kind, /):
        self._kind = kind

    def __getattr__(self, name):
        field = self.__dict__["_kind"].by_name.get(name) if "_kind" in self.__dict__ else None
        if field is None:
            raise AttributeError(name)
        _, kind, many = field
        return () if many else _EMPTY.get(kind) if isinstance(kind, str) else None

    def has(self, name):
        return name in self.__dict__

    def __repr__(self):
        return f"<{self._kind.kind} {getattr(self, 'name', '')}>"


def _varint(data, at, end):
    value = shift = 0
    while True:
        if at >= end:
            raise Malformed("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise Malformed("a number has more than 64 bits")


def _signed(n):
    return n - (1 << 64) if n >> 63 else n


def read(kind, data, at=0, end=None, depth=0):
    """The message of a kind in data[at:end]. Bytes stay views of data."""
    if depth > DEEPEST:
        raise Malformed(f"messages lie deeper than {DEEPEST}")
    made = Message(kind)
    values, fields = made.__dict__, kind.fields
    end = len(data) if end is None else end
    while at < end:
        tag, at = _varint(data, at, end)
        wire, number = tag & 7, tag >> 3
        if number == 0:
            raise Malformed(f"{kind.kind} has a field of number 0")
        if wire == 2:
            size, at = _varint(data, at, end)
            if size > end - at:
                raise Malformed(f"{kind.kind} has a field of {size} bytes, {end - at} are left")
            stop = at + size
        elif wire == 0:
            got, stop = _varint(data, at, end)
        elif wire in (1, 5):
            stop = at + (8 if wire == 1 else 4)
            if stop > end:
                raise Malformed(f"{kind.kind} is cut off in a number")
        else:
            raise Malformed(f"{kind.kind} has a field of wire type {wire}, which this format does not use")
        field = fields.get(number)
        if field is not None:
            name, of, many = field
            if of == "int" and wire == 0:
                got = _signed(got)
            elif of == "int" and wire == 2 and many:
                _packed_ints(values.setdefault(name, array("q")), data, at, stop)
                at = stop
                continue
            elif of in _FIXED and wire == _FIXED[of][1]:
                (got,) = struct.unpack_from(_FIXED[of][0], data, at)
            elif of in _FIXED and wire == 2 and many:
                _packed_reals(values.setdefault(name, array(_PACKED[of])), data, at, stop)
                at = stop
                continue
            elif wire != 2:
                raise Malformed(f"{kind.kind}.{name} has wire type {wire}")
            elif of == "bytes":
                got = data[at:stop]
            elif of == "text":
                got = _text(kind, name, data[at:stop])
            elif isinstance(of, Kind):
                got = read(of, data, at, stop, depth + 1)
            else:
                raise Malformed(f"{kind.kind}.{name} has wire type {wire}")
            if many:
                empty = array("q") if of == "int" else array(_PACKED[of]) if of in _PACKED else []
                values.setdefault(name, empty).append(got)
            else:
                values[name] = got
        at = stop
    return made


def _text(kind, name, raw):
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError:
        raise Malformed(f"{kind.kind}.{name} is no UTF-8") from None


def _packed_ints(into, data, at, stop):
    while at < stop:
        n, at = _varint(data, at, stop)
        into.append(_signed(n))


def _packed_reals(into, data, at, stop):
    if (stop - at) % into.itemsize:
        raise Malformed("packed numbers are cut off")
    into.frombytes(data[at:stop])


def write(message):
    """(the parts of its bytes, their length): large parts are not copied."""
    parts, total = [], 0
    for number, (name, of, many) in sorted(message._kind.fields.items()):
        if not message.has(name):
            continue
        value = getattr(message, name)
        for item in _items(of, many, value):
            made, length = _field(number, of, item)
            parts += made
            total += length
    return parts, total


def _items(of, many, value):
    if not many:
        return [value]
    if of in ("int", *_FIXED):
        return [list(value)] if len(value) else []
    return value


def _field(number, of, value):
    if isinstance(value, list):  # packed
        raw = b"".join(map(varint, value)) if of == "int" else struct.pack(f"<{len(value)}{_PACKED[of]}", *value)
        return _lengthy(number, [raw], len(raw))
    if of == "int":
        raw = varint(number << 3) + varint(int(value))
        return [raw], len(raw)
    if of in _FIXED:
        form, wire, size = _FIXED[of]
        tag = varint(number << 3 | wire)
        return [tag + struct.pack(form, value)], len(tag) + size
    if isinstance(of, Kind):
        return _lengthy(number, *write(value))
    raw = value.encode() if isinstance(value, str) else value
    return _lengthy(number, [raw], len(raw))


def _lengthy(number, parts, length):
    head = varint(number << 3 | 2) + varint(length)
    return [head, *parts], len(head) + length
