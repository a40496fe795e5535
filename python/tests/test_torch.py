"""foretune.torch without PyTorch: problems, selection, sessions."""

import hashlib
import json
import math
import subprocess
import sys

import foretune
import foretune.torch
import pytest
from foretune.torch import _hooks, _problem, _selection, _session
from foretune.torch._problem import Abstention
from foretune.torch._ranking import LIBRARY, Ranker
from torch_fakes import Choices, Device, Inductor, Node, TILES, by_columns, templates, words
from torch_fakes import Ranker as FakeRanker

A = Node((512, 4096))
B = by_columns(4096, 1024)
PROBLEM = "gemm op=mm m=512 n=1024 k=4096 batch=1 dtype=bf16 layout=rcr"
# ln time: the third tile is the best, then ATen.
SCORES = {LIBRARY: 0.1, words(1, TILES[2]): 0.0, words(1, TILES[1]): 0.3, words(1, TILES[3]): 0.2,
          words(1, TILES[0]): 2.0}


@pytest.fixture
def inductor(monkeypatch):
    made = Inductor()
    install(monkeypatch, made)
    return made


MODEL_IDENTITY = hashlib.sha256(b"a model").hexdigest()[:16]


def install(monkeypatch, inductor):
    monkeypatch.setattr(_hooks, "open_inductor", lambda: inductor.hooks)
    monkeypatch.setattr(_session, "Ranker", FakeRanker)
    monkeypatch.setattr(_session, "_opened", lambda model, _: (model, b"a model"))


def uids(choices):
    return [choice.uid for choice in choices]


def tiles(choices):
    return [choice.keywords.get("BLOCK_M") for choice in choices]


# -- problems -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("operation", "a", "b", "tf32", "text"), [
    ("mm", A, B, False, PROBLEM),
    ("addmm", A, Node((4096, 8)), False,
     "gemm op=addmm m=512 n=8 k=4096 batch=1 dtype=bf16 layout=rrr"),
    ("mm", by_columns(7, 5), by_columns(5, 3), False,
     "gemm op=mm m=7 n=3 k=5 batch=1 dtype=bf16 layout=ccr"),
    ("bmm", Node((6, 7, 5)), Node((6, 5, 3), (15, 1, 5)), False,
     "gemm op=bmm m=7 n=3 k=5 batch=6 dtype=bf16 layout=rcr"),
    ("mm", Node((4, 4), dtype="torch.float32"), Node((4, 4), dtype="torch.float32"), True,
     "gemm op=mm m=4 n=4 k=4 batch=1 dtype=tf32 layout=rrr"),
    ("mm", Node((4, 4), dtype="torch.float32"), Node((4, 4), dtype="torch.float32"), False,
     "gemm op=mm m=4 n=4 k=4 batch=1 dtype=f32 layout=rrr"),
    # Rows with gaps; a single row and a single column, which are both row-major and column-major;
    # those with the strides of a Linear's operands.
    ("mm", Node((512, 64), (4096, 1)), Node((64, 9), (1, 100)), False,
     "gemm op=mm m=512 n=9 k=64 batch=1 dtype=bf16 layout=rcr"),
    ("mm", Node((1, 64)), by_columns(64, 1), False,
     "gemm op=mm m=1 n=1 k=64 batch=1 dtype=bf16 layout=rcr"),
    ("mm", Node((1, 64), (999, 1)), Node((64, 1), (1, 999)), False,
     "gemm op=mm m=1 n=1 k=64 batch=1 dtype=bf16 layout=rrr"),
])
def test_operands_become_a_problem(operation, a, b, tf32, text):
    found = _problem.problem_text(operation, a, b, tf32=tf32)
    assert found == text
    assert foretune.problem_text(found) == text


class Symbol:
    is_Integer = False

    def __str__(self):
        return "s0"


class SympyInteger:
    is_Integer = True

    def __init__(self, value):
        self.value = value

    def __int__(self):
        return self.value


def test_sizes_may_be_sympys():
    a = Node((SympyInteger(512), SympyInteger(4096)), (SympyInteger(4096), SympyInteger(1)))
    assert _problem.problem_text("mm", a, B, tf32=False) == PROBLEM


