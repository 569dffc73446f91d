"""tests/programs/packages/exported_models.py: networks of transformers and timm become programs with a dynamic batch and length: saved, run
without Python with the same bits, and by onnxruntime. `python -m adjoin.torch exported_models.py`."""

import pathlib
import subprocess
import tempfile

import adjoin
import numpy as np
import onnxruntime
import timm
import torch
import transformers as hf
from told import fill, tell

SIZES = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(ids, use_cache=False).logits


def language(model):
    given = [torch.from_numpy(np.random.default_rng(0).integers(3, 99, s)) for s in ((2, 9), (1, 5), (3, 12))]
    return exported(Logits(model), given, {0: {0: "batch", 1: "length"}})


def vision(model):
    given = [torch.from_numpy(np.random.default_rng(0).standard_normal((n, 3, 64, 64)).astype("f4")) for n in (2, 1, 3)]
    return exported(model, given, {0: {0: "batch"}})


@torch.no_grad()
def exported(net, given, dynamic):
    """How far onnxruntime is from eager, at most; every other door has eager's bits."""
    fill(net.eval())
    program = adjoin.jit.trace(net, (given[0],), dynamic=dynamic)
    far = 0
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder)
        adjoin.jit.save(program, file / "model.aj")
        adjoin.onnx.export(program, (given[0],), str(file / "model.onnx"))
        loaded, session = adjoin.jit.load(file / "model.aj"), onnxruntime.InferenceSession(file / "model.onnx")
        for x in given:
            wanted = net(x)
            assert program(x).equal(wanted) and loaded(x).equal(wanted), tuple(x.shape)
            np.save(file / "x.npy", x.numpy())
            words = ["--input", file / "x.npy", "--output", file / "y"]
            subprocess.run(["adjoin", "run", file / "model.aj", *words], check=True, capture_output=True)
            (made,) = file.glob("y*/*.npy") if (file / "y").is_dir() else file.glob("y*")
            assert np.load(made).tobytes() == wanted.numpy().tobytes(), tuple(x.shape)
            made.unlink()
            (theirs,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
            far = max(far, float(np.abs(theirs - wanted.numpy()).max()))
    return far


if __name__ == "__main__":
    tell({
        "gpt2": lambda: language(
            hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=99, n_positions=64, n_embd=32, n_layer=2, n_head=4))
        ),
        "llama": lambda: language(hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, num_key_value_heads=2))),
        "resnet": lambda: vision(timm.create_model("resnet18", num_classes=10)),
        "vit": lambda: vision(timm.create_model("vit_tiny_patch16_224", num_classes=10, img_size=64)),
    })  # fmt: skip
