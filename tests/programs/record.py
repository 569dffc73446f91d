"""tests/programs/record.py: writes recorded*.json: losses, steps and rates of PyTorch that Adjoin has to follow. Run with
PyTorch."""

import json
import warnings

import optim_cases
import runner
import torch

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def write(name, found, digits):
    lines = [f"{json.dumps(key)}: {json.dumps([float(f'{x:.{digits}g}') for x in row])}" for key, row in found.items()]
    (runner.HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write("recorded.json", {name: runner.losses(name, torch) for name in runner.NAMES}, 8)
    write("recorded_optim.json", optim_cases.cases(torch), 9)
