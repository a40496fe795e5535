"""Models: training, evaluation, ranking, selection."""

import concurrent.futures
import json
import math
import os

import foretune
import numpy as np
import pandas as pd
import pytest


def test_training_repeats_to_the_byte_and_files_hold_the_model(tmp_path, training, model):
    again = foretune.train(training, trees=40, folds=2, threads=1)
    assert again.to_bytes() == model.to_bytes()
    assert 0.5 < model.metrics["mean_efficiency"] <= 1
    assert len(model.held_out_scores) == len(training)
    model.save(tmp_path / "m.ftm")
    read = foretune.Model.open(tmp_path / "m.ftm")
    assert read.to_bytes() == model.to_bytes()
    assert read.info["data_fingerprint"] == training.fingerprint
    assert read.info["family"] == "null" and read.info["pool_size"] > 100
    assert read.metrics["mean_efficiency"] == pytest.approx(model.metrics["mean_efficiency"])


@pytest.mark.parametrize("options, sentence", [
    ({"learning_rate": 0}, "above 0"), ({"bagging_fraction": 1.5}, "at most 1"),
    ({"trees": 0}, "at least 1"), ({"trees": 2**32 + 1}, "at most"),
    ({"seed": -1}, "from 0"), ({"leaves": 1}, "at least 2"), ({"forests": -1}, "at least 1"),
    ({"target": "tflops"}, "relative-log"), ({"model_type": "svm"}, "not one of gbdt"),
    ({"features": "gemm-cpuu"}, "gemm-cpu"), ({"feature_fraction": math.nan}, "not a number"),
    ({"regret_decay": -1}, "from 0 to"), ({"lambda_l2": math.inf}, "not a number"),
])
def test_senseless_training_options_are_refused(training, options, sentence):
    with pytest.raises(foretune.Error, match=sentence) as caught:
        foretune.train(training, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [
    {"regret_decay": 0.5}, {"objective": "regression", "weight_decay": 3.0}, {"lambda_l2": 20.0}])
def test_every_option_of_the_trees_reaches_the_trainer(training, options):
    usual = {"objective": options.get("objective", "auto"), "trees": 10, "folds": 0, "threads": 1}
    model = foretune.train(training, **usual)
    assert foretune.train(training, **usual).to_bytes() == model.to_bytes()
    assert foretune.train(training, **{**usual, **options}).to_bytes() != model.to_bytes()


def test_a_target_beside_time_is_learned_one_at_a_time(tmp_path, training):
    model = foretune.train(training, targets="tflops", trees=10, folds=0, threads=1,
                           out_dir=tmp_path / "models", write_lightgbm=True)
    assert model.info["target"] == "tflops"
    assert (tmp_path / "models" / "model_tflops.ftm").read_bytes() == model.to_bytes()
    assert (tmp_path / "models" / "model_tflops.lgbm").exists()
    with pytest.raises(foretune.InvalidArgumentError, match="once for every target"):
        foretune.train(training, targets=["time", "tflops"])


def test_a_model_is_continued(tmp_path, training):
    usual = {"folds": 0, "threads": 1, "objective": "regression"}
    first = foretune.train(training, trees=10, **usual)
    first.save(tmp_path / "first.ftm")
    more = foretune.train(training, warm_start=first, warm_start_n_estimators=7, **usual)
    assert more.info["figures"]["trees"] == first.info["figures"]["trees"] + 7
    same = foretune.train(training, warm_start=tmp_path / "first.ftm", warm_start_n_estimators=7,
                          **usual)
    assert same.to_bytes() == more.to_bytes()


def test_a_distilled_model_comes_with_its_loss(training):
    model = foretune.train(training, fast=True, trees=20, folds=2, threads=1)
    assert 0 <= model.metrics["fast_mean_regret"] <= model.metrics["fast_p90_regret"] + 1
    assert model.to_bytes() != foretune.train(training, trees=20, folds=2, threads=1).to_bytes()


@pytest.mark.skipif("FORETUNE_TRAINER" not in os.environ, reason="the trainer of networks is not built")
def test_networks_are_trained_with_any_loss(training):
    model = foretune.train(training, model_type="standard", loss="mse:1,lambdarank:0.5",
                           hidden_dims=(16, 8), num_epochs=3, folds=0, threads=1,
                           trainer=os.environ["FORETUNE_TRAINER"])
    assert model.info["kind"] == "network"
    assert foretune.Selector(model).select("gemm m=64 n=64 k=64").config


def test_networks_need_their_trainer(training):
    with pytest.raises(foretune.NotFoundError, match="nowhere"):
        foretune.train(training, model_type="deep", trainer="nowhere")


