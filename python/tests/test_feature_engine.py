"""Feature engines: those of composable_kernel by name, and subclasses of users."""

import json

import foretune
import numpy as np
import pandas as pd
import pytest
from foretune.parquet import export_parquet
from test_foreign_models import write_models

LAYER = {"N": 16, "C": 256, "K": 128, "G": 1, "Hi": 28, "Wi": 28, "Y": 3, "X": 3, "stride_h": 1,
         "stride_w": 1, "pad_h": 1, "pad_w": 1, "dtype": "bf16"}


def conv_name(tile, direction="bwd_data"):
    return f"grouped_conv_{direction}_bf16_2d_{tile}x64x64_compv3_intrawave"


def conv_table(direction="bwd_data"):
    """Measurements as the benchmarks of convolutions write them: the larger the problem, the larger
    the best tile."""
    rows = []
    for n in (1, 2, 4, 8, 16, 32):
        for c in (64, 128, 256):
            for tile in (16, 32, 64, 128):
                ms = 1e-6 * n * c * c * (1 + abs(np.log2(tile) - 4 - np.log2(n) / 2))
                rows.append({"kernel": conv_name(tile, direction), "problem_idx": len(rows), "N": n,
                             "C": c, "K": c, "G": 1, "Hi": 28, "Wi": 28, "Y": 3, "X": 3,
                             "stride_h": 1, "stride_w": 1, "pad_h": 1, "pad_w": 1, "latency_ms": ms,
                             "tflops": 2e-9 * n * c * c * 28 * 28 * 9 / ms, "non_zero": 1})
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def conv_folder(tmp_path_factory):
    """A folder as composable_kernel's users have it: models, and the data that they learned from."""
    folder = tmp_path_factory.mktemp("ck")
    (folder / "data" / "grouped_conv_bwd_data").mkdir(parents=True)
    conv_table().to_csv(folder / "times.csv", index=False)
    dataset = foretune.Dataset.open(folder / "times.csv", device="gfx950")
    export_parquet(
        dataset, folder / "data" / "grouped_conv_bwd_data" / "bwd_data.parquet")
    for name, written in (("grouped_conv_bwd_data_bf16_gfx950", True), ("ours", False)):
        foretune.train(dataset, out_dir=str(folder / "models" / name), targets="tflops",
                       features="grouped-conv-ck-83", write_lightgbm=written, folds=0, trees=300,
                       min_rows_per_leaf=2, threads=1)
    return folder


def test_the_usage_of_their_readme_runs_with_the_import_changed(conv_folder, monkeypatch):
    monkeypatch.chdir(conv_folder)
    from foretune import GroupedConvFeatureEngine, Predictor

    predictor = Predictor("models/grouped_conv_bwd_data_bf16_gfx950",
                          feature_engine=GroupedConvFeatureEngine())
    frame = pd.read_parquet("data/grouped_conv_bwd_data/bwd_data.parquet")
    configs = [frame[frame["kernel_name"] == name].iloc[0].to_dict()
               for name in frame["kernel_name"].unique()]
    assert {"block_size", "gemm_m_per_block", "pipeline", "wave_mode"} <= configs[0].keys()
    ranked = predictor.rank_kernels(LAYER, configs)
    assert len(ranked) == 4
    best_name, best_tflops = ranked[0]
    assert best_name == conv_name(64)
    assert best_tflops == max(tflops for _, tflops in ranked) > 0
    # Values of the row's own problem are not those of the one that is asked for.
    small = predictor.rank_kernels({**LAYER, "N": 1}, configs)
    assert small[0].name == conv_name(16)
    # The parts of a name do as well.
    parts = {"block_size": 64, "gemm_m_per_block": 64, "gemm_n_per_block": 64,
             "pipeline": "compv3", "wave_mode": "intrawave"}
    assert predictor.predict_tflops(LAYER, parts) == best_tflops
    assert predictor.predict_all(LAYER, parts) == {"tflops": best_tflops}


