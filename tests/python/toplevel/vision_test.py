"""tests/python/toplevel/vision_test.py: torchvision's ops by numbers that can be told by hand; who stands in for its extension; image files."""

import subprocess
import sys

import adjoin
import pytest

tv = adjoin.ops.torchvision


def test_of_boxes_that_overlap_the_best_is_kept():
    boxes = adjoin.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10]])
    scores = adjoin.tensor([0.5, 0.9, 0.1, 0.6])
    assert tv.nms(boxes, scores, 0.5).tolist() == [1, 2]  # 81 of 119 are shared: 0.68
    assert tv.nms(boxes, scores, 0.7).tolist() == [1, 3, 2]
    assert tv.nms(boxes.double(), scores.double(), 0.5).tolist() == [1, 2]
    assert tv.nms(boxes[:0], scores[:0], 0.5).tolist() == []
    assert tv.qnms(boxes.to(adjoin.uint8), (scores * 100).to(adjoin.uint8), 0.5).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match=r"dets must have shape \(N, 4\)"):
        tv.nms(boxes[:, :3], scores, 0.5)


def test_regions_of_several_images_keep_their_order():
    x = adjoin.arange(2 * 16.0).view(2, 1, 4, 4).requires_grad_()
    rois = adjoin.tensor([[1.0, 0, 0, 4, 4], [0, 0, 0, 4, 4], [1, 2, 2, 4, 4]])
    y = tv.roi_align(x, rois, 1.0, 1, 1, 4, True)
    assert y.flatten().tolist() == pytest.approx([23.5, 7.5, 28.1875])
    y.sum().backward()
    assert x.grad.sum((1, 2, 3)).tolist() == pytest.approx([1, 2])
    with pytest.raises(RuntimeError, match="rois name images from 0 to 1, 2 of them another"):
        tv.roi_align(x, rois + 1, 1.0, 1, 1, 4, True)


def test_qroi_align_reads_whole_numbers_as_what_they_stand_for():
    x = adjoin.arange(16).view(1, 1, 4, 4).to(adjoin.uint8)
    rois = adjoin.tensor([[10, 10, 10, 14, 14]]).to(adjoin.uint8)  # minus 10
    y = tv.qroi_align(x, rois, 0.5, 2, 1.0, 10, 1.0, 1, 1, 4, True)
    assert y.dtype is adjoin.uint8 and y.item() in (7, 8)  # 7.5


def test_shapes_of_tensors_without_data():
    x, rois = adjoin.empty(1, 8, 5, 5, device="meta"), adjoin.empty(3, 5, device="meta")
    pooled, where = tv.ps_roi_pool(x, rois, 1.0, 2, 2)
    assert pooled.shape == where.shape == (3, 2, 2, 2) and where.dtype is adjoin.int32


def test_an_extension_made_for_pytorch_is_stood_in_for(tmp_path):
    """A package that registers for its compiled ops what torchvision does."""
    package = tmp_path / "torchvision"
    package.mkdir()
    for name in ("_C_stable.so", "image.so", "other.so"):
        (package / name).write_bytes(b"\x7fELF")
    program = f"""
import adjoin.torch; adjoin.torch.install()
import torch
torch.ops.load_library({str(package / "_C_stable.so")!r})
op = torch.ops.torchvision.roi_align
torch.library.Library("torchvision", "IMPL", "Meta").impl(op.default, print)
torch.library.Library("torchvision", "IMPL").impl("nms", print, "AutocastCPU")
torch.library.register_autograd("torchvision::roi_align", print, setup_context=print)
torch.library.register_fake("torchvision::nms")(print)
x = torch.ones(1, 1, 4, 4, requires_grad=True)
op.default(x, torch.tensor([[0.0, 0, 0, 2, 2]]), 1.0, 1, 1, 2, False).sum().backward()
assert x.grad.sum() == 1 and torch.ops.torchvision._cuda_version() == -1
torch.ops.load_library({str(package / "image.so")!r})
assert callable(torch.ops.image.decode_png)
try:
    torch.ops.load_library({str(package / "other.so")!r})
except OSError as error:
    assert "no plugin of Adjoin" in str(error), error
else:
    raise AssertionError("other.so was taken for a plugin")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout, done.stderr


def test_image_files_through_pillow(tmp_path):
    pytest.importorskip("PIL")
    io = adjoin.ops.image
    pixels = (adjoin.arange(3 * 5 * 4) * 4).to(adjoin.uint8).view(3, 5, 4)
    data = io.encode_png(pixels, 6)
    assert (io.decode_png(data, 0) == pixels).all() and io.decode_image(data, 1).shape == (1, 5, 4)
    assert io.decode_png(io.encode_png(pixels[:1], 0), 3).shape == (3, 5, 4)
    soft = io.decode_jpeg(io.encode_jpeg(pixels, 95), 3)
    assert (soft.int() - pixels.int()).abs().max() < 40
    io.write_file(str(tmp_path / "a.png"), data)
    assert (io.read_file(str(tmp_path / "a.png")) == data).all()
    with pytest.raises(RuntimeError, match="decode_jpeg: the bytes are no image of the kind JPEG"):
        io.decode_jpeg(data, 0)
    with pytest.raises(NotImplementedError, match="on a GPU; do it on the cpu"):
        io.encode_jpegs_cuda([pixels], 50)


def test_without_pillow_the_error_says_what_to_install():
    program = "import sys; sys.modules['PIL'] = None\nimport adjoin\nadjoin.ops.image.decode_png(adjoin.zeros(3, dtype=adjoin.uint8), 0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "read and written by Pillow, which is not there; pip install pillow" in done.stderr
