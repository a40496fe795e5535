"""foretune.torch without PyTorch, for behaviour that Inductor did not have in 2.11: it offers an
operation's choices in several calls, lowers an operation through another, or has a choices handler
that is composed of several."""

import foretune
import foretune.torch
import pytest
from foretune.torch import _hooks, _session
from foretune.torch._ranking import LIBRARY
from torch_fakes import Choices, Inductor, Node, Ranker, TILES, by_columns, words

A = Node((512, 4096))
B = by_columns(4096, 1024)
BIAS = Node((1024,))
# ln time: the third tile is the best, then ATen.
SCORES = {LIBRARY: 0.1, words(1, TILES[2]): 0.0, words(1, TILES[3]): 0.2}
FASTER_LIBRARY = {**SCORES, LIBRARY: -1.0}
# The calls of PyTorch 2.15 for addmm, where one call offered all choices before.
GENERAL_FIRST = ["aten::addmm", "aten::bias_addmm"]
TEMPLATES = ["triton::mm", "triton::mm_persistent_tma"]
QUESTIONS = [GENERAL_FIRST, ["decompose_k"], TEMPLATES]


@pytest.fixture(autouse=True)
def fake_rankers(monkeypatch):
    monkeypatch.setattr(_session, "Ranker", Ranker)
    monkeypatch.setattr(_session, "_opened", lambda model, _: (model, b"a model"))


@pytest.fixture
def make(monkeypatch):
    def made(questions=(None,), **settings):
        inductor = Inductor(**settings)
        inductor.questions = list(questions)
        monkeypatch.setattr(_hooks, "open_inductor", lambda: inductor.hooks)
        return inductor

    return made


def picked(inductor, scores, k, **keywords):
    """Returns the uids of the choices that are kept for ``addmm``, and the decision."""
    with foretune.torch.autotune(scores, k=k, **keywords) as session:
        kept = inductor.lower("addmm", BIAS, A, B)
    (decision,) = session.decisions
    return [choice.uid for choice in kept], decision


@pytest.mark.parametrize("outer", [{}, {"max_autotune": True}])
@pytest.mark.parametrize("scores", [SCORES, FASTER_LIBRARY])
@pytest.mark.parametrize("k", [1, 3])
def test_in_how_many_questions_makes_no_difference(make, outer, scores, k):
    together, expected = picked(make(**outer), scores, k, tolerance=0.5)
    apart, decision = picked(make(QUESTIONS, **outer), scores, k, tolerance=0.5)
    assert apart == together and expected.reason is None
    assert decision.picks == expected.picks and decision.speedup == expected.speedup
    assert decision.candidates == expected.candidates and decision.ranking_seconds > 0


def test_the_library_keeps_its_place_among_the_picks(make):
    kept, decision = picked(make(QUESTIONS), SCORES, 3, tolerance=0.5)
    assert kept == ["triton::mm", "aten::bias_addmm", "aten::addmm", "triton::mm"]
    assert [pick.split()[0] for pick in decision.picks] == kept


def test_what_comes_after_the_picks_and_is_nothing_of_the_models_is_left_out(make):
    kept, decision = picked(make([GENERAL_FIRST, TEMPLATES, ["decompose_k"]]), SCORES, 1)
    assert kept == ["triton::mm"] and decision.reason is None


@pytest.mark.parametrize("late", ["aten::bias_addmm", "triton::mm_persistent_tma"])
def test_what_would_have_counted_must_not_come_after_the_picks(make, late):
    inductor = make([["aten::addmm"], ["triton::mm"], [late]])
    kept, decision = picked(inductor, SCORES, 1)
    assert kept == ["aten::addmm"]
    assert decision.reason == "Inductor offered more choices after the model had picked"
    assert not inductor.seen[-1]["max_autotune_gemm"]


@pytest.mark.parametrize("questions", [[GENERAL_FIRST], [GENERAL_FIRST, ["decompose_k"]],
                                       [GENERAL_FIRST, []]])
def test_where_no_templates_follow_inductors_own_way_is_taken(make, questions):
    kept, decision = picked(make(questions), SCORES, 2)
    assert kept == ["aten::addmm"] and decision.picks == ()
    assert decision.reason == "Inductor offers no template that the model knows"


def test_an_error_of_ours_is_told_from_inductors(make):
    kept, decision = picked(make(QUESTIONS), ValueError("mine"), 2)
    assert kept == ["aten::addmm"] and decision.reason == "it failed: ValueError: mine"


@pytest.mark.parametrize("sessions", [1, 2])
def test_an_operation_by_way_of_another_is_the_other_ones(make, sessions):
    inductor = make()
    inductor.lowerings["addmm"] = lambda bias, a, b: inductor.lowerings["mm"](a, b)
    opened = [foretune.torch.autotune(SCORES, k=1) for _ in range(sessions)]
    for session in opened:
        session.__enter__()
    kept = inductor.lower("addmm", BIAS, A, B)
    for session in opened:
        session.__exit__(None, None, None)
    assert [choice.uid for choice in kept] == ["triton::mm"]
    # Only the second attempt lowers the operation, and the session opened last picks for it.
    assert len(inductor.seen) == 1
    reasons = [[(decision.operation, decision.reason) for decision in session.decisions]
               for session in opened]
    given_up = ("addmm", "Inductor lowers it as mm")
    assert reasons == [[given_up]] * (sessions - 1) + [[given_up, ("mm", None)]]
    assert inductor.lower("mm", A, B)[0].uid == "aten::mm"


def test_without_measuring_there_is_one_pick(make):
    for scores, expected in ((SCORES, "triton::mm"), (FASTER_LIBRARY, "aten::addmm")):
        kept, decision = picked(make(deterministic=True), scores, 5, tolerance=9)
        assert kept == [expected] and len(decision.picks) == 1


def test_the_last_word_is_ours_with_a_handler_made_of_several(make):
    class Part(Choices):
        asked = 0

        def _finalize_template_configs(self, *arguments, **keywords):
            Part.asked += 1
            return super()._finalize_template_configs(*arguments, **keywords)

    class Composed(Choices):
        def __init__(self, inductor):
            super().__init__(inductor)
            self.part = Part(inductor)

        def __getattribute__(self, name):
            if name == "_finalize_template_configs":
                return object.__getattribute__(self, "part")._finalize_template_configs
            return object.__getattribute__(self, name)

    inductor = make(QUESTIONS)
    composed = inductor.virtualized.choices = Composed(inductor)
    kept, decision = picked(inductor, SCORES, 1)
    assert kept == ["triton::mm"] and decision.reason is None and Part.asked == 0
    assert inductor.virtualized.choices is composed
    assert inductor.lower("addmm", BIAS, A, B)[0].uid == "aten::addmm" and Part.asked == 3


@pytest.mark.parametrize("name", ["benchmark_epilogue_fusion", "benchmark_template_fusion"])
def test_measuring_is_not_deferred_under_either_name(make, tmp_path, name):
    inductor = make(**{name: True})
    with pytest.raises(foretune.UnsupportedError, match="nothing was collected"):
        with foretune.torch.collect(tmp_path / "mm.ftd"):
            during = inductor.config.snapshot()
    assert during[name] is False and inductor.config.snapshot()[name] is True
