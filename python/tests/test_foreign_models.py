"""Models that composable_kernel's heuristics trained; rankings must match theirs."""

import json

import foretune
import pandas as pd
import pytest
from conftest import ROOT

# A tree over one feature: block_size decides.
TREE = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
objective=regression
feature_names={names}
feature_infos={infos}
tree_sizes={size}

"""
BODY = """Tree=0
num_leaves=2
num_cat=0
split_feature={feature}
split_gain=1
threshold={threshold}
decision_type=2
left_child=-1
right_child=-2
leaf_value={left} {right}
leaf_weight=1 1
leaf_count=1 1
internal_value=0
internal_weight=0
internal_count=2
is_linear=0
shrinkage=1


"""


def write_models(folder, op_type, names, feature, log=False):
    folder.mkdir()
    body = BODY.format(feature=names.index(feature), threshold=48, left=1.5, right=2.5)
    head = TREE.format(last=len(names) - 1, names=" ".join(names),
                       infos=" ".join(["[0:1]"] * len(names)), size=len(body))
    (folder / "model_tflops.lgbm").write_text(head + body + "end of trees\n\nparameters:\n"
                                              "end of parameters\n\npandas_categorical:null\n")
    (folder / "feature_spec.json").write_text(json.dumps(
        {"op_type": op_type, "dtype": "bf16", "arch": "gfx950", "feature_names": names,
         "categorical_features": [], "targets": ["tflops"],
         "log_targets": ["tflops"] if log else []}))


def test_convolutions_are_ranked_by_the_models_own_features(tmp_path):
    write_models(tmp_path / "conv", "grouped_conv", ["C", "block_size", "K"], "block_size")
    predictor = foretune.Predictor(tmp_path / "conv")
    problem = {"N": 16, "C": 256, "K": 128, "G": 1, "Hi": 28, "Wi": 28, "Y": 3, "X": 3,
               "stride_h": 1, "stride_w": 1, "pad_h": 1, "pad_w": 1, "dtype": "bf16"}
    frame = pd.read_csv(ROOT / "foretune" / "dataset" / "testdata" / "ck" / "conv.csv")
    frame = frame.rename(columns={"kernel": "kernel_name"})
    names = ["grouped_conv_forward_bf16_2d_32x64x64_compv3",
             "grouped_conv_forward_bf16_2d_64x64x64_compv3"]
    configs = [{"kernel_name": name} for name in names]
    ranked = predictor.rank_kernels(problem, configs)
    best_name, best_tflops = ranked[0]
    assert best_name == names[1] and best_tflops == 2.5
    assert ranked[1] == (names[0], 1.5)
    assert predictor.targets == ["tflops"]
    known = frame["kernel_name"].iloc[0]
    assert predictor.predict(problem, [known])[0] == 1.5


def test_logarithms_are_undone_and_gemms_take_split_k(tmp_path):
    write_models(tmp_path / "gemm", "gemm_universal", ["M", "tile_m", "split_k"], "tile_m",
                 log=True)
    predictor = foretune.Predictor(tmp_path / "gemm")
    name = ("gemm_universal_bf16_rcr_compv3_cshuffle_intrawave_False_False_False_False_"
            "{}x128x64_2x2x1_32x32x16")
    best = predictor.select_best({"m": 64, "n": 64, "k": 64, "layout": "rcr"},
                                 [{"kernel_name": name.format(32), "split_k": 2},
                                  {"kernel_name": name.format(128)}])
    assert best.name == name.format(128)
    assert best.prediction == pytest.approx(11.182493960703473)  # e^2.5 - 1


def test_what_does_not_fit_is_said(tmp_path):
    write_models(tmp_path / "odd", "gemm_universal", ["M", "phase_of_the_moon"], "M")
    with pytest.raises(foretune.UnsupportedError, match="no feature table"):
        foretune.Predictor(tmp_path / "odd")
    write_models(tmp_path / "gemm", "gemm_universal", ["M", "tile_m"], "tile_m")
    predictor = foretune.Predictor(tmp_path / "gemm")
    with pytest.raises(foretune.Error, match="no_kernel"):
        predictor.rank_kernels("gemm m=8 n=8 k=8", ["no_kernel"])
    with pytest.raises(foretune.InvalidArgumentError, match="no kernels of its own"):
        predictor.rank_kernels("gemm m=8 n=8 k=8")
    with pytest.raises(foretune.NotFoundError, match="there are tflops"):
        predictor.predict("gemm m=8 n=8 k=8", [], target="latency")
    with pytest.raises(foretune.MismatchError):
        predictor.predict({"N": 1, "C": 8, "K": 8, "G": 1, "Hi": 8, "Wi": 8, "Y": 1, "X": 1}, [])
