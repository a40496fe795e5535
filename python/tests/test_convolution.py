"""foretune.conv, its gradients and layers, compared with the definition in float64."""

import threading

import conv_formula
import foretune
import numpy as np
import pytest

RNG = np.random.default_rng(7)
# input, filter points, filters, then stride, padding, dilation and groups
CASES = [
    ((2, 11, 6), (3,), 8, (2,), (1,), (1,), 1),
    ((1, 17, 8), (4,), 4, (1,), (3,), (2,), 2),
    ((2, 9, 7, 12), (3, 3), 20, (2, 1), (1, 1), (1, 1), 2),
    ((1, 8, 8, 3), (1, 1), 5, (1, 1), (0, 0), (1, 1), 1),
    ((2, 10, 9, 16), (3, 2), 16, (1, 2), (2, 0), (2, 3), 16),
    ((1, 5, 6, 7, 4), (3, 1, 2), 6, (2, 1, 1), (1, 0, 1), (1, 1, 2), 2),
]


def draw(*shape):
    return (RNG.random(shape) - 0.5).astype(np.float32)


def operands(case):
    input_shape, points, filters, *moves = case
    x = draw(*input_shape)
    w = draw(filters, *points, input_shape[-1] // moves[-1])
    y = conv_formula.forward(x, w, *moves)
    return x, w, y, moves


def keywords(moves):
    return dict(zip(("stride", "padding", "dilation", "groups"), moves))


def close(result, exact):
    assert result.dtype == np.float32
    assert result.shape == exact.shape
    # Products are at most 1/4, and a sum has at most some hundred of them.
    np.testing.assert_allclose(result, exact, rtol=0, atol=2e-5)


@pytest.mark.parametrize("case", CASES)
def test_three_directions_are_the_definition(case):
    x, w, y, moves = operands(case)
    close(foretune.conv(x, w, **keywords(moves)), y)
    dy = draw(*y.shape)
    close(foretune.conv_input_gradient(dy, w, x.shape, **keywords(moves)),
          conv_formula.input_gradient(dy, w, x.shape, *moves))
    close(foretune.conv_weight_gradient(x, dy, w.shape[1:-1], **keywords(moves)),
          conv_formula.weight_gradient(x, dy, w.shape, *moves))


@pytest.mark.parametrize("case", CASES)
def test_epilogues_are_the_definition(case):
    x, w, y, moves = operands(case)
    b, add = draw(w.shape[0]), draw(*y.shape)
    layer = foretune.Convolution(w, b, **keywords(moves))
    with_relu = foretune.Convolution(w, b, relu=True, **keywords(moves))
    plain_relu = foretune.Convolution(w, relu=True, **keywords(moves))
    for _ in range(2):
        close(layer(x), y + b)
        close(with_relu(x), np.maximum(y + b, 0))
        close(with_relu(x, add=add), np.maximum(y + b + add, 0))
        close(plain_relu(x), np.maximum(y, 0))
    close(foretune.conv(x, w, b, **keywords(moves)), y + b)
    close(foretune.conv(x, w, relu=True, **keywords(moves)), np.maximum(y, 0))
    close(foretune.conv(x, w, b, relu=True, **keywords(moves)), np.maximum(y + b, 0))
    close(foretune.conv(x, w, b, relu=True, add=add, **keywords(moves)),
          np.maximum(y + b + add, 0))


def test_one_number_stands_for_all_axes():
    x, w = draw(1, 9, 9, 4), draw(6, 3, 3, 4)
    moves = (2, 2), (1, 1), (1, 1), 1
    close(foretune.conv(x, w, stride=2, padding=1), conv_formula.forward(x, w, *moves))


def test_arrays_with_gaps_are_copied_and_out_is_written():
    x, w = draw(1, 9, 9, 8)[..., ::2], draw(6, 3, 3, 4)
    exact = conv_formula.forward(x, w, (1, 1), (0, 0), (1, 1), 1)
    out = np.full((1, 7, 7, 6), np.nan, np.float32)
    assert foretune.conv(x, w, out=out) is out
    close(out, exact)
    layer = foretune.Convolution(w)
    w[:] = 0  # it has a copy
    out[:] = np.nan
    assert layer(x, out=out) is out
    close(out, exact)


def test_a_layer_serves_many_shapes():
    w = draw(4, 3, 3, 2)
    layer = foretune.Convolution(w, padding=1, threads=1)
    for size in [*range(3, 23), 3]:
        x = draw(1, size, 5, 2)
        close(layer(x), conv_formula.forward(x, w, (1, 1), (1, 1), (1, 1), 1))
    assert len(layer._layers) <= 16


def test_trials_find_a_config_and_the_next_dispatcher_knows_it(tmp_path):
    x, w = draw(1, 12, 12, 8), draw(16, 3, 3, 8)
    exact = conv_formula.forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    first = foretune.ConvDispatcher(threads=1, measure_top=3)
    problem = "conv n=1 c=8 k=16 hi=12 wi=12 y=3 x=3 pad_h=1 pad_w=1"
    assert not first.explain(problem).startswith("measured")
    for _ in range(10):
        close(foretune.conv(x, w, padding=1, dispatcher=first), exact)
    # Behind a semicolon stands the remark of a model that knows no such problem.
    found = first.explain(problem).split(";")[0]
    assert found.startswith("measured: isa=")
    assert first.save_trials(tmp_path / "trials.ftd") == 3
    second = foretune.ConvDispatcher(threads=1, choices=tmp_path / "trials.ftd")
    assert second.explain(problem) == found.replace("measured", "remembered")
    close(foretune.conv(x, w, padding=1, dispatcher=second), exact)


def test_a_model_of_trials_decides_problems_that_nobody_measured(tmp_path):
    measuring = foretune.ConvDispatcher(threads=1, measure_top=6)
    for channels in (4, 8, 12, 16):
        for size in (6, 10, 14):
            x, w = draw(1, size, size, channels), draw(16, 3, 3, channels)
            for _ in range(18):
                foretune.conv(x, w, padding=1, dispatcher=measuring)
    measuring.save_trials(tmp_path / "trials.ftd")
    model = foretune.train(foretune.Dataset.open(tmp_path / "trials.ftd"), trees=20, folds=2,
                           threads=1)
    model.save(tmp_path / "conv.ftm")
    x, w = draw(1, 9, 9, 8), draw(16, 3, 3, 8)
    exact = conv_formula.forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    for given in (model, tmp_path / "conv.ftm"):
        deciding = foretune.ConvDispatcher(threads=1, model=given)
        assert deciding.explain("conv n=1 c=8 k=16 hi=9 wi=9 y=3 x=3 pad_h=1 pad_w=1").startswith(
            "model: isa=")
        close(foretune.conv(x, w, padding=1, dispatcher=deciding), exact)


def test_a_model_of_another_family_is_refused(model):
    with pytest.raises(foretune.MismatchError, match="the model ranks configs of null"):
        foretune.ConvDispatcher(model=model)


def test_threads_may_share_a_layer():
    x, w = draw(1, 20, 20, 16), draw(16, 3, 3, 16)
    exact = conv_formula.forward(x, w, (1, 1), (1, 1), (1, 1), 1)
    layer = foretune.Convolution(w, padding=1)
    errors = []

    def work():
        try:
            for _ in range(20):
                close(layer(x), exact)
        except BaseException as error:  # noqa: BLE001  raised below
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


X, W = np.zeros((1, 9, 9, 4), np.float32), np.zeros((6, 3, 3, 4), np.float32)


@pytest.mark.parametrize(("call", "part"), [
    (lambda: foretune.conv(X.tolist(), W), "input is a NumPy array, not list"),
    (lambda: foretune.conv(X, W.astype(np.float64)), "weight is float64, and not float32"),
    (lambda: foretune.conv(X[0, 0, 0], W), "one to three spatial axes"),
    (lambda: foretune.conv(X, W[:, 0]), "the weight has 3 axes"),
    (lambda: foretune.conv(X, W, groups=2), "the weight has 4 channels in 2 groups"),
    (lambda: foretune.conv(X, W, groups=0), "groups is 0"),
    (lambda: foretune.conv(X, W, stride=0), "stride is 0"),
    (lambda: foretune.conv(X, W, stride=(1, 1, 1)), "stride has 3 numbers"),
    (lambda: foretune.conv(X, W, padding=-1), "padding is -1"),
    (lambda: foretune.conv(X, W, dilation="2"), "dilation is a whole number"),
    (lambda: foretune.conv(X, W, dilation=5), "does not fit"),
    (lambda: foretune.conv(X, W, np.zeros(5, np.float32)), "bias has the shape"),
    (lambda: foretune.conv(X, W, add=np.zeros((1, 7, 7, 6), np.float32)), "needs relu=True"),
    (lambda: foretune.conv(X, W, relu=True, add=X), "add has the shape"),
    (lambda: foretune.conv(X, W, out=np.zeros((1, 7, 7, 5), np.float32)), "out is float32"),
    (lambda: foretune.conv(X, W[:4], padding=1, out=X), "overlaps"),
    (lambda: foretune.conv(X, W, threads=0), "threads is 0"),
    (lambda: foretune.conv(X, W, threads=1000), "threads"),
    (lambda: foretune.conv(X, W, dispatcher=1), "dispatcher is a ConvDispatcher"),
    (lambda: foretune.conv(X, W, threads=1, dispatcher=foretune.ConvDispatcher()), "one of the two"),
    (lambda: foretune.conv_input_gradient(X, W, (1, 9, 9, 4)), "output_gradient has the shape"),
    (lambda: foretune.conv_input_gradient(X, W, 9), "input_shape is a sequence"),
    (lambda: foretune.conv_weight_gradient(X, X, (3,)), "the weight has 3 axes"),
    (lambda: foretune.conv_weight_gradient(X, X, (3, 3), groups=3), "no multiple of 3 groups"),
    (lambda: foretune.Convolution(W)(X.astype(np.float16)), "input is float16"),
    (lambda: foretune.ConvDispatcher(measure_top=-1), "measure_top is -1"),
])
def test_wrong_arguments_are_one_sentence(call, part):
    with pytest.raises(foretune.InvalidArgumentError) as caught:
        call()
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_types_without_kernels_are_refused_by_the_family():
    with pytest.raises(foretune.UnsupportedError, match="cpu-conv computes in f32"):
        foretune.conv(X.astype(np.float64), W.astype(np.float64))
    with pytest.raises(foretune.UnsupportedError, match="cpu-conv computes in f32"):
        foretune.Convolution(W.astype(np.float64))(X.astype(np.float64))
    with pytest.raises(foretune.UnsupportedError, match="int32"):
        foretune.conv(X.astype(np.int32), W.astype(np.int32))


def test_files_that_are_no_data_are_refused(tmp_path):
    (tmp_path / "wrong").write_text("no data")
    with pytest.raises(foretune.CorruptDataError):
        foretune.ConvDispatcher(choices=tmp_path / "wrong")
    with pytest.raises(foretune.Error):
        foretune.ConvDispatcher(model=tmp_path / "wrong")


def test_the_native_layer_checks_sizes():
    native = foretune.ConvDispatcher(threads=1)._native
    problem = "conv n=1 c=4 k=6 hi=9 wi=9 y=3 x=3"
    out = np.zeros((1, 7, 7, 6), np.float32)
    with pytest.raises(foretune.InvalidArgumentError, match="the weight has 10 elements"):
        native.run(problem, X, np.zeros(10, np.float32), None, None, None, out)
    with pytest.raises(foretune.InvalidArgumentError, match="the result has 10 elements"):
        native.run(problem, X, W, None, None, None, np.zeros(10, np.float32))
    layer = native.layer(problem + " weights=constant")
    with pytest.raises(foretune.InvalidArgumentError, match="not of the layer's shape"):
        layer.pack(np.zeros(10, np.float32))
    with pytest.raises(foretune.InvalidArgumentError, match="neither weights nor packed"):
        layer.run(X, None, None, None, out)
