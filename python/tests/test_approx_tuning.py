"""foretune.approx's tuner without PyTorch: searches, models, tables, files and programs."""

import json
import logging
import subprocess
import sys

import foretune
import numpy as np
import pytest
from approx_samples import batches_of, lenet
from conftest import ROOT
from foretune import approx
from foretune.approx import (ApproxApp, ApproxKnob, CommandApp, LinearCostModel, ModeledApp,
                             QoSModelP1, QoSModelP2, TorchApp, ValConfig)
from foretune.approx._models import TableStore
from foretune.networks import Layer
from network_samples import needs_onnx

KNOBS = {"121", "124", "127", "235"}


class Fast(ApproxKnob):
    """A knob with a speed and a loss of its own."""

    def __init__(self, name, speedup, loss):
        super().__init__(name, exp_speedup=speedup)
        self.loss = loss


class Int8(ApproxKnob):
    def is_applicable(self, operation, network):
        return operation.kind in ("conv", "linear"), "no layer"

    def layer(self, reference=False):
        return Layer("i8")


class Table(ModeledApp):
    """Outputs of two numbers for each of 8 images, moved by knobs; it counts its runs."""

    def __init__(self, ops=4, fail_after=None, storage=None):
        knobs = [Fast("exact", 1.0, 0.0), Fast("a", 1.5, 0.5), Fast("b", 2.0, 1.5),
                 Fast("c", 3.0, 4.0)]
        knobs[0]._baseline_priority = 1
        super().__init__({f"op{i}": knobs for i in range(ops)})
        self.runs, self.fail_after, self.storage = 0, fail_after, storage

    name = "table"

    def outputs(self, approxes):
        if self.fail_after is not None and self.runs >= self.fail_after:
            raise KeyboardInterrupt
        self.runs += 1
        chosen = self.add_baseline_to_knobs(approxes)
        lost = sum((1 + place) * next(k for k in self.op_knobs[op] if k.name == knob).loss
                   for place, (op, knob) in enumerate(chosen.items()))
        return np.array([[100.0 - lost, image] for image in range(8)], np.float32)

    def quality(self, outputs):
        return float(outputs[:, 0].mean())

    def empirical_measure_qos_cost(self, with_approxes, is_test):
        cost = self.init_model("cost_linear").measure_cost(with_approxes)
        return self.quality(self.outputs(with_approxes)) - is_test, cost

    def get_models(self):
        return [LinearCostModel(self, dict.fromkeys(self.ops, 10.0),
                                {knob.name: knob.expected_speedup for knob in self.knobs}),
                QoSModelP1(self, self.outputs, self.quality, self.storage),
                QoSModelP2(self, self.storage)]


class Plain(ApproxApp):
    name = "plain"

    def measure_qos_cost(self, with_approxes, is_test):
        count = sum(knob == "fast" for knob in with_approxes.values())
        return 10.0 - count, 8.0 - 2 * count


@pytest.fixture(scope="module")
def network():
    return lenet()


@pytest.fixture(scope="module")
def data(network):
    return batches_of(network, 72, 1), batches_of(network, 40, 2)


def torch_app(network, data, folder=None, knobs=None):
    chosen = knobs or [each for each in approx.get_knobs_from_file() if each.name in KNOBS | {"11"}]
    return TorchApp("lenet", network, *data, chosen, approx.accuracy, model_storage_folder=folder)


def test_an_application_of_ones_own_is_tuned():
    app = Plain({"x": [ApproxKnob("fast")], "y": [ApproxKnob("slow")], "z": []})
    assert app.ops == ["x", "y", "z"] and app.baseline_knob.name == "__baseline__"
    assert [knob.name for knob in app.knobs] == ["__baseline__", "fast", "slow"]
    assert app.add_baseline_to_knobs({"x": "fast"}) == {
        "x": "fast", "y": "__baseline__", "z": "__baseline__"}
    tuner = app.get_tuner()
    best = tuner.tune(50, 8.5)
    assert [(each.qos, each.cost, each.test_qos) for each in best] == [
        (10.0, 1.0, 10.0), (9.0, 0.75, 9.0)]
    assert best[1].speedup == pytest.approx(4 / 3)
    assert len(tuner.all_configs) == 4  # all there are