@pytest.mark.parametrize(("operation", "a", "b", "reason"), [
    ("mm", Node((Symbol(), 4096), (4096, 1)), B, "dynamic"),
    ("mm", Node((0, 4096), (4096, 1)), B, "empty"),
    ("mm", A, by_columns(4096, 8, dtype="torch.float16"), "two data types"),
    ("mm", Node((4, 4), dtype="torch.int8"), Node((4, 4), dtype="torch.int8"), "torch.int8"),
    ("mm", Node((4, 4), (8, 2)), Node((4, 4)), "neither the rows nor the columns of the first"),
    ("mm", Node((4, 4)), Node((4, 4), (0, 1)), "the second matrix is a broadcast"),
    ("bmm", Node((3, 4, 4), (0, 4, 1)), Node((3, 4, 4)), "one matrix for the whole batch"),
    ("bmm", Node((4, 4)), Node((4, 4)), "3 dimensions"),
    ("baddbmm", Node((3, 4, 4)), Node((3, 4, 4)), "baddbmm is no operation"),
    ("mm", A, Node((5, 5)), "do not fit"),
])
def test_what_is_no_problem_says_why(operation, a, b, reason):
    with pytest.raises(Abstention, match=reason):
        _problem.problem_text(operation, a, b, tf32=False)
    assert _problem.rough_text(operation, (a, a, b)[-2:]).startswith(operation)


# -- selection ------------------------------------------------------------------------------------


def offered(*library):
    from torch_fakes import TemplateChoice
    return {**{uid: iter([TemplateChoice(uid)]) for uid in library}, "triton::mm":
            templates("triton::mm"), "decompose_k": iter([TemplateChoice("decompose_k")])}


def test_one_is_the_winner_alone():
    template = _selection.select(offered("aten::mm"), SCORES, 1, knows_library=True)
    assert uids(template.choices) == ["triton::mm"] and tiles(template.choices) == [128]
    assert template.picks == ("triton::mm block_m=128 block_n=128 block_k=64 group_m=8 "
                              "num_stages=3 num_warps=8",)
    assert template.speedup == pytest.approx(1.105, abs=1e-3) and not template.library_alone
    faster = {**SCORES, LIBRARY: -0.1}
    library = _selection.select(offered("aten::bias_addmm", "aten::addmm"), faster, 1,
                                knows_library=True)
    assert library.picks == ("aten::bias_addmm",)
    assert library.library_alone and library.speedup == 1.0


def test_more_than_one_keeps_the_library_and_its_place():
    found = _selection.select(offered("aten::bias_addmm", "aten::addmm"), SCORES, 3,
                              knows_library=True)
    assert [pick.split()[0] for pick in found.picks] == [
        "triton::mm", "aten::bias_addmm", "aten::addmm", "triton::mm"]
    assert found.candidates == 4 and found.speedup == pytest.approx(1.105, abs=1e-3)
    assert not any("decompose" in pick for pick in found.picks)


def test_templates_without_a_chance_are_not_kept():
    """Checks picks with template scores 0, 0.2, 0.3 and 2."""
    library = ("aten::bias_addmm", "aten::addmm")
    for library_score, tolerance, kept in [(0.1, 0.2, 2), (0.1, 0.1, 1), (-0.02, 0.05, 1),
                                           (-0.1, 0.05, 0), (-0.1, math.inf, 4)]:
        found = _selection.select(offered(*library), {**SCORES, LIBRARY: library_score}, 9,
                                  knows_library=True, tolerance=tolerance)
        assert uids(found.choices).count("triton::mm") == kept, (library_score, tolerance)
        assert found.library_alone == (kept == 0)
        # Without templates to compare, one of ATen's variants is enough.
        assert [uid for uid in uids(found.choices) if uid.startswith("aten")] == list(
            library[:1] if kept == 0 else library)


@pytest.mark.parametrize(("k", "library_score"), [(1, 0.0), (9, -0.1)])
def test_templates_are_not_even_made_where_the_library_wins(k, library_score):
    def made():
        raise AssertionError("asked for")
        yield

    found = _selection.select({"triton::mm": made(), "aten::mm": iter([object()])},
                              {**SCORES, LIBRARY: library_score}, k, knows_library=True,
                              tolerance=0.05)
    assert found.library_alone and found.candidates == 4
    with pytest.raises(AssertionError, match="asked for"):
        _selection.select({"triton::mm": made(), "aten::mm": iter([object()])}, SCORES, k,
                          knows_library=True, tolerance=0.05)


