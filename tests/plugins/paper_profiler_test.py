"""tests/plugins/paper_profiler_test.py: device times in adjoin.profiler, from simulated tools of NVIDIA and AMD
(paper_card/tracers.cpp), whose clock is another than ours."""

from paper import either, run

PROGRAM = """
from adjoin.profiler import ProfilerActivity, profile, record_function
both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
x = adjoin.ones(64, 64, device=gpu)
(x @ x).relu().sum().item()
"""


@either
def test_what_a_call_queued_is_its_own(name, card):
    program = (
        PROGRAM
        + """
order("delay_us=2000")
with profile(activities=both) as prof:
    with record_function("block"):
        y = (x @ x).relu()
    z = y.cpu()
rows = {(row.key, row.device_type.name): row for row in prof.key_averages()}
host = {key: row for (key, kind), row in rows.items() if kind == "CPU"}
cards = {key: row for (key, kind), row in rows.items() if kind != "CPU"}
print(any("kernel" in key for key in cards), "product of paper" in cards, "Memcpy" in cards, sorted({kind for _, kind in rows}))
print(host["mm"].self_device_time_total > 0, host["matmul"].self_device_time_total == 0)
product = cards["product of paper"].self_device_time_total
print(all(abs(host[key].device_time_total - product) < 0.01 for key in ("matmul", "mm")))
print(host["block"].device_time_total >= host["mm"].device_time_total + host["relu"].device_time_total > 0)
print(all(row.cpu_time_total == 0 for row in cards.values()), host["mm"].self_cuda_time_total == host["mm"].self_device_time_total)
mm = next(event for event in prof.events() if event.name == "mm")
(kernel,) = mm.kernels
done = next(event for event in prof.events() if event.name == "product of paper")
print(kernel.name, kernel.device, done.time_range.start >= mm.time_range.start, done.time_range.start - mm.time_range.start < 1e6)
table = prof.key_averages().table(sort_by="self_cuda_time_total", row_limit=30)
print("Self CUDA" in table, "CUDA time total: " in table, "product of paper" in table)
"""
    )
    assert run(program, name, card) == (
        f"True True True ['CPU', '{name.upper()}']\n"
        + "True True\nTrue\nTrue\nTrue True\nproduct of paper 0 True True\nTrue True True\n"
    )


@either
def test_who_asks_for_no_device_times_opens_no_tool(name, card):
    program = (
        PROGRAM
        + """
with profile() as prof:
    x + 1
print([row.key for row in prof.key_averages()], "CUDA" in prof.key_averages().table())
"""
    )
    assert run(program, name, card, ADJOIN_CUPTI="/no/such", ADJOIN_ROCTRACER="/no/such") == "['add'] False\n"


@either
def test_a_tool_that_is_missing_or_says_no_is_told(name, card):
    program = (
        PROGRAM
        + """
import warnings
from adjoin import _C
def warned():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with profile(activities=both) as prof:
            x + 1
    return [str(w.message) for w in seen], [row.key for row in prof.key_averages()]
print(warned())
"""
    )
    tool, brings = {"cuda": ("CUPTI", "nvidia-cuda-cupti-cu12"), "hip": ("roctracer", "apt-get install roctracer")}[
        name
    ]
    missing = run(program, name, card, ADJOIN_CUPTI="/no/such", ADJOIN_ROCTRACER="/no/such")
    assert f"profile: {name}: no device times: {tool}: not found: " in missing and brings in missing, missing
    assert missing.endswith("['add'])\n")
    refused = {"cuda": "cuptiActivityEnable:35:2", "hip": "roctracer_enable_domain_activity_expl:1:2"}[name]
    says = run(
        program.replace("print(warned())", f'order("answer={refused}")\nprint(warned())\nprint(warned()[0])'),
        name,
        card,
    )
    lines = says.splitlines()
    assert f"no device times: {refused.split('_expl')[0].split(':')[0]}: {tool} says" in lines[0], says
    assert lines[1] == "[]"  # the next profile has them


@either
def test_a_second_profile_is_told_that_the_tool_is_taken(name, card):
    program = (
        PROGRAM
        + """
from adjoin import _C
_C.device_times_start(gpu)
print(told(_C.device_times_start, gpu))
x + 1
gpus.synchronize()
work = _C.device_times_stop(gpu)
print(len(work), work[0][1], work[0][2][:20] != "", work[0][4] > work[0][3], _C.device_times_stop(gpu))
print(told(_C.device_times_start, "cpu"))
"""
    )
    lines = run(program, name, card).splitlines()
    assert lines[0] == f"RuntimeError: {name}: device times are taken by somebody already; end that profile first"
    count, event, *others = lines[1].split(maxsplit=2)
    assert count == "1" and int(event) > 0 and others == ["True True []"]
    assert "aj.device_times/cpu" in lines[2]