def test_models_agree_with_a_direct_computation():
    app, rng = Table(), np.random.default_rng(3)
    names = [knob.name for knob in app.op_knobs["op0"]]
    for _ in range(20):
        chosen = {op: str(rng.choice(names)) for op in app.ops}
        exact = app.quality(app.outputs(chosen))
        speedups = [next(k for k in app.knobs if k.name == name).expected_speedup
                    for name in chosen.values()]
        cost = sum(10.0 / speedup for speedup in speedups)
        # Quality is a linear function of the output here, so both models are exact.
        for model in ("qos_p1", "qos_p2"):
            assert app.measure_qos_cost(chosen, False, model, "cost_linear") == pytest.approx(
                (exact, cost), abs=1e-2)


def test_p1_adds_changes_and_p2_adds_qualities():
    class Curved(Table):
        def quality(self, outputs):
            return float(np.square(outputs[:, 0]).mean())

    app = Curved(ops=2)
    base, a, b = (app.outputs(knobs) for knobs in ({}, {"op0": "a"}, {"op1": "b"}))
    chosen = {"op0": "a", "op1": "b"}
    assert app.measure_qos_cost(chosen, False, "qos_p1", "cost_linear")[0] == pytest.approx(
        app.quality(base + (a - base) + (b - base)))
    assert app.measure_qos_cost(chosen, False, "qos_p2", "cost_linear")[0] == pytest.approx(
        app.quality(a) + app.quality(b) - app.quality(base))


