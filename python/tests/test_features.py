"""Feature tables: listed, computed, and defined by expressions and by functions."""

import concurrent.futures
import math
import os
import pathlib
import subprocess
import sys

import foretune
import numpy as np
import pytest

QUICK = {"folds": 2, "threads": 1, "trees": 30}
PROBLEM = "gemm m=100 n=300 k=64"
CONFIGS = [{"block_m": 32, "block_n": 64, "block_k": 16, "unroll": 2},
           {"block_m": 64, "block_n": 64, "block_k": 32, "unroll": 1}]
EXPRESSIONS = {
    "tiles": "ceil_div(m, block_m) * ceil_div(n, block_n)",
    "log2_m": "log2(m)",
    "log2_work": "log2(m * n * k)",
    "share": "m / round_up(m, block_m)",
    "unroll": "unroll",
}
# The values of these features for the problem and the configs above, in the order of their kinds.
EXPECTED = np.array([[math.log2(100), math.log2(100 * 300 * 64), 2, 4 * 5, 100 / 128],
                     [math.log2(100), math.log2(100 * 300 * 64), 1, 2 * 5, 100 / 128]], np.float32)


def pair_features(problem, configs, hardware):
    assert hardware["cores"] >= 0 and problem["dtype"] == "f32"
    return {"tiles": np.ceil(problem["m"] / configs["block_m"]),
            "volume": configs["block_m"] * configs["block_n"] * configs["block_k"]}


def problem_features(problem, hardware):
    return [math.log2(problem[size]) for size in "mnk"]


COLUMNS = [foretune.Feature("tiles"), foretune.Feature("volume", description="elements of a block"),
           *[foretune.Feature(f"log2_{size}", kind="problem") for size in "mnk"]]


@pytest.fixture
def by_functions(training, request):
    """Registers a table of functions under the name of the test."""

    def register(function=pair_features, problem_function=problem_features, features=COLUMNS):
        return foretune.register_features(
            request.node.name, problem_type="gemm", parameters=training, features=features,
            function=function, problem_function=problem_function)

    return register


def command_line(*arguments):
    """Runs the command line of this build; skips where there is none."""
    path = pathlib.Path(foretune.__file__).parents[2] / "tools" / "foretune" / "foretune"
    if not path.exists():
        pytest.skip("the command line is not built")
    return subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60)


def elsewhere(code, *arguments):
    """Runs the code in a process that registered nothing."""
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True,
                          text=True, timeout=60, env=os.environ)


def test_tables_are_listed_with_what_they_describe():
    tables = {table.name: table for table in foretune.feature_tables()}
    cpu = tables["gemm-cpu"]
    assert cpu.id == 4572547745254685475 and cpu.definition == ""
    assert ("gemm", "cpu-gemm") in [(fit.problem_type, fit.config_schema) for fit in cpu.fits]
    assert cpu.fits[0].parameters[0] == "isa"
    assert len(cpu.features) == 20 + 18 + 24
    assert [f.kind for f in cpu.features].index("config") == 20
    assert cpu.features[0] == foretune.Feature("log2_m", description="log2 of the rows of C",
                                               kind="problem")
    assert any(feature.may_be_missing for feature in cpu.features)
    assert any(feature.is_categorical for feature in tables["gemm-ck"].features)
    assert ("conv", "ck-grouped-conv") in [(fit.problem_type, fit.config_schema)
                                           for fit in tables["grouped-conv"].fits]
    with pytest.raises(foretune.NotFoundError, match="no feature table 'gemm-gpu'; there are .*gemm-cpu"):
        foretune.feature_table("gemm-gpu")


def test_rows_are_problems_times_configs_or_pairs(training):
    table = foretune.feature_table("gemm-null")
    problems, configs = training.problems[:3], training.configs[:4]
    values = table.compute(problems, configs, training)
    assert values.shape == (3, 4, len(table.features)) and values.dtype == np.float32
    names = [feature.name for feature in table.features]
    sizes = [int(dict(word.split("=") for word in text.split()[1:])["m"]) for text in problems]
    np.testing.assert_allclose(values[:, 0, names.index("log2_m")], np.log2(sizes), rtol=1e-6)
    pairs = table.compute(problems, configs[:3], training, pairs=True)
    np.testing.assert_array_equal(pairs, values[range(3), range(3)])
    assert table.compute([], configs).shape == (0, 4, len(names))
    assert table.compute(problems, []).shape == (3, 0, len(names))


