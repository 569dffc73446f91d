"""tests/compat/databases/run.py: runs a database and prints its table.

python tests/compat/databases/run.py modules [--entry nn.Linear]... [--seed 0] [--cases 2]
"""

import argparse
import importlib
import pathlib
import sys
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


def table_of(database, **given):
    """The filled table of ``modules``, ``optimizers`` or ``ops``."""
    from databases.table import Table

    made = Table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"databases.{database}").run(made, **given)
    return made


def progress(entry):
    print(f"{time.process_time():8.1f} s  {entry}", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description="Runs a database of PyTorch's in Adjoin and in PyTorch.")
    parser.add_argument("database", choices=["modules", "optimizers", "ops"])
    parser.add_argument("--entry", action="append", help="only this entry; may be given again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=2, help="how many failing cases of an entry are told")
    parser.add_argument("--part", type=float, help="of ops: only this share of the entries, chosen by the seed")
    given = parser.parse_args()
    part = {"part": given.part} if given.part else {}
    print(table_of(given.database, seed=given.seed, entries=given.entry, told=progress, **part).text(given.cases))


if __name__ == "__main__":
    main()
