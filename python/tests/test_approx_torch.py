"""foretune.approx with any version of PyTorch on the CPU: imported modules, the model zoo, and
PredTuner's knobs by their definitions. with_torch.py runs this with Debian's PyTorch."""

import copy
import json
import sys

import foretune
import numpy as np
import pytest
from foretune import approx
from foretune.approx import knobs as knobs_module
from foretune.approx import model_zoo
from foretune.networks import Layer
from predtuner_formula import convolve, layer

torch = pytest.importorskip("torch")

import torch.nn.functional as functional  # noqa: E402
from torch import nn  # noqa: E402

# name, input, leaf modules, convolutions, depthwise ones, millions of parameters and of
# multiply-adds
ZOO = [
    ("LeNet", (1, 28, 28), 10, 2, 0, 3.27, 13.9),
    ("AlexNet", (3, 32, 32), 14, 5, 0, 2.51, 239),
    ("AlexNet2", (3, 32, 32), 16, 6, 0, 0.31, 38.7),
    ("VGG16Cifar10", (3, 32, 32), 34, 13, 0, 15.0, 313),
    ("VGG16Cifar100", (3, 32, 32), 34, 13, 0, 15.0, 313),
    ("ResNet18", (3, 32, 32), 42, 21, 0, 0.27, 40.8),
    ("MobileNet", (3, 32, 32), 83, 27, 13, 3.22, 46.4),
    ("AlexNetImageNet", (3, 224, 224), 18, 5, 0, 61.1, 714),
    ("VGG16ImageNet", (3, 224, 224), 36, 13, 0, 138, 15470),
    ("ResNet50", (3, 224, 224), 158, 53, 0, 25.6, 3834),
]
ALIASES = {"LeNetMnist": "LeNet", "AlexNetCifar10": "AlexNet", "AlexNet2Cifar10": "AlexNet2",
           "ResNet18Cifar10": "ResNet18", "MobileNetCifar10": "MobileNet",
           "ResNet50ImageNet": "ResNet50"}


def randomize(module):
    """Draws weights that keep the size of what passes through, and statistics of batches."""
    with torch.no_grad():
        for each in module.modules():
            if isinstance(each, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(each.weight, nonlinearity="relu")
                if each.bias is not None:
                    each.bias.uniform_(-0.2, 0.2)
            elif isinstance(each, nn.BatchNorm2d):
                each.weight.uniform_(0.7, 1.3)
                each.bias.uniform_(-0.3, 0.3)
                each.running_mean.uniform_(-0.3, 0.3)
                each.running_var.uniform_(0.5, 2.0)
    return module


def agrees(module, *shapes, images=3, tolerance=1e-4):
    """Checks that a module and its import compute the same, and returns the import."""
    torch.manual_seed(7)
    network = approx.from_torch(module, tuple(torch.rand(1, *shape) for shape in shapes))
    inputs = [torch.rand(images, *shape) * 2 - 1 for shape in shapes]
    was_training = module.training
    with torch.no_grad():
        expected = module.eval()(*inputs)
    module.train(was_training)
    results = network.plan(images=images)(*[each.numpy() for each in inputs])
    if isinstance(expected, torch.Tensor):
        expected, results = [expected], [results]
    assert len(expected) == len(results)
    for exact, result in zip(expected, results):
        exact = exact.numpy()
        assert result.shape == exact.shape and np.abs(exact).max() > 1e-3
        assert np.abs(result - exact).max() <= tolerance * np.abs(exact).max()
    return network


def leaves(module):
    return [each for each in module.modules()
            if not list(each.children()) and not isinstance(each, nn.Sequential)]


@pytest.mark.parametrize(("name", "shape", "operators", "convolutions", "depthwise", "parameters",
                          "multiply_adds"), ZOO, ids=[row[0] for row in ZOO])
def test_a_network_of_the_zoo_has_the_published_size_and_imports(
        name, shape, operators, convolutions, depthwise, parameters, multiply_adds):
    torch.manual_seed(1)
    module = getattr(model_zoo, name)()
    assert type(module).__name__ == name and module.training
    modules = leaves(module)
    found = [each for each in modules if isinstance(each, nn.Conv2d)]
    assert len(modules) == operators and len(found) == convolutions
    assert sum(each.groups > 1 for each in found) == depthwise
    total = sum(each.numel() for each in module.parameters()) / 1e6
    assert float(f"{total:.3g}") == pytest.approx(parameters, abs=0.005)
    if name == "VGG16ImageNet":  # its half a gigabyte of weights take long
        network = approx.from_torch(module, torch.zeros(1, *shape))
    else:
        network = agrees(randomize(module), shape, images=2)
    assert network.name == name
    assert network.multiply_adds / 1e6 == pytest.approx(multiply_adds, rel=0.005)
    assert sum(each.kind == "conv" for each in network.layers) == convolutions
    assert sum(each.groups > 1 for each in network.layers) == depthwise


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_networks_have_a_second_name(alias, name):
    assert getattr(model_zoo, alias) is getattr(model_zoo, name)


def test_every_name_of_the_zoo_exists():
    for name in model_zoo.__all__:
        assert callable(getattr(model_zoo, name))


def test_parameters_have_predtuners_names():
    vgg = model_zoo.VGG16Cifar10().state_dict()
    # A pool lies between the second convolution and its ReLU.
    assert [name for name in vgg if name.endswith("weight")][:4] == [
        "convs.0.weight", "convs.2.weight", "convs.5.weight", "convs.7.weight"]
    assert [name for name in vgg if name.startswith("linears")] == [
        "linears.0.weight", "linears.0.bias", "linears.2.weight", "linears.2.bias"]
    resnet = model_zoo.ResNet18().state_dict()
    assert {"convs.5.mainline.0.weight", "convs.5.mainline.2.bias", "convs.5.shortcut.0.weight",
            "linears.0.bias"} <= set(resnet)
    large = model_zoo.ResNet50().state_dict()
    assert {"convs.0.bias", "convs.3.running_mean", "convs.4.mainline.7.weight",
            "convs.4.shortcut.1.running_var", "convs.4.mainline.0.bias"} <= set(large)
    mobile = model_zoo.MobileNet().state_dict()
    assert {"convs.0.0.weight", "convs.12.4.running_var", "convs.13.weight",
            "convs.14.bias"} <= set(mobile)
    assert "convs.13.bias" not in mobile and "convs.0.3.bias" not in mobile


class Functional(nn.Module):
    """Functions instead of modules, two residuals, and one module that is used twice."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.again = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8, 5)

    def forward(self, x):
        x = functional.leaky_relu(self.first(x), 0.1)
        for _ in range(2):
            x = torch.relu(self.again(x)) + x
        x = functional.max_pool2d(x, 2)
        x = torch.cat([x[:, :4], torch.sigmoid(x[:, 4:])], 1)
        return functional.softmax(self.last(x.mean((2, 3))), 1)


class Inverted(nn.Module):
    """A block of MobileNetV2 with strides and depthwise convolutions."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(6, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6(),
            nn.Conv2d(24, 24, 5, 1, 2, groups=24, bias=False), nn.BatchNorm2d(24), nn.Hardswish(),
            nn.Conv2d(24, 6, 1, bias=False), nn.BatchNorm2d(6))
        self.down = nn.Conv2d(6, 12, 3, stride=2, padding=1, groups=3)

    def forward(self, x):
        return self.down(x + self.body(x))