def test_choices_are_inductors_own_and_unchanged():
    made = list(templates("triton::mm"))
    before = [dict(choice.keywords) for choice in made]
    found = _selection.select({"triton::mm": iter(made)}, SCORES, 9, knows_library=True)
    assert all(any(choice is mine for mine in made) for choice in found.choices)
    assert [choice.keywords for choice in made] == before
    # When ATen is not offered, all k picks are templates.
    assert len(found.choices) == 4 and found.speedup is None


def test_a_model_that_does_not_know_the_library():
    scores = {key: value for key, value in SCORES.items() if key != LIBRARY}
    one = _selection.select(offered("aten::mm"), scores, 1, knows_library=False)
    assert tiles(one.choices) == [128] and one.speedup is None
    some = _selection.select(offered("aten::mm"), scores, 3, knows_library=False)
    assert uids(some.choices) == ["triton::mm", "triton::mm", "aten::mm"]


def test_what_the_model_never_saw_is_not_ranked():
    found = _selection.select(offered("aten::mm"), SCORES, 9, knows_library=True)
    assert found.candidates == 4  # of 6 tiles
    with pytest.raises(Abstention, match="no template that the model knows"):
        _selection.select({"aten::mm": iter([object()])}, SCORES, 5, knows_library=True)
    for_a_hint = list(templates("triton::mm"))
    for choice in for_a_hint:
        choice.keywords["hint_override"] = 128
    with pytest.raises(Abstention, match="no template"):
        _selection.select({"triton::mm": for_a_hint}, SCORES, 5, knows_library=True)


def test_templates_are_told_apart():
    scores = {words(2, TILES[2]): 0.0, words(1, TILES[2]): 0.1, LIBRARY: 0.2}
    both = {"aten::mm": [], "triton::mm": templates("triton::mm"),
            "triton::mm_persistent_tma": templates("triton::mm_persistent_tma")}
    found = _selection.select(both, scores, 2, knows_library=True)
    assert uids(found.choices) == ["triton::mm_persistent_tma", "triton::mm"]


# -- sessions -------------------------------------------------------------------------------------


def test_a_session_picks_and_restores(inductor):
    before = inductor.config.snapshot()
    with foretune.torch.autotune(SCORES, k=3, tolerance=0.5) as session:
        assert inductor.config.cache_key_tag == "+foretune2:" + MODEL_IDENTITY + ":k3:t0.5"
        kept = inductor.lower("mm", A, B)
        # Outside an operation the session changes nothing.
        assert not inductor.config.max_autotune_gemm
        assert type(inductor.virtualized.choices) is Choices
    assert uids(kept) == ["triton::mm", "aten::mm", "triton::mm"]
    assert inductor.config.snapshot() == before and inductor.lowerings == inductor.original
    during = inductor.seen[0]
    assert during["max_autotune_gemm"] and not during["max_autotune"]
    assert during["max_autotune_gemm_search_space"] == "EXHAUSTIVE"
    (decision,) = session.decisions
    assert decision.problem == PROBLEM and decision.reason is None
    assert len(decision.picks) == 3 and decision.candidates == 4
    assert decision.ranking_seconds > 0
    assert "1.11 x" in session.report() and "1 picked, 0 left" in session.report()


def test_where_no_template_may_win_nothing_is_measured(inductor):
    with foretune.torch.autotune({**SCORES, LIBRARY: -1.0}, k=5) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert not inductor.config.max_autotune_gemm
    (decision,) = session.decisions
    assert decision.picks == ("aten::mm",) and decision.reason is None


def test_everything_is_restored_after_an_exception(inductor):
    before = inductor.config.snapshot()
    with pytest.raises(RuntimeError, match="mine"):
        with foretune.torch.autotune(SCORES):
            raise RuntimeError("mine")
    assert inductor.config.snapshot() == before and inductor.lowerings == inductor.original


