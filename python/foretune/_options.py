"""Types of the keywords that are options of the command line. Written by scripts/python_options.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict


class TrainOptions(TypedDict, total=False):
    """Keywords of ``foretune.train``."""

    model_type: str
    """type of model (default: gbdt)"""
    out_dir: str | os.PathLike[str]
    """folder for models, feature_spec.json, cv_metrics, feature_importances and
    train_manifest.json"""
    write_lightgbm: bool
    """also write the models as LightGBM text, plain and zipped"""
    log_dir: str | os.PathLike[str]
    """folder for the loss of every fold as CSV, and for networks as SVG and for TensorBoard"""
    op: str
    """learn from problems of this operation alone: gemm, conv, a label of their field op, or
    composable_kernel's name, as grouped_conv_forward"""
    dtype: str
    """learn from problems of this data type alone: bf16, f8e4m3, or composable_kernel's name, as
    fp8"""
    arch: str
    """learn from the measurements of this device alone: gfx950, h200, an instruction set of a
    CPU, or the digest of a machine, as inspect shows it"""
    kernels: str | os.PathLike[str]
    """further candidates, which the data may lack: file with composable_kernel's names or
    configs as they are printed, one per line, or folder of benchmark programs"""
    only_kernels: bool
    """take no other candidates than these and the portfolio's"""
    targets: str | Sequence[object]
    """targets to learn, one model each, joined by commas: time, tflops, latency, bandwidth
    (default: time)"""
    metrics: str | Sequence[object]
    """train one model that predicts all of these metrics, joined by commas: time_ns, pack_ns,
    ... Objectives need such a model; without an objective it picks by the first"""
    target: Literal["relative-log", "log", "auto"]
    """how time is learned; auto cross-validates both (default: relative-log)"""
    features: str
    """feature table (default: the family's)"""
    folds: int
    """group folds for the held-out figures; 0 for none (default: 5)"""
    threads: int
    """threads of the trainer; 0 takes all cores (default: 0)"""
    learning_rate: float
    """shrinkage per tree (default: 0.05), or step of a network's optimizer (default: 0.001)"""
    no_log_transform: bool
    """learn tflops, latency and bandwidth themselves, not ln(1 + value)"""
    group_key: Literal["problem", "sizes", "weights"]
    """keep problems in one fold that differ in layout and types only (problem); that have the
    same main sizes (sizes: m, n, k, for convolutions all but strides and pads); or that have
    the same weights (weights: n, k, for convolutions channels, groups, filter, strides and
    dilations) (default: problem)"""
    row_weight_decay: float
    """how fast a row's weight falls with its distance from the problem's best (default: 0.5)"""
    weight_decay: float
    """for trees another name of ``row_weight_decay``; for networks the penalty of large weights
    (default: 1e-05)"""
    portfolio_size: int
    """configs in the fallback portfolio (default: 16)"""
    best_of_problem: int
    """take only the N fastest configs of each training problem as candidates; 0 takes all that
    ran (default: 0)"""
    fast: bool
    """also distil a small model that answers in a microsecond; takes up to a minute"""
    objective: Literal["auto", "regression", "lambdarank", "regret"]
    """loss of the trees; auto takes regret where time is learned relative to the problem's best,
    and regression elsewhere (default: auto)"""
    base_feature: str
    """column of the feature table whose step function the trees begin with; they learn what it
    leaves open"""
    without_features: Sequence[str]
    """columns of the feature table that no tree splits on"""
    trees: int
    """maximum number of trees; early stopping decides where there are folds (default: 1000)"""
    leaves: int
    """maximum number of leaves per tree (default: 63)"""
    forests: int
    """number of forests whose scores are averaged: better picks, but slower (default: 1)"""
    bagging_fraction: float
    """share of the rows that each tree sees (default: 0.8)"""
    feature_fraction: float
    """share of the features that each tree sees (default: 0.8)"""
    min_rows_per_leaf: int
    """smallest number of rows in a leaf (default: 10)"""
    lambda_l2: float
    """penalty of large leaf values (default: 1)"""
    regret_decay: float
    """like ``row_weight_decay``, for the objective regret (default: 4)"""
    tune_budget: str
    """search the tree options first, for this many trials or this long (5m)"""
    mining_rounds: int
    """rounds in which the hardest training problems get more weight (default: 0)"""
    warm_start_n_estimators: int
    """trees to add (default: 500)"""
    batch_size: int
    """rows per step (default: 1024)"""
    num_epochs: int
    """maximum number of epochs; early stopping decides (default: 100)"""
    patience: int
    """epochs without a lower loss before training stops (default: 10)"""
    loss: str
    """mse, margin, lambdarank, listmle, or a mixture such as mse:1,lambdarank:0.5 (default: mse)"""
    group_size: int
    """number of configs of a problem that a ranking loss sees together (default: 64)"""
    hidden_dims: str | Sequence[object]
    """widths of the hidden layers (default: 256,512,256,128,64)"""
    hidden_dim: int
    """width of every hidden layer (default: 128)"""
    num_layers: int
    """number of residual blocks (default: 10)"""
    tower_layers: int
    """number of hidden layers of each tower (default: 2)"""
    dot: int
    """length of the towers' dot product (default: 32)"""
    interaction: int
    """units of the network between the towers (default: 32)"""
    dropout: float
    """dropout rate (default: 0.2)"""
    optimizer: Literal["adam", "adamw"]
    """optimizer (default: adam)"""
    clip: float
    """largest norm of the gradient; longer ones are scaled down (default: 1)"""
    stop_share: float
    """share of the training problems held back to decide when to stop (default: 0.1)"""
    networks: int
    """number of networks whose scores are averaged (default: 1)"""
    weights: Literal["f32", "int8"]
    """number format of the layers between the first and the last (default: f32)"""
    device: Literal["cpu", "cuda"]
    """device to train on (default: cpu)"""
    ensemble_with: Literal["standard", "deep", "two-tower"]
    """network of the ensemble (default: deep)"""
    standardise: Literal["yes", "no"]
    """no leaves the inputs as they are, which costs accuracy (default: yes)"""
    split: Literal["problem", "sample"]
    """sample holds out measurements instead of problems, which flatters the figures (default:
    problem)"""
    work_dir: str | os.PathLike[str]
    """folder for checkpoints and trained networks"""
    resume: bool
    """continue an interrupted training"""
    trainer: str | os.PathLike[str]
    """program that trains networks (default: foretune-train-network beside this one)"""


