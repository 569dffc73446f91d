"""adjoin._image_files: the ops of the space `image`, torchvision's: files of images read and written through Pillow.

``torchvision.io`` calls them; they are defined when it asks.
"""

import io

from . import _C
from .library import define, impl

_MODES = (None, "L", "LA", "RGB", "RGBA")  # by torchvision's ImageReadMode


def _pillow():
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise RuntimeError(
            "image files are read and written by Pillow, which is not there; pip install pillow"
        ) from None
    return Image, ImageOps


def _bytes_of(who, data):
    if data.dtype is not _C.uint8 or data.dim() != 1 or data.numel() == 0:
        raise RuntimeError(
            f"{who}: a file's bytes are wanted, a uint8 tensor of one dimension that is not empty; this is {data.dtype}, {tuple(data.shape)}"
        )
    return bytes(data.cpu().contiguous().numpy())


def _opened(who, data, *formats):
    Image, _ = _pillow()
    try:
        image = Image.open(io.BytesIO(_bytes_of(who, data)), formats=formats or None)
    except OSError as error:
        raise RuntimeError(
            f"{who}: the bytes are no image of the kind {' or '.join(formats) or 'known'}: {error}"
        ) from None
    return image


def _pixels(image):
    """(channels, height, width); of a palette its numbers."""
    flat = _from_bytes(bytearray(image.tobytes()))
    flat = flat.view(_C.uint16) if _deep(image) else flat
    return flat.view(image.height, image.width, len(image.getbands())).permute(2, 0, 1).contiguous()


def _deep(image):
    return image.mode.startswith("I;16")


def _from_bytes(data):
    import adjoin

    return _C.frombuffer(data, dtype=adjoin.uint8) if data else adjoin.zeros(0, dtype=adjoin.uint8)


def _unchanged(image):
    if image.format == "JPEG" and image.mode == "CMYK":
        return 255 - _pixels(image)  # as such files have it
    known = image.mode in ("P", "L", "LA", "RGB", "RGBA") or _deep(image)
    return _pixels(image if known else image.convert("L" if image.mode == "1" else "RGB"))


def _gray(rgb):
    """As libpng weighs colours, in steps of 2^-15."""
    red, green, blue = rgb.int()
    return ((9794 * red + 19234 * green + 3740 * blue) >> 15).to(_C.uint8)[None]


def _in_mode(image, wanted):
    if _deep(image):  # one channel of 16 bits
        one = _pixels(image)
        parts = [one] * (1 if wanted in ("L", "LA") else 3)
        return _C.find_op("cat")([*parts, _C.find_op("full_like")(one, 65535)] if wanted.endswith("A") else parts)
    if wanted in ("L", "LA") and image.format == "PNG" and image.mode in ("P", "RGB", "RGBA"):
        colours = _pixels(image.convert("RGBA"))
        return _C.find_op("cat")([_gray(colours[:3]), colours[3:]]) if wanted == "LA" else _gray(colours[:3])
    return _pixels(image if image.mode == wanted else image.convert(wanted))


def _decoded(image, mode, turned):
    if not 0 <= mode < len(_MODES):
        raise RuntimeError(f"the mode of an image is {mode}; torchvision.io.ImageReadMode has 0 to {len(_MODES) - 1}")
    wanted, kind = _MODES[mode], image.format
    if kind == "JPEG" and wanted in ("LA", "RGBA"):
        raise RuntimeError(
            f"decode_jpeg: the mode {wanted} has transparency, JPEG files have none; ask for GRAY or RGB"
        )
    if kind == "JPEG" and wanted == "L":
        image.draft("L", None)  # the luminance as the file has it
    if turned:
        image = _pillow()[1].exif_transpose(image)
        image.format = kind
    return _unchanged(image) if wanted is None else _in_mode(image, wanted)


def _image(who, data, wanted):
    """A tensor as Pillow's image."""
    Image, _ = _pillow()
    if data.dtype is not _C.uint8 or data.dim() != 3 or data.shape[0] not in wanted:
        counts = " or ".join(map(str, wanted))
        raise RuntimeError(
            f"{who}: a uint8 tensor (channels, height, width) of {counts} channels is wanted; this is {data.dtype}, {tuple(data.shape)}"
        )
    c, height, width = data.shape
    lines = bytes(data.cpu().permute(1, 2, 0).contiguous().numpy())
    return Image.frombytes({1: "L", 3: "RGB", 4: "RGBA"}[c], (width, height), lines)


def _saved(image, **how):
    out = io.BytesIO()
    image.save(out, **how)
    return _from_bytes(bytearray(out.getvalue()))


def _read_file(filename):
    with open(filename, "rb") as file:
        return _from_bytes(bytearray(file.read()))


def _write_file(filename, data):
    content = _bytes_of("write_file", data)
    with open(filename, "wb") as file:
        file.write(content)
    return _from_bytes(bytearray())


def _decode_gif(data):
    image = _opened("decode_gif", data, "GIF")
    frames = []
    for at in range(getattr(image, "n_frames", 1)):
        image.seek(at)
        frames.append(_pixels(image.convert("RGB")))
    return frames[0] if len(frames) == 1 else _C.find_op("stack")(frames)


def _decoder(who, *formats):
    def decode(data, mode, apply_exif_orientation=False):
        if not formats and _bytes_of(who, data)[:3] == b"GIF":
            return _decode_gif(data)
        return _decoded(_opened(who, data, *formats), mode, apply_exif_orientation)

    return decode


def _encode_png(data, compression_level):
    if not 0 <= compression_level <= 9:
        raise RuntimeError(f"encode_png: compression_level must be between 0 and 9, it is {compression_level}")
    return _saved(_image("encode_png", data, (1, 3)), format="PNG", compress_level=compression_level)


def _encode_jpeg(data, quality):
    return _saved(_image("encode_jpeg", data, (1, 3)), format="JPEG", quality=quality)


def _on_cuda(*_):
    raise NotImplementedError("image: nothing decodes or encodes on a GPU; do it on the cpu, then tensor.to('cuda')")


for _schema, _function in {
    "read_file(str filename) -> Tensor": _read_file,
    "write_file(str filename, Tensor data) -> Tensor": _write_file,
    "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decoder("decode_png", "PNG"),
    "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decoder("decode_jpeg", "JPEG"),
    "decode_webp(Tensor encoded_data, int mode) -> Tensor": _decoder("decode_webp", "WEBP"),
    "decode_gif(Tensor data) -> Tensor": _decode_gif,
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": _decoder("decode_image"),
    "encode_png(Tensor data, int compression_level) -> Tensor": _encode_png,
    "encode_jpeg(Tensor data, int quality) -> Tensor": _encode_jpeg,
    "decode_jpegs_cuda(Tensor[] encoded_images, int mode, Device device) -> Tensor[]": _on_cuda,
    "encode_jpegs_cuda(Tensor[] decoded_images, int quality) -> Tensor[]": _on_cuda,
}.items():
    _name, _, _rest = _schema.partition("(")
    define(f"image::{_name}", f"({_rest}")
    impl(f"image::{_name}", "default", _function)
