"""adjoin.utils.tensorboard.summary: summaries as messages, for who adds them to an event file himself.

They are TensorBoard's protocol buffers where it is installed, else objects that give the same bytes.
"""

from . import _curves, _events, _hparams, _pictures, _plugins

__all__ = [
    "audio", "custom_scalars", "histogram", "histogram_raw", "hparams", "image", "image_boxes", "mesh", "pr_curve", "scalar", "text", "video",
]  # fmt: skip


class Summary:
    """The bytes of a message."""

    def __init__(self, data):
        self._data = data

    def SerializeToString(self):
        """The bytes."""
        return self._data


def _made(*values):
    data = b"".join(_events.value(tag, content) for tag, content in values)
    try:
        from tensorboard.compat.proto.summary_pb2 import Summary as Theirs
    except ImportError:
        return Summary(data)
    return Theirs.FromString(data)


def scalar(name, tensor, collections=None, new_style=False, double_precision=False):
    """One number; in the new style as a tensor."""
    number = float(tensor)
    if not new_style:
        return _made((name, _events.scalar(number)))
    data = _events.integer(1, 2) + _events.doubles(6, [number]) if double_precision else None
    data = data or _events.integer(1, 1) + _events.block(5, _events.struct.pack("<f", number))
    about = _events.block(9, _events.block(1, _events.block(1, "scalars")) + _events.integer(4, 1))
    return _made((name, about + _events.block(8, data)))


def histogram(name, values, bins, max_bins=None):
    """How values are distributed; with ``max_bins`` neighbours are joined to about so many buckets."""
    return _made((name, _events.histogram(*_pictures.buckets(values, bins, max_bins))))


def histogram_raw(name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """A histogram that has been counted already."""
    limits, counts = [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]
    return _made((name, _events.histogram(min, max, num, sum, sum_squares, limits, counts)))


def image(tag, tensor, rescale=1, dataformats="NCHW"):
    """A picture, or several as one grid."""
    pixels = _pictures.scaled(_pictures.to_pixels(tensor, dataformats), rescale)
    return _made((tag, _events.image(*pixels.shape, _pictures.png(pixels))))


def image_boxes(tag, tensor_image, tensor_boxes, rescale=1, dataformats="CHW", labels=None):
    """A picture with boxes."""
    pixels = _pictures.boxed(_pictures.to_pixels(tensor_image, dataformats), tensor_boxes, labels)
    pixels = _pictures.scaled(pixels, rescale)
    return _made((tag, _events.image(*pixels.shape, _pictures.png(pixels))))


def video(tag, tensor, fps=4):
    """Pictures that move."""
    return _made((tag, _events.image(*_pictures.gif(tensor, fps))))


def audio(tag, tensor, sample_rate=44100):
    """A sound."""
    data, frames = _pictures.wav(tensor, sample_rate)
    return _made((tag, _events.audio(sample_rate, frames, data)))


def text(tag, text):
    """A text."""
    return _made((tag + "/text_summary", _events.text(text)))


def pr_curve(tag, labels, predictions, num_thresholds=127, weights=None):
    """Precision and recall."""
    return _made((tag, _curves.value(_curves.counts(labels, predictions, num_thresholds, weights))))


def mesh(tag, vertices, colors, faces, config_dict, display_name=None, description=None):
    """A mesh or a cloud of points."""
    return _made(*_plugins.mesh(tag, vertices, colors, faces, config_dict))


def custom_scalars(layout):
    """Which scalars stand in one diagram."""
    return _made(("custom_scalars__config__", _plugins.custom_scalars(layout)))


def hparams(hparam_dict=None, metric_dict=None, hparam_domain_discrete=None):
    """The three summaries of the table of hyperparameters: its columns, the run's own, its end."""
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, it is {type(given).__name__}")
    return tuple(_made(one) for one in _hparams.values(hparam_dict, metric_dict, hparam_domain_discrete))