def test_features_depend_on_the_device_and_missing_ones_are_nan(training):
    table = foretune.feature_table("gemm-triton")
    config = "block_m=64 block_n=64 block_k=32 group_m=8 num_stages=3 num_warps=4"
    cores = [feature.name for feature in table.features].index("cores")
    assert table.compute(PROBLEM, config, "h200")[0, 0, cores] == 132
    assert table.compute(PROBLEM, config)[0, 0, cores] == len(os.sched_getaffinity(0))
    cpu = foretune.feature_table("gemm-cpu")
    config = ("isa=avx512 kernel=outer mr=6 nr=64 pack_a=yes pack_b=yes mc=64 nc=256 kc=256 order=mkn "
              "unroll=1 prefetch=8 threads=1 split=m")
    missing = np.isnan(cpu.compute(PROBLEM, config)[0, 0])
    assert [f.name for f, is_nan in zip(cpu.features, missing) if is_nan] == [
        f.name for f in cpu.features if f.may_be_missing]


def test_mistakes_in_questions_are_one_sentence(training):
    table = foretune.feature_table("gemm-null")
    with pytest.raises(foretune.MismatchError, match="describes no configs of conv problems"):
        table.compute("conv n=1 c=8 k=8 hi=8 wi=8 y=3 x=3", CONFIGS[0])
    with pytest.raises(foretune.InvalidArgumentError, match="lacks|missing|unroll"):
        table.compute(PROBLEM, "block_m=32 block_n=32 block_k=32")
    with pytest.raises(foretune.InvalidArgumentError, match="1 problems and 2 configs are no pairs"):
        table.compute(PROBLEM, CONFIGS, pairs=True)
    with pytest.raises(foretune.NotFoundError, match="h2000"):
        table.compute(PROBLEM, CONFIGS, "h2000")


def test_expressions_are_computed_in_real_numbers(training, request):
    table = foretune.register_features(request.node.name, problem_type="gemm", parameters=training,
                                       features=EXPRESSIONS)
    assert [(f.name, f.kind) for f in table.features] == [
        ("log2_m", "problem"), ("log2_work", "problem"), ("unroll", "config"), ("tiles", "both"),
        ("share", "both")]
    assert table.features[3].expression == EXPRESSIONS["tiles"]
    np.testing.assert_array_equal(table.compute(PROBLEM, CONFIGS)[0], EXPECTED)
    again = foretune.register_features(request.node.name, problem_type="gemm", parameters=training,
                                       features=EXPRESSIONS)
    assert again == table
    with pytest.raises(foretune.InvalidArgumentError, match="there is a feature table .* already"):
        foretune.register_features(request.node.name, problem_type="gemm", parameters=training,
                                   features={"log2_m": "log2(n)"})


def test_models_carry_their_expressions(tmp_path, training, validation):
    foretune.register_features("carried", problem_type="gemm", parameters=training,
                               features=EXPRESSIONS)
    model = foretune.train(training, features="carried", **QUICK)
    assert model.info["feature_table"] == "carried" and model.metrics["mean_efficiency"] > 0.3
    path = tmp_path / "carried.ftm"
    model.save(path)
    problem = validation.problems[0]
    choice = foretune.select(model, problem)
    code = ("import sys, foretune; print(foretune.select(sys.argv[1], sys.argv[2]).config); "
            "print('carried' in [t.name for t in foretune.feature_tables()])")
    there = elsewhere(code, path, problem)
    assert there.stdout.splitlines() == [choice.config, "False"], there.stderr
    assert foretune.Model.open(path).to_bytes() == model.to_bytes()
    assert command_line("inspect", path).returncode == 0
    predicted = command_line("predict", "--model", path, problem)
    assert predicted.returncode == 0 and choice.config in predicted.stdout, predicted.stderr


def test_two_models_may_have_tables_of_one_name(tmp_path, training):
    code = """
import sys, foretune
data = foretune.Dataset.open(sys.argv[1])
foretune.register_features("same", problem_type="gemm", parameters=data, features={"x": sys.argv[3],
                           "tiles": "ceil_div(m, block_m)"})
foretune.train(data, features="same", folds=2, threads=1, trees=20).save(sys.argv[2])
"""
    data = tmp_path / "train.ftd"
    training.save(data)
    for name, expression in (("a", "log2(m)"), ("b", "log2(n)")):
        done = elsewhere(code, data, tmp_path / name, expression)
        assert done.returncode == 0, done.stderr
    for name in "ab":
        assert foretune.Selector(tmp_path / name).select(PROBLEM).config