def test_the_library_alone_is_lowered_as_without_us(inductor):
    with foretune.torch.autotune({**SCORES, LIBRARY: -1.0}, k=1) as session:
        kept = inductor.lower("addmm", Node((1024,)), A, B)
    assert uids(kept) == ["aten::addmm"]  # of the default mode, not the one of autotuning
    assert not inductor.seen[-1]["max_autotune_gemm"]
    assert session.decisions[0].picks == ("aten::bias_addmm",)
    assert session.decisions[0].speedup == 1.0 and session.decisions[0].reason is None


def test_with_the_users_autotuning_the_library_alone_is_the_pick(monkeypatch):
    inductor = Inductor(max_autotune=True)
    install(monkeypatch, inductor)
    with foretune.torch.autotune({**SCORES, LIBRARY: -1.0}, k=1):
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]


@pytest.mark.parametrize("outer", [{}, {"max_autotune": True}])
@pytest.mark.parametrize(("operation", "arguments", "keywords", "reason"), [
    ("mm", (Node((8, 8), device=Device("cpu")), Node((8, 8))), {}, "on cpu:0, which is no GPU"),
    ("mm", (Node((Symbol(), 4096), (4096, 1)), B), {}, "dynamic"),
    ("mm", (A, B), {"out_dtype": "torch.float32"}, "torch.float32, not of the operands' type"),
    ("bmm", (Node((2, 8, 8)), Node((2, 8, 8)), "torch.float32"), {}, "not of the operands' type"),
    ("mm", (Node((8, 8), (16, 2)), Node((8, 8))), {}, "neither the rows nor the columns"),
    ("mm", (A,), {}, "not where they were expected"),
    ("baddbmm", (Node((2, 8, 8)),) * 3, {}, "baddbmm is no operation"),
])
def test_what_is_not_covered_takes_inductors_own_way(monkeypatch, outer, operation, arguments,
                                                     keywords, reason):
    inductor = Inductor(**outer)
    install(monkeypatch, inductor)
    expected = uids(inductor.lower(operation, *arguments, **keywords))
    before = inductor.seen[-1]
    with foretune.torch.autotune(SCORES, k=1) as session:
        assert uids(inductor.lower(operation, *arguments, **keywords)) == expected
    (decision,) = session.decisions
    assert reason in decision.reason and decision.picks == () and decision.speedup is None
    assert {**inductor.seen[-1], "cache_key_tag": ""} == before
    assert "left to Inductor: " + decision.reason in session.report()


def test_the_models_abstention_is_the_reason(inductor):
    with foretune.torch.autotune({}) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert session.decisions[0].reason == "The problem lies outside."
    assert session.decisions[0].problem == PROBLEM


def test_a_failure_of_ours_does_not_break_compilation(inductor):
    with foretune.torch.autotune(ValueError("no such\nthing")) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert session.decisions[0].reason == "it failed: ValueError: no such"


def test_a_failure_of_the_operation_is_the_operations(inductor):
    def broken(*arguments, **keywords):
        raise LookupError("lowering")

    inductor.lowerings["mm"] = broken
    with foretune.torch.autotune(SCORES) as session:
        with pytest.raises(LookupError, match="lowering"):
            inductor.lower("mm", A, B)
    assert "LookupError" in session.decisions[0].reason
    assert inductor.lowerings["mm"] is broken


def test_choices_that_cannot_be_built_are_an_abstention(inductor, monkeypatch):
    class Fussy(Choices):
        def get_template_configs(self, kernel_inputs, templates, op_name, kwarg_overrides=None):
            built = super().get_template_configs(kernel_inputs, templates, op_name)
            return [choice for choice in built if choice.uid.startswith("aten")]

    inductor.virtualized.choices = Fussy(inductor)
    with foretune.torch.autotune(SCORES, k=1) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert "could not make" in session.decisions[0].reason


