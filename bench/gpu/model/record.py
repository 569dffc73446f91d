"""bench/gpu/model/record.py: what each case of beside/cases.py queues, noted by the simulated card, which computes nothing: a line of
JSON a case. Every tensor is an allocation of its own, so that a kernel's arguments say which memory it reaches."""

import ctypes
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "beside"))
from cases import CASES

import adjoin


def main(device, card):
    paper = ctypes.CDLL(card)
    paper.paper_recorded.restype = ctypes.c_char_p
    gpus = getattr(adjoin, device)
    for name, case in CASES.items():
        call = case.make(adjoin, device)
        call()  # what is made once
        gpus.synchronize()
        paper.paper_order(b"record=1")
        paper.paper_recorded()
        call()
        lines = paper.paper_recorded().decode().splitlines()
        paper.paper_order(b"record=0")
        print(json.dumps([name, lines]), flush=True)
        del call


if __name__ == "__main__":
    os.environ.setdefault("ADJOIN_GPU_SIMULATED", "")
    main(*sys.argv[1:])
