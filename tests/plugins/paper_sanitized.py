"""tests/plugins/paper_sanitized.py TREE [WORDS...]: the plugins cuda and hip on the simulated card, as TREE's sanitizers and compiler
see them: host code, card and kernels' bodies. Every row's values and gradients; WORDS go to `adjoin conform`."""

import concurrent.futures
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from paper import surroundings

ROOT = Path(__file__).resolve().parents[2]
RELEASE = ROOT / os.environ.get("ADJOIN_TREE", "build/release")  # its machine code of kernels is taken as it is
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize=function", "-fno-omit-frame-pointer", "-O0"]
VENDORS = ("cuda", "hip")


def compiler():
    return ["ccache", "clang++"] if shutil.which("ccache") else ["clang++"]


def commands(name, folder):
    """What made build/release's plugin, for this compiler, with results in the folder: [compilations], link."""
    target = f"plugins/libaj_{name}.so"
    told = subprocess.run(["ninja", "-t", "commands", target], cwd=RELEASE, check=True, capture_output=True, text=True)
    own = [shlex.split(line) for line in told.stdout.splitlines() if target in line]
    own = [words[words.index("g++") + 1 :] for words in own if "g++" in words]
    moved = [[word.replace(target, f"{folder}/libaj_{name}.so") for word in words] for words in own]
    compile_, link = [words for words in moved if "-c" in words], moved[-1]
    assert compile_ and "-shared" in link, f"build/release has no plugin {name}"
    return (
        [[*compiler(), *words, *SANITIZED, "-w"] for words in compile_],
        ["clang++", *SANITIZED, *(word for word in link if word != "-Wl,-z,defs")],  # the program has the runtime
    )


def make(folder):
    """The two plugins and the card."""
    jobs, links = [], []
    for name in VENDORS:
        (folder / f"libaj_{name}.so.p").mkdir(parents=True, exist_ok=True)
        compile_, link = commands(name, folder)
        jobs += compile_
        links.append(link)
    objects = []
    for source in sorted((ROOT / "tests/plugins/paper_card").glob("*.cpp")):
        objects.append(str(folder / f"{source.stem}.o"))
        flags = ["-std=c++20", "-fPIC", f"-I{ROOT}", f"-I{RELEASE}/gen/include", "-c", source, "-o", objects[-1]]
        jobs.append([*compiler(), *SANITIZED, *flags])
    links.append(["clang++", *SANITIZED, "-shared", *objects, "-o", folder / "libcard.so", "-ldl", "-pthread"])
    run = lambda words: subprocess.run(words, cwd=RELEASE, check=True)  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(run, jobs))
        list(pool.map(run, links))


def main(tree, words):
    stage = tree / "stage/usr/local"
    folder = tree / "paper"
    make(folder)
    bodies = stage / "lib/adjoin/plugins-1/libaj_emulated.so"
    jobs = {}
    for name in VENDORS:
        around = surroundings(name, folder / "libcard.so", ADJOIN_PAPER_CARD_BODIES=bodies, ADJOIN_PREFIX=stage)
        env = os.environ | {key: str(value) for key, value in around.items()}
        jobs[name] = subprocess.Popen([stage / "bin/adjoin", "conform", folder / f"libaj_{name}.so", *words], env=env)
    failed = [name for name, job in jobs.items() if job.wait() != 0]
    if failed:
        sys.exit(f"paper_sanitized: {' and '.join(failed)}: not as wanted")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
