"""tests/abi/site_packages_test.py: what another Python package installs in adjoin_plugins/ is found by `import adjoin`."""

import os
import subprocess
import sys

from abi_tools import DEFINE_TWICE, TWICE, build_plugin

USE = """
import sys
sys.path.insert(0, sys.argv[1])
import adjoin
print(adjoin._C.op_info("acme::twice") is not None, adjoin.ops.acme.twice(adjoin.ones(3)).tolist())
"""


def test_plugins_of_a_package_are_found(tmp_path):
    site = tmp_path / "site-packages"
    folder = site / "adjoin_plugins"
    folder.mkdir(parents=True)
    built = build_plugin(tmp_path, extra=TWICE, init=DEFINE_TWICE + "return bad;", provides="ops:acme")
    os.rename(built, folder / "libaj_acme.so")

    def run(where):
        return subprocess.run([sys.executable, "-c", USE, str(where)], capture_output=True, text=True)

    got = run(site)
    assert (got.returncode, got.stdout) == (0, "True [2.0, 2.0, 2.0]\n"), got.stderr
    assert run(tmp_path).returncode != 0  # a folder that is no site-packages is left alone
