"""foretune.approx without PyTorch: knobs, data sets, and the refusals."""

import json
import subprocess
import sys

import foretune
import numpy as np
import pytest
from conftest import ROOT
from foretune import approx
from foretune.approx import knobs as knobs_module
from foretune.approx import model_zoo
from foretune.networks import Layer, Network, Operation
from predtuner_formula import perforate, sample

ONNX = ROOT / "foretune" / "interop" / "onnx" / "testdata"


@pytest.fixture(scope="module")
def knobs():
    return {knob.name: knob for knob in approx.get_knobs_from_file()}


@pytest.fixture(scope="module")
def has_f16():
    network = Network.load(ONNX / "conv_valid.onnx")
    try:
        network.plan(layers={network.layers[0].name: Layer("f16")})
    except foretune.Error:
        return False
    return True


def convolution(shape=(1, 8, 6, 5), weights=(8, 4, 3, 3), groups=1):
    return Operation("conv", "conv", shape, 1.0, weights, groups)


def test_the_default_file_has_the_56_knobs_by_their_numbers(knobs):
    expected = [11, 12, *range(121, 139), *range(151, 169), *range(231, 240), *range(261, 270)]
    assert sorted(knobs, key=int) == [str(number) for number in expected]
    cpu = {name for name, knob in knobs.items() if knob.exists_on_device("cpu")}
    assert len(cpu) == 28 and cpu == {str(number) for number in expected
                                      if number == 11 or number % 100 < 40 and number > 100}
    assert all(knob.devices in (("cpu",), ("gpu",)) for knob in knobs.values())
    assert knobs["11"].baseline_priority == 1 and knobs["12"].baseline_priority == 0
    assert all(knob.baseline_priority is None for name, knob in knobs.items() if len(name) > 2)


@pytest.mark.parametrize(("name", "executed", "reference"), [
    ("11", Layer(), Layer()),
    ("12", Layer("f16"), Layer("f16", before_activation=True)),
    ("121", Layer(skip_columns=(2, 0)), Layer(skip_columns=(2, 0), before_activation=True)),
    ("124", Layer(skip_rows=(2, 1)), Layer(skip_rows=(2, 1), before_activation=True)),
    ("127", Layer(skip_columns=(3, 2)), Layer(skip_columns=(3, 2), before_activation=True)),
    ("138", Layer(skip_rows=(4, 3)), Layer(skip_rows=(4, 3), before_activation=True)),
    ("153", Layer("f16", skip_rows=(2, 0)),
     Layer("f16", skip_rows=(2, 0), before_activation=True)),
    ("232", Layer(skip_taps=(2, 1)), Layer(zero_weights=(2, 1))),
    ("239", Layer(skip_taps=(4, 3)), Layer(zero_weights=(4, 3))),
    # PredTuner's simulation of these stays in float32.
    ("263", Layer("f16", skip_taps=(3, 0)), Layer(zero_weights=(3, 0))),
])
def test_a_knob_gives_both_forms_of_a_layer(knobs, name, executed, reference):
    assert knobs[name].layer() == executed
    assert knobs[name].layer(reference=True) == reference


@pytest.mark.parametrize(("name", "speedup"), [
    ("11", 1.0), ("12", 1.5), ("121", 2.0), ("151", 3.0), ("125", 1.5), ("158", 2.25),
    ("131", 1.33), ("168", 2.0), ("231", 2.0), ("269", 2.0), ("263", 2.25)])
def test_expected_speedups_are_those_of_the_table(knobs, name, speedup):
    assert knobs[name].expected_speedup == speedup


def test_speedups_that_a_file_leaves_open_follow_the_share_of_work():
    assert approx.PerforateConv2dStride("a", True, 3, 0).expected_speedup == 1.5
    assert approx.Conv2dSampling("a", 2, 0, use_fp16=True).expected_speedup == 3.0
    assert approx.FP16Approx("a").expected_speedup == 1.5


@pytest.mark.parametrize(("name", "operation", "reason"), [
    ("123", convolution((1, 8, 1, 5)), "conv has only 1 rows"),
    ("121", convolution((1, 8, 6, 1)), "conv has only 1 columns"),
    ("138", convolution((1, 8, 3, 5)), "none of the 3 rows of conv is left out"),
    ("121", Operation("fc", "linear", (1, 10), 1.0, (10, 20)), "fc is no convolution"),
    ("231", Operation("fc", "linear", (1, 10), 1.0, (10, 20)), "fc is no convolution"),
    ("231", convolution(weights=(8, 4, 1, 1)), "filters of conv have only one point"),
    ("239", convolution(weights=(8, 4, 1, 3)), "none of the 3 points of filters of conv"),
    ("231", convolution(weights=(8, 1, 3, 3), groups=8), "conv has 8 groups"),
    ("12", Operation("act", "relu", (1, 8, 6, 5), 0.0), "act has no weights"),
])
def test_a_knob_says_why_it_does_not_fit(knobs, name, operation, reason):
    fits, why = knobs[name].is_applicable(operation, None)
    assert not fits and why.startswith(reason) and "\n" not in why


