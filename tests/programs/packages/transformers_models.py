"""tests/programs/packages/transformers_models.py: tiny networks of transformers: training, generating, saving, its Trainer."""

import tempfile

import numpy as np
import torch
import transformers as hf
from told import fill, losses, tell

hf.utils.logging.set_verbosity_error()
hf.utils.logging.disable_progress_bar()
SIZES = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


def ids(rng, batch=2, length=12):
    return torch.from_numpy(rng.integers(3, 99, (batch, length)))


def both(rng):
    x = ids(rng)
    return {"input_ids": x, "labels": x}


def gpt2():
    quiet = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 4}
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=99, bos_token_id=1, eos_token_id=2, **sizes, **quiet))


def llama():
    model = hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, num_key_value_heads=2, pad_token_id=0))
    found = losses(model, both)
    made = model.generate(ids(np.random.default_rng(1), 1, 5), max_new_tokens=6, do_sample=False)
    return [found, made.tolist()]


def t5():
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
    model = hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=99, **sizes))
    return losses(model, lambda rng: {"input_ids": ids(rng), "labels": ids(rng, 2, 7)})


def vit():
    sizes = {k: v for k, v in SIZES.items() if k != "vocab_size"}
    model = hf.ViTForImageClassification(hf.ViTConfig(**sizes, image_size=32, patch_size=8, num_labels=5))

    def batch(rng):
        pixels = torch.from_numpy(rng.standard_normal((2, 3, 32, 32)).astype("f4"))
        return {"pixel_values": pixels, "labels": torch.tensor([1, 3])}

    return losses(model, batch)


def whisper():
    of_both = {
        f"{k}_{n}": v
        for k in ("encoder", "decoder")
        for n, v in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 37))
    }
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    most = {"num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 20}
    model = hf.WhisperForConditionalGeneration(hf.WhisperConfig(vocab_size=99, d_model=32, **of_both, **tokens, **most))

    def batch(rng):
        sound = torch.from_numpy(rng.standard_normal((2, 8, 40)).astype("f4"))
        return {"input_features": sound, "labels": ids(rng, 2, 7)}

    return losses(model, batch)


def generated():
    model = gpt2()
    fill(model)
    model.eval()
    x = ids(np.random.default_rng(3), 2, 5)
    return model.generate(x, max_new_tokens=6, num_beams=3, do_sample=False, pad_token_id=0).tolist()


def saved():
    model, x = gpt2(), ids(np.random.default_rng(3))
    fill(model)
    model.eval()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = hf.GPT2LMHeadModel.from_pretrained(folder).eval()
    return [again(x).logits.sum().item(), bool((again(x).logits == model(x).logits).all())]


class Lines(torch.utils.data.Dataset):
    def __init__(self):
        self.lines = np.random.default_rng(5).integers(3, 99, (16, 10))

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, place):
        x = torch.from_numpy(self.lines[place])
        return {"input_ids": x, "labels": x}


def trainer():
    model = gpt2()
    fill(model)
    with tempfile.TemporaryDirectory() as folder:
        words = {
            "per_device_train_batch_size": 16,
            "num_train_epochs": 4,
            "logging_steps": 1,
            "report_to": [],
            "save_strategy": "no",
        }
        arguments = hf.TrainingArguments(folder, use_cpu=True, disable_tqdm=True, **words)
        run = hf.Trainer(model, arguments, train_dataset=Lines())
        run.train()
    return [line["loss"] for line in run.state.log_history if "loss" in line]


if __name__ == "__main__":
    tell({
        "gpt2": lambda: losses(gpt2(), both),
        "bert": lambda: losses(hf.BertForMaskedLM(hf.BertConfig(**SIZES)), both),
        "llama": llama, "t5": t5, "vit": vit, "whisper": whisper, "generated": generated, "saved": saved, "trainer": trainer,
    })  # fmt: skip