@pytest.mark.parametrize("options, sentence", [
    ({"tree": 5}, "did you mean 'trees'"), ({"num_epochs": 3}, "only with --model-type standard"),
    ({"model_type": "deep", "leaves": 7}, "only with --model-type gbdt"),
    ({"dataset_path": "x"}, "no option"), ({"warm_start_n_estimators": 3}, "only with --warm-start"),
])
def test_keywords_without_an_effect_are_refused(training, options, sentence):
    with pytest.raises(foretune.InvalidArgumentError, match=sentence):
        foretune.train(training, **options)


def test_validation_sets_are_not_trained_on(validation):
    with pytest.raises(foretune.MismatchError, match="worthless"):
        foretune.train(validation)


def test_progress_of_training_is_told_and_may_stop_it(training):
    stages = set()

    def watch(progress):
        stages.add(progress["stage"])
        if progress["tree"] == 5:
            raise StopIteration("that will do")

    with pytest.raises(StopIteration):
        foretune.train(training, trees=40, folds=2, threads=1, progress=watch)
    assert len(stages) == 1


def test_trainings_of_several_threads_do_not_disturb_one_another(training):
    def run(seed):
        return foretune.train(training, trees=10, folds=0, threads=1, seed=seed).to_bytes()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        models = list(pool.map(run, [1, 2, 1, 2]))
    assert models[0] == models[2] and models[1] == models[3] and models[0] != models[1]


def test_evaluation_says_what_the_command_says(model, validation, training):
    evaluation = foretune.evaluate(model, validation, training, top_n_worst=3)
    assert len(evaluation.picks) == len(validation.problems)
    efficiencies = evaluation.efficiencies
    assert ((efficiencies > 0) & (efficiencies <= 1)).all()
    assert evaluation.mean_efficiency == pytest.approx(efficiencies.mean())
    assert "Efficiency of the model's picks on 6 problems" in evaluation.report()
    assert "best single config" in evaluation.report()
    assert evaluation.html("a title").lstrip().startswith("<!DOCTYPE html>")
    json.dumps(evaluation.summary)


def test_evaluation_needs_data_of_the_models_family(model):
    other = foretune.Dataset.from_pandas(
        pd.DataFrame({"m": [8], "n": [8], "k": [8], "tile": [4], "time_ns": [10.0]}))
    with pytest.raises(foretune.MismatchError):
        foretune.evaluate(model, other)


def test_the_selector_picks_the_first_of_its_ranking(model):
    selector = foretune.Selector(model)
    problem = {"m": 64, "n": 128, "k": 64}
    choice = selector.select(problem)
    ranked = selector.rank("gemm m=64 n=128 k=64")
    assert choice.picked and choice.reason is None
    assert choice.config == ranked[0][0] and choice.score == ranked[0][1]
    assert [score for _, score in ranked] == sorted(score for _, score in ranked)
    assert foretune.select(model, problem) == choice


def test_the_selector_abstains_with_its_reason(model):
    choice = foretune.Selector(model).select("gemm m=2000000000 n=1 k=1")
    assert not choice.picked and "train" in choice.reason


def test_a_selector_serves_many_threads(model):
    selector = foretune.Selector(model)
    problems = [f"gemm m={8 * (i % 40 + 1)} n=64 k=64" for i in range(400)]
    alone = [selector.select(problem) for problem in problems]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(foretune.Selector(model).select, problems)) == alone


def test_the_predictor_ranks_its_pool_and_given_configs(tmp_path, training, model):
    model.save(tmp_path / "m.ftm")
    predictor = foretune.Predictor(tmp_path / "m.ftm")
    assert predictor.unit == "relative speed"
    problem = {"m": 64, "n": 128, "k": 64}
    ranked = predictor.rank_kernels(problem)
    assert ranked[0] == predictor.select_best(problem)
    assert ranked[0].name == foretune.Selector(model).select(problem).config
    name, prediction = ranked[0]
    assert 0 < prediction <= 1.5
    some = training.configs[:20]
    by_text = predictor.rank_kernels(problem, some)
    assert sorted(entry.name for entry in by_text) == sorted(some)
    predictions = [entry.prediction for entry in by_text]
    assert predictions == sorted(predictions, reverse=True)
    mappings = [dict(word.split("=") for word in text.split()) | {"kernel_name": f"k{i}", "x": 1}
                for i, text in enumerate(some)]
    by_mapping = predictor.rank_kernels(problem, mappings)
    assert [entry.prediction for entry in by_mapping] == predictions
    assert some[int(by_mapping[0].name[1:])] == by_text[0].name
    assert predictor.rank_kernels(problem, []) == []
    assert predictor.select_best(problem, []) is None