def test_the_previous_handler_keeps_all_but_the_last_word(inductor):
    class Mine(Choices):
        def __init__(self, inductor):
            super().__init__(inductor)
            self.calls = 0

        def get_template_configs(self, kernel_inputs, templates, op_name, kwarg_overrides=None):
            self.calls += 1
            return super().get_template_configs(kernel_inputs, templates, op_name)

        def _finalize_template_configs(self, template_choices, *rest, **keywords):
            return ["mine"]

    mine = inductor.virtualized.choices = Mine(inductor)
    with foretune.torch.autotune(SCORES, k=1):
        assert tiles(inductor.lower("mm", A, B)) == [128]
        assert inductor.lower("mm", Node((8, 8), device=Device("cpu")), Node((8, 8))) == ["mine"]
    assert mine.calls == 2 and inductor.virtualized.choices is mine


def test_a_handler_that_never_asks_is_left_alone(inductor):
    class Stubborn(Choices):
        def get_template_configs(self, kernel_inputs, templates, op_name, kwarg_overrides=None):
            return [op_name, self.inductor.config.max_autotune_gemm]

    inductor.virtualized.choices = Stubborn(inductor)
    with foretune.torch.autotune(SCORES, k=1) as session:
        assert inductor.lower("mm", A, B) == ["mm", False]
    assert session.decisions[0].reason == "Inductor did not ask for choices"


def test_sessions_nest_and_end_in_any_order(inductor):
    inner_scores = {LIBRARY: 1.0, words(1, TILES[3]): 0.0}
    before = inductor.config.snapshot()
    outer = foretune.torch.autotune(SCORES, k=1)
    with outer:
        with foretune.torch.autotune(inner_scores, k=2) as inner:
            assert inductor.config.cache_key_tag.count("+foretune") == 2
            assert uids(inductor.lower("mm", A, B)) == ["triton::mm", "aten::mm"]
        assert tiles(inductor.lower("mm", A, B)) == [128]
        # Where the inner session abstains, the outer one serves.
        with foretune.torch.autotune({}, k=2):
            assert tiles(inductor.lower("mm", A, B)) == [128]
    assert len(outer.decisions) == 2 and len(inner.decisions) == 1
    first, second = (foretune.torch.autotune(SCORES, k=k) for k in (1, 2))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert uids(inductor.lower("mm", A, B)) == ["triton::mm", "aten::mm"]
    second.__exit__(None, None, None)
    assert inductor.config.snapshot() == before and inductor.lowerings == inductor.original


def test_the_tag_tells_sessions_apart_and_is_added_to_the_users(inductor):
    inductor.config.cache_key_tag = "mine"
    tags = []
    for k, devices in ((1, False), (2, False), (1, True)):
        with foretune.torch.autotune(SCORES, k=k, other_devices=devices):
            tags.append(inductor.config.cache_key_tag)
    assert len(set(tags)) == 3 and all(tag.startswith("mine+") for tag in tags)
    assert inductor.config.cache_key_tag == "mine"
    with foretune.torch.autotune(SCORES):
        inductor.config.cache_key_tag = "changed"
    assert inductor.config.cache_key_tag == "changed"


@pytest.mark.parametrize(("settings", "reason"), [
    ({"triton.native_matmul": True}, "native_matmul"),
    # Inductor's setting for a nested graph that must not be tuned.
    ({"max_autotune_gemm_backends": "ATEN"}, "not among the GEMM backends"),
])
def test_settings_that_rule_templates_out(monkeypatch, settings, reason):
    inductor = Inductor(**settings)
    install(monkeypatch, inductor)
    with foretune.torch.autotune(SCORES) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert reason in session.decisions[0].reason


def test_a_user_without_the_library_gets_none(monkeypatch):
    inductor = Inductor(max_autotune_gemm=True, max_autotune_gemm_backends="TRITON")
    install(monkeypatch, inductor)
    with foretune.torch.autotune({**SCORES, LIBRARY: -9.0}, k=2) as session:
        assert uids(inductor.lower("mm", A, B)) == ["triton::mm", "triton::mm"]
    assert session.decisions[0].speedup is None


def test_only_the_device_of_the_model_is_covered(inductor):
    inductor.device_name = "NVIDIA H100 80GB HBM3"
    with foretune.torch.autotune(SCORES, k=1) as session:
        assert uids(inductor.lower("mm", A, B)) == ["aten::mm"]
    assert session.decisions[0].reason == ("the model was trained on NVIDIA H200, not on "
                                           "NVIDIA H100 80GB HBM3")
    with foretune.torch.autotune(SCORES, k=1, other_devices=True):
        assert tiles(inductor.lower("mm", A, B)) == [128]
    inductor.device_name = "NVIDIA H200 NVL"
    with foretune.torch.autotune(SCORES, k=1):
        assert tiles(inductor.lower("mm", A, B)) == [128]


