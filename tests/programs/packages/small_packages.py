"""tests/programs/packages/small_packages.py: einops, torchmetrics, accelerate, torchvision's transforms."""

import numpy as np
import torch
from told import tell


def rearranged():
    from einops import einsum, rearrange, reduce, repeat
    from einops.layers.torch import Rearrange

    x = torch.arange(24.0).reshape(2, 3, 4)
    return [
        rearrange(x, "a b c -> c (a b)")[1].tolist(),
        reduce(x, "a b c -> b", "mean").tolist(),
        repeat(x, "a b c -> a (b r) c", r=2).tolist(),
        einsum(x, x, "a b c, a d c -> b d").tolist(),
        Rearrange("a b c -> (a b) c")(x).tolist(),
    ]


def metrics():
    import torchmetrics

    rng = np.random.default_rng(0)
    p, y = torch.from_numpy(rng.random((20, 4)).astype("f4")), torch.from_numpy(rng.integers(0, 4, 20))
    words = {"task": "multiclass", "num_classes": 4}
    return [
        torchmetrics.Accuracy(**words)(p, y).item(),
        torchmetrics.F1Score(**words, average="macro")(p, y).item(),
        torchmetrics.AUROC(**words)(p.softmax(-1), y).item(),
        torchmetrics.ConfusionMatrix(**words)(p, y).tolist(),
        torchmetrics.MeanSquaredError()(p[:, 0], p[:, 1]).item(),
    ]


def accelerated():
    from accelerate import Accelerator

    accelerator, model = Accelerator(cpu=True), torch.nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    lines = [(torch.ones(4) * i, torch.tensor([float(i)])) for i in range(8)]
    optimizer, loader = torch.optim.SGD(model.parameters(), 0.1), torch.utils.data.DataLoader(lines, batch_size=2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    found = []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = ((model(x) - y) ** 2).mean()
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            found.append(loss.item())
    return found


def transformed():
    from PIL import Image
    from torchvision import transforms

    image = Image.fromarray((np.arange(48 * 48 * 3) % 255).reshape(48, 48, 3).astype("u1"))
    steps = [
        transforms.Resize(32),
        transforms.CenterCrop(24),
        transforms.ToTensor(),
        transforms.Normalize([0.5] * 3, [0.2] * 3),
    ]
    x = transforms.Compose(steps)(image)
    return [x.mean().item(), x[0, 0, :5].tolist()]


if __name__ == "__main__":
    tell({"einops": rearranged, "torchmetrics": metrics, "accelerate": accelerated, "transforms": transformed})
