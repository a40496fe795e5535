"""foretune.torch.collect without PyTorch: what the selector measures, as a data set."""

import math

import foretune
import foretune.torch
import pytest
from foretune.torch import _hooks
from torch_fakes import Inductor, Node, TILES, TemplateChoice, by_columns, templates

A = Node((512, 4096))
B = by_columns(4096, 1024)
PROBLEM = "gemm op=mm m=512 n=1024 k=4096 batch=1 dtype=bf16 layout=rcr"


@pytest.fixture
def inductor(monkeypatch):
    made = Inductor()
    monkeypatch.setattr(_hooks, "open_inductor", lambda: made.hooks)
    return made


def choices_for(*nodes, uid="triton::mm", library=("aten::mm",)):
    made = [TemplateChoice(name) for name in library] + list(templates(uid))
    for choice in made:
        choice.input_nodes = nodes
    return made


def milliseconds(choice):
    if choice.uid.startswith("aten"):
        return 0.5 if choice.uid != "aten::addmm" else 0.7
    return 10 / choice.keywords["BLOCK_M"]


def tune(inductor, name="mm", nodes=(A, B), **keywords):
    uid = "triton::bmm" if name == "bmm" else "triton::mm"
    library = ("aten::bias_addmm", "aten::addmm") if name == "addmm" else (f"aten::{name}",)
    return inductor.algorithms.tune(name, choices_for(*nodes, uid=uid, library=library),
                                    milliseconds, **keywords)


def test_times_become_rows(inductor, tmp_path):
    before = inductor.config.snapshot()
    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        during = inductor.config.snapshot()
        tune(inductor)
        tune(inductor, "addmm", (Node((512, 1024), (0, 1)), A, B))
        tune(inductor, "bmm", (Node((4, 64, 32)), Node((4, 32, 16), (512, 1, 32))))
    assert inductor.config.snapshot() == before
    assert inductor.algorithms.preprocessing_fns == inductor.algorithms.feedback_saver_fns == []
    assert during["max_autotune_gemm"] and not during["max_autotune"]
    assert during["force_disable_caches"] and not during["autotune_local_cache"]
    assert during["max_autotune_gemm_search_space"] == "EXHAUSTIVE"
    dataset = collection.dataset()
    assert dataset.problems == [
        PROBLEM, "gemm op=addmm m=512 n=1024 k=4096 batch=1 dtype=bf16 layout=rcr",
        "gemm op=bmm m=64 n=16 k=32 batch=4 dtype=bf16 layout=rcr"]
    assert len(dataset) == 3 * 7 and collection.measurements == 21 and collection.failures == 0
    header = dataset.header
    assert header["family"] == "triton" and header["config_schema"] == "triton-matmul"
    assert header["device"] == "NVIDIA H200" and header["isa"].startswith("sm_90 ")
    frame = {config: time for config, time in zip(
        [dataset.configs[i] for i in dataset.config_ids[7:14]], dataset.time_ns[7:14])}
    # The faster of ATen's two choices stands for both; the data set has nanoseconds.
    assert frame["template=0 block_m=0 block_n=0 block_k=0 group_m=0 num_stages=0 num_warps=0"] \
        == pytest.approx(0.5e6)
    assert frame["template=1 block_m=128 block_n=256 block_k=64 group_m=8 num_stages=3 "
                 "num_warps=8"] == pytest.approx(10e6 / 128)
    assert dataset.contexts[0]["cache"] == "cold"
    assert "3 problems, 21 measurements" in collection.report()
    assert collection.precompile_seconds == pytest.approx(0.5 * (7 + 8 + 7))


def test_failures_are_outcomes(inductor, tmp_path):
    made = choices_for(A, B)
    broken = made[2]

    def times(choice):
        return math.inf if choice is made[1] else milliseconds(choice)

    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        inductor.algorithms.tune("mm", made, times, uncompiled=[broken])
    dataset = collection.dataset()
    outcomes = [foretune.OUTCOMES[code] for code in dataset.outcomes]
    assert outcomes.count("ok") == 5 and collection.failures == 2
    by_config = {dataset.configs[config]: (outcome, foretune.STAGES[stage])
                 for config, outcome, stage in zip(dataset.config_ids, outcomes, dataset.stages)}
    assert by_config["template=1 block_m=16 block_n=16 block_k=32 group_m=8 num_stages=2 "
                     "num_warps=2"] == ("unsupported", "run")
    assert by_config["template=1 block_m=64 block_n=64 block_k=32 group_m=8 num_stages=3 "
                     "num_warps=4"] == ("prepare failed", "prepare")


def test_older_versions_say_less(inductor, tmp_path):
    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        tune(inductor, arguments=5)
    assert collection.problems == 1 and collection.precompile_seconds == 0


def test_a_file_is_continued(inductor, tmp_path):
    path = tmp_path / "mm.ftd"
    with foretune.torch.collect(path):
        tune(inductor)
    with foretune.torch.collect(path) as collection:
        # The file has the problem, so only ATen is kept and nothing is measured.
        assert tune(inductor) is None
        tune(inductor, nodes=(A, by_columns(4096, 99)))
    assert collection.known == 1 and collection.problems == 1
    assert len(collection.dataset().problems) == 2
    with foretune.torch.collect(path) as collection:
        tune(inductor)
    assert collection.problems == 0 and "1 operations were in the file" in collection.report()