@pytest.mark.parametrize("model", ["qos_p1", "qos_p2"])
def test_an_interrupted_fill_goes_on(tmp_path, model):
    first = Table(fail_after=5, storage=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        first.init_model(model)
    second = Table(storage=tmp_path)
    second.init_model(model)
    assert second.runs == 1 + 4 * 3 - 5
    third = Table(storage=tmp_path)
    third.init_model(model)
    assert third.runs == 0
    chosen = {"op0": "b", "op3": "a"}
    assert (third.measure_qos_cost(chosen, False, model, "cost_linear")
            == Table().measure_qos_cost(chosen, False, model, "cost_linear"))


def test_tables_are_small_and_damaged_ones_are_filled_again(tmp_path):
    app = Table(storage=tmp_path)
    app.init_model("qos_p1")
    files = sorted(tmp_path.glob("p1-*/*.npy"))
    assert len(files) == 13
    assert sorted({str(np.load(file).dtype) for file in files}) == ["float16", "float32"]
    files[0].write_bytes(b"nothing")
    again = Table(storage=tmp_path)
    again.init_model("qos_p1")
    assert again.runs == 1


def test_a_table_of_others_is_not_used(tmp_path):
    ours, theirs = TableStore(tmp_path, "p1", "ours"), TableStore(tmp_path, "p1", "theirs")
    ours.write("entry", np.ones(3))
    assert theirs.read("entry") is None and ours.read("entry").shape == (3,)


@pytest.mark.parametrize("strategy", ["evolution", "de", "local", "annealing", "random"])
def test_the_same_seed_finds_the_same(strategy):
    found = []
    for seed in (5, 5, 6):
        tuner = Table(ops=8).get_tuner()
        tuner.tune(60, 20.0, is_threshold_relative=True, cost_model="cost_linear",
                   qos_model="qos_p2", seed=seed, strategy=strategy)
        found.append([each.knobs for each in tuner.all_configs])
    assert found[0] == found[1] != found[2]


def test_thresholds_hold_and_are_lexicographic():
    tuner = Table(ops=8).get_tuner()
    tuner.tune(300, 10.0, 15.0, is_threshold_relative=True, cost_model="cost_linear",
               qos_model="qos_p1")
    assert tuner.baseline_tune_qos == 100.0 and tuner.baseline_test_qos == 99.0
    assert all((each in tuner.kept_configs) == (each.qos >= 85.0) for each in tuner.all_configs)
    assert len(tuner.all_configs) == 301 and 20 < len(tuner.kept_configs) < 300
    within = [each for each in tuner.best_configs if each.qos >= 90.0]
    # The exact optimum, from all 65536 choices.
    loss, cost = np.zeros(1), np.zeros(1)
    for place in range(8):
        loss = np.add.outer(loss, [0.0, *np.multiply(1 + place, [0.5, 1.5, 4.0])]).ravel()
        cost = np.add.outer(cost, [1.0, 1 / 1.5, 1 / 2.0, 1 / 3.0]).ravel()
    optimum = 8 / cost[loss <= 10.0].min()
    assert 0.93 * optimum < max(each.speedup for each in within) <= optimum + 1e-9
    assert all(each.validated_qos == pytest.approx(each.qos, abs=0.05)
               and each.test_qos == pytest.approx(each.validated_qos - 1.0)
               for each in tuner.best_configs)
    for each in tuner.best_configs:
        assert not any(other.qos >= each.qos and other.cost < each.cost
                       for other in tuner.kept_configs)


def test_take_best_n_is_exact():
    for count in (1, 2, 5, 17, 10000):
        tuner = Table(ops=8).get_tuner()
        tuner.tune(200, 20.0, is_threshold_relative=True, take_best_n=count, test_configs=False,
                   cost_model="cost_linear")
        assert len(tuner.best_configs_prefilter) == min(count, len(tuner.kept_configs))
        assert len(tuner.best_configs) == len(tuner.best_configs_prefilter)
        assert all(each.test_qos is None for each in tuner.best_configs)


def test_the_best_are_measured_once_more():
    class Lucky(Table):
        asked = 0

        def measure_cost(self, with_approxes, is_test):
            self.asked += 1
            return 20.0

    tuner = Lucky().get_tuner()
    best = tuner.tune(30, 10.0, is_threshold_relative=True)
    others = [each for each in best if each is not tuner.all_configs[0]]
    assert others and tuner.app.asked == len(others)
    assert {each.cost for each in others} == {0.5} and tuner.all_configs[0].cost == 1.0


def test_no_choice_is_good_enough():
    tuner = Table().get_tuner()
    assert tuner.tune(20, 1000.0, cost_model="cost_linear", take_best_n=3) == []
    assert tuner.kept_configs == [] and len(tuner.all_configs) == 21


def test_a_threshold_of_zero_is_one():
    tuner = Table().get_tuner()
    tuner.tune(50, 5.0, 0.0, is_threshold_relative=True, cost_model="cost_linear")
    assert {each.qos for each in tuner.kept_configs} == {100.0}


def test_three_hundred_operations():
    tuner = Table(ops=300).get_tuner()
    tuner.tune(100, 500.0, is_threshold_relative=True, cost_model="cost_linear")
    assert max(each.speedup for each in tuner.best_configs) > 1.0


@pytest.fixture
def tuned():
    tuner = Table().get_tuner()
    tuner.tune(60, 10.0, is_threshold_relative=True, cost_model="cost_linear", qos_model="qos_p1")
    return tuner


def test_json_round_trip(tuned, tmp_path):
    path = tmp_path / "deep" / "configs.json"
    tuned.dump_configs(path)
    assert approx.load_configs(path) == tuned.best_configs
    tuned.dump_configs(str(path), best_only=False)
    assert approx.load_configs(path) == tuned.kept_configs
    content = json.loads(path.read_text())
    assert content["thresholds"]["keep"] == 90.0 and content["app"] == "table"
    assert content["environment"]["foretune"] == foretune.__version__
    assert content["tuning"]["seed"] == 42 and content["baseline"]["tune_qos"] == 100.0
    assert sum(each["best"] for each in content["configs"]) == len(tuned.best_configs)


def test_a_list_of_predtuner_is_read(tmp_path):
    path = tmp_path / "configs.json"
    path.write_text(json.dumps([
        {"py/object": "predtuner.modeledapp.ValConfig", "qos": 88.5, "cost": 0.5,
         "knobs": {"conv2": "123", "conv1": "11"}, "test_qos": 87.25, "validated_qos": None},
        {"py/object": "predtuner.approxapp.Config", "qos": 87, "cost": 0.4,
         "knobs": {"conv1": "12"}, "test_qos": None}]))
    first, second = approx.load_configs(path)
    assert first == ValConfig(88.5, 0.5, {"conv1": "11", "conv2": "123"}, 87.25, None)
    assert first.speedup == 2.0 and second.test_qos is None and second.qos == 87.0


@pytest.mark.parametrize(("text", "error", "message"), [
    ("{", foretune.CorruptDataError, "is no JSON"),
    ("3", foretune.CorruptDataError, "holds no list"),
    ("{}", foretune.CorruptDataError, "holds no choices of knobs"),
    ('{"format": "foretune-approx-configs", "version": 9}', foretune.MismatchError, "version 9"),
    ('[{"qos": 1}]', foretune.CorruptDataError, "entry 0 is no object with knobs"),
    ('[{"qos": 1, "cost": 0, "knobs": {}}]', foretune.CorruptDataError, "cost is not positive"),
    ('[{"qos": "x", "cost": 1, "knobs": {}}]', foretune.CorruptDataError, "qos is no finite"),
    ('[{"qos": 1, "cost": 1, "knobs": {"a": {"py/id": 3}}}]', foretune.CorruptDataError, "a knob"),
])
def test_wrong_files_are_refused(tmp_path, text, error, message):
    path = tmp_path / "configs.json"
    path.write_text(text)
    with pytest.raises(error, match=message):
        approx.load_configs(path)
    with pytest.raises(foretune.NotFoundError, match="there is no file"):
        approx.load_configs(tmp_path / "missing.json")


def test_hpvm_round_trip(tuned, tmp_path):
    path = tmp_path / "confs.txt"
    tuned.dump_hpvm_configs(path)
    lines = path.read_text().splitlines()
    assert lines[:4] == ["0", "+++++", "conf1 1 1.0 99 0", "1 cpu op knob exact"]
    found = approx.load_hpvm_configs(path, tuned.app.ops)
    assert [each.knobs for each in found[1:]] == [each.knobs for each in tuned.best_configs]
    assert [each.speedup for each in found[1:]] == pytest.approx(
        [each.speedup for each in tuned.best_configs])
    assert [each.qos for each in found[1:]] == pytest.approx(
        [each.test_qos for each in tuned.best_configs])
    with pytest.raises(foretune.MismatchError, match="has 4 operations, not 1"):
        approx.load_hpvm_configs(path, ["op0"])
    path.write_text("\n".join(lines[:-1]))
    with pytest.raises(foretune.CorruptDataError, match="ends within a block"):
        approx.load_hpvm_configs(path, tuned.app.ops)


def test_wrong_arguments_are_refused(tmp_path):
    tuner = Table().get_tuner()
    with pytest.raises(foretune.InvalidArgumentError, match="comes first"):
        tuner.dump_configs(tmp_path / "a.json")
    for arguments, error, message in [
            ({"max_iter": 0}, foretune.InvalidArgumentError, "max_iter"),
            ({"qos_tuner_threshold": float("nan")}, foretune.InvalidArgumentError, "finite"),
            ({"take_best_n": 0}, foretune.InvalidArgumentError, "take_best_n"),
            ({"qos_model": "qos_p3"}, foretune.NotFoundError, "no model 'qos_p3'"),
            ({"qos_model": "cost_linear"}, foretune.InvalidArgumentError, "predicts no quality"),
            ({"strategy": "luck"}, foretune.NotFoundError, "no strategy 'luck'")]:
        with pytest.raises(error, match=message):
            tuner.tune(**{"max_iter": 5, "qos_tuner_threshold": 1.0, **arguments})
    with pytest.raises(foretune.InvalidArgumentError, match="test inputs are measured"):
        Table().measure_qos_cost({}, True, "qos_p1")
    with pytest.raises(foretune.InvalidArgumentError, match="no operation 'op9'"):
        Table().add_baseline_to_knobs({"op9": "a"})
    with pytest.raises(foretune.InvalidArgumentError, match="two knobs are called 'a'"):
        Plain({"x": [ApproxKnob("a")], "y": [ApproxKnob("a")]})
    with pytest.raises(foretune.InvalidArgumentError, match="at least one operation"):
        Plain({})


@needs_onnx
def test_a_network_is_tuned_like_predtuner(network, data, tmp_path):
    app = torch_app(network, data, tmp_path)
    tuner = app.get_tuner()
    tuner.tune(max_iter=60, qos_tuner_threshold=4.0, qos_keep_threshold=10.0,
               is_threshold_relative=True, take_best_n=20, cost_model="cost_linear",
               qos_model="qos_p1")
    assert 80 < tuner.baseline_tune_qos < 95
    assert tuner.best_configs and all(each.test_qos is not None for each in tuner.best_configs)
    assert max(each.speedup for each in tuner.kept_configs) > 1.0
    path = tmp_path / "confs.txt"
    tuner.dump_hpvm_configs(path)
    assert path.read_text().splitlines()[3] == (
        "1 cpu conv fp32 11 add fp32 11 relu fp32 11 pool_max fp32 11")
    again = torch_app(network, data, tmp_path)
    again.measure_qos = None  # the table has all that is needed
    assert (again.measure_qos_cost({again.ops[0]: "121"}, False, "qos_p1", "cost_linear")
            == app.measure_qos_cost({app.ops[0]: "121"}, False, "qos_p1", "cost_linear"))
    changed = torch_app(network, (batches_of(network, 72, 9), data[1]), tmp_path)
    assert changed.table_key() != app.table_key()


@needs_onnx
def test_models_of_a_network_agree_with_a_direct_computation(network, data):
    app = torch_app(network, data)
    images = np.concatenate([batch for batch, _ in data[0]])
    labels = np.concatenate([batch for _, batch in data[0]])
    one, two = {app.ops[0]: "124"}, {app.ops[1]: "235"}

    def run(chosen):
        layers = {op: next(k for k in app.knobs if k.name == name).layer()
                  for op, name in chosen.items()}
        return network.plan(images=len(images), layers=layers, measure_top=0)(images)

    predicted = run({}) + (run(one) - run({})) + (run(two) - run({}))
    # Batches of different lengths have equal weights, as with PredTuner.
    ends = np.cumsum([len(batch) for batch, _ in data[0]])[:-1]

    def quality(outputs):
        return np.mean([approx.accuracy(*pair) for pair in
                        zip(np.split(outputs, ends), np.split(labels, ends), strict=True)])

    near = 100.0 / 8 / 3 + 1e-6  # one image of the shortest batch may be at a tie
    found = app.measure_qos_cost(one | two, False, "qos_p1", "cost_linear")[0]
    assert found == pytest.approx(quality(predicted), abs=near)
    expected = quality(run(one)) + quality(run(two)) - quality(run({}))
    found = app.measure_qos_cost(one | two, False, "qos_p2", "cost_linear")[0]
    assert found == pytest.approx(expected, abs=3 * near)


@needs_onnx
def test_integers_are_calibrated_and_times_are_measured(network, data, tmp_path):
    knobs = [knob for knob in approx.get_knobs_from_file() if knob.name == "11"]
    app = torch_app(network, data, knobs=[*knobs, Int8("int8", exp_speedup=3.0)])
    assert {knob.name for knob in app.knobs} == {"11", "int8"}
    everywhere = dict.fromkeys(app.ops, "int8")
    quality, seconds = app.measure_qos_cost(everywhere, False)
    assert quality > 50 and 0 < seconds < 1
    exact, chosen = (app.measure_qos_cost(knobs, False, "qos_p2", "cost_measured")[1]
                     for knobs in ({}, everywhere))
    assert 0 < exact < 1e9 and 0 < chosen < 1e9 and exact != chosen
    tuner = app.get_tuner()
    best = tuner.tune(8, 20.0, is_threshold_relative=True)
    assert best and all(each.cost > 0 for each in best)
    tuner.dump_hpvm_configs(tmp_path / "confs.txt")
    assert 0 < float((tmp_path / "confs.txt").read_text().splitlines()[0]) < 1000  # milliseconds


@needs_onnx
def test_wrong_batches_are_refused(network, data):
    knobs = approx.get_knobs_from_file()
    for batches, message in [([], "has no batch"), ([3], "a pair"),
                             ([(np.zeros((2, 1, 28, 28)), [1])], "as many labels")]:
        with pytest.raises(foretune.InvalidArgumentError, match=message):
            TorchApp("a", network, batches, data[1], knobs, approx.accuracy)
    with pytest.raises(foretune.InvalidArgumentError, match="no knob applies"):
        TorchApp("a", network, *data, [ApproxKnob("a")], approx.accuracy)


def test_plots_need_matplotlib_only_when_drawn(tuned, monkeypatch):
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        pass
    else:
        figure = tuned.plot_configs(show_qos_loss=True, connect_best_points=True)
        assert len(figure.axes) == 3
        for axes in figure.axes:
            assert axes.get_title(loc="left") and axes.get_xlabel() and axes.get_ylabel()
        assert figure.get_supxlabel().startswith(f"Foretune {foretune.__version__}; ")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(foretune.UnsupportedError, match="matplotlib"):
        tuned.plot_configs()


def test_messages_go_to_a_file(tmp_path):
    logger = approx.config_pylogger("log.txt", tmp_path / "logs", verbose=True)
    approx.config_pylogger("log.txt", tmp_path / "logs", verbose=True)
    logger.info("begun")
    Plain({"x": [ApproxKnob("fast")]}).get_tuner().tune(3, 8.5)
    logging.shutdown()
    text = (tmp_path / "logs" / "log.txt").read_text()
    assert text.count("begun") == 1 and "2 choices tried" in text


PROGRAM = """
import sys, time
level, mode = int(sys.argv[1]), sys.argv[2]
if level == 7: sys.exit("level 7 is broken")
if level == 8: time.sleep(20)
print("psnr: 99\\npsnr:", 40 - level - (mode == "test") if level != 9 else "none")
"""


def program(timeout=20.0, pattern=r"psnr: (\S+)", cost=None):
    knobs = [ApproxKnob("0", baseline_priority=1), *(ApproxKnob(str(i)) for i in (1, 5, 7, 8, 9))]
    return CommandApp("blur", {"level": knobs}, [sys.executable, "-c", PROGRAM, "{level}"],
                      ["tune"], ["test"], pattern, timeout=timeout, cost_pattern=cost)


def test_a_program_is_judged_by_what_it_prints():
    app = program()
    assert app.measure_qos_cost({}, False)[0] == 40.0
    quality, seconds = app.measure_qos_cost({"level": "5"}, True)
    assert quality == 34.0 and 0 < seconds < 20
    for level, message in [("7", "ended with 1: level 7 is broken"), ("9", "which is no number")]:
        with pytest.raises(foretune.Error, match=message):
            app.measure_qos_cost({"level": level}, False)
    with pytest.raises(foretune.Error, match=r"ran for more than 0\.5 s"):
        program(timeout=0.5).measure_qos_cost({"level": "8"}, False)
    with pytest.raises(foretune.Error, match="printed nothing like"):
        program(pattern="ssim: (.*)").measure_qos_cost({}, False)
    assert app.cost_is_seconds
    # A cost that the program prints; here, its quality.
    app = program(cost=r"psnr: (\S+)")
    assert app.measure_qos_cost({}, False) == (40.0, 40.0) and not app.cost_is_seconds
    with pytest.raises(foretune.Error, match="printed nothing like energy"):
        program(cost="energy: (.*)").measure_qos_cost({}, False)
    with pytest.raises(foretune.InvalidArgumentError, match="cost_pattern has a group"):
        program(cost="energy")


@pytest.mark.parametrize(("script", "printed"), [("compressor", "times smaller, 1.0 times as fast"),
                                                 ("filter", "SSIM 1.000, 1.0 times as fast")])
def test_the_examples_of_programs_run(script, printed):
    path = ROOT / "examples" / "approximate_program" / f"{script}.py"
    done = subprocess.run([sys.executable, str(path)], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_a_wrong_command_is_refused():
    knobs = {"x": [ApproxKnob("a")]}
    for command, pattern, message in [(["p"], "(.)", "wrong are x"),
                                      (["p", "{x}{y}"], "(.)", "wrong are y"),
                                      ("p {x}", "(.)", "a list of texts"),
                                      (["p", "{x}"], "(", "is no expression"),
                                      (["p", "{x}"], ".", "has a group")]:
        with pytest.raises(foretune.InvalidArgumentError, match=message):
            CommandApp("a", knobs, command, [], [], pattern)
    with pytest.raises(foretune.NotFoundError, match="does not start"):
        CommandApp("a", knobs, ["/no/such", "{x}"], [], [], "(.)").measure_qos_cost({}, False)


def test_importing_needs_neither_torch_nor_matplotlib():
    code = ("import sys, foretune.approx\n"
            "assert not {'torch', 'matplotlib', 'pandas'} & set(sys.modules)")
    subprocess.run([sys.executable, "-c", code], check=True)
