"""adjoin.onnx._program: export() itself: a network is traced, written, and put back as it was."""

import adjoin

from . import TrainingMode, _export
from . import _model as m


class ONNXProgram:
    """A model in memory."""

    def __init__(self, made, weights):
        self.model_proto, self._weights = made, weights

    def save(self, destination, *, external_data=False, **ignored):
        """Writes it to a path or a file that is open."""
        own = m.Model(**{k: v for k, v in vars(self.model_proto).items() if k != "_kind"})
        own.graph = m.Graph(**{k: v for k, v in vars(own.graph).items() if k != "_kind"})
        _export.stored(own, self._weights, destination, external_data)

    def to_bytes(self):
        """The file as bytes."""
        import io

        file = io.BytesIO()
        self.save(file)
        return file.getvalue()


def export(
    model,
    args,
    f,
    kwargs,
    export_params,
    training,
    input_names,
    output_names,
    opset,
    dynamic_axes,
    dynamic_shapes,
    external,
):
    opset = 18 if opset is None else opset
    if opset not in _export.OPSETS:
        _export.refuse(ValueError, f"opset_version={opset}; opsets 13 to 20 are written")
    if not export_params:
        _export.refuse(
            NotImplementedError,
            "export_params=False leaves the weights out, which is not done; they are part of the model",
        )
    args = args if isinstance(args, tuple) else (args,)
    kwargs = dict(kwargs or {})
    if args and isinstance(args[-1], dict) and not kwargs:
        args, kwargs = args[:-1], args[-1]
    flags = _export.flags_of(model)
    mode = training if training is not None else TrainingMode.EVAL
    here = adjoin.onnx
    before = here._exporting
    here._exporting = True
    try:
        if flags and mode != TrainingMode.PRESERVE:
            model.train(mode == TrainingMode.TRAINING)
        dynamic = _export.dynamic_sizes(dynamic_axes, dynamic_shapes, kwargs, list(input_names))
        with adjoin.no_grad():
            program = _export.traced(model, args, kwargs, dynamic)._traced.program
        made, weights = _export.model_of(program, opset, list(input_names), list(output_names), type(model).__name__)
    finally:
        here._exporting = before
        for module, was in flags:
            module.training = was
    made = ONNXProgram(made, weights)
    if f is None:
        return made
    made.save(f, external_data=external)
    return made
