"""tests/python/files/tensorboard_test.py: event files, decoded by a reader of the test's own and, where it is installed, by
TensorBoard's."""

import io
import math
import struct
import wave
import zlib

import adjoin
import numpy
import pytest
from adjoin.utils.tensorboard import FileWriter, RecordWriter, SummaryWriter, _curves, _events, _pictures


def bitwise_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 * (crc & 1))
    return crc ^ 0xFFFFFFFF


def test_crc32c():
    assert _events.crc32c(b"123456789") == 0xE3069283
    assert _events.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4
    assert _events.crc32c(b"\xff" * 32) == 0x62A8AB43
    assert _events.crc32c(bytes(range(32))) == 0x46DD794E


def varint(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at


def fields(data):
    """[(field, value)] of a message; bytes where it may be a message."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        else:
            size, code = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, at = struct.unpack(code, data[at : at + size])[0], at + size
        found.append((key >> 3, value))
    assert at == len(data)
    return found


def events(folder):
    """{(tag, step): what fields() gives for the value}, after checking every record."""
    found = {}
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        data, at = path.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            for start, length in ((at, 8), (at + 12, size)):
                crc = bitwise_crc32c(data[start : start + length])
                wanted = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
                assert struct.unpack_from("<I", data, start + length)[0] == wanted
            event = dict(fields(data[at + 12 : at + 12 + size]))
            at += 16 + size
            assert event[1] > 1.6e9
            if 5 in event:
                (value,) = (dict(fields(v)) for n, v in fields(event[5]))
                place = path.parent.relative_to(folder)
                key = value.pop(1).decode(), event.get(2)
                found[key if str(place) == "." else (str(place), *key)] = value
            else:
                assert event.get(3) == b"brain.Event:2" or 7 in event
    return found


def unpng(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(name + body)
        parts[name] = body
        at += 12 + size
    width, height, depth, kind = struct.unpack_from(">IIBB", parts[b"IHDR"])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[kind]
    rows, stride = zlib.decompress(parts[b"IDAT"]), 1 + width * channels
    assert depth == 8 and len(rows) == height * stride
    return [[list(rows[y * stride + 1 + x * channels :][:channels]) for x in range(width)] for y in range(height)]


def test_numbers(tmp_path):
    with SummaryWriter(tmp_path, flush_secs=1000) as writer:
        for step in range(30):
            writer.add_scalar("loss", 1 / (step + 1), step)
        writer.add_scalar("train/acc", adjoin.tensor(0.5), 2**40)
        writer.add_scalar("no step", 3)
        writer.add_scalars("two", {"a": 1, "b": 2.5}, 7)
        assert writer.get_logdir() == str(tmp_path)
    found = events(tmp_path)
    assert found["loss", 4][2] == pytest.approx(0.2) and found["train/acc", 2**40][2] == 0.5
    assert found["no step", None][2] == 3 and ("loss", 29) in found
    assert found["two_a", "two", 7][2] == 1 and found["two_b", "two", 7][2] == 2.5


def test_refusals(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        with pytest.raises(ValueError, match="add_scalar: 'x': one number is wanted"):
            writer.add_scalar("x", adjoin.ones(2))
        with pytest.raises(ValueError, match=r"shape \(2, 2\), which is not 'CHW'"):
            writer.add_image("x", adjoin.ones(2, 2))
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("x", [])
        with pytest.raises(ValueError, match="5 channels"):
            writer.add_image("x", adjoin.ones(5, 2, 2))
        with pytest.warns(UserWarning, match="graphs are not written"):
            writer.add_graph(None)


def test_pictures(tmp_path):
    rgb = adjoin.tensor([[[0.0, 1.0]], [[0.5, 2.0]], [[1.0, -1.0]]])  # 3 x 1 x 2
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("rgb", rgb, 0)
        writer.add_image("hwc", rgb.permute(1, 2, 0), 0, dataformats="HWC")
        writer.add_image("bytes", adjoin.arange(6, dtype=adjoin.uint8).reshape(2, 3), 0, dataformats="HW")
        writer.add_images("grid", adjoin.ones(3, 1, 2, 2), 0)
    found = events(tmp_path)
    wanted = [[[0, 127, 255], [255, 255, 0]]]
    for tag in ("rgb", "hwc"):
        picture = dict(fields(found[tag, 0][4]))
        assert (picture[1], picture[2], picture[3]) == (1, 2, 3) and unpng(picture[4]) == wanted
    assert unpng(dict(fields(found["bytes", 0][4]))[4]) == [[[0], [1], [2]], [[3], [4], [5]]]
    grid = unpng(dict(fields(found["grid", 0][4]))[4])
    assert grid == [[[255]] * 4] * 2 + [[[255]] * 2 + [[0]] * 2] * 2


RULES = ["auto", "fd", "doane", "scott", "rice", "sqrt", "sturges"]


@pytest.mark.parametrize("rule", RULES)
def test_rules_for_the_number_of_buckets(rule):
    draw = numpy.random.default_rng(0)
    for data in (draw.normal(size=500), draw.exponential(size=77), [1.0, 1, 1, 2], [3.0, 3], [5.0], [1.0, 4.0]):
        counts, want = numpy.histogram(data, rule)
        *_, limits, found = _pictures.buckets(adjoin.tensor(data, dtype=adjoin.float64), rule)
        full = numpy.flatnonzero(counts)
        numpy.testing.assert_allclose(limits, want[full[0] : full[-1] + 2])
        assert found == [0, *counts[full[0] : full[-1] + 1]]


def test_fewer_buckets():
    values = adjoin.arange(1024.0)
    whole = _pictures.buckets(values, "sturges")
    limits, counts = _pictures.buckets(values, "sturges", 5)[-2:]
    assert len(whole[-1]) == 12 and counts == [0, 186, 186, 186, 186, 186, 94]  # 11 buckets, two by two
    assert limits == whole[-2][::2] + [1023.0] and sum(counts) == 1024
    assert _pictures.buckets(values, "sturges", 11)[-1] == whole[-1]
    with pytest.raises(ValueError, match="bins='many' is none of tensorflow, auto"):
        _pictures.buckets(values, "many")


@pytest.mark.parametrize("bins", ["tensorflow", "auto", 5, [-10.0, 0.0, 1.0, 10.0]])
def test_histogram(tmp_path, bins):
    adjoin.manual_seed(0)
    values = adjoin.randn(1000, dtype=adjoin.float64)
    values[0] = 1.0  # on a limit
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("h", values, 3, bins=bins)
        writer.add_histogram_raw("raw", 0, 1, 2, 1, 1, [0.5, 1], [1, 1], 3)
    histogram = dict(fields(events(tmp_path)["h", 3][5]))
    limits, counts = (struct.unpack(f"<{len(histogram[n]) // 8}d", histogram[n]) for n in (6, 7))
    numbers = values.tolist()
    assert (histogram[1], histogram[2], histogram[3]) == (min(numbers), max(numbers), 1000)
    assert histogram[4] == pytest.approx(math.fsum(numbers)) and histogram[5] == pytest.approx(
        sum(x * x for x in numbers)
    )
    assert len(limits) == len(counts) and sum(counts) == 1000 and list(limits) == sorted(limits)
    for i in range(1, len(limits)):
        last = i == len(limits) - 1
        inside = [x for x in numbers if limits[i - 1] <= x and (x < limits[i] or (last and x == limits[i]))]
        assert counts[i] == len(inside)


def test_texts_sounds_tensors(tmp_path):
    with SummaryWriter(tmp_path, purge_step=5, filename_suffix=".x") as writer:
        writer.add_text("notes", "# größer\ntext", 6)
        writer.add_audio("beep", adjoin.sin(adjoin.arange(100) / 3.0), 6, sample_rate=8000)
        writer.add_tensor("t", adjoin.arange(6.0).reshape(2, 3), 6)
    assert all(path.name.endswith(".x") for path in tmp_path.iterdir())
    found = events(tmp_path)
    text = found["notes/text_summary", 6]
    assert dict(fields(text[8]))[8].decode() == "# größer\ntext"
    assert dict(fields(dict(fields(text[9]))[1]))[1] == b"text"
    with wave.open(io.BytesIO(dict(fields(found["beep", 6][6]))[4])) as sound:
        assert (sound.getframerate(), sound.getnframes(), sound.getsampwidth()) == (8000, 100, 2)
    assert struct.unpack("<6f", dict(fields(found["t", 6][8]))[5]) == (0, 1, 2, 3, 4, 5)


def test_read_by_tensorboard(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.25, 3)
        writer.add_histogram("h", adjoin.arange(10.0), 3)
        writer.add_image("picture", adjoin.ones(3, 4, 5), 3)
        writer.add_text("words", "hello", 3)
    read = reader.EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(3, 0.25)]
    assert read.Histograms("h")[0].histogram_value.num == 10
    assert (read.Images("picture")[0].width, read.Images("picture")[0].height) == (5, 4)
    assert read.Tensors("words/text_summary")[0].tensor_proto.string_val[0] == b"hello"


def test_table_of_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        chosen = {"lr": 0.1, "layers": adjoin.tensor(3), "optimizer": "adam", "warm": True, "none": None}
        writer.add_hparams(
            chosen, {"accuracy": 0.5, "loss": adjoin.tensor(2.0)}, {"optimizer": ["adam", "sgd"]}, "first", 9
        )
        writer.add_hparams({"lr": 1}, {})
        for wrong in ({"lr": [1, 2]}, {"lr": adjoin.ones(2)}):
            with pytest.raises(ValueError, match="add_hparams: 'lr' is"):
                writer.add_hparams(wrong, {})
        with pytest.raises(TypeError, match="metric_dict must be a dictionary, it is list"):
            writer.add_hparams({}, [])
        with pytest.raises(ValueError, match="hparam_domain_discrete\\['x'\\]"):
            writer.add_hparams({"lr": 1}, {}, {"x": [1]})
    found = events(tmp_path)
    assert found["first", "accuracy", 9][2] == 0.5 and found["first", "loss", 9][2] == 2

    def message(part, field):
        (about,) = (v for n, v in fields(found["first", "_hparams_/" + part, None][9]) if n == 1)
        about = dict(fields(about))
        assert about[1] == b"hparams"
        content = dict(fields(about[2]))
        assert content[1] == 0
        return fields(content[field])

    columns = [fields(v) for n, v in message("experiment", 2) if n == 4]
    assert [(dict(c)[1], dict(c)[4]) for c in columns] == [(b"lr", 3), (b"layers", 3), (b"optimizer", 1), (b"warm", 2)]
    assert [fields(v) for n, v in fields(dict(columns[2])[5])] == [[(3, b"adam")], [(3, b"sgd")]]
    metrics = [dict(fields(dict(fields(v))[1]))[2] for n, v in message("experiment", 2) if n == 5]
    assert metrics == [b"accuracy", b"loss"]
    pairs = {dict(fields(v))[1]: fields(dict(fields(v))[2]) for n, v in message("session_start_info", 3)}
    assert pairs == {b"lr": [(2, 0.1)], b"layers": [(2, 3.0)], b"optimizer": [(3, b"adam")], b"warm": [(4, 1)]}
    assert message("session_end_info", 4) == [(1, 1)]
    assert {key[0] for key in found if key[1] == "_hparams_/experiment"} > {"first"}


class Message:
    """What looks like a protocol buffer."""

    def __init__(self, data):
        self.data = data

    def SerializeToString(self):
        return self.data


def test_messages_of_a_program_s_own(tmp_path):
    writer = FileWriter(tmp_path, filename_suffix=".own")
    assert writer.get_logdir() == str(tmp_path)
    writer.add_summary(Message(_events.value("loss", _events.scalar(2.5))), global_step=3, walltime=1.7e9)
    writer.add_event(_events.event(0, 1, _events.value("acc", _events.scalar(0.5))), step=4)
    writer.flush()
    found = events(tmp_path)
    assert found["loss", 3][2] == 2.5 and found["acc", 4][2] == 0.5
    writer.close()
    writer.reopen()
    writer.add_summary(_events.value("late", _events.scalar(1)))
    writer.close()
    assert ("late", None) in events(tmp_path) and len(list(tmp_path.iterdir())) == 2
    assert any(path.name.endswith(".own") for path in tmp_path.iterdir())


def test_records_of_a_program_s_own(tmp_path):
    path = tmp_path / "records"
    writer = RecordWriter(path.open("wb"))
    for data in (b"one", b""):
        writer.write(data)
    writer.flush()
    assert path.read_bytes() == _events.record(b"one") + _events.record(b"")
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"")


def test_precision_and_recall_by_threshold(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve(
            "curve", adjoin.tensor([0, 1, 1, 0]), adjoin.tensor([0.2, 0.5, 0.8, 0.9]), 1, num_thresholds=11
        )
        with pytest.raises(ValueError, match="one prediction for each label"):
            writer.add_pr_curve("curve", [0, 1], [0.5])
        with pytest.raises(ValueError, match="probabilities"):
            writer.add_pr_curve("curve", [0, 1], [0.5, 1.5])
        writer.add_pr_curve_raw("raw", *([1.0, 0.0] for _ in range(6)), 2, num_thresholds=2)
    found = events(tmp_path)
    numbers = _curves.counts(adjoin.tensor([0, 1, 1, 0]), adjoin.tensor([0.2, 0.5, 0.8, 0.9]), 11, None)
    assert (
        numbers[:4, 0].tolist() == [2, 2, 0, 0]
        and numbers[:4, 6].tolist() == [1, 1, 1, 1]
        and numbers[:4, 10].tolist() == [0, 0, 2, 2]
    )
    assert numbers[4:, 0].tolist() == [0.5, 1] and numbers[4:, 6].tolist() == [0.5, 0.5]
    assert ("curve", 1) in found and ("raw", 2) in found
    data = next(tmp_path.iterdir()).read_bytes()
    assert b"pr_curves" in data and data.count(b"curve") >= 2


def test_vectors_for_the_projector(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(adjoin.eye(3), metadata=["a", "b", "c"], label_img=adjoin.rand(3, 3, 4, 5), global_step=2)
        writer.add_embedding(
            adjoin.eye(2), metadata=[["x", 1], ["y", 2]], metadata_header=["name", "number"], tag="two words"
        )
        with pytest.raises(ValueError, match="2 labels and 3 vectors"):
            writer.add_embedding(adjoin.eye(3), metadata=["a", "b"])
    inside = tmp_path / "00002" / "default"
    assert (inside / "tensors.tsv").read_text().splitlines()[1] == "0.0\t1.0\t0.0"
    assert (inside / "metadata.tsv").read_text() == "a\nb\nc\n" and (inside / "sprite.png").read_bytes()[
        :4
    ] == b"\x89PNG"
    assert (tmp_path / "00000" / "two%20words" / "metadata.tsv").read_text() == "name\tnumber\nx\t1\ny\t2\n"
    told = (tmp_path / "projector_config.pbtxt").read_text()
    assert (
        told.count("embeddings {") == 2
        and 'tensor_path: "00002/default/tensors.tsv"' in told
        and "single_image_dim: 5" in told
    )
