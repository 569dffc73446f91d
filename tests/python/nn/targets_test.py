"""tests/python/nn/targets_test.py: dtypes of a loss's targets that mean a mistake."""

import adjoin
import pytest
from adjoin import nn
from adjoin.nn import functional as F

SCORES, TWO = adjoin.zeros(2, 3), adjoin.zeros(2)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "bool", "float32", "float64"])
@pytest.mark.parametrize("loss", [F.cross_entropy, F.nll_loss, adjoin.nn.CrossEntropyLoss()])
def test_classes_are_int64(loss, dtype):
    with pytest.raises(RuntimeError, match=rf"target classes must be int64, they are {dtype}.*; use target.long\(\)"):
        loss(SCORES, adjoin.tensor([0, 1]).to(getattr(adjoin, dtype)))


def test_classes_and_probabilities_are_taken():
    for target in (adjoin.tensor([0, 1]), adjoin.tensor([0, 1], dtype=adjoin.uint8), adjoin.full((2, 3), 1 / 3)):
        assert abs(F.cross_entropy(SCORES, target).item() - 1.0986123) < 1e-5
    with pytest.raises(RuntimeError, match="probabilities must have input's shape"):
        F.cross_entropy(SCORES, adjoin.zeros(2, 4))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(
    "loss",
    [
        F.binary_cross_entropy_with_logits,
        adjoin.nn.BCEWithLogitsLoss(),
        lambda x, t: F.binary_cross_entropy(x + 0.5, t),
    ],
)
def test_targets_between_0_and_1_are_floats(loss, dtype):
    target = adjoin.tensor([0, 1])
    with pytest.raises(RuntimeError, match=rf"target must be of floats, it is {dtype}; use target.to\(input.dtype\)"):
        loss(TWO, target.to(getattr(adjoin, dtype)))
    assert abs(loss(TWO, target.float()).item() - 0.6931472) < 1e-5


