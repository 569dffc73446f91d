"""bench/gpu/steps/predicted.py: what each case of beside/cases.py takes on this card, without PyTorch, beside the bound that was
computed from the machine code (bench/gpu/model)."""

import gc
import json
import sys

import adjoin
from pieces import DEVICE, check, figure, left_out, seconds_left
from runner import HERE, ROOT
from timing import milliseconds

sys.path.insert(0, str(HERE / "beside"))
from cases import CASES

gpus = getattr(adjoin, DEVICE)


def main():
    model = json.loads((ROOT / "bench/results/gpu_model.json").read_text(encoding="utf-8"))
    done = 0
    for name, case in CASES.items():
        if seconds_left() < 15:
            left_out(name, "no time was left; --limit SECONDS gives more")
            continue
        try:
            took = milliseconds(case.make(adjoin, DEVICE), gpus)
        except RuntimeError as error:
            check(name, False, f"{type(error).__name__}: {error}")
            continue
        row = model["cases"].get(name, {})
        words = (
            f"an {model['card']} needs at least {row['milliseconds']:.3g} ms, predicted by: {row['by']}"
            if "milliseconds" in row
            else "not modelled"
        )
        figure(name, took, "ms", words)
        done += 1
        gc.collect()
        gpus.empty_cache()
    check("cases were measured", done > 0, f"{done} of {len(CASES)}")


main()
