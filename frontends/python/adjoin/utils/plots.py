"""adjoin.utils.plots: pictures of a training run, drawn with matplotlib where it is installed.

Numbers come as Python lists, so nothing here knows tensors. Every function writes one PNG.
"""

from typing import NamedTuple


def available():
    """Whether matplotlib can be imported."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def _figure(rows=1, columns=1, size=(6.0, 4.0)):
    """A figure without pyplot, which would look for a display, and its axes as rows of a list."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots: matplotlib is not installed; install it with: pip install matplotlib") from error
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


class Panel(NamedTuple):
    """One plot of several lines over 1, 2, …; ``ends`` are dots at the right edge, by the line's
    name."""

    heading: str
    x_label: str
    y_label: str
    lines: dict
    ends: dict | None = None


def curves(path, panels, title=""):
    """Line plots side by side, one per Panel."""
    figure, axes = _figure(1, len(panels), (5.5 * len(panels), 4.0))
    for axis, panel in zip(axes[0], panels, strict=True):
        for name, values in panel.lines.items():
            (line,) = axis.plot(range(1, len(values) + 1), values, linewidth=1.2, label=name)
            if panel.ends and name in panel.ends:
                axis.plot(len(values) + 1, panel.ends[name], "o", color=line.get_color())
        axis.set(title=panel.heading, xlabel=panel.x_label, ylabel=panel.y_label)
        axis.grid(True, linewidth=0.4, alpha=0.5)
        if len(panel.lines) > 1:
            axis.legend(fontsize=8)
    if title:
        figure.suptitle(title)
    figure.savefig(path)


def confusion(path, counts, names, title=""):
    """A matrix of counts with its numbers: rows are the truth, columns the answers."""
    figure, axes = _figure(1, 1, (6.0, 5.4))
    axis = axes[0][0]
    # Right answers would drown the mistakes, so only these are coloured.
    mistakes = [[0 if i == j else n for j, n in enumerate(row)] for i, row in enumerate(counts)]
    axis.imshow(mistakes, cmap="Reds", vmin=0, vmax=max(1, max(map(max, mistakes)) * 1.5))
    for i, row in enumerate(counts):
        for j, count in enumerate(row):
            if count:
                weight = "bold" if i == j else "normal"
                axis.text(j, i, str(count), ha="center", va="center", fontsize=9, fontweight=weight)
    places = range(len(names))
    axis.set(xlabel="read as", ylabel="is", xticks=places, yticks=places)
    axis.set_xticklabels(names)
    axis.set_yticklabels(names)
    axis.set_title(title)
    figure.savefig(path)


def images(path, pictures, captions, title="", columns=8):
    """Grey pictures in a grid, each a list of rows of numbers, with a caption above it."""
    columns = max(5, min(columns, len(pictures)))
    rows = max(1, -(-len(pictures) // columns))
    figure, axes = _figure(rows, columns, (1.25 * columns, 1.5 * rows + 0.5))
    for axis in (axis for row in axes for axis in row):
        axis.set_axis_off()
    for place, (picture, caption) in enumerate(zip(pictures, captions, strict=True)):
        axis = axes[place // columns][place % columns]
        axis.imshow(picture, cmap="gray_r")
        axis.set_title(caption, fontsize=8)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path)
