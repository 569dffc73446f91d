"""tests/frontends/other_languages_test.py: languages without a binding define an op and train by the contract alone."""

import shutil
import sys
from pathlib import Path

from building import check_descent, run

HERE = Path(__file__).parent


def test_ctypes_defines_an_op_and_trains(defines):
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    told = run(python, "-I", HERE / "from_ctypes.py", defines).splitlines()
    check_descent(told, lambda line: [float(word) for word in line.split()[1:]])
    assert told[6] == "error matmul: a is [2] and b is [3]: the inner sizes 2 and 3 differ"
    assert told[7] == "error scaled_square: plugin 'ctypes' on cpu: by is -1.0, wanted: 0 or more"
