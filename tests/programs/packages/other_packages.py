"""tests/programs/packages/other_packages.py: packages over PyTorch that nobody asked for by name: a few numbers of each."""

import warnings

import numpy as np
import torch
from told import fill, tell
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")


def numbers(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("f4"))


def trained(model, loss_of, steps=20, optimizer=None, drawn=True):
    if drawn:
        fill(model)
    optimizer = optimizer(model.parameters()) if optimizer else torch.optim.Adam(model.parameters(), lr=1e-2)
    found = []
    for _ in range(steps):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def adapters():
    import transformers as hf
    from peft import LoraConfig, get_peft_model

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    model = hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=99, **sizes, num_key_value_heads=2, pad_token_id=0))
    model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_alpha=8, lora_dropout=0.0))
    x = torch.arange(24).reshape(2, 12) % 90 + 3
    return [trained(model, lambda: model(input_ids=x, labels=x).loss), model.get_nb_trainable_parameters()[0]]


def diffusion():
    from diffusers import DDIMScheduler, DDPMScheduler, UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    net = UNet2DModel(8, 3, 3, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=4, **blocks)
    noisy, x, noise = DDPMScheduler(100), numbers(2, 3, 8, 8), numbers(2, 3, 8, 8, seed=1)
    t = torch.tensor([3, 50])
    found = trained(net, lambda: F.mse_loss(net(noisy.add_noise(x, noise, t), t).sample, noise), 5)
    steps, y = DDIMScheduler(100), noise
    steps.set_timesteps(5)
    with torch.no_grad():
        for k in steps.timesteps:
            y = steps.step(net(y, k).sample, k, y).prev_sample
    return [found, y.mean().item()]


def equations():
    from torchdiffeq import odeint, odeint_adjoint

    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, t, y):
            return self.layer(y**3)

    slope, t, y = Slope(), torch.linspace(0, 1, 6), torch.tensor([[1.0, 0.5]])
    return [
        trained(slope, lambda: odeint(slope, y, t).pow(2).mean(), 10),
        trained(slope, lambda: odeint_adjoint(slope, y, t, method="rk4").pow(2).mean(), 10),
    ]


def metrics():
    from pytorch_metric_learning import losses, miners

    model, x, y = nn.Linear(6, 4), numbers(12, 6), torch.arange(12) % 3
    kinds = losses.TripletMarginLoss(), losses.ContrastiveLoss(), losses.NTXentLoss(), losses.CircleLoss()
    miner = miners.MultiSimilarityMiner()
    found = [trained(model, lambda loss=loss: loss(model(x), y), 6) for loss in kinds]
    return [found, trained(model, lambda: kinds[0](model(x), y, miner(model(x), y)), 6)]


def segmentation():
    import segmentation_models_pytorch as smp

    found = []
    for name in ("Unet", "FPN", "DeepLabV3Plus"):
        net = getattr(smp, name)("resnet18", encoder_weights=None, classes=2)
        fill(net, 0.05)
        net.eval()
        y = net(numbers(1, 3, 96, 96))
        found += [y.mean().item(), y.std().item()]
    classes = torch.arange(128).reshape(2, 8, 8) % 3
    return [found, smp.losses.DiceLoss("multiclass")(numbers(2, 3, 8, 8), classes).item()]


def probabilistic():
    import pyro
    import pyro.distributions as D
    from pyro.infer import SVI, Trace_ELBO

    pyro.clear_param_store()
    x = numbers(20) + 2

    def model(x):
        mean = pyro.sample("mean", D.Normal(0.0, 10.0))
        with pyro.plate("rows", len(x)):
            pyro.sample("x", D.Normal(mean, 1.0), obs=x)

    def guide(x):
        pyro.sample("mean", D.Delta(pyro.param("at", torch.tensor(0.0))))

    steps = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())
    return [steps.step(x) for _ in range(20)]


def bayesian():
    import gpytorch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP

    x = torch.linspace(0, 1, 8, dtype=torch.double)[:, None]
    y = torch.sin(6 * x)
    process = SingleTaskGP(x, y)
    fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process))
    at = torch.tensor([[[0.3]], [[0.7]]], dtype=torch.double)
    return [process.posterior(at).mean.flatten().tolist(), LogExpectedImprovement(process, y.max())(at).tolist()]


def engines():
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Accuracy

    model, x, y, found = nn.Linear(4, 3), numbers(24, 4), torch.arange(24) % 3, []
    fill(model)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 6)
    trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.1), nn.CrossEntropyLoss())
    judge = create_supervised_evaluator(model, {"accuracy": Accuracy()})
    trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda e: found.append(e.state.output))
    trainer.run(loader, 5)
    judge.run(loader)
    return [found, judge.state.metrics["accuracy"]]


def explained():
    from captum.attr import DeepLift, FeatureAblation, GuidedBackprop, IntegratedGradients, Saliency

    net, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)), numbers(2, 4).requires_grad_()
    fill(net, 0.5)
    kinds = IntegratedGradients, Saliency, DeepLift, FeatureAblation, GuidedBackprop
    return [kind(net).attribute(x, target=1).tolist() for kind in kinds]


def quantized():
    from vector_quantize_pytorch import FSQ, VectorQuantize

    codes = VectorQuantize(dim=8, codebook_size=16, decay=0.8)
    codes._codebook.embed.data.copy_(numbers(1, 16, 8))
    made, places, loss = codes(numbers(2, 10, 8))
    levels, numbered = FSQ([8, 5, 5])(numbers(2, 10, 3))
    return [made.sum().item(), places.tolist(), loss.tolist(), levels.sum().item(), numbered.tolist()]


def contracted():
    from opt_einsum import contract

    a, b, c = numbers(3, 4), numbers(4, 5), numbers(5, 3)
    return [contract("ij,jk,ki->", a, b, c).item(), contract("ij,jk->ik", a, b).tolist()]


if __name__ == "__main__":
    tell({
        "peft": adapters, "diffusers": diffusion, "torchdiffeq": equations, "metric_learning": metrics, "segmentation": segmentation,
        "pyro": probabilistic, "botorch": bayesian, "ignite": engines, "captum": explained, "quantized": quantized,
        "opt_einsum": contracted,
    })  # fmt: skip
