"""foretune.autotune's models: they select the few configs of a new shape that are worth measuring.
"""

import statistics

from autotune_kernels import (GEMM_CONFIGS, ROWS_CONFIGS, CompilationError, Kernel, OutOfResources,
                              Tensor, best_of, gemm, gemm_cost, gemm_shapes, launch, rows_cost,
                              rows_kernel, tune)
from foretune import _autotune_layout


def run_gemm(tuned, m, n, k):
    tuned[(1,)](Tensor(), Tensor(), Tensor(), m, n, k)
    return tuned.fn.last_ns


def efficiency(tuned, m, n, k):
    return best_of(GEMM_CONFIGS, gemm_cost, M=m, N=n, K=k) / run_gemm(tuned, m, n, k)


def test_a_model_finds_near_optimal_configs_of_new_shapes_from_few_measurements(tmp_path):
    tuned, clock = tune(Kernel(gemm, gemm_cost), GEMM_CONFIGS, ["M", "N", "K"], tmp_path,
                        min_keys=16)
    shapes = gemm_shapes(56, seed=3)
    for shape in shapes[:16]:
        assert efficiency(tuned, *shape) > 0.9999  # all were measured
    efficiencies = []
    for shape in shapes[16:]:
        before = len(clock.measured)
        efficiencies.append(efficiency(tuned, *shape))
        assert len(clock.measured) - before == 5
    assert statistics.mean(efficiencies) > 0.97 and min(efficiencies) > 0.75
    report = tuned.report()
    assert [entry.method for entry in report.keys] == ["exhaustive"] * 16 + ["model"] * 40
    assert "float16" in report.models[0] and "a model of" in report.models[0]
    # Another process neither measures nor trains for any of these shapes.
    tuned, clock = tune(Kernel(gemm, gemm_cost), GEMM_CONFIGS, ["M", "N", "K"], tmp_path,
                        min_keys=16)
    again = [efficiency(tuned, *shape) for shape in shapes[16:]]
    assert again == efficiencies and clock.measured == [] and tuned.report().models == ()


def test_configs_that_always_failed_are_not_tried_on_new_shapes(tmp_path):
    kernel = Kernel(gemm, gemm_cost)
    attempts = []
    kernel.run = lambda *args, **kwargs: (attempts.append(kwargs),
                                          Kernel.run(kernel, *args, **kwargs))
    tuned, _ = tune(kernel, GEMM_CONFIGS, ["M", "N", "K"], tmp_path)
    shapes = gemm_shapes(12, seed=4)
    for shape in shapes[:8]:
        run_gemm(tuned, *shape)
    attempts.clear()
    for shape in shapes[8:]:
        run_gemm(tuned, *shape)
    assert len(attempts) == 4 * (5 + 1)
    assert all(entry.failed == 0 for entry in tuned.report().keys[8:])


def test_without_learning_everything_is_measured(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, learn=False, min_keys=1)
    for i in range(12):
        launch(tuned, 1000 * (i + 1))
    assert len(clock.measured) == 12 * len(ROWS_CONFIGS)


def test_measuring_everything_later_measures_what_a_model_left_out(tmp_path):
    for options, measured in (({"top_k": 2, "min_keys": 4}, 4 * 8 + 2), ({"learn": False}, 6),
                              ({}, 0)):
        tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, **options)
        for i in range(5):
            launch(tuned, 1000 * 7**i)
        assert len(clock.measured) == measured
    assert {entry.method for entry in tuned.report().keys} == {"exhaustive"}


def test_top_1_measures_nothing_and_takes_the_prediction(tmp_path):
    tuned, clock = tune(Kernel(gemm, gemm_cost), GEMM_CONFIGS, ["M", "N", "K"], tmp_path, top_k=1,
                        min_keys=16)
    shapes = gemm_shapes(36, seed=5)
    for shape in shapes[:16]:
        run_gemm(tuned, *shape)
    clock.measured.clear()
    assert statistics.mean([efficiency(tuned, *shape) for shape in shapes[16:]]) > 0.9
    assert clock.measured == []
    predicted = tuned.report().keys[-1]
    assert (predicted.method, predicted.time_ns, predicted.measured) == ("prediction", None, 0)
    picks = [tuned.cache[key] for key in list(tuned.cache)[16:]]
    tuned, clock = tune(Kernel(gemm, gemm_cost), GEMM_CONFIGS, ["M", "N", "K"], tmp_path, top_k=1)
    for shape, pick in zip(shapes[16:], picks):
        run_gemm(tuned, *shape)
        assert tuned.best_config is pick
    assert clock.measured == []


def test_a_prediction_that_does_not_work_is_replaced(tmp_path):
    def cost(n, BLOCK, **arguments):
        if n >= 10_000_000 and BLOCK >= 1024:
            raise OutOfResources("out of resource: shared memory")
        return rows_cost(n, BLOCK, **arguments)

    tuned, clock = tune(rows_kernel(cost), ROWS_CONFIGS, ["n"], tmp_path, top_k=1)
    for i in range(8):
        launch(tuned, 9_000_000 + i)
    clock.measured.clear()
    assert launch(tuned, 10_000_000).kwargs["BLOCK"] < 1024
    assert clock.measured == []
    entry = tuned.report().keys[-1]
    assert entry.method == "prediction" and entry.failed >= 1 and "BLOCK=" in entry.config
    assert launch(tuned, 10_000_000).kwargs["BLOCK"] < 1024


