"""Tuning one problem, and measuring given configs."""

import foretune
import pytest

PROBLEM = "gemm m=48 n=64 k=32"


def test_tuning_finds_more_than_the_default(tmp_path):
    steps = []
    found = foretune.tune(PROBLEM, family="null", budget="60", finalists=3, rounds=2,
                          output=tmp_path / "tuned.ftd", progress=steps.append)
    assert found.measured > 20 and "m=48 n=64 k=32" in found.problem
    assert [each.time_ns for each in found.finalists] == sorted(
        each.time_ns for each in found.finalists)
    assert found.best.metrics["time_ns"] == found.best.time_ns
    assert found.speedup is None or found.speedup >= 1
    assert steps[-1]["best_config"]
    assert len(foretune.Dataset.open(tmp_path / "tuned.ftd")) >= 20
    with pytest.raises(foretune.InvalidArgumentError, match="holds this problem's result"):
        foretune.tune(PROBLEM, family="null", budget="60", output=tmp_path / "tuned.ftd")


def test_the_same_seed_finds_the_same():
    found = [foretune.tune(dict(m=48, n=64, k=32), family="null", strategy="random", budget="8",
                           seed=seed)
             for seed in (1, 1, 2)]
    assert found[0].finalists == found[1].finalists
    assert found[0].finalists != found[2].finalists


def test_this_cpu_is_tuned_in_a_worker():
    found = foretune.tune(PROBLEM, budget="12", rounds=2, threads=1)
    assert found.best.time_ns > 0 and found.default is not None


def test_an_exception_of_progress_stops_the_search():
    def enough(step):
        if step["measured"] >= 5:
            raise StopIteration("that will do")

    with pytest.raises(StopIteration, match="that will do"):
        foretune.tune(PROBLEM, family="null", budget="500", progress=enough)


def test_given_configs_are_measured_beside_the_default(model):
    best = foretune.Selector(model).rank(PROBLEM)[-1][0]
    measured = foretune.measure(PROBLEM, [best], family="null", model=None, rounds=2)
    given = next(each for each in measured if "given" in each.name)
    assert given.config == best and given.outcome == "ok" and given.time_ns > 0
    assert given.metrics["time_ns"] > 0


@pytest.mark.parametrize("call, sentence", [
    (lambda: foretune.tune(PROBLEM, budget="soon"), "soon"),
    (lambda: foretune.tune("gemm m=4"), "n"),
    (lambda: foretune.tune(PROBLEM, width=3), "only with --strategy beam"),
    (lambda: foretune.tune(PROBLEM, finalist=3), "did you mean 'finalists'"),
    (lambda: foretune.measure(PROBLEM, ["mr=8"], family="null"), "mr=8"),
])
def test_what_makes_no_sense_is_refused_in_a_sentence(call, sentence):
    with pytest.raises(foretune.Error, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