class CollectOptions(TypedDict, total=False):
    """Further keywords of ``foretune.MatmulDatasetCollector``."""

    chunk_size: int
    """write the export after every N problems (default: 20)"""
    metrics: str | Sequence[object]
    """also evaluate these metrics for every config that ran well, in a stage of its own (metrics
    that a run yields anyway are always kept)"""
    no_resume: bool
    """refuse to continue an existing data set"""
    model: str | os.PathLike[str]
    """also measure the best configs of every problem by this model"""
    model_top: int
    """number of these configs (default: 16)"""
    active: bool
    """work in rounds: a model trained on the measurements so far chooses the next ones"""
    configs_per_problem: int
    """mean number of measurements per problem (default: 26)"""
    active_budget: int
    """total number of measurements, instead; earlier runs into the same file count"""
    rounds: int
    """number of rounds; a model is trained before each but the first (default: 5)"""
    policy: Literal[
        "mixed", "random", "best", "epsilon-greedy", "half-greedy", "disagreement", "improvement",
        "need"]
    """how configs are chosen (default: mixed)"""
    active_objective: Literal["regret", "regression", "lambdarank"]
    """loss of the model's trees (default: regret)"""
    weights: Sequence[str]
    """use only problems with one of these values of weights (gemm: varying, constant; conv:
    varying, constant)"""
    epilogues: Sequence[str]
    """use only problems with one of these values of epilogue (conv: none, bias, bias_relu,
    bias_add_relu)"""
    outs: Sequence[str]
    """use only problems with one of these values of out (conv: same, sums)"""
    tas: Sequence[str]
    """use only problems with one of these values of ta (nest_mm: no, yes)"""
    tbs: Sequence[str]
    """use only problems with one of these values of tb (nest_mm: no, yes)"""
    bias: Sequence[str]
    """use only problems with one of these values of bias (nest_mm: no, yes; nest_conv: no, yes)"""
    relus: Sequence[str]
    """use only problems with one of these values of relu (nest_mm: no, yes; nest_conv: no, yes)"""
    chains: Sequence[str]
    """use only problems with one of these values of chain (nest_map: relu, relu6, bias_relu,
    residual, scale, scale_shift, scale_shift_relu, scale_shift_residual_relu)"""
    of_columns: Sequence[str]
    """use only problems with one of these values of of_columns (nest_reduce: no, yes)"""
    log_normal_c_mean: float
    """mean of ln c (default: conv 5.10, nest_conv 4.40, nest_map 5.50, nest_reduce 5.50)"""
    log_normal_c_std: float
    """standard deviation of ln c (default: conv 1.30, nest_conv 1.10, nest_map 1.40, nest_reduce
    1.40)"""
    log_normal_hi_mean: float
    """mean of ln hi (default: conv 3.30)"""
    log_normal_hi_std: float
    """standard deviation of ln hi (default: conv 0.90)"""
    log_normal_o_mean: float
    """mean of ln o (default: nest_conv 4.50)"""
    log_normal_o_std: float
    """standard deviation of ln o (default: nest_conv 1.10)"""
    log_normal_h_mean: float
    """mean of ln h (default: nest_conv 3.20)"""
    log_normal_h_std: float
    """standard deviation of ln h (default: nest_conv 0.80)"""
    log_normal_b_mean: float
    """mean of ln b (default: nest_conv 0.20)"""
    log_normal_b_std: float
    """standard deviation of ln b (default: nest_conv 0.60)"""
    log_normal_r_mean: float
    """mean of ln r (default: nest_map 5.50, nest_reduce 5.50)"""
    log_normal_r_std: float
    """standard deviation of ln r (default: nest_map 1.40, nest_reduce 1.40)"""
    no_rectangular: bool
    """draw equal sizes only: m = n = k"""
    no_odd_sizes: bool
    """draw multiples of 8 only"""
    build_jobs: int
    """number of kernels that may be built at once; 0 leaves it to the family (default: 0)"""
    payloads: str | os.PathLike[str]
    """folder of files that problems refer to, by name (payload=@FILE) or digest; may be repeated"""
    cold_cache: bool
    """evict the caches before every run"""
    keep_samples: bool
    """store every timed window, not only statistics"""
    time_limit: float
    """stop a measurement after this many seconds and kill its worker process (default: 20)"""
    censor_factor: float
    """stop a config early when it is slower than X times the best so far; 0 never does (default:
    2)"""
    warmup: int
    """make at least N runs before the first timed one, and run for at least 0.5 ms (default: 0)"""
    repeat: int
    """time N windows of every config unless it is stopped early; 0 takes 5 to 15 within 0.3 s
    (default: 0)"""
    max_load: float
    """fail when other work keeps more than CORES cores busy"""
    confirm_top: int
    """measure the best N of every problem once more, interleaved; 0 skips this (default: 5)"""


