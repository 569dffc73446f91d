"""tests/programs/packages/detection.py: torchvision's detection models, small: losses, gradients, detections; its ops; image files."""

import io

import numpy as np
import torch
import torchvision
from told import fill, tell
from torchvision import ops
from torchvision.models import detection
from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
from torchvision.models.detection.retinanet import RetinaNet
from torchvision.models.detection.ssd import SSD

SIZE = 64


def backbone(out):
    features = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, out, 3, 2, 1), torch.nn.ReLU()
    )
    features.out_channels = out
    return features


def images(rng):
    return [torch.from_numpy(rng.random((3, SIZE, SIZE)).astype("f4")) for _ in range(2)]


def targets(rng, masks=False, points=False):
    found = []
    for count in (2, 3):
        corner = rng.uniform(2, 30, (count, 2))
        boxes = np.concatenate([corner, corner + rng.uniform(10, 30, (count, 2))], 1).astype("f4")
        target = {"boxes": torch.from_numpy(boxes), "labels": torch.from_numpy(rng.integers(1, 4, count))}
        if masks:
            target["masks"] = torch.from_numpy((rng.random((count, SIZE, SIZE)) > 0.5).astype("u1"))
        if points:
            where = np.stack([corner[:, 0] + 3, corner[:, 1] + 4, np.ones(count)], 1)
            target["keypoints"] = torch.from_numpy(np.repeat(where[:, None], 5, 1).astype("f4"))
        found.append(target)
    return found


def anchors():
    return AnchorGenerator(sizes=((16, 32),), aspect_ratios=((0.5, 1.0, 2.0),))


# What is drawn at random while training differs between libraries: all that may be drawn is taken.
ALL = {
    "rpn_batch_size_per_image": 100000,
    "rpn_positive_fraction": 1.0,
    "box_batch_size_per_image": 100000,
    "box_positive_fraction": 1.0,
    "rpn_pre_nms_top_n_train": 50,
    "rpn_pre_nms_top_n_test": 50,
    "rpn_post_nms_top_n_train": 20,
    "rpn_post_nms_top_n_test": 20,
    "min_size": SIZE,
    "max_size": SIZE,
}


def pooled(size):
    return ops.MultiScaleRoIAlign(featmap_names=["0"], output_size=size, sampling_ratio=2)


def faster_rcnn():
    return detection.FasterRCNN(
        backbone(8), rpn_anchor_generator=anchors(), box_roi_pool=pooled(3),
        box_head=detection.faster_rcnn.TwoMLPHead(8 * 9, 16),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 4), **ALL,
    )  # fmt: skip


def mask_rcnn():
    return detection.MaskRCNN(
        backbone(8), rpn_anchor_generator=anchors(), box_roi_pool=pooled(3), mask_roi_pool=pooled(6),
        box_head=detection.faster_rcnn.TwoMLPHead(8 * 9, 16),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 4),
        mask_head=detection.mask_rcnn.MaskRCNNHeads(8, (8,), 1),
        mask_predictor=detection.mask_rcnn.MaskRCNNPredictor(8, 8, 4), **ALL,
    )  # fmt: skip


def keypoint_rcnn():
    return detection.KeypointRCNN(
        backbone(8), rpn_anchor_generator=anchors(), box_roi_pool=pooled(3),
        keypoint_roi_pool=pooled(6), box_head=detection.faster_rcnn.TwoMLPHead(8 * 9, 16),
        box_predictor=detection.faster_rcnn.FastRCNNPredictor(16, 4),
        keypoint_head=detection.keypoint_rcnn.KeypointRCNNHeads(8, (8,)),
        keypoint_predictor=detection.keypoint_rcnn.KeypointRCNNPredictor(8, 5), **ALL,
    )  # fmt: skip


def retinanet():
    return RetinaNet(backbone(8), 4, anchor_generator=anchors(), min_size=SIZE, max_size=SIZE)


def fcos():
    made = AnchorGenerator(sizes=((8,),), aspect_ratios=((1.0,),))
    return detection.FCOS(backbone(32), 4, anchor_generator=made, min_size=SIZE, max_size=SIZE)


def ssd():
    features = backbone(8)
    features.out_channels = [8]
    return SSD(features, DefaultBoxGenerator([[2]]), (SIZE, SIZE), 4)


def ssdlite():
    return detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=4)


def trained(make, **wants):
    """The losses, and the sum of the gradients' sizes."""
    model = make()
    rng = fill(model, 0.05)
    model.train()
    found = model(images(rng), targets(rng, **wants))
    sum(found.values()).backward()
    gradients = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    return [*(found[name].item() for name in sorted(found)), gradients]


def detected(make):
    """How many boxes, and numbers of the first."""
    model = make()
    rng = fill(model, 0.2)  # scores well apart
    model.eval()
    with torch.no_grad():
        given = model(images(rng))
    return [
        x
        for one in given
        for key in ("boxes", "scores")
        for x in (len(one[key]), *one[key][:5].double().flatten().tolist())
    ]


def rois(rng, count, size, over):
    corner = rng.uniform(-3 * over, size * 0.5, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(-over, size * (0.3 + 0.4 * over), (count, 2))], 1)
    return torch.from_numpy(np.concatenate([rng.integers(0, 2, (count, 1)), boxes], 1).astype("f4"))


