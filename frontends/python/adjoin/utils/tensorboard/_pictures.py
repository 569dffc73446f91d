"""adjoin.utils.tensorboard._pictures: tensors as PNG files, values as buckets, sounds as WAV files."""

import io
import math
import struct
import wave
import zlib
from bisect import bisect_left, bisect_right

import adjoin


def as_tensor(data):
    """A tensor of the host, from a tensor, an array or nested lists."""
    data = data.detach() if isinstance(data, adjoin.Tensor) else adjoin.as_tensor(data)
    return data.cpu()


def png(pixels):
    """The PNG file of a uint8 tensor (height, width, channels); 1 to 4 channels: grey, grey and alpha, RGB, RGBA."""
    height, width, channels = pixels.shape
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    data = bytes(memoryview(pixels.contiguous().reshape(-1))) if pixels.numel() else b""
    stride = width * channels
    rows = b"".join(b"\0" + data[y * stride : y * stride + stride] for y in range(height))
    parts = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))  # fmt: skip
    chunks = (struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def to_pixels(image, dataformats):
    """A picture, or a batch of them as one grid, as uint8 (height, width, channels): floats are taken from [0, 1]."""
    image = as_tensor(image)
    letters = dataformats.upper()
    if len(letters) != image.dim() or sorted(letters) not in (sorted("NCHW"), sorted("CHW"), sorted("HW")):
        raise ValueError(
            f"add_image: the tensor has shape {tuple(image.shape)}, which is not {dataformats!r}; name its dimensions by N, C, H, W"
        )
    if image.dtype != adjoin.uint8:
        scale = 1 if not image.is_floating_point() and image.dtype != adjoin.bool else 255
        image = (image.float() * scale).nan_to_num(0.0).clamp(0, 255).to(adjoin.uint8)
    for letter in "CN":
        if letter not in letters:
            image, letters = image.unsqueeze(0), letter + letters
    image = image.permute([letters.index(letter) for letter in "NHWC"])
    count, height, width, channels = image.shape
    if channels > 4:
        raise ValueError(f"add_image: {channels} channels cannot be shown; 1 to 4 can")
    columns = max(1, math.ceil(math.sqrt(count)))
    grid = adjoin.zeros((math.ceil(count / columns) * height, columns * width, channels), dtype=adjoin.uint8)
    for i in range(count):
        top, left = i // columns * height, i % columns * width
        grid[top : top + height, left : left + width] = image[i]
    return grid


def scaled(pixels, factor):
    """The picture larger or smaller."""
    if factor == 1:
        return pixels
    image = pixels.permute(2, 0, 1)[None].float()
    image = adjoin.nn.functional.interpolate(image, scale_factor=factor, mode="bilinear", antialias=factor < 1)
    return image[0].permute(1, 2, 0).round().clamp(0, 255).to(adjoin.uint8)


def boxed(pixels, boxes, labels=None):
    """The picture in three colors with a red border of two pixels around each box (left, top, right, bottom), and its label if there is one."""
    boxes = as_tensor(boxes).reshape(-1, 4)
    if labels is not None and len(labels) != len(boxes):
        raise ValueError(f"add_image_with_boxes: {len(boxes)} boxes and {len(labels)} labels are given")
    color = pixels.new_zeros(pixels.shape[:2] + (3,))
    color[:] = pixels[..., :3] if pixels.shape[2] > 2 else pixels[..., :1]
    red = adjoin.tensor([255, 0, 0], dtype=adjoin.uint8)
    for left, top, right, bottom in boxes.round().long().tolist():
        for thick in range(2):
            x0, y0, x1, y1 = left + thick, top + thick, right - thick, bottom - thick
            if x0 > x1 or y0 > y1:
                break
            for y in (y0, y1):
                if 0 <= y < pixels.shape[0]:
                    color[y, max(x0, 0) : max(x1 + 1, 0)] = red
            for x in (x0, x1):
                if 0 <= x < pixels.shape[1]:
                    color[max(y0, 0) : max(y1 + 1, 0), x] = red
    return color if labels is None else _labelled(color, boxes, labels)


def _labelled(pixels, boxes, labels):
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError(
            "add_image_with_boxes: labels are drawn by Pillow: pip install pillow, or leave labels out"
        ) from error
    picture = Image.frombytes("RGB", (pixels.shape[1], pixels.shape[0]), bytes(memoryview(pixels.reshape(-1))))
    draw = ImageDraw.Draw(picture)
    for (left, top, _, _), label in zip(boxes.tolist(), labels, strict=True):
        draw.text((left + 3, top + 3), str(label), fill="red")
    return adjoin.frombuffer(bytearray(picture.tobytes()), dtype=adjoin.uint8).reshape(pixels.shape)


def gif(video, fps):
    """(height, width, channels, the GIF file) of videos (batch, time, channels, height, width), which stand side by side."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("add_video: GIF files are written by Pillow: pip install pillow") from error
    video = as_tensor(video)
    if video.dim() != 5:
        raise ValueError(
            f"add_video: the tensor has shape {tuple(video.shape)}, wanted is (batch, time, channels, height, width)"
        )
    frames = [to_pixels(video[:, t], "NCHW") for t in range(video.shape[1])]
    if not frames:
        raise ValueError("add_video: there is no picture in it")
    frames = [f.repeat(1, 1, 3) if f.shape[2] == 1 else f[..., :3].contiguous() for f in frames]
    height, width, _ = frames[0].shape
    pictures = [Image.frombytes("RGB", (width, height), bytes(memoryview(f.reshape(-1)))) for f in frames]
    out = io.BytesIO()
    pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)
    return height, width, 3, out.getvalue()


def _powers():
    """Limits that grow by a tenth from 1e-12 to 1e20, on both sides of 0."""
    limits, x = [], 1e-12
    while x < 1e20:
        limits.append(x)
        x *= 1.1
    return [-x for x in reversed(limits)] + [0.0] + limits


def _widths(numbers):
    """The width of a bucket by each rule's name, 0 where the rule gives none; numbers are sorted and not all equal."""
    count, reach = len(numbers), numbers[-1] - numbers[0]
    mean = math.fsum(numbers) / count
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / count)
    skew = math.fsum(((x - mean) / spread) ** 3 for x in numbers) / count
    usual = math.sqrt(6 * (count - 2) / ((count + 1) * (count + 3)))  # of a normal distribution's skew

    def at(share):  # between the two neighbours of a share of the numbers
        place = share * (count - 1)
        i = min(int(place), count - 2)
        return numbers[i] + (place - i) * (numbers[i + 1] - numbers[i])

    sturges = reach / (math.log2(count) + 1)
    fd = 2 * (at(0.75) - at(0.25)) / count ** (1 / 3)
    return {
        "auto": min(fd, sturges) if fd else sturges,
        "fd": fd,  # Freedman and Diaconis, 1981
        "doane": reach / (1 + math.log2(count) + math.log2(1 + abs(skew) / usual)) if count > 2 else 0,  # Doane, 1976
        "scott": spread * (24 * math.sqrt(math.pi) / count) ** (1 / 3),  # Scott, 1979
        "rice": reach / (2 * count ** (1 / 3)),
        "sqrt": reach / math.sqrt(count),
        "sturges": sturges,
    }