def test_graphs_from_the_cache_are_counted(inductor):
    with foretune.torch.autotune(SCORES) as session:
        inductor.hits += 2
    inductor.hits += 1
    assert session.cached_graphs == 2 and "2 graphs came from Inductor's cache" in session.report()


def test_wrong_arguments_are_refused(inductor):
    for k in (0, -1, 1.5, True):
        with pytest.raises(foretune.InvalidArgumentError, match="whole number from 1"):
            foretune.torch.autotune(SCORES, k=k)
    for tolerance in (-0.1, math.nan):
        with pytest.raises(foretune.InvalidArgumentError, match="at least 0"):
            foretune.torch.autotune(SCORES, tolerance=tolerance)
    session = foretune.torch.autotune(SCORES)
    with session:
        pass
    with pytest.raises(foretune.InvalidArgumentError, match="once"), session:
        pass


def test_inductor_makes_only_the_candidates_that_matter(inductor, monkeypatch):
    monkeypatch.setattr(_session, "_SPARE", 1)
    made = []
    heuristic = inductor.heuristics["triton::mm"]
    whole = list(heuristic.exhaustive_configs)
    make = heuristic.make

    def noted(uid):
        for choice in make(uid):
            made.append(choice)
            yield choice

    heuristic.make = noted
    with foretune.torch.autotune(SCORES, k=1) as session:
        assert tiles(inductor.lower("mm", A, B)) == [128]
        assert len(made) == 2 and session.decisions[0].candidates == 4
        del heuristic.exhaustive_configs
        heuristic.make = templates
        assert tiles(inductor.lower("mm", A, B)) == [128]
    heuristic.exhaustive_configs = whole
    with foretune.torch.autotune({**SCORES, (1, 7, 7, 7, 8, 1, 1): -1.0}, k=1):
        heuristic.make = make
        assert tiles(inductor.lower("mm", A, B)) == [128]
    assert heuristic.exhaustive_configs == whole


def test_equal_operations_share_a_line(inductor):
    with foretune.torch.autotune(SCORES, k=2) as session:
        for _ in range(3):
            inductor.lower("mm", A, B)
    assert "3 x gemm op=mm" in session.report() and "(+1)" in session.report()
    assert session.report().count("\n") == 2


# -- models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def old_model(tmp_path_factory):
    """Trains a model on a formula's times, with a config schema that lacks ``template``."""
    lines = ["m,n,k,dtype,layout,block_m,block_n,block_k,group_m,num_stages,num_warps,time_us"]
    for size in (256, 512, 1024, 2048, 4096, 8192):
        for block, warps in ((32, 4), (64, 4), (128, 8)):
            for stages in (2, 3, 4):
                time_us = 5 + size**3 * 1e-8 * (1 + 32 / block) + stages
                lines.append(f"{size},{size},{size},bf16,rcr,{block},{block},32,8,{stages},{warps},"
                             f"{time_us}")
    path = tmp_path_factory.mktemp("old") / "old.csv"
    path.write_text("\n".join(lines) + "\n")
    return foretune.train(foretune.Dataset.open(path), trees=20, folds=0, threads=1)


