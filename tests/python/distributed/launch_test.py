"""tests/python/distributed/launch_test.py: `adjoin launch`: variables, modules, failures, restarts, what is left behind."""

import os
import re
import shutil
import signal
import subprocess
import time

LAUNCH = shutil.which("adjoin")

SHOW = """
import os, sys
names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK ROLE_RANK MASTER_ADDR TORCHELASTIC_RESTART_COUNT TORCHELASTIC_RUN_ID"
print(*(os.environ[n] for n in names.split()), *sys.argv[1:])
"""


def test_variables_and_arguments(good):
    assert good(2, SHOW, "--rdzv-id=job", arguments=["--epochs", "3"]) == [
        "0 0 2 2 0 0 127.0.0.1 0 job --epochs 3",
        "1 1 2 2 0 1 127.0.0.1 0 job --epochs 3",
    ]


def test_two_launchers_are_two_machines(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = torch.ones(1)\n"
        "dist.all_reduce(x)\n"
        "print(os.environ['RANK'], os.environ['GROUP_RANK'], x.item())\n"
    )
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    line = [LAUNCH, "launch", "--nnodes", "2", "--nproc_per_node", "1", "--rdzv_backend", "c10d"]
    line += ["--rdzv_endpoint", f"127.0.0.1:{port}", str(program)]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = sorted("".join(p.communicate(timeout=60)[0] for p in both).splitlines())
    assert [p.returncode for p in both] == [0, 0] and said == ["0 0 2.0", "1 1 2.0"]


def test_a_module_logs_and_marked_lines(tmp_path):
    (tmp_path / "mine.py").write_text("import torch, os\nprint(torch.__name__, os.environ['RANK'])\n")
    logs = tmp_path / "logs"
    got = subprocess.run(
        [LAUNCH, "launch", "--nproc-per-node=2", "-t", "3", "--log-dir", str(logs), "-m", "mine"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert got.returncode == 0, got.stderr
    assert sorted(got.stdout.splitlines()) == ["[default0]: torch 0", "[default1]: torch 1"]
    assert (logs / "attempt_0/1/stdout.log").read_text() == "torch 1\n"


def test_wrong_words_are_told():
    for words, said in (
        ([], "which program"),
        (["--nproc-per-node", "none", "x.py"], "'none'; wanted is a number"),
        (["--nproc-per-gpu", "2", "x.py"], "there is no option --nproc-per-gpu"),
        (["--nnodes", "1:4", "x.py"], "1:4"),
        (["--nnodes", "2", "x.py"], "--rdzv-endpoint"),
        (["--no-python", "/nowhere/program"], "cannot run /nowhere/program"),
    ):
        got = subprocess.run([LAUNCH, "launch", *words], capture_output=True, text=True, timeout=30)
        assert got.returncode in (1, 2) and said in got.stderr, got.stderr
    got = subprocess.run([LAUNCH, "launch", "--help"], capture_output=True, text=True)
    assert got.returncode == 0 and "--nproc-per-node" in got.stdout


def test_restarts(launch, tmp_path):
    body = """
    import os
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    import torch.distributed as dist
    dist.init_process_group()
    dist.barrier()
    print(os.environ["RANK"], attempt, flush=True)
    if attempt == 0 and dist.get_rank() == 1:
        raise RuntimeError("once")
    dist.barrier()
    """
    got = launch(2, body, "--max-restarts", "1")
    assert got.code == 0 and got.lines() == ["0 0", "0 1", "1 0", "1 1"], got.err
    assert "starting all again (1 of 1)" in got.err


def test_nothing_is_left_when_the_launcher_is_stopped(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import os, time, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(600)\n"
    )
    for number in (signal.SIGINT, signal.SIGKILL):
        job = subprocess.Popen([LAUNCH, "launch", "--nproc-per-node", "2", str(program)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        started = [int(job.stdout.readline()) for _ in range(2)]
        job.send_signal(number)
        job.wait(timeout=30)
        until = time.monotonic() + 20
        while any(alive(pid) for pid in started):
            assert time.monotonic() < until, started
            time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return re.sub(r".*\)", "", file.read()).split()[0] != "Z"
    except OSError:
        return False
