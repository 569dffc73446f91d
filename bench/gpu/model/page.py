"""bench/gpu/model/page.py: the model's table and picture, and what a card has measured beside them."""

import json

from cases import CASES

# Shares of the limit that the first kernels would have reached, estimated in the same way from their machine code: one element a
# load, one load on its way, no matrix unit, a thread for each line or column.
BEFORE = {
    "add float32": 0.87, "exp float32": 0.87, "sum of all float32": 0.2, "sum over dim 0 float32": 0.15, "sum over dim 1 float32": 0.2,
    "transposed copy float32": 0.12, "add bfloat16": 0.2, "exp bfloat16": 0.2, "sum of all bfloat16": 0.1, "sum over dim 0 bfloat16": 0.1,
    "sum over dim 1 bfloat16": 0.1, "transposed copy bfloat16": 0.1, "cast float32 to bfloat16": 0.3, "add of a row": 0.3,
    "softmax bfloat16": 0.1, "softmax bfloat16, both ways": 0.1, "layer norm bfloat16, both ways": 0.1, "cross entropy, both ways": 0.1,
    "batch norm, both ways": 0.02, "index_select of rows": 0.1, "index_add of rows": 0.005, "embedding of 16,384 tokens, both ways": 0.005,
    "cumsum of a vector": 0.001, "mm bfloat16": 0.9, "bmm bfloat16": 0.9, "linear with bias bfloat16": 0.01,
    "attention bfloat16, causal": 0.002, "attention bfloat16, causal, both ways": 0.002, "AdamW, 150 tensors": 0.75,
}  # fmt: skip
WORKED = {"attention_backward": 2.5, "attention": 1.0}  # products of ours: operations by those of the forward pass


def matrix_flops(kernel, case):
    """Operations of a kernel of ours that is a product; 0 for others."""
    for word, factor in WORKED.items():
        if f"::{word}" in kernel:
            return case.work * factor
    return 0


def measured(report):
    """{case: milliseconds} that a card's report has, of its step `predicted`."""
    if not report:
        return {}
    steps = json.loads(report.read_text(encoding="utf-8"))["steps"]
    entries = steps.get("predicted", {}).get("entries", ())
    return {e["name"]: e["value"] for e in entries if e["kind"] == "figure"}


def percent(value):
    return "" if value is None else f"{100 * value:.0f} %" if value >= 0.1 else f"{100 * value:.2g} %"


def time(value):
    return "" if value is None else f"{value:.3g}"


def lines(model, seen):
    cases = model["cases"]
    yield "# What the GPU kernels can reach at most: predicted"
    yield ""
    yield "Written by `./run gpu predict` from the machine code of `libaj_cuda.so` "
    yield f"({model['architecture']}) for an {model['card']}. **No card was measured for the columns marked"
    yield '"predicted"**: a kernel takes at least as long as its bytes, its instructions, what it has on its way, or its matrix unit need'
    yield "(`bench/gpu/model/predict.py` has the formula and the card's figures). A share is of the card's limit: the rate of a sum of two"
    yield 'arrays, or of a product of bfloat16. "Before" are the shares estimated for the first kernels. "Measured" is filled from the'
    yield "report of `./run gpu` on a card: `./run gpu predict --report gpu-report.json`."
    yield ""
    yield "| case | launches | predicted ms, at least | bound by | predicted share before | predicted share | wanted | measured ms | measured share |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, row in cases.items():
        bound, share, ms = row.get("milliseconds"), row.get("share"), seen.get(name)
        reached = share and bound / ms * share if ms and bound else None
        wanted = CASES[name].share or None
        cells = [
            name, row["launches"], time(bound), row["by"], percent(BEFORE.get(name)), percent(share), percent(wanted),
            time(ms) or "not yet", percent(reached) or "not yet",
        ]  # fmt: skip
        yield "| " + " | ".join(map(str, cells)) + " |"
    yield ""
    yield "![predicted shares](gpu_model.svg)"


def picture(path, model, seen):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "adjoin", "font.size": 8}
    from matplotlib import pyplot

    rows = [(name, row) for name, row in model["cases"].items() if row.get("share")]
    figure, axes = pyplot.subplots(figsize=(8, 0.28 * len(rows) + 1))
    for at, (name, row) in enumerate(rows):
        axes.barh(at, row["share"], 0.6, color="#4c72b0", label="predicted" if not at else None)
        if name in BEFORE:
            axes.plot(BEFORE[name], at, "|", color="#c44e52", markersize=9, label=None if at else "predicted, before")
        if name in seen:
            axes.plot(row["share"] * row["milliseconds"] / seen[name], at, "ko", markersize=4)
        if CASES[name].share:
            axes.plot(CASES[name].share, at, "k:", marker=9, markersize=4, label=None if at else "wanted at least")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.05)
    axes.set_xlabel(f"predicted: share of an {model['card']}'s limit, at most")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def write(folder, model, seen):
    (folder / "gpu_model.md").write_text("".join(line.rstrip() + "\n" for line in lines(model, seen)))
    picture(folder / "gpu_model.svg", model, seen)
