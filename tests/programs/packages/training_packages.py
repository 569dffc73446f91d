"""tests/programs/packages/training_packages.py: lightning's Trainer, kornia, gpytorch, skorch with scikit-learn."""

import logging
import tempfile
import warnings

import numpy as np
import torch
from told import fill, tell
from torch import nn

warnings.filterwarnings("ignore")


def lit():
    import lightning as L

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    found = []

    class Net(L.LightningModule):
        def __init__(self, width=16):
            super().__init__()
            self.save_hyperparameters()
            self.body = nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))

        def training_step(self, batch, place):
            x, y = batch
            loss = nn.functional.mse_loss(self.body(x), y)
            self.log("loss", loss)
            found.append(loss.item())
            return loss

        def validation_step(self, batch, place):
            x, y = batch
            self.log("seen", nn.functional.l1_loss(self.body(x), y))

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)]

    net = Net()
    rng = fill(net)
    x = torch.from_numpy(rng.standard_normal((20, 4)).astype("f4"))
    rows = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    words = {"accelerator": "cpu", "max_epochs": 4, "enable_progress_bar": False, "enable_model_summary": False}
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(**words, logger=False, default_root_dir=folder, gradient_clip_val=1.0)
        trainer.fit(net, torch.utils.data.DataLoader(rows, 4), torch.utils.data.DataLoader(rows, 10))
        trainer.save_checkpoint(folder + "/net.ckpt")
        again = Net.load_from_checkpoint(folder + "/net.ckpt")
    return [*found, trainer.callback_metrics["seen"].item(), again.hparams.width, again.body(x).sum().item()]


def images(rng, *shape):
    return torch.from_numpy(rng.random(shape).astype("f4"))


def kornia_filters():
    import kornia as K

    rng = np.random.default_rng(0)
    x = images(rng, 2, 3, 16, 16).requires_grad_()
    points = torch.tensor([[[0.0, 0.0], [15, 0], [15, 15], [0, 15]]])
    moved = torch.tensor([[[1.0, 2.0], [14, 1], [13, 15], [2, 13]]])
    matrix = K.geometry.transform.get_perspective_transform(points, moved)
    outputs = [
        K.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)),
        K.filters.sobel(x),
        K.filters.median_blur(x, (3, 3)),
        K.color.rgb_to_hsv(x),
        K.color.rgb_to_lab(x),
        K.geometry.transform.rotate(x, torch.tensor([30.0, 10.0])),
        K.geometry.transform.warp_perspective(x, matrix.expand(2, 3, 3), (16, 16)),
        K.enhance.adjust_contrast(x, 0.5),
        K.enhance.equalize(x.detach()),
        K.morphology.dilation(x, torch.ones(3, 3)),
        K.feature.harris_response(x[:, :1]),
        K.losses.ssim_loss(x, x.flip(-1), 5),
    ]
    sum(o.sum() for o in outputs).backward()
    return [matrix.flatten().tolist(), [o.mean().item() for o in outputs], x.grad.abs().sum().item()]


def kornia_trained():
    import kornia as K

    rng = np.random.default_rng(0)
    x, angle = images(rng, 1, 1, 24, 24), torch.tensor([4.0], requires_grad=True)
    x, found = K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)), []
    y = K.geometry.transform.rotate(x, torch.tensor([10.0]))
    optimizer = torch.optim.Adam([angle], lr=0.3)
    for _ in range(20):
        loss = nn.functional.mse_loss(K.geometry.transform.rotate(x, angle), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return [*found, angle.item()]


def gaussian_process():
    import gpytorch as G

    class Process(G.models.ExactGP):
        def __init__(self, x, y, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = G.means.ConstantMean()
            self.covar_module = G.kernels.ScaleKernel(G.kernels.RBFKernel() + G.kernels.MaternKernel(nu=1.5))

        def forward(self, x):
            return G.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 30)
    y = torch.sin(6 * x) + 0.1 * torch.cos(40 * x)
    likelihood = G.likelihoods.GaussianLikelihood()
    process = Process(x, y, likelihood)
    optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
    wanted, found = G.mlls.ExactMarginalLogLikelihood(likelihood, process), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = -wanted(process(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    process.eval()
    likelihood.eval()
    with torch.no_grad(), G.settings.fast_pred_var():
        told = likelihood(process(torch.linspace(0.1, 1.2, 7)))
        low, high = told.confidence_region()
    return [found, told.mean.tolist(), low.tolist(), high.tolist()]


def variational_process():
    import gpytorch as G

    class Process(G.models.ApproximateGP):
        def __init__(self, points):
            distribution = G.variational.CholeskyVariationalDistribution(points.size(0))
            super().__init__(G.variational.VariationalStrategy(self, points, distribution))
            self.mean_module, self.covar_module = G.means.ZeroMean(), G.kernels.ScaleKernel(G.kernels.RBFKernel())

        def forward(self, x):
            return G.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 40)
    y = torch.sin(6 * x)
    process, likelihood = Process(torch.linspace(0, 1, 6)), G.likelihoods.GaussianLikelihood()
    process.variational_strategy.variational_params_initialized.fill_(1)
    optimizer = torch.optim.Adam([*process.parameters(), *likelihood.parameters()], lr=0.05)
    wanted, found = G.mlls.VariationalELBO(likelihood, process, 40), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = -wanted(process(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


class Classes(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3), nn.Softmax(-1))
        fill(self, 0.4)

    def forward(self, x):
        return self.body(x)


def estimator():
    from sklearn.datasets import make_classification
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from skorch import NeuralNetClassifier
    from skorch.callbacks import EarlyStopping, EpochScoring

    x, y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
    x, y = x.astype("f4"), y.astype("i8")
    words = {"max_epochs": 10, "lr": 0.1, "iterator_train__shuffle": False, "verbose": 0}
    callbacks = [EarlyStopping(patience=5), EpochScoring("f1_macro", name="f1", lower_is_better=False)]
    net = NeuralNetClassifier(
        Classes, callbacks=callbacks, optimizer=torch.optim.Adam, optimizer__weight_decay=1e-3, **words
    )
    pipe = make_pipeline(StandardScaler(), net)
    pipe.fit(x, y)
    found = [net.history[:, "train_loss"], net.history[:, "valid_loss"], net.history[:, "f1"]]
    grid = GridSearchCV(NeuralNetClassifier(Classes, **words), {"module__width": [4, 8]}, cv=2, scoring="accuracy")
    grid.fit(x, y)
    return [*found, pipe.predict_proba(x)[:3].tolist(), pipe.score(x, y), list(grid.cv_results_["mean_test_score"])]


if __name__ == "__main__":
    tell({
        "lightning": lit, "kornia": kornia_filters, "kornia/trained": kornia_trained, "gpytorch": gaussian_process,
        "gpytorch/variational": variational_process, "skorch": estimator,
    })  # fmt: skip
