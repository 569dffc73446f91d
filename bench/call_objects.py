"""bench/call_objects.py: the layers, optimizers, schedulers and loaders whose calls every_call.py times, and with what.

A key makes f; its value is the arguments of f(...) with 64 elements or about as many, in the names of every_call.SETUP.
"""

SETUP = """
c, r, r5 = T.ones(1, 4, 16), T.ones(4, 16), T.ones(1, 2, 4, 4, 4)
seq, signs, spots, flat = T.ones(4, 2, 8), T.ones(8, 8) - 2.0 * (T.arange(64).reshape(8, 8) % 2), T.ones(2, 4, 8, 8) * 0.5, T.ones(64) * 0.25
logs, lengths, targets = F.log_softmax(T.ones(6, 2, 5), -1), T.tensor([6, 6]), T.tensor([[1, 2, 3], [2, 3, 4]])
m1, i1 = F.max_pool1d(c, 2, return_indices=True)
m2, i2 = F.max_pool2d(x4, 2, return_indices=True)
m3, i3 = F.max_pool3d(r5, 2, return_indices=True)
"""
CONVOLUTIONS = {
    f"nn.{name}{d}d({size})": given
    for d, given in ((1, "c"), (2, "x4"), (3, "r5"))
    for name, size in (("Conv", f"{2 if d == 3 else 4}, 4, 3"), ("ConvTranspose", f"{2 if d == 3 else 4}, 4, 3"))
}
BY_DIMENSIONS = {
    f"nn.{name}{d}d({args.replace('C', '2' if d == 3 else '4')})": given
    for d, given in ((1, "c"), (2, "x4"), (3, "r5"))
    for name, args in (
        ("AdaptiveAvgPool", "2"), ("AdaptiveMaxPool", "2"), ("AvgPool", "2"), ("MaxPool", "2"), ("LPPool", "2, 2"), ("BatchNorm", "C"),
        ("InstanceNorm", "C"), ("CircularPad", "1"), ("ConstantPad", "1, 0.5"), ("ReflectionPad", "1"), ("ReplicationPad", "1"),
        ("ZeroPad", "1"), ("Dropout", ""),
    )
}  # fmt: skip
POINTWISE = {
    f"nn.{name}": "x"
    for name in (
        "AlphaDropout() CELU() ELU() GELU() GLU() Hardshrink() Hardsigmoid() Hardswish() Hardtanh() Identity() LeakyReLU() LogSigmoid() Mish() PReLU() "
        "RReLU() ReLU6() SELU() SiLU() Sigmoid() Softplus() Softshrink() Softsign() Tanh() Tanhshrink() Threshold(0.1,0.2) LogSoftmax(1) Softmin(1) "
        "RMSNorm(8) FeatureAlphaDropout() Flatten() Unflatten(1,(2,4))"
    ).split()
}  # fmt: skip
LOSSES = {
    "nn.L1Loss()": "x, y", "nn.MSELoss()": "x, y", "nn.SmoothL1Loss()": "x, y", "nn.HuberLoss()": "x, y", "nn.BCELoss()": "part, part",
    "nn.BCEWithLogitsLoss()": "x, part", "nn.KLDivLoss(reduction='batchmean')": "x, part", "nn.NLLLoss()": "x, classes",
    "nn.PoissonNLLLoss()": "x, y", "nn.GaussianNLLLoss()": "x, y, part", "nn.SoftMarginLoss()": "x, signs",
    "nn.HingeEmbeddingLoss()": "x, signs", "nn.MarginRankingLoss()": "x, y, signs", "nn.MultiMarginLoss()": "x, classes",
    "nn.MultiLabelMarginLoss()": "x, whole.reshape(8, 8) % 8", "nn.MultiLabelSoftMarginLoss()": "x, part",
    "nn.CosineEmbeddingLoss()": "x, y, signs[:, 0]", "nn.TripletMarginLoss()": "x, y, part",
    "nn.TripletMarginWithDistanceLoss()": "x, y, part", "nn.CTCLoss()": "logs, targets, lengths, T.tensor([3, 3])",
    "nn.PairwiseDistance()": "x, y", "nn.CosineSimilarity()": "x, y", "nn.CrossEntropyLoss(label_smoothing=0.1)": "x, classes",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [4, 8])": "x, classes",
}  # fmt: skip
OTHERS = {
    "nn.Bilinear(8, 8, 4)": "x, y", "nn.ChannelShuffle(2)": "x4", "nn.PixelShuffle(2)": "x4", "nn.PixelUnshuffle(2)": "x4",
    "nn.CrossMapLRN2d(2)": "x4", "nn.LocalResponseNorm(2)": "x4", "nn.EmbeddingBag(8, 8)": "whole.reshape(8, 8) % 8",
    "nn.Fold((4, 4), 2, stride=2)": "T.ones(1, 16, 4)", "nn.Unfold(2)": "x4[:1]", "nn.FractionalMaxPool2d(2, 3)": "x4",
    "nn.FractionalMaxPool3d(2, 2)": "r5", "nn.MaxUnpool1d(2)": "m1, i1", "nn.MaxUnpool2d(2)": "m2, i2", "nn.MaxUnpool3d(2)": "m3, i3",
    "nn.Softmax2d()": "x4", "nn.Upsample(scale_factor=2)": "x4", "nn.UpsamplingBilinear2d(scale_factor=2)": "x4",
    "nn.UpsamplingNearest2d(scale_factor=2)": "x4", "nn.GRU(8, 8)": "seq", "nn.RNN(8, 8)": "seq", "nn.GRUCell(8, 8)": "x",
    "nn.RNNCell(8, 8)": "x", "nn.TransformerDecoderLayer(8, 2, 16)": "seq, seq", "nn.Transformer(8, 2, 1, 1, 16)": "seq, seq",
}  # fmt: skip
OPTIMIZERS = {
    f"T.optim.{name}(parts[:4], lr=1e-9).step": "" for name in "ASGD Adadelta Adafactor Adamax Muon RAdam Rprop".split()
}
OPTIMIZERS |= {f"T.optim.SGD(parts[:4], lr=1e-9, {more}).step": "" for more in ("momentum=0.9", "weight_decay=0.1")}
OPTIMIZERS |= {
    "T.optim.Adam(parts[:4], lr=1e-9, amsgrad=True).step": "",
    "T.optim.Adam(parts[:4], lr=1e-9).zero_grad": "",
}
SGD = "T.optim.SGD(parts, lr=0.1)"
SCHEDULERS = {
    f"T.optim.lr_scheduler.{name}({SGD}{args}).step": ""
    for name, args in {
        "ConstantLR": "", "CosineAnnealingLR": ", 100", "CosineAnnealingWarmRestarts": ", 100", "CyclicLR": ", 0.1, 0.2", "ExponentialLR": ", 0.9999",
        "LambdaLR": ", lambda i: 0.5", "LinearLR": "", "MultiStepLR": ", [30, 80]", "MultiplicativeLR": ", lambda i: 1.0",
        "OneCycleLR": ", 0.1, 10**9", "PolynomialLR": "", "StepLR": ", 30",
    }.items()
}  # fmt: skip
SCHEDULERS[f"T.optim.lr_scheduler.ReduceLROnPlateau({SGD}).step"] = "1.0"
MODEL = "nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))"
STATE = {
    f"{MODEL}.state_dict": "", f"{MODEL}.train": "", f"{MODEL}.eval": "", f"{MODEL}.zero_grad": "", f"list({MODEL}.parameters()).copy": "",
    f"(lambda m: lambda: list(m.parameters()))({MODEL})": "", f"(lambda m: lambda: list(m.named_modules()))({MODEL})": "",
    f"(lambda m: lambda: list(m.named_parameters()))({MODEL})": "", f"(lambda m: lambda: m.load_state_dict(m.state_dict()))({MODEL})": "",
    f"{MODEL}.requires_grad_": "", f"{MODEL}.to": "T.float32", f"{SGD}.state_dict": "", "nn.utils.parameters_to_vector": "parts",
    "nn.utils.clip_grad_value_": "parts, 1.0", "nn.utils.get_total_norm": "[p.grad for p in parts]", "nn.Linear": "8, 8", "nn.ReLU": "",
    "nn.Parameter": "x", "nn.init.normal_": "z", "nn.init.xavier_uniform_": "z", "nn.init.zeros_": "z", "T.no_grad": "", "T.enable_grad": "",
    "T.set_grad_enabled": "True", "T.is_grad_enabled": "", "T.optim.SGD": "parts, 0.1", "T.manual_seed": "1", "T.get_default_dtype": "",
    "T.no_grad()(lambda: None)": "", "T.inference_mode()(lambda: None)": "", "(lambda: T.autocast('cpu').__enter__().__exit__(None, None, None))": "",
}  # fmt: skip
DATA = "T.utils.data."
LOADERS = {
    f"(lambda d: lambda: [0 for _ in d])({DATA}DataLoader({DATA}TensorDataset(T.ones(64, 8), T.arange(64)), batch_size=8{more}))": ""
    for more in ("", ", shuffle=True", ", drop_last=True")
}
LOADERS |= {
    f"{DATA}TensorDataset(T.ones(64, 8), T.arange(64)).__getitem__": "3", f"{DATA}default_collate": "[(x, 1), (y, 2)]",
    f"(lambda s: lambda: list(s))({DATA}RandomSampler(range(64)))": "",
}  # fmt: skip
MADE = {
    **CONVOLUTIONS,
    **BY_DIMENSIONS,
    **POINTWISE,
    **LOSSES,
    **OTHERS,
    **OPTIMIZERS,
    **SCHEDULERS,
    **STATE,
    **LOADERS,
}