def test_functions_train_select_and_evaluate(tmp_path, training, validation, by_functions, request):
    table = by_functions()
    assert [feature.name for feature in table.features] == ["log2_m", "log2_n", "log2_k", "tiles",
                                                           "volume"]
    np.testing.assert_allclose(
        table.compute(PROBLEM, CONFIGS)[0],
        [[math.log2(100), math.log2(300), 6, 4, 32 * 64 * 16],
         [math.log2(100), math.log2(300), 6, 2, 64 * 64 * 32]], rtol=1e-6)
    model = foretune.train(training, features=request.node.name, **QUICK)
    assert foretune.evaluate(model, validation, training).mean_efficiency > 0.3
    selector = foretune.Selector(model)
    problems = validation.problems
    alone = [selector.select(problem) for problem in problems]
    fresh = foretune.Selector(model)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fresh.select, problems * 4)) == alone * 4
    assert selector.rank(problems[0])[0][0] == alone[0].config or not alone[0].picked
    path = tmp_path / "model.ftm"
    model.save(path)
    assert foretune.select(path, problems[0]) == alone[0]


def test_a_model_says_which_table_it_lacks(tmp_path, training, by_functions, request):
    by_functions()
    path = tmp_path / "model.ftm"
    foretune.train(training, features=request.node.name, **QUICK).save(path)
    sentence = (f"the model needs the feature table '{request.node.name}', which is not known here: "
                "load the plug-in that has it, or, in Python, call foretune.register_features() first")
    done = elsewhere("""
import sys, foretune
try:
    foretune.Model.open(sys.argv[1])
except foretune.NotFoundError as error:
    print(error)
""", path)
    assert done.stdout.strip() == sentence, done.stderr
    refused = command_line("predict", "--model", path, PROBLEM)
    assert refused.returncode != 0 and sentence in refused.stderr


def test_exceptions_of_functions_reach_the_caller(training, by_functions, request):
    calls = []

    def fails(problem, configs, hardware):
        calls.append(problem)
        raise KeyError("tile")

    table = by_functions(fails)
    with pytest.raises(KeyError, match="tile"):
        table.compute(PROBLEM, CONFIGS)
    calls.clear()
    with pytest.raises(KeyError, match="tile"):
        foretune.train(training, features=request.node.name, **QUICK)
    assert len(calls) == 1


@pytest.mark.parametrize(("said", "message"), [
    ([1, 2, 3], r"returned an array of shape \(3,\) instead of \(2, 2\)"),
    ({"tiles": 1}, "leaves out volume"),
    ({"tiles": np.nan, "volume": 1}, "the feature tiles of .* is no finite number"),
])
def test_answers_of_another_form_are_refused(by_functions, said, message):
    table = by_functions(lambda problem, configs, hardware: said)
    with pytest.raises(foretune.InvalidArgumentError, match=message):
        table.compute(PROBLEM, CONFIGS)


def test_missing_values_are_nan(by_functions):
    table = by_functions(lambda *_: np.array([[np.nan], [2]]), None,
                         [foretune.Feature("maybe", may_be_missing=True)])
    np.testing.assert_array_equal(table.compute(PROBLEM, CONFIGS)[0], [[np.nan], [2]])


@pytest.mark.parametrize(("options", "error", "message"), [
    ({"features": {"a": "blok_m"}}, foretune.InvalidArgumentError,
     r"the column a: expression 'blok_m', position 1: .*did you mean 'block_m'"),
    ({"features": {}}, foretune.InvalidArgumentError, "1 to 4096 columns"),
    ({"problem_type": "gem"}, foretune.NotFoundError, "there is no problem type 'gem'"),
    ({"name": "two words"}, foretune.InvalidArgumentError, "a name with blanks"),
    ({"features": COLUMNS, "function": pair_features}, foretune.InvalidArgumentError,
     "features of kind 'problem' and no function"),
    ({"features": [foretune.Feature("a", kind="config")], "function": pair_features},
     foretune.InvalidArgumentError, "has the kind 'config'"),
    ({"features": [foretune.Feature("a"), foretune.Feature("a")], "function": pair_features},
     foretune.InvalidArgumentError, "features of different names"),
])
def test_mistakes_in_definitions_are_one_sentence(options, error, message):
    with pytest.raises(error, match=message):
        foretune.register_features(**{
            "name": "wrong", "problem_type": "gemm", "features": {"a": "m"},
            "parameters": ["block_m", "block_n", "block_k", "unroll"], **options})


def test_a_table_of_other_parameters_does_not_train(training, request):
    foretune.register_features(request.node.name, problem_type="gemm", parameters={"order": ["x", "y"]},
                               features={"is_y": "order == order.y"})
    with pytest.raises(foretune.MismatchError, match="other parameters"):
        foretune.train(training, features=request.node.name, **QUICK)