class RunOptions(TypedDict, total=False):
    """Keywords of ``foretune.tune`` and ``foretune.measure``."""

    family: str
    """kernel family (default: cpu-gemm)"""
    family_data: str | os.PathLike[str]
    """data set that the recorded family replays"""
    family_option: Sequence[str]
    """set an option of the family; may be repeated"""
    threads: int
    """number of threads that a kernel may use; 0: all that the family has (default: 0)"""
    build_jobs: int
    """number of kernels that may be built at once; 0 leaves it to the family (default: 0)"""
    payloads: str | os.PathLike[str]
    """folder of files that problems refer to, by name (payload=@FILE) or digest; may be repeated"""
    cold_cache: bool
    """evict the caches before every run"""
    keep_samples: bool
    """store every timed window, not only statistics"""
    time_limit: float
    """stop a measurement after this many seconds and kill its worker process (default: 20)"""
    censor_factor: float
    """stop a config early when it is slower than X times the best so far; 0 never does (default:
    2)"""
    warmup: int
    """make at least N runs before the first timed one, and run for at least 0.5 ms (default: 0)"""
    repeat: int
    """time N windows of every config unless it is stopped early; 0 takes 5 to 15 within 0.3 s
    (default: 0)"""
    max_load: float
    """fail when other work keeps more than CORES cores busy"""


class TuneOptions(RunOptions, total=False):
    """Keywords of ``foretune.tune``."""

    objective: str
    """objective: "minimise time_ns subject to pack_ns <= 2 ms", or "pareto time_ns pack_ns"
    (default: minimise time_ns)"""
    budget: str
    """search each problem for this long (s, m, h) or by this many measurements; the final
    comparison, of ``finalists`` in ``rounds``, comes on top (default: 60s)"""
    strategy: Literal[
        "exhaustive", "random", "stratified", "model", "local", "de", "evolution", "annealing",
        "greedy", "beam-bfs", "beam-dfs", "mcts", "guided", "policy"]
    """search strategy (default: local; model with ``model``)"""
    model: str | os.PathLike[str]
    """measure first what this model ranks best; with ``strategy`` guided, start from its
    predictions; a policy proposes configs, to itself, to a beam or to guided"""
    lookahead: int
    """number of changes that one step of the search may make (default: 1)"""
    width: int
    """number of configs that a beam keeps per level (default: 4)"""
    max_steps: int
    """maximum number of actions, where configs are built step by step"""
    output: str | os.PathLike[str]
    """keep every measurement in this data set (.ftd), and skip problems that were tuned there"""
    cache: str | os.PathLike[str]
    """reuse the measurements of this data set (.ftd), and append new ones"""
    finalists: int
    """number of best configs to time once more (default: 8)"""
    rounds: int
    """rounds in which they are timed against each other (default: 15)"""


class MeasureOptions(RunOptions, total=False):
    """Keywords of ``foretune.measure``."""

    model: str | os.PathLike[str]
    """also measure this model's pick"""
    metrics: str | Sequence[object]
    """also evaluate these metrics, joined by commas, each in a stage of its own"""
    rounds: int
    """rounds in which the configs are timed against each other (default: 15)"""
