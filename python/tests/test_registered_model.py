"""foretune.register_model without torch: layers of other frameworks, and callables."""

import concurrent.futures
import gc
import subprocess
import sys
import weakref

import foretune
import numpy as np
import pytest
from conftest import forward

SENTENCE = ("models of kind 'function' call back into the program that trained them: they can be "
            "evaluated, but neither stored nor selected with")
QUICK = {"folds": 3, "threads": 1}


@pytest.fixture
def trained(training, request):
    """Trains with a function, registered under a name unique to the test."""

    def train(fit, dataset=training, **options):
        trained.count += 1
        name = f"{request.node.name}-{trained.count}"
        foretune.register_model(name, fit)
        return foretune.train(dataset, model_type=name, **{**QUICK, **options})

    trained.count = 0
    return train


def ridge(rows):
    """Fits a linear function of the inputs by weighted least squares."""
    ones = np.ones((len(rows.target), 1))
    x = np.hstack([rows.inputs, ones]).astype(np.float64)
    scaled = x * rows.weight[:, None].astype(np.float64)
    return np.linalg.solve(scaled.T @ x + 1e-3 * np.eye(x.shape[1]), scaled.T @ rows.target)


def linear_layers(rows):
    slopes = ridge(rows)
    return [("linear", slopes[None, :-1], slopes[-1:])]


def residual_layers(rows):
    rng = np.random.default_rng(rows.seed)

    def linear(inputs, outputs):
        return ("linear", rng.normal(0, inputs**-0.5, (outputs, inputs)), rng.normal(0, 0.1, outputs))

    norm = ("batch_norm", rng.normal(1, 0.1, 8), rng.normal(0, 0.1, 8), rng.normal(0, 0.1, 8),
            rng.uniform(0.5, 2, 8), 1e-5)
    return [linear(rows.inputs.shape[1], 8), ("relu",), norm,
            ("begin_block",), linear(8, 8), ("relu",), norm, linear(8, 8), ("end_block",),
            ("relu",), linear(8, 1)]


def scores_in_order(model, dataset):
    """Returns the scores of all rows, grouped by problem, in the order of a fit on all data."""
    data = dataset.merge()
    out = []
    for row in np.argsort(data.problem_ids, kind="stable"):
        problem, config = data.problems[data.problem_ids[row]], data.configs[data.config_ids[row]]
        out.append(np.log(1 / foretune.Predictor(model).predict(problem, [config])[0]))
    return np.array(out)


def test_layers_become_a_network_that_is_stored_and_selects(tmp_path, training, trained, validation):
    seen = []

    def fit(rows):
        seen.append(rows)
        return linear_layers(rows)

    model = trained(fit)
    assert [rows.stage for rows in seen] == ["fold 1 of 3", "fold 2 of 3", "fold 3 of 3", "all data"]
    assert model.info["kind"] == "network" and 0.3 < model.metrics["mean_efficiency"] <= 1
    assert model.card["architecture"].startswith("test_layers_become")
    assert np.isfinite(model.held_out_scores).all()
    model.save(tmp_path / "mine.ftm")
    read = foretune.Model.open(tmp_path / "mine.ftm")
    assert read.to_bytes() == model.to_bytes()
    problem = validation.problems[0]
    assert foretune.select(tmp_path / "mine.ftm", problem) == foretune.select(model, problem)
    assert foretune.evaluate(model, validation, training).mean_efficiency > 0.3


def test_residual_layers_say_what_they_mean_of_every_row(training, trained):
    seen = []

    def fit(rows):
        layers = residual_layers(rows)
        seen.append((rows, layers))
        return layers

    model = trained(fit, folds=0)
    rows, layers = seen[0]
    np.testing.assert_allclose(scores_in_order(model, training), forward(layers, rows.inputs),
                               rtol=1e-4, atol=1e-4)


