"""adjoin.jit._convert: `adjoin graph convert FROM TO`: between the files of programs: ONNX's, PyTorch's, our own."""

import argparse
import sys

import adjoin

from .. import jit, onnx

SIZE = 6  # of a dimension that has a name, in the example


def _shape(text):
    """(sizes, dtype) of "2,3:int64"."""
    sizes, _, dtype = text.partition(":")
    try:
        return [int(n) for n in sizes.split(",") if n], getattr(adjoin, dtype or "float32")
    except (ValueError, AttributeError):
        raise argparse.ArgumentTypeError(f"{text!r}: sizes and a dtype are wanted, as 2,3:int64") from None


def example(sizes, dtype):
    """A tensor of this shape; whole numbers are 0, which every table has a row for."""
    return adjoin.randn(sizes).to(dtype) if dtype.is_floating_point else adjoin.zeros(sizes, dtype=dtype)


def of_onnx(model):
    """(inputs, {place: {dimension: name}}) as an ONNX model says them."""
    from ..onnx import _model

    inputs, dynamic = [], {}
    known = {i.name: i for i in model.graph.input}
    for place, name in enumerate(model.input_names):
        said = known[name].type.tensor_type if known[name].type is not None else None
        if said is None or said.shape is None:
            raise ValueError(
                f"graph convert: the input '{name}' has no shape in the model; --shape says one for each input"
            )
        sizes, names = [], {}
        for d, dim in enumerate(said.shape.dim):
            if dim.has("dim_value"):
                sizes.append(dim.dim_value)
            else:
                sizes.append(SIZE)
                names[d] = "".join(c if c.isalnum() else "_" for c in dim.dim_param or f"d{place}_{d}")
        inputs.append(example(sizes, _model.dtype_of(said.elem_type)))
        if names:
            dynamic[place] = names
    return inputs, dynamic


def read(path, shapes):
    """The program in a file."""
    if path.endswith(".onnx"):
        model = onnx.load(path)
        inputs, dynamic = of_onnx(model) if not shapes else ([example(*s) for s in shapes], {})
    else:
        model, dynamic = jit.load(path), {}
        if hasattr(model, "_traced"):
            return model
        if not shapes:
            raise ValueError(
                f"graph convert: '{path}' does not say which inputs it takes; --shape 2,3 or 2,3:int64 says it for each"
            )
        inputs = [example(*s) for s in shapes]
    with adjoin.no_grad():
        return jit.trace(model.eval(), tuple(inputs), dynamic=dynamic, constants_limit=1 << 40)


def main(words):
    p = argparse.ArgumentParser(
        "adjoin graph convert",
        description="Between .onnx, PyTorch's .pt and .pt2, and .aj. Nothing in a file is executed.",
    )
    p.add_argument("source", metavar="FROM")
    p.add_argument("target", metavar="TO", help=".aj or .onnx")
    p.add_argument(
        "--shape",
        type=_shape,
        action="append",
        default=[],
        help="of an input, where FROM does not say it: 2,3 or 2,3:int64",
    )
    p.add_argument("--opset", type=int, default=18, help="of the ONNX model that is written (18)")
    a = p.parse_args(words)
    try:
        if not a.target.endswith((".aj", ".onnx")):
            raise ValueError(f"graph convert: '{a.target}': files that end in .aj or .onnx are written")
        program = read(a.source, a.shape)
        if a.target.endswith(".aj"):
            jit.save(program, a.target)
        else:
            onnx.export(program, (), a.target, opset_version=a.opset)
    except (OSError, ValueError, RuntimeError, NotImplementedError, TypeError) as error:
        print(f"adjoin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