def test_when_all_that_a_model_names_fail_the_next_are_tried(tmp_path):
    def cost(n, BLOCK, **arguments):
        if n >= 10_000_000 and BLOCK >= 256:
            raise CompilationError("not here")
        return rows_cost(n, BLOCK, **arguments)

    tuned, _ = tune(rows_kernel(cost), ROWS_CONFIGS, ["n"], tmp_path, top_k=2)
    for i in range(8):
        launch(tuned, 9_000_000 + i)
    assert launch(tuned, 10_000_000).kwargs["BLOCK"] == 64


def test_a_new_config_beside_a_model_is_measured_where_it_is_new(tmp_path):
    options = {"top_k": 2, "min_keys": 4}
    tuned, _ = tune(rows_kernel(), ROWS_CONFIGS[:7], ["n"], tmp_path, **options)
    for i in range(6):
        launch(tuned, 1000 * 7**i)
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, **options)
    for i in range(6):
        launch(tuned, 1000 * 7**i)
    assert len(clock.measured) == 6
    assert {one["BLOCK"] for one in clock.measured} == {4096}


def test_other_constants_and_data_types_have_models_of_their_own(tmp_path):
    tuned, clock = tune(rows_kernel(), ROWS_CONFIGS, ["n"], tmp_path, min_keys=4, top_k=2)
    for i in range(5):
        launch(tuned, 1000 * 7**i)
    assert len(clock.measured) == 4 * 8 + 2
    launch(tuned, 1000, dtype="torch.bfloat16")  # as wide as the known type
    assert len(clock.measured) == 4 * 8 + 2 + 2
    launch(tuned, 1000, dtype="torch.float32")
    assert len(clock.measured) == 4 * 8 + 2 + 2 + 8
    assert "0 of 4 keys until a model is asked (float32)" in tuned.report().models


def test_the_simulated_matrix_product_is_worth_learning():
    shapes = gemm_shapes(20, seed=1)
    best = [best_of(GEMM_CONFIGS, gemm_cost, M=m, N=n, K=k) for m, n, k in shapes]
    single = []
    for config in GEMM_CONFIGS:
        try:
            times = [gemm_cost(M=m, N=n, K=k, **config.all_kwargs()) for m, n, k in shapes]
        except OutOfResources:
            continue
        single.append(statistics.mean(b / t for b, t in zip(best, times)))
    assert max(single) < 0.8  # no single config is good for all shapes


# -- places ----------------------------------------------------------------------------------------


def test_sizes_and_blocks_find_their_places_by_name():
    keys = [{"sizes": {"M": 1, "N": 2, "K": 3}, "values": {}, "constants": {},
             "dtypes": {"a": "torch.bfloat16"}}]
    sizes = _autotune_layout.size_places(["K", "M", "N"], keys)
    layout = _autotune_layout.make_layout(sizes, [
        {"BLOCK_SIZE_K": 32, "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "GROUP_SIZE_M": 8,
         "num_warps": 4, "num_stages": 3, "num_ctas": 1}])
    assert dict(layout.parameters) == {
        "BLOCK_SIZE_K": "block_k", "BLOCK_SIZE_M": "block_m", "BLOCK_SIZE_N": "block_n",
        "GROUP_SIZE_M": "group_m", "num_warps": "num_warps", "num_stages": "num_stages"}
    assert layout.problem(keys[0]) == "gemm op=mm m=1 n=2 k=3 dtype=bf16"
    for blocks, sizes in ((("XBLOCK", "RBLOCK"), ("xnumel", "rnumel")),
                          (("BLOCK_X", "BLOCK_R"), ("x", "r"))):
        layout = _autotune_layout.make_layout(
            ((sizes[0], "m"), (sizes[1], "n")), [{blocks[0]: 8, blocks[1]: 16}])
        assert dict(layout.parameters) == {blocks[0]: "block_m", blocks[1]: "block_n"}


def test_parameters_without_a_place_are_numbered_together():
    configs = [{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": group, "SPLIT_K": split,
                "EVEN": even}
               for group in (4, 8) for split in (1, 2) for even in (False, True)]
    layout = _autotune_layout.make_layout((("M", "m"), ("N", "n"), ("K", "k")), configs)
    words = [layout.words(config) for config in configs]
    assert len({tuple(entry) for entry in words}) == 8
    assert sorted(entry[3] for entry in words) == list(range(1, 9))
    assert layout.words({**configs[0], "SPLIT_K": 4}) is None
    assert layout.words({**configs[0], "BLOCK_M": 0}) is None


def test_over_four_sizes_separate_by_those_that_vary_least():
    names = ["A", "B", "C", "D", "E"]
    keys = [{"sizes": {"A": i, "B": 7, "C": i, "D": i, "E": i}, "values": {}, "constants": {},
             "dtypes": {}} for i in range(1, 5)]
    sizes = _autotune_layout.size_places(names, keys)
    assert [name for name, _ in sizes] == ["A", "C", "D", "E"]
    assert sorted(place for _, place in sizes) == ["batch", "k", "m", "n"]
    scopes = {_autotune_layout.scope_of(key, sizes) for key in keys}
    assert len(scopes) == 1
    keys[0]["sizes"]["B"] = 8
    assert _autotune_layout.scope_of(keys[0], sizes) not in scopes
