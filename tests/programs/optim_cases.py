"""tests/programs/optim_cases.py: settings of optimizers and schedules, and the paths they take, for whichever library is given."""

import math

import numpy as np

SHAPES = [(4, 3), (7,), (), (2, 3, 5)]
MATRICES = [(4, 3), (3, 5), (6, 6)]
SETTINGS = [
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "alpha": 0.9}),
    ("RMSprop", {"momentum": 0.5, "maximize": True, "foreach": True, "eps": 1e-3}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "maximize": True}),
    ("Adagrad", {"fused": True, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "weight_decay": 0.1, "maximize": True, "foreach": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.8), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1, "foreach": True}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"weight_decay": 0.1, "betas": (0.8, 0.9)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True, "foreach": True}),
    ("ASGD", {}),
    ("ASGD", {"lambd": 0.1, "t0": 3, "alpha": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.4, 1.5), "step_sizes": (1e-3, 0.2), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "d": 2.0, "eps": (1e-3, 1e-2), "beta2_decay": -0.5, "maximize": True}),
    ("Muon", {}),
    ("Muon", {"nesterov": False, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3, "weight_decay": 0.3}),
    ("SGD", {"momentum": 0.9}),
    ("AdamW", {"amsgrad": True}),
]


def walk(lib, name, settings, steps=8):
    """The parameters' values after some steps from the same start with the same gradients."""
    draw = np.random.RandomState(7)
    shapes = MATRICES if name == "Muon" else SHAPES
    params = [lib.nn.Parameter(lib.tensor(draw.standard_normal(s))) for s in shapes]
    optimizer = getattr(lib.optim, name)(params, **{"lr": 0.05, **settings})
    for _ in range(steps):
        for p, shape in zip(params, shapes, strict=True):
            p.grad = lib.tensor(draw.standard_normal(shape))
        optimizer.step()
    return [x for p in params for x in p.detach().reshape(-1).tolist()]


def minimise(lib, settings, rounds=6):
    """The losses that LBFGS sees on Rosenbrock's valley."""
    x = lib.nn.Parameter(lib.tensor([-1.2, 1.0, 0.7, -0.3], dtype=lib.float64))
    optimizer = lib.optim.LBFGS([x], **settings)

    def closure():
        optimizer.zero_grad()
        loss = ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(rounds)] + x.tolist()


LBFGS = [
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7, "lr": 0.5},
    {"lr": 1e-3, "max_iter": 8},
    {"lr": 1e-3, "history_size": 2, "max_eval": 3, "max_iter": 4},
]


def cases(lib):
    """{case: numbers} of everything here."""
    found = {f"{name} {settings}": walk(lib, name, settings) for name, settings in SETTINGS}
    found.update({f"LBFGS {settings}": minimise(lib, settings) for settings in LBFGS})
    for name in (*SCHEDULES, "SWALR", "SWALR cos"):
        for kind in ("SGD", "AdamW"):
            found[f"{name} of {kind}"] = flat(follow(*start(lib, kind, name), range(50)))
    return found


SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.97 if e % 2 else 1.01),
    "StepLR": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 30]),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.2, 9),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.1, 0.7, 20),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 33, 2.0),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 10, 0.001),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "WarmRestarts of one length": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "CyclicLR": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 5, 3, cycle_momentum=True),
    "CyclicLR triangular2": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 4, mode="triangular2"),
    "CyclicLR exp_range": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, mode="exp_range", gamma=0.97),
    "CyclicLR own": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 6, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.1, total_steps=51),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(o, [0.1, 0.2], epochs=10, steps_per_epoch=6, three_phase=True),
    "OneCycleLR linear": lambda s, o: s.OneCycleLR(o, 0.1, 60, pct_start=0.2, anneal_strategy="linear", div_factor=3),
    "SequentialLR": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10), s.ExponentialLR(o, 0.9)], [4, 20]
    ),
    "SequentialLR restarts": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.5, 5), s.CosineAnnealingWarmRestarts(o, 6, 2)], [5]
    ),
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.LinearLR(o, 0.1, 1.0, 8), s.ExponentialLR(o, 0.95)]),
    "ReduceLROnPlateau": lambda s, o: s.ReduceLROnPlateau(o, patience=1, cooldown=2),
    "Plateau max abs": lambda s, o: s.ReduceLROnPlateau(
        o, "max", 0.7, 2, threshold=0.05, threshold_mode="abs", min_lr=[0.01, 0.02]
    ),
}  # fmt: skip


def start(lib, kind, name):
    params = [lib.zeros(1, requires_grad=True), lib.zeros(1, requires_grad=True)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.5}]
    settings = {"momentum": 0.9} if kind == "SGD" else {}
    optimizer = getattr(lib.optim, kind)(groups, lr=0.1, **settings)
    if name == "SWALR":
        return optimizer, lib.optim.swa_utils.SWALR(optimizer, 0.03, 6, "linear")
    if name == "SWALR cos":
        return optimizer, lib.optim.swa_utils.SWALR(optimizer, [0.03, 0.7], 9)
    return optimizer, SCHEDULES[name](lib.optim.lr_scheduler, optimizer)


def follow(optimizer, schedule, steps):
    path = []
    for i in steps:
        optimizer.step()
        metric = [math.sin(i / 3)] if type(schedule).__name__ == "ReduceLROnPlateau" else []
        schedule.step(*metric)
        for group in optimizer.param_groups:
            path += [group["lr"], group.get("momentum", group.get("betas"))]
        path += schedule.get_last_lr()
    return path


def flat(path):
    return [x for item in path for x in (item if isinstance(item, tuple) else (item,))]