def test_models_of_times_predict_tflops(training):
    model = foretune.train(training, target="log", trees=40, folds=0, threads=1)
    predictor = foretune.Predictor(model)
    assert predictor.unit == "tflops"
    frame = training.to_pandas()
    row = frame[(frame["outcome"] == "ok") & (frame["op"] == "mm")].iloc[0]
    config = training.configs[training.config_ids[row.name]]
    problem = training.problems[training.problem_ids[row.name]]
    measured = 2.0 * row["m"] * row["n"] * row["k"] / row["time_ns"] * 1e-3
    assert predictor.predict(problem, [config])[0] == pytest.approx(measured, rel=0.6)


def test_what_a_predictor_cannot_rank_is_said(model):
    predictor = foretune.Predictor(model)
    with pytest.raises(foretune.InvalidArgumentError, match="lacks block_n, block_k, unroll"):
        predictor.rank_kernels("gemm m=8 n=8 k=8", [{"block_m": 8}])
    with pytest.raises(foretune.MismatchError):
        predictor.rank_kernels({"N": 1, "C": 8, "K": 8, "G": 1, "Hi": 8, "Wi": 8, "Y": 1, "X": 1})
    with pytest.raises(foretune.InvalidArgumentError, match="predicts relative speed"):
        predictor.predict("gemm m=8 n=8 k=8", [], target="latency")
    with pytest.raises(foretune.Error):
        foretune.Predictor("no/such/model.ftm")


@pytest.mark.parametrize("problem, sentence", [
    ("gemm m=0 n=1 k=1", "m"), ({"m": 8, "n": 8}, "k"), ({"m": 8, "n": 8, "k": 8, "q": 1}, "q"),
    (17, "text or a mapping"), ("", "problem"),
])
def test_senseless_problems_are_refused(model, problem, sentence):
    with pytest.raises(foretune.InvalidArgumentError, match=sentence):
        foretune.Selector(model).select(problem)


def test_problems_of_tables_are_understood():
    assert foretune.problem_text({"M": 8.0, "N": np.int64(16), "K": 4, "dtype": "fp16",
                                  "layout": "rcr"}) == (
        "gemm op=mm m=8 n=16 k=4 batch=1 dtype=f16 layout=rcr")
    conv = foretune.problem_text(
        {"N": 16, "C": 256, "K": 128, "G": 1, "Hi": 28, "Wi": 28, "Y": 3, "X": 3, "stride_h": 1,
         "stride_w": 1, "pad_h": 1, "pad_w": 1, "dtype": "bf16"}, "bwd_data")
    assert conv.startswith("conv op=backward_data n=16 c=256 k=128 g=1 ")
    assert " dtype=bf16" in conv


def test_models_of_metrics_follow_objectives(training, tmp_path):
    model = foretune.train(training, metrics=["time_ns"], trees=40, folds=2, threads=1)
    assert model.info["kind"] == "metrics"
    assert [metric["name"] for metric in model.info["metrics"]] == ["time_ns"]
    assert 0.5 < model.metrics["time_ns_mean_efficiency"] <= 1
    assert model.metrics["time_ns_median_relative_error"] < 1
    model.save(tmp_path / "m.ftm")
    selector = foretune.Selector(tmp_path / "m.ftm", "minimise time_ns subject to time_ns <= 1 s")
    problem = training.problems[0]
    best = selector.predict(problem, top=3)
    assert len(best) == 3 and best[0]["config"] == selector.select(problem).config
    for entry in best:
        value, low, high = entry["metrics"]["time_ns"]
        assert entry["keeps_bounds"] and low < value < high
        assert math.log(value) == pytest.approx(entry["score"])
    assert model.predict(problem, top=3) == best
    none = foretune.Selector(model, "minimise time_ns subject to time_ns <= 0.001 ns")
    assert "bounds" in none.select(problem).reason
    assert not none.predict(problem, top=1)[0]["keeps_bounds"]
    with pytest.raises(foretune.NotFoundError, match="no energy_j"):
        foretune.Selector(model, "minimise energy_j")
    with pytest.raises(foretune.NotFoundError, match="it has time_ns"):
        foretune.train(training, metrics=["pack_ns"])


def test_schedules_are_generated_for_each_problem(tmp_path):
    shapes = tmp_path / "products.txt"
    shapes.write_text("\n".join(f"nest_mm m={m} n={n} k=32" for m in (32, 48, 64) for n in (32, 64)))
    collector = foretune.MatmulDatasetCollector(
        family="loop-nest", mode=foretune.CollectionMode.OPERATION_SHAPE_SET, shapeset=shapes,
        num_shapes=0, search_mode="fast", search_space="SAMPLE:6")
    dataset = collector.collect(tmp_path / "products.ftd").dataset()
    selector = foretune.Selector(foretune.train(dataset, trees=30, folds=2))
    assert selector.generates
    problem = "nest_mm m=40 n=48 k=56"
    choice = selector.select(problem)
    ranked = selector.rank(problem)
    assert choice.config is not None and choice.config == ranked[0][0]
    assert len(ranked) > 10
    assert selector.predict(problem, 3)[0]["config"] == choice.config
