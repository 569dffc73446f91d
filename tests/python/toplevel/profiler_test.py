"""tests/python/toplevel/profiler_test.py: adjoin.profiler: rows, trees, memory, labels and traces from the core's events."""

import json
import threading

import pytest

import adjoin
import adjoin.plugin
from adjoin.autograd.profiler import (
    EnforceUnique,
    EventList,
    FunctionEvent,
    KinetoStepTracker,
    MemRecordsAcc,
)
from adjoin.profiler import profile, record_function


def rows_of(prof, **options):
    return {row.key: row for row in prof.key_averages(**options)}


def test_time_of_its_own_and_of_its_parts():
    x, w = adjoin.ones(64, 64), adjoin.ones(64, 64)
    with profile() as prof:
        with record_function("block"):
            adjoin.nn.functional.softplus(x @ w)
    events = {event.name: event for event in prof.events()}
    block = events["block"]
    assert block.is_user_annotation and block.cpu_parent is None
    assert block.cpu_children[0].name == "matmul" and events["matmul"].cpu_parent is block
    parts = sum(child.cpu_time_total for child in block.cpu_children)
    assert block.self_cpu_time_total == pytest.approx(block.cpu_time_total - parts)
    assert block.time_range.start <= events["matmul"].time_range.start <= block.time_range.end
    assert events["matmul"].device == "cpu" and __file__ in events["matmul"].stack[0]


def test_backward_is_told():
    w = adjoin.ones(3, 3).requires_grad_()
    with profile() as prof:
        (w @ w).sum().backward()
    assert rows_of(prof)["mm"].count == 3


def test_memory():
    with profile(profile_memory=True) as prof:
        a = adjoin.zeros(1000, 1000)
        with record_function("two more"):
            b = a.exp()
            c = a.sin()
        del a
    rows = rows_of(prof)
    assert (
        4e6 <= rows["exp"].self_cpu_memory_usage < 8e6
        and rows["exp"].cpu_memory_usage == rows["exp"].self_cpu_memory_usage
    )
    assert rows["two more"].cpu_memory_usage == rows["exp"].cpu_memory_usage + rows["sin"].cpu_memory_usage
    assert (
        rows["two more"].self_cpu_memory_usage == 0
        and rows["[memory]"].cpu_memory_usage == -rows["exp"].cpu_memory_usage
    )
    assert "self cpu memory" in prof.key_averages().table(sort_by="self_cpu_memory_usage")
    with profile() as prof:
        b.add(c)
    assert not rows_of(prof)["add"].cpu_memory_usage and "memory" not in prof.key_averages().table()


def test_lines_keep_rows_apart():
    x = adjoin.ones(3)
    with profile() as prof:
        x.exp()
        x.exp()
    assert [row.count for row in prof.key_averages()] == [2]
    assert [row.count for row in prof.key_averages(group_by_stack_n=1)] == [1, 1]


def test_labels_of_threads_and_of_nobody():
    x = adjoin.ones(3)
    with record_function("nobody listens"):
        x.exp()

    @record_function("work")
    def work():
        x.exp()

    with profile() as prof:
        work()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert rows_of(prof)["work"].count == 2 and len({event.thread for event in prof.events()}) == 2
    assert "nobody listens" not in rows_of(prof)


def test_chrome_trace(tmp_path):
    x = adjoin.ones(1000)
    with profile(profile_memory=True) as prof, record_function("range"):
        x.exp()
    prof.export_chrome_trace(tmp_path / "trace.json")
    told = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    by_name = {event["name"]: event for event in told}
    assert by_name["exp"]["ph"] == "X" and by_name["exp"]["args"]["provider"] == "cpu" and by_name["exp"]["dur"] > 0
    assert by_name["range"]["cat"] == "user_annotation" and by_name["[memory]"]["args"]["Total Allocated"] > 0
    assert by_name["range"]["ts"] <= by_name["exp"]["ts"]


def test_two_profiles_and_one_that_is_dropped():
    x = adjoin.ones(3)
    with profile() as outer:
        x.exp()
        forgotten = profile()
        forgotten.start()
        with profile() as inner:
            x.sin()
        del forgotten
        x.cos()
    assert list(rows_of(inner)) == ["sin"] and set(rows_of(outer)) == {"exp", "sin", "cos"}


def test_beside_the_trace_of_kernels():
    x = adjoin.ones(3)
    for _ in range(2):
        with adjoin.plugin.explain() as served:
            with profile() as prof:
                x.exp()
            x.exp()
        x.exp()
        assert [event.name for event in prof.events()] == ["exp"] and prof.events()[0].provider == "cpu"
        assert [row["calls"] for row in served.rows if row["op"] == "exp"] == [2] and served.by("exp") == ["cpu"]