def test_a_directory_of_our_own_models_predicts_like_its_lightgbm_text(conv_folder):
    ours = foretune.Predictor(conv_folder / "models" / "ours")
    theirs = foretune.Predictor(conv_folder / "models" / "grouped_conv_bwd_data_bf16_gfx950")
    names = [conv_name(tile) for tile in (16, 32, 64, 128)]
    problem = {**LAYER, "direction": "bwd_data"}
    assert ours.unit == "tflops" and ours.targets == ["tflops"]
    assert ours.predict(problem, names) == pytest.approx(theirs.predict(problem, names), rel=1e-5)
    assert ours.rank_kernels(LAYER)[0].prediction == pytest.approx(
        theirs.predict(LAYER, names).max(), rel=1e-5)
    with pytest.raises(foretune.NotFoundError, match="there are tflops"):
        ours.predict(problem, names, target="latency")


class MoonEngine(foretune.FeatureEngine):
    """Features that no table of the library has."""

    def get_feature_names(self):
        return ["unused", "phase_of_the_moon", "M"]

    def extract(self, problem, kernel):
        return np.array([7.0, 10.0 * kernel["rank"], problem["m"]])


def test_a_subclass_computes_what_the_models_were_trained_on(tmp_path):
    write_models(tmp_path / "moon", "gemm_moon", ["M", "phase_of_the_moon"], "phase_of_the_moon")
    predictor = foretune.Predictor(tmp_path / "moon", feature_engine=MoonEngine())
    kernels = [{"kernel_name": f"kernel_{rank}", "rank": rank} for rank in (1, 9, 3)]
    problem = {"m": 64, "n": 64, "k": 64}
    assert predictor.predict(problem, kernels).tolist() == [1.5, 2.5, 1.5]
    assert predictor.rank_kernels(problem, kernels)[0] == ("kernel_9", 2.5)
    assert predictor.select_best(problem, []) is None
    assert predictor.targets == ["tflops"]


def test_a_subclass_of_an_engine_of_theirs_adds_features(conv_folder, tmp_path):
    class WithWidth(foretune.GroupedConvFeatureEngine):
        def get_feature_names(self):
            return [*super().get_feature_names(), "width"]

        def extract(self, problem, kernel):
            return np.append(super().extract(problem, kernel), kernel["gemm_n_per_block"])

    write_models(tmp_path / "wide", "grouped_conv", ["C", "width", "K"], "width")
    wide = foretune.Predictor(tmp_path / "wide", feature_engine=WithWidth())
    parts = {"block_size": 64, "gemm_m_per_block": 64, "pipeline": "compv3"}
    kernels = [{**parts, "gemm_n_per_block": width} for width in (16, 128)]
    assert wide.predict(LAYER, kernels).tolist() == [1.5, 2.5]
    # Without anything of its own it predicts as the engine does.
    folder = conv_folder / "models" / "grouped_conv_bwd_data_bf16_gfx950"
    names = [conv_name(tile) for tile in (16, 128)]

    class Same(foretune.GroupedConvFeatureEngine):
        pass

    assert (foretune.Predictor(folder, feature_engine=Same()).predict(LAYER, names).tolist()
            == foretune.Predictor(folder).predict(LAYER, names).tolist())


def test_a_batch_of_the_subclass_is_taken_where_it_has_one(tmp_path):
    class Batched(MoonEngine):
        def extract_batch(self, df):
            assert list(df["rank"]) == [1, 9]
            return np.column_stack([df["m"], 10.0 * df["rank"], df["m"]])

    write_models(tmp_path / "moon", "gemm_moon", ["phase_of_the_moon"], "phase_of_the_moon", log=True)
    predictor = foretune.Predictor(tmp_path / "moon", feature_engine=Batched())
    values = predictor.predict({"m": 64, "n": 64, "k": 64}, [{"rank": 1}, {"rank": 9}])
    assert values == pytest.approx(np.expm1([1.5, 2.5]))