def test_training_rows_are_those_of_other_folds_and_standardised(training, trained):
    seen = []

    def fit(rows):
        seen.append(rows)
        return lambda inputs: np.zeros(len(inputs))

    trained(fit, seed=7)
    assert sum(len(rows.target) for rows in seen[:3]) == 2 * len(seen[3].target)
    for rows in seen:
        count, columns = rows.inputs.shape
        assert rows.inputs.dtype == rows.target.dtype == rows.weight.dtype == np.float32
        assert rows.censored.dtype == np.bool_ and rows.seed == 7
        assert len(rows.columns) == columns == len(set(rows.columns))
        for values in (rows.target, rows.weight, rows.problem, rows.censored):
            assert values.shape == (count,)
        assert (np.diff(rows.problem) >= 0).all() and rows.problem[0] == 0
        for problem in np.unique(rows.problem):
            assert rows.target[rows.problem == problem].min() == 0
        one_value = np.array(["=" in name for name in rows.columns])
        assert np.isin(rows.inputs[:, one_value], (0, 1)).all()
        np.testing.assert_allclose(rows.inputs[:, ~one_value].mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(rows.inputs[:, ~one_value].std(axis=0), 1, atol=1e-3)


def test_a_callable_is_evaluated_and_neither_stored_nor_selected_with(tmp_path, training, validation,
                                                                     trained):
    def fit(rows):
        slopes = ridge(rows)
        return lambda inputs: inputs @ slopes[:-1] + slopes[-1]

    model = trained(fit)
    as_layers = trained(linear_layers)
    assert model.info["kind"] == "function"
    assert model.metrics["mean_efficiency"] == pytest.approx(as_layers.metrics["mean_efficiency"],
                                                             abs=1e-3)
    np.testing.assert_allclose(model.held_out_scores, as_layers.held_out_scores, atol=1e-4)
    assert (foretune.evaluate(model, validation, training).mean_efficiency == pytest.approx(
        foretune.evaluate(as_layers, validation, training).mean_efficiency, abs=1e-3))
    problem, configs = validation.problems[0], validation.configs[:9]
    predictor = foretune.Predictor(model)
    np.testing.assert_allclose(predictor.predict(problem, configs),
                               foretune.Predictor(as_layers).predict(problem, configs), rtol=1e-4)
    assert len(predictor.rank_kernels(problem, configs)) == len(configs)
    for refused in (lambda: model.save(tmp_path / "mine.ftm"), model.to_bytes,
                    lambda: foretune.Selector(model), lambda: foretune.select(model, problem),
                    lambda: model.predict(problem), lambda: predictor.rank_kernels(problem)):
        with pytest.raises(foretune.UnsupportedError) as caught:
            refused()
        assert str(caught.value) == SENTENCE
    assert not (tmp_path / "mine.ftm").exists()


def test_the_target_log_is_the_logarithm_of_nanoseconds(training, trained):
    seen = []

    def fit(rows):
        seen.append(rows)
        return linear_layers(rows)

    model = trained(fit, target="log", folds=0)
    assert model.info["target"] == "log" and foretune.Predictor(model).unit == "tflops"
    assert sorted(seen[0].target) == pytest.approx(sorted(np.log(training.time_ns)), rel=1e-5)


def test_several_metrics_are_learned_by_layers_and_by_callables(tmp_path, training, trained):
    model = trained(linear_layers, metrics=["time_ns"])
    model.save(tmp_path / "metrics.ftm")
    assert foretune.Selector(model).select(training.problems[0]).config
    function = trained(lambda rows: lambda inputs: np.full(len(inputs), rows.target.mean()),
                       metrics=["time_ns"])
    assert function.info["kind"] == "metrics"
    for refused in (function.to_bytes, lambda: function.save(tmp_path / "no.ftm"),
                    lambda: foretune.Selector(function)):
        with pytest.raises(foretune.UnsupportedError, match="neither stored nor selected"):
            refused()


class Odd(Exception):
    """Raised by a user's function."""


def test_exceptions_arrive_as_they_were_raised(training, validation, trained):
    def fit(rows):
        raise Odd("of the fit")

    with pytest.raises(Odd, match="of the fit"):
        trained(fit)

    def failing(inputs):
        raise Odd("of the callable")

    with pytest.raises(Odd, match="of the callable"):
        trained(lambda rows: failing)
    model = trained(lambda rows: failing, folds=0)
    with pytest.raises(Odd, match="of the callable"):
        foretune.evaluate(model, validation, training)
    with pytest.raises(Odd, match="of the callable"):
        foretune.Predictor(model).predict(validation.problems[0], validation.configs[:3])

    def interrupted(rows):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(interrupted)


def test_progress_is_told_before_every_fit_and_may_stop_it(trained):
    stages = []

    def watch(progress):
        stages.append(progress["stage"])
        if len(stages) == 2:
            raise StopIteration

    with pytest.raises(StopIteration):
        trained(linear_layers, progress=watch)
    assert stages == ["fold 1 of 3", "fold 2 of 3"]


@pytest.mark.parametrize("returned, sentence", [
    (None, "returned NoneType, which is neither"),
    (3.5, "returned float"),
    ([], "make no network: there is no linear layer"),
    ([("softmax",)], "layer 0 of '.*' is none of linear, relu"),
    (["linear"], "is none of"),
    ([("linear", [[1.0]])], "has 1 values instead of 2"),
    ([("batch_norm", [1], [1], [1], [1])], "has 4 values instead of 5"),
    ([("linear", "weight", [0.0])], "no array"),
    ([("linear", [1.0], [0.0])], "of 1 dimensions instead of 2"),
    ([("linear", [[1.0, 2.0]], [0.0])], "a row has .* inputs and wants 1"),
    ([("linear", [[1.0, 2.0]], [0.0, 1.0])], "lengths"),
    ([("linear", [[np.nan]], [0.0])], "no number"),
    (lambda inputs: np.zeros((len(inputs), 2)), r"shape \(\d+, 2\) for \d+ rows"),
    (lambda inputs: np.zeros(3), "an array of shape"),
    (lambda inputs: np.full(len(inputs), np.nan), "no number"),
])
def test_what_makes_no_sense_is_refused_in_a_sentence(trained, returned, sentence):
    with pytest.raises(foretune.InvalidArgumentError, match=sentence) as caught:
        trained(lambda rows: returned)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"target": "auto"}, {"objective": "lambdarank"},
                                     {"objective": "regret"}, {"forests": 3}])
