"""adjoin.jit._torchscript._archive: the parts of an archive: objects, constants, code."""

import io
import pickletools
import zipfile

import adjoin

from ..._pt_policy import UnknownClass, UnknownObject
from ._code import Code
from ._objects import Built

LARGEST_CODE = 64 << 20  # bytes of all code, unpacked
KINDS = {
    "restore_type_tag",
    "build_intlist",
    "build_tensorlist",
    "build_doublelist",
    "build_boollist",
    "build_tensor_from_id",
}


def refuse(text):
    raise RuntimeError(f"jit.load: {text}") from None


class Archive:
    """A zip file of TorchScript that is open."""

    def __init__(self, zipped):
        self.zip = zipped
        names = zipped.namelist()
        self.root = names[0].partition("/")[0] + "/"
        self.infos = {i.filename: i for i in zipped.infolist()}
        if len(self.infos) != len(names):
            refuse("two parts of the archive have one name")

    def bytes(self, name):
        info = self.infos[self.root + name]
        if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            refuse(f"the part '{name}' is encrypted, or packed in a way that PyTorch does not use")
        try:
            with self.zip.open(info) as part:
                data = part.read(info.file_size + 1)
        except Exception as error:  # what zipfile and zlib say of damaged parts
            refuse(f"the part '{name}' is damaged: {error}")
        return data

    def sources(self):
        """{name of a module, as __torch__.a: its code}."""
        begin, made, total = self.root + "code/", {}, 0
        for name, info in self.infos.items():
            if not name.startswith(begin) or not name.endswith(".py"):
                continue
            total += info.file_size
            if total > LARGEST_CODE:
                refuse(f"its code has more than {LARGEST_CODE} bytes")
            try:
                made[name[len(begin) : -3].replace("/", ".")] = self.bytes(name[len(self.root) :]).decode()
            except UnicodeDecodeError:
                refuse(f"the code '{name}' is no UTF-8")
        return made

    def pickled(self, name, folder):
        """The objects of a pickle of the archive, by the reader of `.pt` files, which executes nothing."""
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w") as into:
            into.writestr("archive/data.pkl", with_tuples(self.bytes(name)))
            into.writestr("archive/version", b"3\n")
            for path in self.infos:
                tail = path[len(self.root) :]
                if tail.startswith(folder + "/") and "/" not in tail[len(folder) + 1 :]:
                    into.writestr(f"archive/data/{tail[len(folder) + 1 :]}", self.bytes(tail))
                elif tail == "byteorder":
                    into.writestr("archive/byteorder", self.bytes(tail))
        copy.seek(0)
        return adjoin.load(copy, weights_only=False)


_TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"}
_PUTS = {"BINPUT", "LONG_BINPUT", "PUT"}


def with_tuples(data):
    """A pickle in which members of enumerations are made of a tuple, as everything else is; TorchScript writes a value alone."""
    made, done, last, memo = [], 0, None, {}
    try:
        for op, value, at in pickletools.genops(data):
            if op.name in _PUTS:
                memo[value] = last
                continue
            if op.name == "REDUCE" and last is not None and last not in _TUPLES:
                made += [data[done:at], b"\x85"]
                done = at
            last = memo.get(value, "TUPLE") if op.name in ("BINGET", "LONG_BINGET", "GET") else op.name
    except (ValueError, IndexError, OverflowError, MemoryError, UnicodeDecodeError) as error:
        refuse(f"the pickle is damaged: {error}")
    return b"".join(made) + data[done:]


def load(zipped):
    """The module of an archive."""
    archive = Archive(zipped)
    code = Code(archive.sources())
    constants = plain(archive.pickled("constants.pkl", "constants"))
    if not isinstance(constants, (list, tuple)):
        refuse("its constants are no list")
    code.constants = constants
    return Built(code, archive.pickled("data.pkl", "data")).module()


def plain(o, depth=0, made=None):
    """Lists, tuples and dictionaries without the marks of their types. What is there twice is made once."""
    made = {} if made is None else made
    if depth > 100:
        refuse("its data lie deeper than 100")
    if isinstance(o, UnknownObject):
        name = o.cls.name
        if o.cls.module == "torch.jit._pickle" and name in KINDS and o.args:
            return plain(o.args[0], depth + 1, made)
        return o
    if isinstance(o, UnknownClass):
        refuse(f"its data name {o.module}.{o.name}, which is not served")
    if type(o) not in (list, tuple) and not isinstance(o, dict):
        return o
    if id(o) not in made:
        if isinstance(o, dict):
            made[id(o)] = {plain(k, depth + 1, made): plain(v, depth + 1, made) for k, v in o.items()}
        else:
            made[id(o)] = type(o)(plain(x, depth + 1, made) for x in o)
    return made[id(o)]