def test_engines_that_do_not_fit_are_refused(tmp_path):
    write_models(tmp_path / "moon", "gemm_moon", ["M", "tide"], "tide")
    with pytest.raises(foretune.MismatchError, match="MoonEngine does not compute tide"):
        foretune.Predictor(tmp_path / "moon", feature_engine=MoonEngine())

    class Newer(MoonEngine):
        ENCODING_VERSION = 2

        def get_feature_names(self):
            return ["M", "tide"]

    with pytest.raises(foretune.MismatchError, match="encoding version 2"):
        foretune.Predictor(tmp_path / "moon", feature_engine=Newer())

    class Short(MoonEngine):
        def get_feature_names(self):
            return ["M", "tide"]

        def extract_batch(self, rows):
            return np.zeros((1, 3))

    predictor = foretune.Predictor(tmp_path / "moon", feature_engine=Short())
    with pytest.raises(foretune.InvalidArgumentError, match="of shape"):
        predictor.predict({"m": 1, "n": 1, "k": 1}, ["a"])
    with pytest.raises(foretune.InvalidArgumentError, match="problems as mappings"):
        predictor.predict("gemm m=1 n=1 k=1", ["a"])


def test_engines_of_theirs_have_their_features_and_numbers(tmp_path):
    engine = foretune.GroupedConvFeatureEngine(num_cus=304)
    names = engine.get_feature_names()
    assert names[:4] == ["N", "C", "K", "G"] and names[-1] == "hw_num_xcd"
    assert engine.get_categorical_features() == ["pipeline"]
    row = dict(zip(names, engine.extract(LAYER, {"kernel_name": conv_name(32)})))
    assert (row["N"], row["Ho"], row["block_size"], row["hw_num_cus"]) == (16, 28, 32, 304)
    batch = engine.extract_batch([{**LAYER, "kernel_name": conv_name(tile)} for tile in (16, 32)])
    assert batch.shape == (2, len(names))
    assert batch[1].tolist() == list(row.values())
    assert engine.hardware_config["lds_capacity"] == 65536
    gemm = foretune.GemmUniversalFeatureEngine()
    assert len(gemm.get_feature_names()) == 72
    parts = {"tile_m": 128, "tile_n": 64, "tile_k": 32, "warp_m": 2, "warp_n": 2, "warp_k": 1,
             "warp_tile_m": 16, "warp_tile_n": 16, "warp_tile_k": 32, "pipeline": "mem",
             "epilogue": "cshuffle", "scheduler": "interwave", "pad_m": True, "split_k": 4}
    row = dict(zip(gemm.get_feature_names(),
                   gemm.extract({"m": 256, "n": 96, "k": 64, "dtype": "fp16"}, parts)))
    assert (row["tile_m"], row["pad_m"], row["pad_n"], row["split_k"]) == (128, 1, 0, 4)
    # The numbers of an engine replace those that the directory implies.
    write_models(tmp_path / "conv", "grouped_conv", ["C", "hw_num_cus", "K"], "hw_num_cus")
    spec = json.loads((tmp_path / "conv" / "feature_spec.json").read_text())
    assert "hardware" not in spec
    small = foretune.GroupedConvFeatureEngine(num_cus=10)
    name = conv_name(32, "forward")
    assert foretune.Predictor(tmp_path / "conv").predict(LAYER, [name])[0] == 2.5
    assert foretune.Predictor(tmp_path / "conv", small).predict(LAYER, [name])[0] == 1.5


def test_configs_are_checked_and_snapped_as_a_subclass_says():
    class Searched(MoonEngine):
        def get_parameter_space(self):
            return {"tile_m": [32, 64, 128], "pipeline": ["compv3", "mem"]}

        def get_constraints(self):
            return [lambda config: config["tile_m"] != 128 or config["pipeline"] == "mem"]

    engine = Searched()
    assert engine.validate_config({"tile_m": 128, "pipeline": "mem"})
    assert not engine.validate_config({"tile_m": 128, "pipeline": "compv3"})
    assert not engine.validate_config({"tile_m": 48, "pipeline": "mem"})
    assert engine.project_to_valid({"tile_m": 100, "pipeline": "none", "other": 3}) == {
        "tile_m": 128, "pipeline": "compv3", "other": 3}
    with pytest.raises(TypeError):
        foretune.FeatureEngine()


def test_a_model_file_takes_no_engine(conv_folder):
    with pytest.raises(foretune.InvalidArgumentError, match="computes its own features"):
        foretune.Predictor(conv_folder / "models" / "ours" / "model_tflops.ftm", MoonEngine())