@pytest.mark.parametrize(("name", "operation"), [
    ("11", Operation("act", "relu", (1, 8, 6, 5), 0.0)),
    ("12", Operation("fc", "linear", (1, 10), 1.0, (10, 20))),
    ("123", convolution(weights=(8, 1, 3, 3), groups=8)),
    ("121", convolution((1, 8, 1, 2))),
    ("239", convolution(weights=(8, 4, 2, 2)))])
def test_a_knob_fits(knobs, name, operation):
    assert knobs[name].is_applicable(operation, None) == (True, "")


@pytest.mark.parametrize("file", ["conv", "conv_depthwise", "conv_groups", "conv_rows",
                                  "conv_stride", "gemm", "random_images_2", "random_images_7"])
def test_knobs_fit_exactly_where_plans_can_be_made(knobs, has_f16, file):
    network = Network.load(ONNX / f"{file}.onnx")
    assert network.layers
    for operation in network.layers:
        for knob in knobs.values():
            layer = knob.layer()
            if layer.dtype == "f16" and not has_f16:
                continue
            fits, reason = knob.is_applicable(operation, network)
            assert fits == (reason == "")
            if fits:
                network.plan(layers={operation.name: layer})
            else:
                with pytest.raises(foretune.InvalidArgumentError):
                    network.plan(layers={operation.name: layer})


def test_operations_tell_the_shape_of_their_weights_and_their_groups():
    depthwise, = Network.load(ONNX / "conv_depthwise.onnx").layers
    assert depthwise.groups == depthwise.weights[0] and depthwise.weights[1] == 1
    linear, = Network.load(ONNX / "gemm.onnx").layers
    assert linear.weights[0] == linear.shape[-1] and linear.groups == 1
    others = Network.load(ONNX / "relu.onnx").operations
    assert [(each.weights, each.groups) for each in others] == [((), 1)]


def test_a_network_from_an_onnx_file_takes_a_name(tmp_path):
    network = Network.load(ONNX / "gemm.onnx", name="mine")
    assert network.name == "mine"
    network.save(tmp_path / "mine.ftn")
    assert Network.load(tmp_path / "mine.ftn").name == "mine"
    with pytest.raises(foretune.InvalidArgumentError, match="has its name already"):
        Network.load(tmp_path / "mine.ftn", name="yours")


def test_promise_is_refused_with_a_reason():
    knob = approx.PromiseSim("7", noise_level=3)
    fits, reason = knob.is_applicable(convolution(), None)
    assert not fits and "analog accelerator" in reason
    with pytest.raises(foretune.UnsupportedError, match="knob 7: PROMISE"):
        knob.layer()


def test_weights_that_grow_by_another_share_are_refused():
    knob = approx.Conv2dSampling("a", 2, 0, interp_rate=0.5)
    assert "interp_rate of 0.5" in knob.is_applicable(convolution(), None)[1]
    with pytest.raises(foretune.UnsupportedError, match="interp_rate of 0.5"):
        knob.layer(reference=True)


@pytest.mark.parametrize("make", [
    lambda: approx.PerforateConv2dStride("a", True, 1, 0),
    lambda: approx.PerforateConv2dStride("a", True, 3, 3),
    lambda: approx.Conv2dSampling("a", 2, 2), lambda: approx.Conv2dSampling("a", 2.5, 0),
    lambda: approx.PromiseSim("a", 9), lambda: approx.FP32Baseline(""),
    lambda: approx.FP32Baseline("a", devices="cpu"),
    lambda: approx.FP16Approx("a", exp_speedup=0), lambda: approx.FP16Approx("a", exp_speedup="2")])
def test_arguments_that_make_no_sense_are_refused(make):
    with pytest.raises(foretune.InvalidArgumentError):
        make()


class Int8(approx.ApproxKnob):
    def is_applicable(self, operation, network):
        return operation.kind in ("conv", "linear"), "" if operation.weights else "no weights"

    def layer(self, reference=False):
        return Layer("i8")


def test_a_knob_of_ones_own_comes_from_a_file(tmp_path):
    path = tmp_path / "knobs.json"
    path.write_text(json.dumps([{"class": "Int8", "name": "int8", "exp_speedup": 4},
                                {"class": "FP32Baseline", "name": "exact"}]))
    found = {knob.name: knob for knob in approx.get_knobs_from_file(path, {"Int8": Int8})}
    assert found["int8"].layer() == Layer("i8") and found["int8"].expected_speedup == 4.0
    assert found["exact"].expected_speedup == 1.0 and found["int8"].exists_on_device("cpu")
    assert repr(found["int8"]) == "Int8('int8')"


