"""bench/packages.py: a package over PyTorch, by PyTorch and by `adjoin run`: importing transformers, training its tiny Llama.

``BENCH_PYTHON`` names a Python with PyTorch and transformers; ``BENCH_PACKAGES`` one with transformers alone, else this one. Processes
alternate; a figure is the median of the ratios Adjoin / PyTorch of neighbours, in seconds of the processor, one thread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

PROGRAM = """
import json, sys, time
def now():
    return time.process_time(), time.perf_counter()
def since(start):
    return [b - a for a, b in zip(start, now())]
told, start = {}, now()
import transformers as hf
from transformers import LlamaConfig, LlamaForCausalLM
told["import transformers"] = since(start)
import torch
torch.set_num_threads(1)
sizes = dict(hidden_size=32, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
model = LlamaForCausalLM(LlamaConfig(vocab_size=99, pad_token_id=0, **sizes))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.arange(2 * 12).reshape(2, 12) % 90 + 3
def train(steps):
    for _ in range(steps):
        loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
train(5)
start = now()
train(int(sys.argv[1]))
told["train a tiny Llama"] = since(start)
print("told " + json.dumps(told))
"""
WANTED = 0.7


def run(python, ours, steps):
    env = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
    if not ours:
        env.pop("PYTHONPATH", None)
        env.pop("LD_LIBRARY_PATH", None)
    command = [python, *(["-m", "adjoin.torch"] if ours else []), "-", str(steps)]
    done = subprocess.run(command, input=PROGRAM, capture_output=True, text=True, env=env)
    lines = [line for line in done.stdout.splitlines() if line.startswith("told ")]
    if done.returncode or not lines:
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-1500:]}")
    return json.loads(lines[0][5:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    given = parser.parse_args()
    theirs = os.environ.get("BENCH_PYTHON", sys.executable)
    ours = os.environ.get("BENCH_PACKAGES", sys.executable)
    for python, is_ours in ((theirs, False), (ours, True)):
        run(python, is_ours, 1)  # the first one reads the disk
    pairs = [(run(ours, True, given.steps), run(theirs, False, given.steps)) for _ in range(given.rounds)]
    good = True
    print(f"{'':22} {'adjoin':>9} {'pytorch':>9} {'ratio':>7}")
    for name in pairs[0][0]:
        a, b = ([pair[side][name][0] for pair in pairs] for side in (0, 1))
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
        good &= ratio <= WANTED
        print(
            f"{name:22} {statistics.median(a):9.3f} {statistics.median(b):9.3f} {ratio:7.2f}{'' if ratio <= WANTED else ' *'}"
        )
    return 0 if good else 1


sys.exit(main())