class Encoder(nn.Module):
    """Patches, then a block of attention and two linear layers, as in a vision transformer."""

    def __init__(self, width=16, heads=2):
        super().__init__()
        self.heads = heads
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        batch, tokens, width = x.shape
        q, k, v = (each.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
                   for each in self.qkv(self.norm1(x)).chunk(3, 2))
        scores = (q @ k.transpose(2, 3)) * (width // self.heads) ** -0.5
        mixed = (scores.softmax(3) @ v).transpose(1, 2).reshape(batch, tokens, width)
        x = x + self.project(mixed)
        x = x + self.mlp(self.norm2(x))
        return self.head(x.mean(1))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 4), nn.Linear(3, 4)

    def forward(self, a, b):
        c = self.left(a) + self.right(b)
        return c, torch.tanh(c)


@pytest.mark.parametrize(("module", "shapes"), [
    (Functional, [(3, 8, 10)]), (Inverted, [(6, 9, 8)]), (Encoder, [(3, 16, 12)]),
    (TwoInputs, [(6,), (3,)])], ids=lambda value: getattr(value, "__name__", ""))
def test_an_imported_module_computes_the_same(module, shapes):
    torch.manual_seed(2)
    agrees(randomize(module()), *shapes)


@pytest.mark.skipif(int(torch.__version__.split(".")[0]) > 1,
                    reason="the exporter of PyTorch 2 computes with the batch there")
@pytest.mark.parametrize("frozen", [False, True])
def test_attention_of_pytorch_is_taken_apart(frozen):
    torch.manual_seed(4)
    module = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    if frozen:
        module.linear1.weight.requires_grad_(False)
    agrees(module, (5, 8))


def test_the_batch_stays_open():
    module = model_zoo.LeNet()
    for images in (1, 5):
        network = approx.from_torch(module, np.zeros((images, 1, 28, 28)), name="mine")
        assert network.name == "mine" and network.plan(images=4).images == 4


