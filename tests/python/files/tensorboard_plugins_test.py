"""tests/python/files/tensorboard_plugins_test.py: meshes, diagrams of several curves, boxes and films; messages that a program adds itself."""

import io
import sys

import adjoin
import pytest
from adjoin.utils.tensorboard import SummaryWriter, _pictures, summary
from tensorboard_test import events, fields, unpng


def about(value):
    """(the plugin's name, what it must know) of a value."""
    metadata = dict(fields(dict(fields(value[9]))[1]))
    return metadata[1].decode(), metadata.get(2, b"")


def test_meshes_have_a_part_for_vertices_faces_and_colors(tmp_path):
    vertices, faces = adjoin.tensor([[[0.0, 1.0, 2.0], [3.0, 4.0, 5.5]]]), adjoin.tensor([[[0, 1, 300]]])
    with SummaryWriter(tmp_path) as writer:
        writer.add_mesh("m", vertices, adjoin.full((1, 2, 3), 200), faces, {"camera": 1}, global_step=3)
        writer.add_mesh("cloud", vertices)
        for wrong in (vertices[0], adjoin.zeros(1, 2, 2)):
            with pytest.raises(ValueError, match="wanted is"):
                writer.add_mesh("x", wrong)
    found = events(tmp_path)
    assert [tag for tag, _ in found] == ["m_VERTEX", "m_FACE", "m_COLOR", "cloud_VERTEX"]
    for (tag, step), kind, number in (
        (("m_VERTEX", 3), 1, 5),
        (("m_FACE", 3), 2, 7),
        (("m_COLOR", 3), 3, 7),
    ):
        plugin, content = about(found[tag, step])
        said = dict(fields(content))
        assert plugin == "mesh" and said[2] == b"m" and said[3] == kind and said[7] == 0b1110
        assert said[5] == b'{"camera": 1}' and number in dict(fields(found[tag, step][8]))
    tensor = dict(fields(found["m_VERTEX", 3][8]))
    assert adjoin.frombuffer(bytearray(tensor[5]), dtype=adjoin.float32).tolist() == vertices.reshape(-1).tolist()
    assert dict(fields(found["m_FACE", 3][8]))[7] == b"\x00\x01\xac\x02"
    assert dict(fields(about(found["cloud_VERTEX", None])[1]))[7] == 0b10


def test_diagrams_of_several_curves(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars({"stocks": {"all": ["Multiline", ["a", "b"]], "one": ["Margin", ["v", "l", "u"]]}})
        for wrong in (["Pie", ["a"]], ["Margin", ["v", "l"]]):
            with pytest.raises(ValueError, match="wanted is 'Multiline'"):
                writer.add_custom_scalars({"x": {"y": wrong}})
    value = events(tmp_path)["custom_scalars__config__", None]
    assert about(value)[0] == "custom_scalars"
    (category,) = [v for n, v in fields(dict(fields(value[8]))[8]) if n == 2]
    said = fields(category)
    assert said[0] == (1, b"stocks")
    several, one = (fields(v) for n, v in said if n == 2)
    assert several[0] == (1, b"all") and fields(several[1][1]) == [(1, b"a"), (1, b"b")]
    assert one[1][0] == 3 and fields(dict(fields(one[1][1]))[1]) == [(1, b"v"), (2, b"l"), (3, b"u")]


def test_boxes_are_red_and_stay_inside(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_image_with_boxes("x", adjoin.zeros(1, 8, 9), adjoin.tensor([[1, 2, 6, 7], [-5, -5, 50, 50]]))
        with pytest.raises(ValueError, match="1 boxes and 2 labels"):
            writer.add_image_with_boxes("x", adjoin.zeros(1, 8, 9), [[1, 2, 6, 7]], labels=["a", "b"])
    pixels = unpng(dict(fields(events(tmp_path)["x", None][4]))[4])
    red = adjoin.tensor(pixels)[..., 0] == 255
    inside = adjoin.zeros(8, 9, dtype=adjoin.bool)
    inside[2:8, 1:7] = True
    inside[4:6, 3:5] = False
    assert adjoin.equal(red, inside) and (adjoin.tensor(pixels)[..., 1:] == 0).all()
    assert _pictures.scaled(adjoin.full((4, 6, 3), 7, dtype=adjoin.uint8), 0.5).unique().tolist() == [7]


def test_films(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="NOT TESTED: GIF files need Pillow")
    film = adjoin.zeros(2, 3, 1, 4, 5)
    film[0, 1], film[1, 2] = 1, 1
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("v", film, fps=10)
        with pytest.raises(ValueError, match="wanted is"):
            writer.add_video("v", film[0])
    value = dict(fields(events(tmp_path)["v", None][4]))
    picture = image.open(io.BytesIO(value[4]))
    assert (value[1], value[2]) == (4, 10) and picture.size == (10, 4) and picture.n_frames == 3
    for i in range(3):
        picture.seek(i)
        halves = [picture.convert("RGB").getpixel(at)[0] for at in ((1, 1), (7, 1))]
        assert halves == [[0, 0], [255, 0], [0, 255]][i]


def test_messages_are_made_and_added_by_hand(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.summary_pb2", None)
    writer = SummaryWriter(tmp_path)
    for one in summary.hparams({"lr": 0.5}, {"loss": 1}):
        writer._get_file_writer().add_summary(one)
    writer.file_writer.add_summary(summary.scalar("new", 2.5, new_style=True), 4)
    writer.file_writer.add_summary(summary.text("t", "words"), 5)
    assert list(writer.all_writers) == [writer.file_writer.get_logdir()]
    writer.close()
    assert writer.file_writer is None and writer.all_writers is None
    found = events(tmp_path)
    assert [tag for tag, _ in found][:3] == [
        f"_hparams_/{part}" for part in ("experiment", "session_start_info", "session_end_info")
    ]
    assert about(found["new", 4])[0] == "scalars" and ("t/text_summary", 5) in found
    with pytest.raises(TypeError, match="dictionary"):
        summary.hparams([], {})