def of_regions(op, channels, *args, over=1):
    """All numbers that an op gives and the gradient of its input; over 0: of regions that lie in the image."""
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((2, channels, 11, 13)).astype("f4")).requires_grad_()
    y = op(x, rois(rng, 7, 24, over), (3, 2), 0.5, *args)
    (y * torch.from_numpy(rng.standard_normal(tuple(y.shape)).astype("f4"))).sum().backward()
    return y.detach().flatten().tolist() + x.grad.flatten().tolist()


def places_of_maxima():
    rng = np.random.default_rng(1)
    x = torch.from_numpy(rng.standard_normal((2, 3, 11, 13)).astype("f4"))
    return torch.ops.torchvision.roi_pool(x, rois(rng, 7, 24, 1), 0.5, 3, 2)[1].flatten().tolist()


def suppressed(by_class):
    rng = np.random.default_rng(2)
    corner = rng.uniform(0, 50, (200, 2))
    boxes = torch.from_numpy(np.concatenate([corner, corner + rng.uniform(1, 30, (200, 2))], 1).astype("f4"))
    scores, classes = torch.from_numpy(rng.random(200).astype("f4")), torch.from_numpy(rng.integers(0, 3, 200))
    kept = ops.batched_nms(boxes, scores, classes, 0.3) if by_class else ops.nms(boxes, scores, 0.4)
    return kept.tolist()


def deformed(masked):
    rng = np.random.default_rng(3)
    drawn = lambda *shape: torch.from_numpy(rng.standard_normal(shape).astype("f4")).requires_grad_()  # noqa: E731
    x, weight, bias = drawn(2, 4, 7, 8), drawn(6, 2, 3, 2), drawn(6)
    offset, mask = drawn(2, 2 * 2 * 6, 4, 5), drawn(2, 2 * 6, 4, 5)
    y = ops.deform_conv2d(x, offset, weight, bias, (2, 2), (1, 2), (1, 2), mask if masked else None)
    y.pow(2).mean().backward()
    grads = [t.grad.flatten().tolist() for t in (x, weight, bias, offset, *([mask] if masked else []))]
    return [*y.detach().flatten().tolist(), *(g for grad in grads for g in grad)]


def files():
    """Pictures that were written, read again, in all modes."""
    from PIL import Image

    rng = np.random.default_rng(4)
    smooth = np.add.outer(np.arange(20) * 6, np.arange(24) * 5)[..., None] + np.array([0, 10, 25])
    pixels, found = smooth.astype("u1"), []
    for mode, kind in (
        ("RGB", "PNG"),
        ("L", "PNG"),
        ("RGBA", "PNG"),
        ("LA", "PNG"),
        ("P", "PNG"),
        ("RGB", "JPEG"),
        ("L", "JPEG"),
    ):
        out = io.BytesIO()
        Image.fromarray(pixels).convert(mode).save(out, format=kind)
        data = torch.frombuffer(bytearray(out.getvalue()), dtype=torch.uint8)
        for wanted in ("UNCHANGED", "GRAY", "RGB", "RGB_ALPHA"):
            if mode in ("RGB", "L", "RGBA", "LA") and (kind == "PNG" or wanted != "RGB_ALPHA") or wanted[:3] != "RGB":
                image = torchvision.io.decode_image(data, getattr(torchvision.io.ImageReadMode, wanted))
                found += [*image.shape, image.double().mean().item()]
    noise = torch.from_numpy(rng.integers(0, 255, (3, 9, 7)).astype("u1"))
    again = torchvision.io.decode_png(torchvision.io.encode_png(noise))
    return [*found, bool((again == noise).all())]


if __name__ == "__main__":
    assert torchvision.extension._has_ops()
    tell({
        **{f"{f.__name__}/losses": lambda f=f: trained(f) for f in (faster_rcnn, retinanet, fcos, ssd)},
        "mask_rcnn/losses": lambda: trained(mask_rcnn, masks=True),
        "keypoint_rcnn/losses": lambda: trained(keypoint_rcnn, points=True),
        **{f"{f.__name__}/detections": lambda f=f: detected(f) for f in (faster_rcnn, mask_rcnn, keypoint_rcnn, retinanet, fcos, ssd, ssdlite)},
        "roi_align": lambda: of_regions(ops.roi_align, 3, 2, False),
        "roi_align/by size, aligned": lambda: of_regions(ops.roi_align, 3, -1, True),
        "roi_pool": lambda: of_regions(ops.roi_pool, 3),
        "roi_pool/places": places_of_maxima,
        "ps_roi_align": lambda: of_regions(ops.ps_roi_align, 12, 2),
        "ps_roi_align/by size": lambda: of_regions(ops.ps_roi_align, 12, -1),
        # Where a region reaches over the image torchvision's gradient is not that of its own values.
        "ps_roi_pool": lambda: of_regions(ops.ps_roi_pool, 12, over=0),
        "nms": lambda: suppressed(False),
        "nms/by class": lambda: suppressed(True),
        "deform_conv2d": lambda: deformed(False),
        "deform_conv2d/mask": lambda: deformed(True),
        "image files": files,
    })  # fmt: skip