def test_a_decorated_function_keeps_its_name():
    @record_function("label")
    def function():
        """Says so."""
        return 5

    assert function() == 5 and function.__name__ == "function" and function.__doc__ == "Says so."


def two_steps():
    x = adjoin.ones(200, 200)
    with profile(profile_memory=True) as prof:
        with record_function("step"):
            x.exp().sin()
        x.exp()
    return prof


def test_lists_of_events():
    prof = two_steps()
    events = prof.events()
    assert isinstance(events, EventList) and all(isinstance(event, FunctionEvent) for event in events)
    step = next(event for event in events if event.name == "step")
    assert step.time_range.elapsed_us() == step.cpu_time_total > 0 and step.cpu_time == step.cpu_time_total
    rows = {row.key: row for row in events.key_averages()}
    assert rows["exp"].count == 2 and rows["exp"].cpu_time == pytest.approx(rows["exp"].cpu_time_total / 2)
    total, seen = events.total_average(), [event for event in events if event.cpu_parent is None]
    assert total.count == len(events) and total.key == "Total" and prof.total_average().count == total.count
    assert total.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert events.self_cpu_time_total == pytest.approx(sum(event.cpu_time_total for event in seen))
    top = events.table(header="the header", top_level_events_only=True)
    assert top.startswith("the header\n") and "sin" not in top and "sin" in events.table()


def test_stacks_and_traces_of_lists(tmp_path):
    events = two_steps().events()
    events.export_stacks(tmp_path / "stacks", "cpu_memory_usage")  # three calls, and the memory of each
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert len(lines) == 6 and all("profiler_test.py" in line and int(line.split()[-1]) >= 160_000 for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        events.export_stacks(tmp_path / "stacks", "colour")
    events.export_chrome_trace(tmp_path / "trace.json")
    assert len(json.loads((tmp_path / "trace.json").read_text())["traceEvents"]) == len(events)


def test_events_of_a_program_s_own():
    times = {"outer": (0, 10, 1), "first": (1, 4, 1), "within": (2, 3, 1), "second": (5, 9, 1), "elsewhere": (2, 3, 2)}
    events = EventList(FunctionEvent(i, name, thread, a, b) for i, (name, (a, b, thread)) in enumerate(times.items()))
    events._build_tree()
    by_name = {event.name: event for event in events}
    assert [child.name for child in by_name["outer"].cpu_children] == ["first", "second"]
    assert by_name["within"].cpu_parent is by_name["first"] and by_name["elsewhere"].cpu_parent is None
    assert by_name["outer"].self_cpu_time_total == 3 and by_name["first"].self_cpu_time_total == 2
    assert events.self_cpu_time_total == 11 and "name=outer" in repr(by_name["outer"])


def test_tools_of_profilers():
    class Record:
        def __init__(self, at):
            self.at = at

        def start_ns(self):
            return self.at

    records = MemRecordsAcc([(Record(at), str(at)) for at in (30, 10, 20, 40)])
    assert [text for _, text in records.in_interval(15, 30)] == ["20", "30"] and not list(records.in_interval(41, 50))
    unique = EnforceUnique()
    unique.see("a", 1)
    unique.see("a", 2)
    with pytest.raises(RuntimeError, match="duplicate key: .'a', 1."):
        unique.see("a", 1)


def test_steps_that_several_say():
    begin = KinetoStepTracker.current_step()
    with profile() as prof:
        prof.step()
        prof.step()
    assert KinetoStepTracker.current_step() == begin + 2
    try:
        assert KinetoStepTracker.increment_step("own") == begin + 3  # it begins where the others are
        prof.step()
        assert KinetoStepTracker.current_step() == begin + 3
        assert KinetoStepTracker.increment_step("own") == begin + 4
    finally:
        assert KinetoStepTracker.erase_step_count("own") and not KinetoStepTracker.erase_step_count("own")


def test_what_can_be_watched():
    assert adjoin.profiler.ProfilerActivity.CPU in adjoin.profiler.supported_activities()
    cuda = adjoin.profiler.ProfilerActivity.CUDA in adjoin.profiler.supported_activities()
    assert cuda == (adjoin.cuda.device_count() > 0 or adjoin.hip.device_count() > 0)
    assert adjoin.profiler.kineto_available() and adjoin.profiler.DeviceType.CPU is two_steps().events()[0].device_type
    for kind in (adjoin.autograd.profiler.emit_nvtx, adjoin.autograd.profiler.emit_itt):
        with pytest.raises(NotImplementedError, match="adjoin.profiler.profile.. records them"):
            kind()
        with kind(enabled=False):
            pass
