"""bench/gpu/pack.py: `./run gpu pack`: one archive with all that the steps need, laid out as in a checkout, so that both run alike."""

import argparse
import datetime
import json
import lzma
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import archive
import card
from runner import HERE, PREFIX, ROOT

TOP = "adjoin-gpu"
MOST = 15_000_000  # bytes of the archive
MODEL = "bench/results/gpu_model.json"
DIGITS = pathlib.Path("bench/gpu/digits.safetensors")
PLUGINS = PREFIX / "lib/adjoin/plugins-1"
ALWAYS = ("cpu", "reference", "onednn")  # of the plugins; packs of ops besides, and a vendor's
# Every system with a C++ program has these.
SYSTEM = re.compile(r"lib(stdc\+\+|gcc_s|m|c|dl|pthread|rt)\.so|libadjoin\.so|ld-linux|linux-vdso")


def members(vendors):
    """Files of the checkout: steps, the programs that they run, and what compiles the module for another Python."""
    yield from (ROOT / name for name in ("run", "LICENSE", "tests/programs/gpt.py", MODEL))
    yield from (p for p in HERE.glob("**/*") if p.suffix in (".py", ".md"))
    yield from (ROOT / "frontends/python/src").glob("*")
    yield from (ROOT / "frontends/cpp/files").glob("*.hpp")
    yield ROOT / "plugins/plugin.map"
    for folder in ("gpu", "cuda"):
        yield from (p for p in (ROOT / "plugins" / folder).glob("**/*") if p.suffix in (".cpp", ".hpp", ".cuh"))
    yield from (PREFIX / name for name in ("bin/adjoin", "lib/libadjoin.so"))
    yield from (PREFIX / "include").glob("**/*")
    package = (PREFIX / "lib/adjoin/python").glob("**/*")
    yield from (p for p in package if "__pycache__" not in p.parts and p.suffix != ".pyi")
    for name in (*ALWAYS, *vendors):
        yield PLUGINS / f"libaj_{name}.so"
    yield from PLUGINS.glob("libaj_ops_*.so")


def libraries(program):
    """Shared libraries that the program takes from this system and another may lack."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for name, path in re.findall(r"(\S+) => (/\S+)", told):
        if not SYSTEM.match(name):
            yield pathlib.Path(path)


def built(vendors):
    """The vendors whose plugin is there, or an error that says what is missing."""
    needed = [PREFIX / "bin/adjoin", *(PLUGINS / f"libaj_{name}.so" for name in ("cpu", "reference"))]
    missing = [str(p) for p in needed if not p.exists()]
    there = [name for name in vendors or card.VENDORS if (PLUGINS / f"libaj_{name}.so").exists()]
    if missing or not there or (vendors and there != vendors):
        missing += [str(PLUGINS / f"libaj_{name}.so") for name in vendors or card.VENDORS if name not in there]
        raise SystemExit(f"./run gpu pack: not built: {', '.join(missing)}; ./run build, with the vendor's toolkit")
    return there


def gather(folder, vendors):
    """Copies everything, without symbols, and writes the list of digests."""
    for path in members(vendors):
        to = folder / path.relative_to(ROOT)
        if path.is_file():
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)
    prefix = folder / PREFIX.relative_to(ROOT)
    for path in libraries(PREFIX / "bin/adjoin"):
        shutil.copy2(path, prefix / "lib" / path.name)
    for path in [prefix / "bin/adjoin", *prefix.glob("lib/**/*.so*")]:
        subprocess.run(["strip", "-s", path], check=True)
    write_digits(folder / DIGITS)
    files = sorted(p for p in folder.glob("**/*") if p.is_file())
    listed = {
        "commit": commit(),
        "made": datetime.date.today().isoformat(),
        "vendors": vendors,
        "files": {str(p.relative_to(folder)): archive.digest(p) for p in files},
    }
    (folder / archive.LIST).write_text(json.dumps(listed, indent=1) + "\n")


def write_digits(to):
    """scikit-learn's digits: the machine with the card need not have it."""
    command = [sys.executable, "-m", "adjoin.demo.digits", "--data", to]
    subprocess.run(command, check=True, env={"PYTHONPATH": str(PREFIX / "lib/adjoin/python"), "PATH": "/usr/bin:/bin"})


def commit():
    git = ["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(git, capture_output=True, text=True).stdout.strip() or "unknown"


def tell(folder, vendors):
    """What weighs most, before compression."""
    files = sorted((p for p in folder.glob("**/*") if p.is_file()), key=lambda p: -p.stat().st_size)
    total = sum(p.stat().st_size for p in files)
    print(f"{len(files)} files of {total / 1e6:.1f} MB for {' and '.join(vendors)}; the largest:")
    for p in files[:6]:
        print(f"  {p.stat().st_size / 1e6:6.1f} MB  {p.relative_to(folder)}")


def write(out, vendor, level):
    """One vendor's archive; its size in bytes."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / TOP
        gather(folder, [vendor])
        tell(folder, [vendor])
        # Processor code first: its jumps look alike once they are absolute.
        filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": level}]
        with lzma.open(out, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as file:
            file.add(folder, TOP)
    return out.stat().st_size


def main(arguments):
    parser = argparse.ArgumentParser(prog="./run gpu pack", description=__doc__)
    parser.add_argument(
        "--device",
        choices=card.VENDORS,
        action="append",
        help="this vendor alone; default: an archive for each that is built",
    )
    parser.add_argument(
        "--out", type=pathlib.Path, help="the archive of one vendor; default: build/adjoin-gpu-VENDOR.tar.xz"
    )
    parser.add_argument(
        "--level",
        type=int,
        default=6,
        choices=range(10),
        help="of xz; 1 takes a quarter of the time and a tenth more room",
    )
    options = parser.parse_args(arguments)
    vendors = built(options.device)
    if options.out and len(vendors) > 1:
        parser.error(
            f"--out is one archive, there are {len(vendors)} vendors: {', '.join(vendors)}; name one with --device"
        )
    for vendor in vendors:
        out = options.out or ROOT / f"build/adjoin-gpu-{vendor}.tar.xz"
        size = write(out, vendor, options.level)
        print(f"{out}: {size / 1e6:.1f} MB")
        if size > MOST:
            print(f"./run gpu pack: more than {MOST / 1e6:.0f} MB", file=sys.stderr)
            return 1
    return 0