WRONG = {  # which element, its value, and what else may stand there
    "classes": (lambda t: F.cross_entropy(SCORES, t), [0, 3], (1, 3), "or -100 \\(ignore_index\\)"),
    "below 0": (lambda t: F.cross_entropy(SCORES, t), [-1, 2], (0, -1), "or -100 \\(ignore_index\\)"),
    "after one ignored": (
        lambda t: F.cross_entropy(SCORES, t, ignore_index=9),
        [9, 5],
        (1, 5),
        "or 9 \\(ignore_index\\)",
    ),
    "weighted": (
        lambda t: F.cross_entropy(SCORES, t, weight=adjoin.ones(3)),
        [0, 3],
        (1, 3),
        "or -100 \\(ignore_index\\)",
    ),
    "smoothed": (
        lambda t: F.cross_entropy(SCORES, t, label_smoothing=0.1),
        [3, 0],
        (0, 3),
        "or -100 \\(ignore_index\\)",
    ),
    "nll": (lambda t: F.nll_loss(SCORES, t), [0, 3], (1, 3), "or -100 \\(ignore_index\\)"),
    "recorded": (
        lambda t: F.cross_entropy(SCORES.clone().requires_grad_(), t),
        [0, 3],
        (1, 3),
        "or -100 \\(ignore_index\\)",
    ),
    "pictures": (
        lambda t: F.cross_entropy(adjoin.zeros(1, 3, 2, 2), t),
        [[[0, 1], [2, 7]]],
        (3, 7),
        "or -100 \\(ignore_index\\)",
    ),
    "reference": (
        lambda t: F.cross_entropy(SCORES.to("reference"), t.to("reference")),
        [0, 3],
        (1, 3),
        "or -100 \\(ignore_index\\)",
    ),
    "labels": (
        lambda t: F.multilabel_margin_loss(SCORES, t),
        [[0, -1, 0], [4, -1, 0]],
        (3, 4),
        "or -1 \\(the end of a row\\)",
    ),
    "margins": (lambda t: F.multi_margin_loss(SCORES, t), [0, 5], (1, 5), "$"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_class_that_is_not_there(name):
    call, target, (at, value), more = WRONG[name]
    text = f"element {at} of target is {value}: input has 3 classes, so targets are 0 to 2"
    with pytest.raises(IndexError, match=text + (more if more == "$" else ", " + more)):
        call(adjoin.tensor(target))


FLAGS = [
    ("cosine_embedding_loss", lambda: (adjoin.randn(3, 2), adjoin.randn(3, 2), adjoin.ones(3), 0.1)),
    ("hinge_embedding_loss", lambda: (adjoin.randn(3), adjoin.ones(3), 0.5)),
    ("margin_ranking_loss", lambda: (adjoin.randn(3), adjoin.randn(3), adjoin.ones(3), 0.1)),
    ("triplet_margin_loss", lambda: (*adjoin.randn(3, 4, 2), 0.5, 2.0, 1e-6, True)),
    ("multilabel_margin_loss", lambda: (adjoin.randn(2, 3), adjoin.tensor([[0, -1, -1], [1, 2, -1]]))),
    ("soft_margin_loss", lambda: (adjoin.randn(3), adjoin.ones(3))),
    ("multilabel_soft_margin_loss", lambda: (adjoin.randn(2, 3), adjoin.ones(2, 3), None)),
    ("multi_margin_loss", lambda: (adjoin.randn(2, 3), adjoin.tensor([0, 2]), 2, 0.5, None)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:size_average")
@pytest.mark.parametrize(("name", "make"), FLAGS, ids=[name for name, _ in FLAGS])
def test_flags_of_then_stand_before_reduction(name, make):
    function, given = getattr(F, name), make()
    total = function(*given, reduction="sum")
    assert adjoin.equal(function(*given, False), total) and adjoin.equal(function(*given, size_average=False), total)
    assert adjoin.equal(function(*given, None, False), function(*given, reduction="none"))
    assert adjoin.equal(function(*given, True, True, "sum"), function(*given))
    rates = (adjoin.randn(3), adjoin.ones(3), True, True)
    assert adjoin.equal(F.poisson_nll_loss(*rates, False), F.poisson_nll_loss(*rates, eps=1e-8, reduction="sum"))


def test_probabilities_have_no_class_to_ignore():
    with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point targets"):
        F.cross_entropy(SCORES, adjoin.ones(2, 3) / 3, ignore_index=1)


def test_divergence_of_numbers():
    a, b = adjoin.tensor(-0.5), adjoin.tensor(0.25)
    assert F.kl_div(a, b, reduction="batchmean").equal(F.kl_div(a, b, reduction="sum"))


def test_lengths_in_lists():
    scores = adjoin.randn(5, 2, 3).log_softmax(-1)
    targets = adjoin.tensor([[1, 2], [2, 1]])
    by_list = F.ctc_loss(scores, targets, [5, 5], (2, 2))
    assert by_list.equal(F.ctc_loss(scores, targets, adjoin.tensor([5, 5]), adjoin.tensor([2, 2])))


def test_settings_of_another_kind():
    with pytest.raises(TypeError, match="delta must be a float or int"):
        adjoin.nn.HuberLoss(delta=1j)
    for dim in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="dim must be an int or None"):
            adjoin.nn.Softmax(dim)
    with pytest.raises(ValueError, match="to match target batch_size"):
        adjoin.nn.LinearCrossEntropyLoss(3, 2)(SCORES, adjoin.zeros(5, 2))


def test_what_layers_say_of_themselves():
    layer = adjoin.nn.LinearCrossEntropyLoss(3, 2, reduction="sum", label_smoothing=0.1)
    assert "reduction=sum, ignore_index=None, label_smoothing=0.1, options=None" in repr(layer)
    layers = [adjoin.nn.TransformerEncoderLayer(4, 2, activation=a) for a in ("relu", "gelu", adjoin.tanh)]
    assert [x.activation_relu_or_gelu for x in layers] == [1, 2, 0]


@pytest.mark.parametrize("target", [(15, 1), (10,), ()])
def test_cosine_embedding_loss_wants_a_target_for_each_row(target):
    rows = (15, 10) if len(target) != 1 else (10,)
    with pytest.raises(RuntimeError, match="D target tensor expect"):
        F.cosine_embedding_loss(adjoin.ones(rows), adjoin.ones(rows), adjoin.ones(target))


def test_gaussian_nll_loss_says_what_is_wrong_with_a_variance():
    x = adjoin.ones(3, 5)
    with pytest.raises(ValueError, match="var is of incorrect size .3, 3. for input of .3, 5."):
        F.gaussian_nll_loss(x, x, adjoin.ones(3, 3))
    assert F.gaussian_nll_loss(x, x, adjoin.ones(3)) == F.gaussian_nll_loss(x, x, adjoin.ones(3, 1)) == 0
    y = x + adjoin.arange(15.0).reshape(3, 5)
    shared = F.gaussian_nll_loss(x, y, adjoin.arange(1.0, 6.0).reshape(1, 5))
    assert shared == F.gaussian_nll_loss(x, y, adjoin.arange(1.0, 6.0).expand(3, 5))
    with pytest.raises(ValueError, match="var must have the shape"):
        F.gaussian_nll_loss(x, x, adjoin.ones(1, 1))


@pytest.mark.parametrize(
    "layer", [nn.RReLU, nn.ELU, nn.CELU, nn.FeatureAlphaDropout, nn.LeakyReLU, nn.Hardswish, nn.Mish]
)
def test_a_layer_that_writes_its_input_has_a_derivative(layer):
    x = adjoin.randn(5, 5, requires_grad=True)
    layer(inplace=True).train()(x * 1).sum().backward()
    adjoin.manual_seed(3)
    y = x.detach().clone().requires_grad_()
    layer().eval()(y).sum().backward()
    x.grad = None
    layer(inplace=True).eval()(x * 1).sum().backward()
    assert x.grad.equal(y.grad)


def test_weights_of_classes_have_the_dtype_of_the_input():
    scores, target = adjoin.zeros(2, 3), adjoin.tensor([0, 1])
    for loss in (F.nll_loss, F.cross_entropy):
        with pytest.raises(
            RuntimeError, match="expected scalar type float32 but found float64: weight must have input's dtype"
        ):
            loss(scores, target, weight=adjoin.ones(3, dtype=adjoin.float64))
        assert loss(scores, target, weight=adjoin.ones(3)).equal(loss(scores, target))


def test_margins_of_one_row_or_one_class():
    x = adjoin.tensor([0.1, 0.5, 0.3])
    one, row = (F.multi_margin_loss(x, t, reduction="none") for t in (adjoin.tensor(1), adjoin.tensor([1])))
    assert one.shape == () and row.shape == (1,) and one == row[0]
    assert F.multi_margin_loss(adjoin.tensor(1.0), adjoin.tensor(0), reduction="none").shape == ()
    for target in (adjoin.tensor(0), adjoin.tensor([0])):
        assert F.multilabel_margin_loss(adjoin.tensor(1.0), target, reduction="none").shape == ()
    with pytest.raises(ValueError, match="var has negative entry/entries"):
        F.gaussian_nll_loss(x, x, -adjoin.ones(3))


@pytest.mark.parametrize(
    "name,settings",
    [
        ("relu", ()), ("relu6", ()), ("elu", (1.0,)), ("selu", ()), ("celu", (1.0,)), ("leaky_relu", (0.2,)), ("hardtanh", (-1.0, 1.0)),
        ("hardswish", ()), ("hardsigmoid", ()), ("silu", ()), ("mish", ()), ("threshold", (0.1, 5.0)), ("alpha_dropout", (0.5, False)),
    ],
)  # fmt: skip
def test_in_place_may_be_the_last_argument(name, settings):
    function = getattr(F, name)
    x = adjoin.tensor([-2.0, 0.05, 7.0])
    given = x.clone()
    assert function(given, *settings, False).equal(function(x, *settings)) and given.equal(x)
    result = function(given, *settings, True)
    assert result.equal(function(x, *settings)) and given.equal(result)
    with pytest.raises(TypeError, match="positional argument"):
        function(x, *settings, True, 1)
    with pytest.raises(TypeError, match="positional argument"):
        adjoin.exp(x, True)
