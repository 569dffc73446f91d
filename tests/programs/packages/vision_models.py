"""tests/programs/packages/vision_models.py: networks of torchvision and timm: outputs and gradients."""

import timm
from told import outputs, tell
from torchvision import models

TORCHVISION = (
    "resnet18 mobilenet_v2 squeezenet1_0 densenet121 shufflenet_v2_x1_0 mnasnet0_5 efficientnet_b0 mobilenet_v3_small "
    "convnext_tiny regnet_y_400mf"
).split()
TIMM = (
    "resnet18 convnext_atto efficientnet_b0 mobilenetv3_small_050 regnetx_002 densenet121 ghostnet_100 vit_tiny_patch16_224 "
    "mixer_s32_224 deit_tiny_patch16_224"
).split()


def size(name):
    return 224 if name.endswith("224") else 64


if __name__ == "__main__":
    tell({
        **{n: lambda n=n: outputs(getattr(models, n)(weights=None), 64) for n in TORCHVISION},
        **{f"timm/{n}": lambda n=n: outputs(timm.create_model(n), size(n)) for n in TIMM},
    })  # fmt: skip