def test_a_knob_without_its_two_methods_is_only_a_name():
    knob = approx.ApproxKnob("a")
    assert knob.name == "a" and knob.expected_speedup == 1.0
    assert not knob.is_applicable(convolution(), None)[0]
    with pytest.raises(foretune.UnsupportedError, match="knob a is only a name"):
        knob.layer()


@pytest.mark.parametrize(("text", "extra", "error", "message"), [
    ("{", {}, foretune.CorruptDataError, "no JSON"),
    ("{}", {}, foretune.CorruptDataError, "no list"),
    ("[3]", {}, foretune.CorruptDataError, "entry 0"),
    ('[{"name": "1"}]', {}, foretune.CorruptDataError, "\"class\""),
    ('[{"class": "Int8", "name": "1"}]', {}, foretune.NotFoundError, "'Int8'"),
    ('[{"class": "FP16Approx", "name": "1", "x": 2}]', {}, foretune.InvalidArgumentError, "'x'"),
    ('[{"class": "FP16Approx"}]', {}, foretune.InvalidArgumentError, "'name'"),
    ('[{"class": "FP16Approx", "name": "1"}, {"class": "FP16Approx", "name": "1"}]', {},
     foretune.InvalidArgumentError, "two knobs are called '1'"),
    ("[]", {"FP16Approx": Int8}, foretune.InvalidArgumentError, "FP16Approx"),
])
def test_a_file_that_makes_no_knobs_is_refused(tmp_path, text, extra, error, message):
    path = tmp_path / "knobs.json"
    path.write_text(text)
    with pytest.raises(error, match=message):
        approx.get_knobs_from_file(path, extra)