def _wanted(numbers, rule):
    """How many buckets a rule wants, 10,000 at most."""
    known = ("auto", "fd", "doane", "scott", "rice", "sqrt", "sturges")
    if rule not in known:
        raise ValueError(
            f"add_histogram: bins={rule!r} is none of tensorflow, {', '.join(known)}, and no number or limits"
        )
    reach = numbers[-1] - numbers[0]
    width = _widths(numbers)[rule] if reach > 0 else 0
    return min(10_000, math.ceil(reach / width)) if width else 1


def _fewer(edges, counts, most):
    """Neighbours joined, so that there are about ``most`` buckets."""
    step = len(counts) // most
    if step < 2:
        return edges, counts
    counts = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
    return [*edges[:-1:step], edges[-1]], counts


def _limits(numbers, bins):
    """The limits of the buckets for sorted numbers."""
    if bins == "tensorflow":
        return _powers()
    if not isinstance(bins, (str, int)):
        return [float(x) for x in bins]
    low, high = numbers[0], numbers[-1]
    if isinstance(bins, str):
        bins = _wanted(numbers, bins)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return [low + (high - low) * i / bins for i in range(bins)] + [high]


def buckets(values, bins, most=None):
    """What histogram() of _events takes: least, greatest, how many, sum, sum of squares, limits, counts."""
    values = as_tensor(values).reshape(-1).double()
    if not values.numel():
        raise ValueError("The input has no element.")
    values = values[values.isfinite()]
    if not values.numel():
        return 0.0, 0.0, 0, 0.0, 0.0, [0.0], [0]
    numbers = values.sort().values.tolist()
    edges = _limits(numbers, bins)
    places = [bisect_left(numbers, edge) for edge in edges]
    places[-1] = bisect_right(numbers, edges[-1])  # the last bucket has its upper limit too
    counts = [b - a for a, b in zip(places, places[1:], strict=False)]
    if most is not None:
        edges, counts = _fewer(edges, counts, most)
    full = [i for i, count in enumerate(counts) if count] or [0]
    first, last = full[0], full[-1]
    limits, counts = edges[first : last + 2], [0, *counts[first : last + 1]]
    squares = values.dot(values).item()
    return numbers[0], numbers[-1], len(numbers), math.fsum(numbers), squares, limits, counts


def wav(sound, rate):
    """The WAV file of a sound in [-1, 1], 16 bits, one channel; and how many samples it has."""
    samples = (as_tensor(sound).reshape(-1).float().clamp(-1, 1) * 32767).to(adjoin.int16).tolist()
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return out.getvalue(), len(samples)