def test_training_flags_stay_and_dropout_is_off():
    module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.9), nn.BatchNorm1d(4))
    module[2].eval()
    before = copy.deepcopy(module.state_dict())
    x = torch.rand(3, 4)
    network = approx.from_torch(module, x)
    assert [each.training for each in module.modules()] == [True, True, True, False]
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    expected = module.eval()(x).detach().numpy()
    np.testing.assert_allclose(network.plan(images=3)(x.numpy()), expected, rtol=1e-4, atol=1e-6)


def test_training_flags_stay_when_the_module_cannot_be_exported():
    class Sorts(nn.Module):
        def forward(self, x):
            return torch.linalg.qr(x)[0]

    module = Sorts()
    with pytest.raises(foretune.UnsupportedError, match="cannot export Sorts"):
        approx.from_torch(module, torch.rand(2, 3, 3))
    assert module.training


def test_a_module_that_networks_cannot_compute_names_the_node():
    class Sines(nn.Module):
        def forward(self, x):
            return torch.sin(x)

    with pytest.raises(foretune.UnsupportedError, match="^Sines cannot be imported: the node"):
        approx.from_torch(Sines(), torch.zeros(1, 2, 3))


class Lists(nn.Module):
    def forward(self, x):
        return {"x": x}


class Turned(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1) + 1


class One(nn.Module):
    def forward(self, x):
        return x.reshape(1, 2)


@pytest.mark.parametrize(("module", "example", "error", "message"), [
    (3, torch.zeros(1, 2), foretune.InvalidArgumentError, "a torch.nn.Module, not int"),
    (nn.ReLU(), "x", foretune.InvalidArgumentError, "not str"),
    (nn.ReLU(), (), foretune.InvalidArgumentError, "at least one"),
    (nn.ReLU(), torch.tensor(1.0), foretune.InvalidArgumentError, "the batch"),
    (nn.ReLU(), torch.zeros(0, 3), foretune.InvalidArgumentError, "the batch"),
    (nn.Linear(3, 2), torch.zeros(1, 4), foretune.InvalidArgumentError, "Linear does not run on"),
    (nn.Conv2d(3, 4, 1), torch.zeros(3, 5, 5), foretune.InvalidArgumentError, "does not run on"),
    (Lists(), torch.zeros(1, 2), foretune.UnsupportedError, "returns tensors, not dict"),
    (Turned(), torch.zeros(1, 2, 3), foretune.UnsupportedError, "output 0 is not the batch"),
    (One(), torch.zeros(1, 2), foretune.UnsupportedError, "not run on two images at once"),
])
def test_modules_and_examples_of_another_kind_are_refused(module, example, error, message):
    with pytest.raises(error, match=message):
        approx.from_torch(module, example)


def test_an_exporter_that_wants_onnx_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    try:
        network = approx.from_torch(nn.Linear(2, 3), torch.zeros(1, 2))
    except foretune.UnsupportedError as refusal:
        assert "the Python package onnx" in str(refusal)
    else:  # PyTorch 1.13 does without
        assert network.layers[0].weights == (3, 2)


def test_a_data_set_feeds_a_data_loader(tmp_path):
    rng = np.random.default_rng(3)
    images = rng.standard_normal((5, 3, 32, 32)).astype(np.float32)
    labels = rng.integers(0, 10, 5).astype(np.int32)
    images.tofile(tmp_path / "input.bin")
    labels.tofile(tmp_path / "labels.bin")
    data = model_zoo.CIFAR.from_file(tmp_path / "input.bin", tmp_path / "labels.bin")
    batches = list(torch.utils.data.DataLoader(data, batch_size=2))
    assert [tuple(each.shape) for each, _ in batches] == [(2, 3, 32, 32)] * 2 + [(1, 3, 32, 32)]
    assert all(each.dtype == torch.int64 for _, each in batches)
    np.testing.assert_array_equal(torch.cat([each for each, _ in batches]).numpy(), images)
    np.testing.assert_array_equal(torch.cat([each for _, each in batches]).numpy(), labels)
    image, label = data[1]
    assert isinstance(image, torch.Tensor) and label.shape == () and label == labels[1]
    image.zero_()  # the file stays
    np.testing.assert_array_equal(data.images[1], images[1])


def test_accuracy_takes_tensors():
    output = torch.eye(4, requires_grad=True)
    assert approx.accuracy(output, torch.tensor([0, 1, 2, 0])) == 75.0
    assert approx.accuracy(output, np.arange(4)) == 100.0


# PredTuner's knobs by their definitions.


