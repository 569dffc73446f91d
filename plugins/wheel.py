#!/usr/bin/env python3
"""plugins/wheel.py: packs a backend alone, as pip installs it beside adjoin.

wheel.py FILE OUT    FILE is libaj_NAME.so; OUT/adjoin_NAME-VERSION-py3-none-PLATFORM.whl is written

The wheel has one file, adjoin_plugins/libaj_NAME.so, which adjoin finds there. It is told by the note in it, and it has no
library of the vendor's. `adjoin` and Python's package `wheel` do the work.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VENDORS = {"cuda": "GPUs of NVIDIA", "hip": "GPUs of AMD"}
METADATA = """\
Metadata-Version: 2.4
Name: adjoin-{name}
Version: {version}
Summary: {devices} for Adjoin
License-Expression: {license}
License-File: LICENSE
Requires-Python: >=3.11
Requires-Dist: adjoin ~= {version}
Description-Content-Type: text/markdown

A backend of Adjoin: `adjoin.ones(3, device="{name}")`. Nothing is to be set. The vendor's driver and libraries are opened where they
are; `adjoin plugins why {name}` tells which were found, what is missing, and the command that brings it.
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: adjoin
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""


def checked(file):
    """What the note says, once adjoin has found that the plugin is a good one."""
    done = subprocess.run(["adjoin", "plugins", "check", file, "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"wheel.py: {file}: {done.stderr.strip() or 'adjoin plugins check said nothing'}")
    report = json.loads(done.stdout)
    if not report["ok"]:
        sys.exit(f"wheel.py: {file} is no good plugin: {report['verdict']}")
    return report["plugin"]


def pack(file, out):
    note = checked(file)
    name, version = note["name"], note["version"]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    with tempfile.TemporaryDirectory() as folder:
        plugins = pathlib.Path(folder, "adjoin_plugins")
        about = pathlib.Path(folder, f"adjoin_{name}-{version}.dist-info")
        plugins.mkdir()
        (about / "licenses").mkdir(parents=True)
        subprocess.run(["strip", "-o", plugins / file.name, file], check=True)
        (about / "METADATA").write_text(METADATA.format(**note, devices=VENDORS.get(name, f"the device {name}")))
        (about / "WHEEL").write_text(WHEEL.format(platform=platform))
        shutil.copy(ROOT / "LICENSE", about / "licenses")
        out.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "wheel", "pack", folder, "--dest-dir", out], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pack(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