def test_options_of_trees_are_refused(trained, options):
    with pytest.raises(foretune.InvalidArgumentError, match="for boosted trees|only with --model-type gbdt"):
        trained(linear_layers, **options)


def test_blocks_in_blocks_are_refused(trained):
    def fit(rows):
        stem, *_ = residual_layers(rows)
        return [stem, ("begin_block",), ("begin_block",), ("relu",), ("end_block",), ("end_block",)]

    with pytest.raises(foretune.UnsupportedError, match="a block inside a block"):
        trained(fit)


def test_names_are_given_once():
    foretune.register_model("test-twice", linear_layers, "of a test")
    for taken in ("test-twice", "gbdt", "deep"):
        with pytest.raises(foretune.InvalidArgumentError, match=f"'{taken}' already"):
            foretune.register_model(taken, linear_layers)
    with pytest.raises(foretune.InvalidArgumentError, match="needs a name"):
        foretune.register_model("", linear_layers)
    with pytest.raises(foretune.InvalidArgumentError, match="a function, not int"):
        foretune.register_model("test-int", 3)


def test_threads_train_and_ask_at_once(training, validation, trained):
    def run(seed):
        return trained(lambda rows: lambda inputs: inputs @ np.full(inputs.shape[1], rows.seed), seed=seed)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        models = [run(1), run(2)]
        predictors = [foretune.Predictor(model) for model in models]
        asked = [pool.submit(predictors[i % 2].predict, validation.problems[0],
                             validation.configs[:50]) for i in range(16)]
        told = [future.result() for future in asked]
    for i in range(2, 16):
        np.testing.assert_array_equal(told[i], told[i - 2])
    assert (told[0] != told[1]).any()


def test_a_callable_goes_with_its_model(trained):
    class Function:
        def __call__(self, inputs):
            return np.zeros(len(inputs))

    function = Function()
    gone = weakref.ref(function)
    made = [function]
    model = trained(lambda rows: made[0], folds=0)
    del function
    made.clear()
    assert gone() is not None
    del model
    gc.collect()
    assert gone() is None


def test_a_program_that_holds_such_a_model_ends_cleanly(tmp_path, training):
    training.save(tmp_path / "train.ftd")
    code = ("import sys, foretune, numpy\n"
            "foretune.register_model('mine', lambda rows: lambda x: numpy.zeros(len(x)))\n"
            "model = foretune.train(foretune.Dataset.open(sys.argv[1]), model_type='mine')\n")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "train.ftd")], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
