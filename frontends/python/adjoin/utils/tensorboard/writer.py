"""adjoin.utils.tensorboard.writer: SummaryWriter: what a training run tells, as files in a folder."""

import itertools
import os
import socket
import threading
import time
import warnings

import adjoin

from . import _curves, _events, _hparams, _pictures, _plugins, _projector

_numbers = itertools.count()


class _File:
    """An event file, written from several threads; flushed every ``max_queue`` events or ``flush_secs``."""

    def __init__(self, folder, max_queue, flush_secs, suffix):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        name = (
            f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{suffix}"
        )
        self.file = open(os.path.join(folder, name), "ab")
        self.lock = threading.Lock()
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.waiting, self.flushed = 0, time.monotonic()
        self.add(_events.event(time.time(), file_version="brain.Event:2"))
        self.flush()

    def add(self, event):
        data = _events.record(event)
        with self.lock:
            self.file.write(data)
            self.waiting += 1
            due = self.waiting >= self.max_queue or time.monotonic() - self.flushed > self.flush_secs
        if due:
            self.flush()

    def flush(self):
        with self.lock:
            self.file.flush()
            self.waiting, self.flushed = 0, time.monotonic()

    def close(self):
        with self.lock:
            self.file.close()


class SummaryWriter:
    """Writes numbers, histograms, pictures, sounds and texts, each under a tag and a step, for TensorBoard.

    ``log_dir``: the folder (default: ``runs/DATE_HOST`` + ``comment``); a run is a folder. ``purge_step``: what an
    earlier run wrote from there on is hidden. Values are tensors, arrays or numbers.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            when = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{when}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self._files = {}
        self._open("")
        if purge_step is not None:
            start = _events.integer(1, 1)  # SessionLog: a start, which hides later steps of earlier files
            event = _events.event(time.time(), purge_step) + _events.block(7, start)
            self._files[""].add(event)

    def _open(self, part):
        if part not in self._files:
            folder = os.path.join(self.log_dir, part)
            self._files[part] = _File(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self._files[part]

    def _add(self, tag, content, step, walltime, part=""):
        when = time.time() if walltime is None else walltime
        self._open(part).add(_events.event(when, None if step is None else int(step), _events.value(tag, content)))

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    @property
    def file_writer(self):
        """The writer of the run's own file, to which messages can be added; None once all are closed."""
        return self._get_file_writer() if self._files else None

    @property
    def all_writers(self):
        """The writers by folder; None once all are closed."""
        from ._file_writer import FileWriter

        return {f.folder: FileWriter._of(f) for f in self._files.values()} or None

    def _get_file_writer(self):
        from ._file_writer import FileWriter

        return FileWriter._of(self._open(""))

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """One number."""
        self._add(tag, _events.scalar(_number(tag, scalar_value)), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Numbers to be seen in one diagram: each is a run of its own, in a folder ``main_tag_tag``."""
        for tag, number in tag_scalar_dict.items():
            part = f"{main_tag.replace('/', '_')}_{tag}"
            self._add(main_tag, _events.scalar(_number(main_tag, number)), global_step, walltime, part)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A tensor as it is, of floats."""
        tensor = _pictures.as_tensor(tensor).float()
        self._add(tag, _events.array(tuple(tensor.shape), tensor.reshape(-1).tolist()), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """How values are distributed; ``bins``: "tensorflow" (limits grow by a tenth), "auto", a number, or limits."""
        self._add(tag, _events.histogram(*_pictures.buckets(values, bins, max_bins)), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts,
                          global_step=None, walltime=None):  # fmt: skip
        """A histogram that has been counted already."""
        limits, counts = [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]
        if len(limits) != len(counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = _events.histogram(min, max, num, sum, sum_squares, limits, counts)
        self._add(tag, content, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """A picture: uint8, or floats in [0, 1]; ``dataformats`` names the dimensions."""
        pixels = _pictures.to_pixels(img_tensor, dataformats)
        self._add(tag, _events.image(*pixels.shape, _pictures.png(pixels)), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several pictures as one grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW",
                             labels=None):  # fmt: skip
        """A picture with boxes: rows of left, top, right, bottom."""
        pixels = _pictures.boxed(_pictures.to_pixels(img_tensor, dataformats), box_tensor, labels)
        pixels = _pictures.scaled(pixels, rescale)
        self._add(tag, _events.image(*pixels.shape, _pictures.png(pixels)), global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Pictures that move, (batch, time, channels, height, width): uint8, or floats in [0, 1]; Pillow writes them."""
        self._add(tag, _events.image(*_pictures.gif(vid_tensor, fps)), global_step, walltime)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """A mesh or a cloud of points: vertices, their colors, and faces of three vertices, each (batch, count, 3)."""
        for name, content in _plugins.mesh(tag, vertices, colors, faces, config_dict):
            self._add(name, content, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Which scalars stand in one diagram: ``{category: {title: ["Multiline", [tags]] or ["Margin", [value, lower, upper]]}}``."""
        self._add("custom_scalars__config__", _plugins.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """The same of one diagram of several curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """The same of one curve with what is below and above it."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or several."""
        from matplotlib import pyplot
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            self.add_image(tag, canvas.buffer_rgba(), global_step, walltime, "HWC")
            if close:
                pyplot.close(one)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """A sound of one channel in [-1, 1]."""
        data, frames = _pictures.wav(snd_tensor, sample_rate)
        self._add(tag, _events.audio(sample_rate, frames, data), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text, in Markdown."""
        self._add(tag + "/text_summary", _events.text(text_string), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of predictions, probabilities of the class that labels, 0 or 1, say; for thresholds from 0 to 1."""
        table = _curves.counts(labels, predictions, num_thresholds, weights)
        self._add(tag, _curves.value(table), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts,
                         precision, recall, global_step=None, num_thresholds=127, weights=None, walltime=None):  # fmt: skip
        """Precision and recall that have been counted already, a number for each threshold."""
        rows = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        rows = [_pictures.as_tensor(row).double().reshape(-1) for row in rows]
        if any(len(row) != len(rows[0]) for row in rows):
            raise ValueError(
                f"add_pr_curve_raw: the rows have {[len(row) for row in rows]} numbers; they must be alike"
            )
        self._add(tag, _curves.value(adjoin.stack(rows)), global_step, walltime)

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Vectors, the rows of mat, for the projector: with a label, or a row of labels, and a picture [C, H, W] for each."""
        step = f"{0 if global_step is None else global_step:05d}"
        place = f"{step}/{''.join(c if c.isalnum() or c in '_-' else '%' + format(ord(c), 'x') for c in tag)}"
        _projector.write(self.log_dir, place, f"{tag}:{step}", mat, metadata, metadata_header, label_img)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Writes nothing: there is no graph of a model before it runs."""
        warnings.warn("add_graph: graphs are not written; print(model) shows the modules", stacklevel=2)

    def add_onnx_graph(self, prototxt):
        """Writes nothing, as add_graph."""
        warnings.warn("add_onnx_graph: graphs are not written; netron shows the file", stacklevel=2)

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """A line of the table of hyperparameters, in a run of its own: what was chosen, and the numbers it led to."""
        for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
            if not isinstance(given, dict):
                raise TypeError(f"add_hparams: {name} must be a dictionary, it is {type(given).__name__}")
        part = str(time.time()) if run_name is None else run_name
        for tag, content in _hparams.values(hparam_dict, metric_dict, hparam_domain_discrete):
            self._add(tag, content, None, None, part)
        for tag, number in metric_dict.items():
            self._add(tag, _events.scalar(_number(tag, number)), global_step, None, part)

    def flush(self):
        """Writes what is still waiting."""
        for file in self._files.values():
            file.flush()

    def close(self):
        """Ends the files; what is added later opens new ones."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _number(tag, value):
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"add_scalar: {tag!r}: one number is wanted, not {value!r}") from error