class Mixed(nn.Module):
    """Convolutions with a ReLU, with a residual in front of the ReLU, with a normalisation, and a
    depthwise one."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 6, 3, padding=1)
        self.b = nn.Conv2d(6, 6, 3, padding=1)
        self.c = nn.Conv2d(6, 6, 5, padding=2, groups=6)
        self.d = nn.Conv2d(6, 4, 2, stride=2)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        x = torch.relu(self.a(x))
        x = torch.relu(self.b(x) + x)
        x = torch.tanh(self.c(x))
        return self.norm(self.d(x))


def by_formula(module, x, changed, knob, convolution=layer):
    """Computes ``Mixed`` with a knob, an entry of the file, on one convolution."""

    def compute(name, x, **shape):
        conv = getattr(module, name)
        weights, bias = (each.detach().numpy() for each in (conv.weight, conv.bias))
        entry = knob if name == changed else {"class": "FP32Baseline"}
        return convolution(x, weights, bias, entry, **shape)

    x = np.maximum(compute("a", x, padding=1), 0)
    x = np.maximum(compute("b", x, padding=1) + x, 0)
    x = np.tanh(compute("c", x, padding=2, groups=6))
    norm = module.norm
    mean, variance, scale, shift = (
        each.detach().numpy().astype(np.float64).reshape(1, -1, 1, 1)
        for each in (norm.running_mean, norm.running_var, norm.weight, norm.bias))
    return (compute("d", x, stride=2) - mean) / np.sqrt(variance + norm.eps) * scale + shift


ENTRIES = json.loads(knobs_module.DEFAULT_KNOB_FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def mixed():
    torch.manual_seed(11)
    module = randomize(Mixed()).eval()
    network = approx.from_torch(module, torch.zeros(1, 3, 12, 10))
    x = (torch.rand(2, 3, 12, 10) * 2 - 1).numpy()
    names = {letter: each.name for letter, each in zip("abcd", network.layers)}
    return module, network, x, names


def test_the_formula_is_the_module(mixed):
    module, network, x, _ = mixed
    expected = module(torch.from_numpy(x)).detach().numpy()
    exact = by_formula(module, x, "a", {"class": "FP32Baseline"})
    np.testing.assert_allclose(expected, exact, atol=1e-5)
    np.testing.assert_allclose(network.plan(images=2)(x), exact, atol=1e-5)


def needs(network, layer_):
    """Skips where the build does not compute such a layer."""
    try:
        network.plan(images=2, layers={network.layers[0].name: layer_})
    except foretune.Error as refusal:
        pytest.skip(f"this build has no {layer_}: {refusal}")


def compare(mixed, letter, entry, layer_, tolerance):
    module, network, x, names = mixed
    expected = by_formula(module, x, letter, entry)
    exact = by_formula(module, x, letter, {"class": "FP32Baseline"})
    assert entry["class"] in ("FP32Baseline", "FP16Approx") or (
        np.abs(expected - exact).max() > 1e-2), "the knob changes something"
    result = network.plan(images=2, layers={names[letter]: layer_})(x)
    assert np.abs(result - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["name"] for entry in ENTRIES])
@pytest.mark.parametrize("letter", "abcd")
def test_the_reference_form_has_predtuners_numbers(mixed, entry, letter):
    knob, = (each for each in approx.get_knobs_from_file() if each.name == entry["name"])
    reference = knob.layer(reference=True)
    if reference.zero_weights != (0, 0):
        needs(mixed[1], Layer(zero_weights=(2, 0)))
    if reference.before_activation:
        needs(mixed[1], Layer(skip_rows=(2, 0), before_activation=True))
    if reference.dtype == "f16":
        needs(mixed[1], Layer("f16", before_activation=True))
    compare(mixed, letter, entry, reference, 5e-3 if reference.dtype == "f16" else 1e-5)


@pytest.mark.parametrize("entry", [each for each in ENTRIES if not each.get("use_fp16", True)
                                   and each["class"] == "PerforateConv2dStride"],
                         ids=lambda entry: entry["name"])
def test_the_executed_form_interpolates_alike_where_no_activation_follows(mixed, entry):
    knob, = (each for each in approx.get_knobs_from_file() if each.name == entry["name"])
    compare(mixed, "d", entry, knob.layer(), 1e-5)


def test_the_executed_form_leaves_out_the_same_points_of_all_channels(mixed):
    module, network, x, names = mixed

    def convolution(x, weights, bias, knob, **shape):
        flat = np.array(weights.reshape(*weights.shape[:2], -1), np.float64)
        if knob["class"] == "Conv2dSampling":
            flat[:, :, knob["skip_offset"]::knob["skip_every"]] = 0
            flat *= knob["skip_every"] / (knob["skip_every"] - 1)
        return convolve(x, flat.reshape(weights.shape), **shape) + bias.reshape(1, -1, 1, 1)

    for entry in ENTRIES:
        if entry["class"] == "Conv2dSampling" and not entry["use_fp16"]:
            layer_ = approx.Conv2dSampling("a", entry["skip_every"], entry["skip_offset"]).layer()
            for letter in "abd":
                expected = by_formula(module, x, letter, entry, convolution)
                result = network.plan(images=2, layers={names[letter]: layer_})(x)
                np.testing.assert_allclose(result, expected, atol=1e-4)
