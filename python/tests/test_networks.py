"""Tests networks on NumPy's arrays: plans, layers that compute less, files and tasks."""

import numpy as np
import pytest
from foretune import InvalidArgumentError, NotFoundError
from foretune.networks import Controller, Layer, Network, parse_layers
from network_samples import NETWORKS, needs_onnx

pytestmark = needs_onnx


@pytest.fixture(scope="module")
def network():
    return Network.load(NETWORKS / "lenet5.onnx", name="lenet5")


def images(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 1, 28, 28), dtype=np.float32)


def test_batches_of_any_size_agree(network):
    given = images(7)
    whole = network.plan(images=7)(given)
    assert whole.shape == (7, 10)
    single = network.plan(images=1, measure_top=0)
    for image, logits in zip(given, whole):
        np.testing.assert_allclose(single(image[None])[0], logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(network.plan(images=7, pass_images=3, threads=2)(given), whole,
                               rtol=1e-4, atol=1e-4)


def test_layers_that_compute_less_stay_close(network):
    given = images(32)
    exact = network.plan(images=32)(given)
    ranges = network.calibrate(given)
    size = np.abs(exact).max()
    for layer, most in ((Layer("i8"), 0.05), (Layer("bf16"), 0.02), (Layer("f16"), 0.005)):
        found = network.plan(images=32, layers={each.name: layer for each in network.layers},
                             ranges=ranges)(given)
        assert 0 < np.abs(found - exact).max() < most * size, layer
    first = network.layers[0].name
    skipped = network.plan(images=32, layers={first: Layer(skip_rows=(2, 1))})
    assert np.abs(skipped(given) - exact).max() > 1e-3 * size
    assert any(step.description == "means of neighbours" for step in skipped.profile(given))


def test_a_choice_of_the_command_line_becomes_layers():
    assert parse_layers("exact") == {}
    assert parse_layers("a=i8 b.1=f32+rows2.1+before c=f16+taps3.0+weights4.2+columns2.0") == {
        "a": Layer("i8"), "b.1": Layer(skip_rows=(2, 1), before_activation=True),
        "c": Layer("f16", skip_columns=(2, 0), skip_taps=(3, 0), zero_weights=(4, 2))}
    for text, part in (("conv1", "'conv1'"), ("a=i8+lines2.0", "'lines2.0'"), ("a=i8+rows8.0", "'rows8.0'")):
        with pytest.raises(InvalidArgumentError, match=part):
            parse_layers(text)


def test_files_keep_networks(network, tmp_path):
    network.save(tmp_path / "copy.ftn")
    copy = Network.load(tmp_path / "copy.ftn")
    assert copy.name == "lenet5"
    assert copy.operations == network.operations
    given = images(2)
    np.testing.assert_array_equal(copy.plan(images=2, measure_top=0)(given),
                                  network.plan(images=2, measure_top=0)(given))


def test_mistakes_are_told(network, tmp_path):
    name = network.layers[-1].name
    for layers, message in (({"none": Layer()}, "no operation 'none'"),
                            ({name: Layer(skip_rows=(2, 0))}, "neither rows"),
                            ({name: Layer("i8")}, "needs the range"),
                            ({name: Layer("f64")}, "layers compute in"),
                            ({name: Layer(skip_rows=(2,))}, "make a pair")):
        with pytest.raises(InvalidArgumentError, match=message):
            network.plan(layers=layers)
    with pytest.raises(InvalidArgumentError, match="an input has 784 elements"):
        network.plan(images=2)(images(1))
    with pytest.raises(InvalidArgumentError, match="images is 0"):
        network.plan(images=0)
    with pytest.raises(NotFoundError):
        Network.load(tmp_path / "none.ftn")
    pixels = np.zeros((3, 784), np.uint8)
    with pytest.raises(InvalidArgumentError, match="a label of the tuning images is 10"):
        network.save_task(tmp_path / "t.ftt", tuning=(pixels, [0, 1, 10]))
    with pytest.raises(InvalidArgumentError, match="pixels, not 3 times 784"):
        network.save_task(tmp_path / "t.ftt", tuning=(pixels[:2], [0, 1, 2]))
    assert list(tmp_path.iterdir()) == []
    # Labels that nothing reads may be left out.
    network.save_task(tmp_path / "t.ftt", tuning=(pixels, None))
    assert list(tmp_path.iterdir()) == [tmp_path / "t.ftt"]


def test_a_controller_runs_the_plans_it_may(network):
    given = images(4)
    ranges = network.calibrate(images(32))
    plans = [network.plan(images=4, layers={each.name: layer for each in network.layers},
                          ranges=ranges, measure_top=0) for layer in (Layer(), Layer("i8"))]
    wanted = [plan(given) for plan in plans]
    controller = Controller([(plans[0], 92.0), (plans[1], 91.0)], 1e12, expected_ns=[2e6, 1e6])
    assert controller.chosen is None and controller.history == [0, 0]
    assert controller.front == [1, 0] and controller.expected_ns == [2e6, 1e6]
    out = np.empty((4, 10), np.float32)
    for target, expected in ((1e12, 0), (1, 1), (1e12, 0)):
        controller.target_ns = target
        assert controller.target_ns == target
        for _ in range(5):
            controller(given, out=out)
            assert controller.chosen == expected
            np.testing.assert_array_equal(out, wanted[expected])
    assert controller.history == [10, 5] and controller.slowdown > 0
    measured = Controller([(plans[0], 92.0), (plans[1], 91.0)], 1e6)
    assert min(measured.expected_ns) > 0
    np.testing.assert_array_equal(measured(given), wanted[measured.chosen])
    other = network.plan(images=1, measure_top=0)
    for bad in ([], [(plans[0], float("nan"))], [(plans[0], 1), (other, 2)]):
        with pytest.raises(InvalidArgumentError):
            Controller(bad, 1e6)
    with pytest.raises(InvalidArgumentError):
        Controller([(plans[0], 1)], 1e6, expected_ns=[1, 2])
    with pytest.raises(InvalidArgumentError):
        controller.target_ns = -1
    with pytest.raises(InvalidArgumentError):
        controller(images(3))