def test_a_real_model_ranks_its_pool(old_model):
    ranker = Ranker(old_model)
    assert not ranker.knows_library and ranker.device == "NVIDIA H200"
    problem = "gemm op=mm m=1000 n=1024 k=1024 dtype=bf16 layout=rcr"
    ranked = ranker.rank(problem)
    assert ranker.rank(problem) is ranked
    assert all(len(key) == 7 and key[0] == 1 and key[4] == 8 for key in ranked)
    # The pool is the family's space: Inductor's tile of one stage is not in it.
    assert words(1, TILES[2]) in ranked and words(1, TILES[5]) not in ranked
    ordered = ranker.ordered(problem)
    assert list(ordered) == [1] and len(ordered[1]) == len(ranked)
    assert ranked[ordered[1][0]] == min(ranked.values())
    with pytest.raises(Abstention, match="outside of what the model was trained on"):
        ranker.rank("gemm op=mm m=1000 n=1024 k=1024 dtype=f16 layout=rcr")
    # A bias hardly changes the time, so addmm is covered; another operation is not.
    assert ranker.rank(problem.replace("op=mm", "op=addmm")) == ranked
    with pytest.raises(Abstention):
        ranker.rank("gemm op=bmm m=1000 n=1024 k=1024 batch=4 dtype=bf16 layout=rcr")
    found = _selection.select(offered("aten::mm"), ranked, 1, knows_library=False)
    assert found.candidates == len(ranked) and tiles(found.choices) != [16]


def test_a_model_of_torch_diodes_data_ranks_templates(tmp_path):
    def timed(block, allow_tf32, size):
        return {"config": {"block_m": block, "block_n": block, "block_k": 32, "group_m": 8,
                           "num_stages": 3, "num_warps": 4, "ALLOW_TF32": allow_tf32},
                "time": 0.005 + size**3 * 1e-11 * (1 + 32 / block) * (1 if allow_tf32 else 2)}

    solutions = {
        json.dumps({"B": 1, "M": size, "N": size, "K": size, "M_dtype": "float32"}):
            {"timed_configs": [timed(block, tf32, size)
                               for block in (32, 64, 128) for tf32 in (False, True)]}
        for size in (256, 512, 1024, 2048, 4096, 8192)}
    path = tmp_path / "diode.json"
    path.write_text(json.dumps({"hardware": {"NVIDIA H100": {"operation": {
        "mm": {"solution": solutions}}}}}))
    options = {"trees": 20, "folds": 0, "threads": 1, "min_rows_per_leaf": 1}
    model = foretune.train(foretune.Dataset.open(path), **options)
    ranker = Ranker(model)
    assert not ranker.knows_library and ranker.device == "NVIDIA H100"
    problem = "gemm op=mm m=1000 n=1024 k=1024 dtype=f32 layout=rrr"
    ranked = ranker.rank(problem)
    assert set(ranked) == {(1, block, block, 32, 8, 3, 4) for block in (32, 64, 128)}
    configs, scores = foretune.Selector(model)._native.rank_words(problem)
    assert len(configs) == 6
    assert sorted(ranked.values()) == sorted(
        min(score for config, score in zip(configs.tolist(), scores.tolist())
            if config[0] == block) for block in (32, 64, 128))


def test_the_shipped_model_is_that_of_the_device(old_model, monkeypatch, tmp_path):
    monkeypatch.setattr(_session, "_MODELS", tmp_path)
    inductor = Inductor()
    with pytest.raises(foretune.UnsupportedError, match=r"no model is shipped for NVIDIA H200 \("):
        _session._opened(None, inductor.hooks)
    old_model.save(tmp_path / "triton-sm_90.ftm")
    for named in (None, tmp_path / "triton-sm_90.ftm", old_model):
        opened, data = _session._opened(named, inductor.hooks)
        assert opened.info == old_model.info and data == old_model.to_bytes()
    with pytest.raises(foretune.NotFoundError):
        _session._opened(tmp_path / "none.ftm", inductor.hooks)
    monkeypatch.setattr(Inductor, "_facts", lambda *_: None)
    with pytest.raises(foretune.UnsupportedError, match="no GPU of NVIDIA's here"):
        _session._opened(None, Inductor().hooks)


def test_models_of_other_kernels_are_refused(model):
    with pytest.raises(foretune.UnsupportedError, match="which are not those of Triton's GEMM"):
        Ranker(model)


# -- without PyTorch ------------------------------------------------------------------------------


def test_importing_changes_nothing_and_needs_no_torch():
    code = ("import sys\n"
            "sys.modules['torch'] = sys.modules['triton'] = None\n"
            "import foretune, foretune.torch\n"
            "try:\n"
            "    with foretune.torch.autotune('none.ftm'): pass\n"
            "except foretune.UnsupportedError as error:\n"
            "    print(error)\n")
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout.startswith("foretune.torch needs PyTorch")