def test_every_operation_is_on_disk_at_once(inductor, tmp_path):
    path = tmp_path / "mm.ftd"
    with foretune.torch.collect(path):
        tune(inductor)
        assert len(foretune.Dataset.open(path)) == 7
        tune(inductor, nodes=(A, by_columns(4096, 99)))
        assert len(foretune.Dataset.open(path)) == 14


def test_other_files_are_not_continued(inductor, training, tmp_path):
    path = tmp_path / "null.ftd"
    training.save(path)
    with pytest.raises(foretune.MismatchError, match="was written by"):
        foretune.torch.collect(path).__enter__()
    own = tmp_path / "own.ftd"
    with foretune.torch.collect(own, role="validation"):
        tune(inductor)
    with pytest.raises(foretune.MismatchError, match="has the role 'validation', not 'training'"):
        foretune.torch.collect(own).__enter__()
    assert not inductor.algorithms.feedback_saver_fns and not inductor.config.max_autotune_gemm


def test_nothing_is_an_error_with_its_reason(inductor, tmp_path):
    with pytest.raises(foretune.UnsupportedError, match="tuned no matrix product inside the with"):
        with foretune.torch.collect(tmp_path / "none.ftd"):
            pass
    float64 = Node((8, 8), dtype="torch.float64")
    with pytest.raises(foretune.UnsupportedError, match="none is a problem.*operands of torch.fl"):
        with foretune.torch.collect(tmp_path / "none.ftd"):
            tune(inductor, nodes=(float64, float64))
    with pytest.raises(foretune.UnsupportedError, match="Inductor measured none of 1 matrix"):
        with foretune.torch.collect(tmp_path / "none.ftd"):
            for function in inductor.algorithms.preprocessing_fns:
                function(choices_for(A, B))
    with pytest.raises(KeyError), foretune.torch.collect(tmp_path / "none.ftd"):
        raise KeyError
    assert not (tmp_path / "none.ftd").exists()


def test_a_failure_of_ours_does_not_break_compilation(inductor, tmp_path):
    (tmp_path / "folder.ftd").mkdir()
    collection = foretune.torch.collect(tmp_path / "mm.ftd")
    with pytest.warns(RuntimeWarning, match="1 operations were measured and lost"), collection:
        tune(inductor)
        collection.path = str(tmp_path / "folder.ftd")
        assert len(tune(inductor, nodes=(A, by_columns(4096, 99)))) == 7
    assert "lost: InputOutputError" in collection.report()
    with pytest.raises(foretune.UnsupportedError, match="1 operations failed, the first because"):
        with foretune.torch.collect(tmp_path / "other.ftd") as collection:
            inductor.algorithms.tune("mm", choices_for(A, B), lambda choice: "fast")


def test_operations_of_others_are_left_alone(inductor, tmp_path):
    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        tune(inductor)
        inductor.algorithms.tune("convolution", choices_for(Node((1, 3, 8, 8)), Node((8, 3, 1, 1))),
                                 milliseconds)
        inductor.algorithms.tune("mm", choices_for(Node((8, 8), (16, 2)), Node((8, 8))),
                                 milliseconds)
    assert collection.problems == 1 and collection.others == 1 and not collection.errors
    assert "neither the rows nor the columns" in collection.report()


def test_only_its_own_functions_are_removed(inductor, tmp_path):
    mine = [lambda choices: choices, lambda *arguments: None]
    with foretune.torch.collect(tmp_path / "mm.ftd"):
        inductor.algorithms.preprocessing_fns.append(mine[0])
        inductor.algorithms.feedback_saver_fns = [*inductor.algorithms.feedback_saver_fns, mine[1]]
        tune(inductor)
    assert inductor.algorithms.preprocessing_fns == mine[:1]
    assert inductor.algorithms.feedback_saver_fns == mine[1:]


def test_wrong_arguments_are_refused(inductor, tmp_path):
    with pytest.raises(foretune.InvalidArgumentError, match="DEFAULT or EXHAUSTIVE"):
        foretune.torch.collect(tmp_path / "mm.ftd", search_space="ALL")
    with pytest.raises(foretune.Error):
        foretune.torch.collect(tmp_path / "mm.ftd", role="test").__enter__()
    collection = foretune.torch.collect(tmp_path / "mm.ftd")
    with collection:
        tune(inductor)
    with pytest.raises(foretune.InvalidArgumentError, match="once"), collection:
        pass


@pytest.mark.skipif("triton" not in dict(foretune.families()),
                    reason="this build has no family triton")
def test_a_model_learns_from_it(inductor, tmp_path):
    from foretune.torch._ranking import LIBRARY, Ranker

    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        for size in (256, 512, 1024, 2048, 4096):
            tune(inductor, nodes=(Node((size, size)), by_columns(size, size)))
    model = foretune.train(collection.dataset(), trees=20, folds=0, threads=1)
    ranker = Ranker(model)
    assert ranker.knows_library and ranker.device == "NVIDIA H200"
    ranked = ranker.rank("gemm op=mm m=1000 n=1024 k=1024 dtype=bf16 layout=rcr")
    assert LIBRARY in ranked and (1, 128, 128, 64, 8, 3, 8) in ranked
    assert len(ranked) == 1 + len(TILES)