def test_a_file_that_is_missing_or_no_text_is_refused(tmp_path):
    with pytest.raises(foretune.NotFoundError, match="no file"):
        approx.get_knobs_from_file(tmp_path / "knobs.json")
    with pytest.raises(foretune.InputOutputError):
        approx.get_knobs_from_file(tmp_path)
    (tmp_path / "knobs.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(foretune.CorruptDataError, match="no text"):
        approx.get_knobs_from_file(tmp_path / "knobs.json")


def test_every_class_of_the_file_is_public():
    for name, each in knobs_module._CLASSES.items():
        assert getattr(approx, name) is each


# The formulas that the reference forms are compared with.


def test_perforated_rows_and_columns_by_hand():
    lines = np.array([1.0, 2, 4, 8, 16]).reshape(1, 1, 5, 1)
    for period, offset, expected in ((2, 0, [2, 2, 5, 8, 8]), (2, 1, [1, 2.5, 4, 10, 16]),
                                     (3, 2, [1, 2, 5, 8, 16]), (4, 0, [2, 2, 4, 8, 8])):
        assert perforate(lines, True, period, offset).ravel().tolist() == expected
        columns = perforate(lines.swapaxes(2, 3), False, period, offset)
        assert columns.ravel().tolist() == expected
    assert perforate(lines[:, :, :1], True, 2, 0).ravel().tolist() == [0]
    assert perforate(lines[:, :, :1], True, 2, 1).ravel().tolist() == [1]


def test_sampled_weights_by_hand():
    two = sample(np.ones((1, 3, 1, 1)), 2, 0)
    assert two.ravel().tolist() == [0, 2, 0]
    four = sample(np.ones((1, 1, 2, 3)), 4, 1)
    np.testing.assert_allclose(four.ravel() * 3 / 4, [1, 0, 1, 1, 1, 0])
    turned = sample(np.ones((2, 3, 3, 3)), 3, 1)
    for channel in range(3):
        for column in range(3):
            expected = 0 if column == (channel + 1) % 3 else 1.5
            assert (turned[:, channel, :, column] == expected).all()


# Data sets.


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(5)
    images = rng.standard_normal((7, 1, 28, 28)).astype(np.float32)
    labels = rng.integers(0, 10, 7).astype(np.int32)
    images.tofile(tmp_path / "input.bin")
    labels.tofile(tmp_path / "labels.bin")
    return tmp_path / "input.bin", tmp_path / "labels.bin", images, labels


@pytest.mark.parametrize(("count", "offset", "chosen"), [
    (-1, 0, slice(None)), (3, 0, slice(3)), (3, 2, slice(2, 5)), (-1, 5, slice(5, None)),
    (100, 4, slice(4, None)), (0, 0, slice(0)), (-1, 7, slice(7, None))])
def test_a_data_set_is_read_from_raw_files(files, count, offset, chosen):
    data = model_zoo.MNIST.from_file(files[0], str(files[1]), count, offset)
    assert len(data) == len(files[2][chosen])
    assert data.images.dtype == np.float32 and data.labels.dtype == np.int64
    np.testing.assert_array_equal(data.images, files[2][chosen])
    np.testing.assert_array_equal(data.labels, files[3][chosen])


def test_a_data_set_is_mapped_and_indexed(files):
    data = model_zoo.MNIST.from_file(files[0], files[1])
    base = data.images
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    image, label = data[-1]
    np.testing.assert_array_equal(np.asarray(image), files[2][-1])
    assert int(label) == files[3][-1]
    np.testing.assert_array_equal(np.asarray(data[1:3][0]), files[2][1:3])
    np.testing.assert_array_equal(np.asarray(data.sample_input), files[2][0])
    assert sum(1 for _ in data) == 7
    with pytest.raises(IndexError):
        data[7]


def test_files_of_a_wrong_length_are_refused(files, tmp_path):
    image_file, label_file, images, labels = files
    images.ravel()[:-1].tofile(tmp_path / "short.bin")
    with pytest.raises(foretune.CorruptDataError, match="not a multiple of the 3136 bytes of an"):
        model_zoo.MNIST.from_file(tmp_path / "short.bin", label_file)
    with pytest.raises(foretune.CorruptDataError, match="of an image"):
        model_zoo.CIFAR.from_file(image_file, label_file)
    (tmp_path / "odd.bin").write_bytes(b"12345")
    with pytest.raises(foretune.CorruptDataError, match="the 4 bytes of a label"):
        model_zoo.MNIST.from_file(image_file, tmp_path / "odd.bin")
    labels[:-1].tofile(tmp_path / "fewer.bin")
    with pytest.raises(foretune.MismatchError, match="has 7 images and .* has 6 labels"):
        model_zoo.MNIST.from_file(image_file, tmp_path / "fewer.bin")
    with pytest.raises(foretune.NotFoundError, match="no file"):
        model_zoo.MNIST.from_file(tmp_path / "none.bin", label_file)
    with pytest.raises(foretune.InvalidArgumentError, match="offset 8"):
        model_zoo.MNIST.from_file(image_file, label_file, offset=8)
    with pytest.raises(foretune.InvalidArgumentError, match="not -2"):
        model_zoo.MNIST.from_file(image_file, label_file, count=-2)


def test_a_data_set_of_arrays_checks_their_shapes():
    images = np.zeros((2, 3, 32, 32))
    assert len(model_zoo.CIFAR(images, [1, 2])) == 2
    for bad, labels in ((images[0], [1, 2]), (images, [1]), (images, [0.5, 1.0]),
                        (images[:, :1], [1, 2])):
        with pytest.raises(foretune.InvalidArgumentError):
            model_zoo.CIFAR(bad, labels)
    assert model_zoo.ImageNet.image_shape == (3, 224, 224)


def test_an_empty_data_set(tmp_path):
    for name in ("input.bin", "labels.bin"):
        (tmp_path / name).touch()
    data = model_zoo.CIFAR.from_file(tmp_path / "input.bin", tmp_path / "labels.bin")
    assert len(data) == 0 and data.images.shape == (0, 3, 32, 32)


def test_accuracy_is_a_percentage():
    output = np.array([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    assert approx.accuracy(output, np.array([1, 0, 0, 0])) == 75.0
    assert approx.accuracy(output.tolist(), [1, 0, 0, 1]) == 100.0
    for bad in (([1, 2], [1, 2]), (output, [1]), (np.zeros((0, 3)), [])):
        with pytest.raises(foretune.InvalidArgumentError, match="takes"):
            approx.accuracy(*bad)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import numpy as np
import foretune, foretune.approx
from foretune.approx import model_zoo
from foretune.approx.model_zoo import VGG16Cifar10
for call in (VGG16Cifar10, model_zoo.LeNet,
             lambda: foretune.approx.from_torch(None, np.zeros((1, 3)))):
    try:
        call()
    except foretune.UnsupportedError as refusal:
        print(refusal)
data = model_zoo.CIFAR(np.zeros((1, 3, 32, 32)), [4])
assert type(data[0][0]) is np.ndarray and data[0][1] == 4
assert foretune.approx.accuracy(np.eye(2), np.arange(2)) == 100.0
"""


def test_without_pytorch_networks_are_refused_and_data_sets_work():
    found = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    assert found == [f"{name} needs PyTorch, which is not installed"
                     for name in ("VGG16Cifar10", "LeNet", "from_torch")]


def test_importing_does_not_import_pytorch():
    code = "import sys, foretune.approx, foretune.approx.model_zoo; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_names_that_the_zoo_lacks_are_no_attributes():
    with pytest.raises(AttributeError, match="GoogLeNet"):
        model_zoo.GoogLeNet  # noqa: B018
