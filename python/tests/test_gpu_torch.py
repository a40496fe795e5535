"""foretune.torch on a GPU: Inductor compiles the picks of models of a formula; results are correct.
"""

import foretune
import foretune.torch
import pytest
from gpu import operand, torch
from torch_formula import model_of


def linear(x, w):
    return x @ w.t()


def biased(x, w, b):
    return torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))


def batched(x, y):
    return torch.bmm(x, y)


CASES = {
    "linear": (linear, [(1311, 1024), (2048, 1024)], "triton::mm "),
    "odd-k": (linear, [(1311, 1004), (2048, 1004)], "triton::mm "),
    "biased": (biased, [(1311, 1024), (2048, 1024), (2048,)], "triton::mm "),
    "batched": (batched, [(4, 1000, 1024), (4, 1024, 1024)], "triton::bmm "),
}


def formula(library_share, tma_factor):
    """Trains a model on times by a formula; the arguments decide which kind of kernel wins."""
    return model_of(torch.cuda.get_device_name(), library_share, tma_factor)


@pytest.fixture(scope="module")
def templates_win():
    return formula(0.3, 1.5)


@pytest.fixture(scope="module")
def descriptors_win():
    return formula(0.3, 0.8)


@pytest.fixture(scope="module")
def library_wins():
    return formula(1.2, 1.0)


def decide(model, k, name, mode="default"):
    """Compiles the case, checks its result in f32, and returns the decision."""
    function, shapes, _ = CASES[name]
    arguments = [operand(*shape) for shape in shapes]
    torch._dynamo.reset()
    with torch.no_grad():
        wanted = function(*(argument.float() for argument in arguments))
        with foretune.torch.autotune(model, k=k, other_devices=True) as session:
            got = torch.compile(function, dynamic=False, mode=mode)(*arguments)
    assert float((got.float() - wanted).norm() / wanted.norm()) < 1e-2
    (decision,) = session.decisions
    return decision


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("k", [1, 5])
def test_templates_are_compiled_and_right(templates_win, k, name):
    decision = decide(templates_win, k, name)
    assert decision.reason is None
    assert decision.picks[0].startswith(CASES[name][2])
    templates = [pick for pick in decision.picks if pick.startswith("triton::")]
    assert len(templates) == max(1, k - 1)


@pytest.mark.parametrize("name", ["linear", "biased"])
@pytest.mark.parametrize("k", [1, 5])
def test_tensor_descriptors_are_compiled_and_right(descriptors_win, k, name):
    assert decide(descriptors_win, k, name).picks[0].startswith("triton::mm_persistent_tma ")


@pytest.mark.parametrize("k", [1, 5])
def test_where_the_library_wins_nothing_is_measured(library_wins, k):
    assert [pick.split("::")[0] for pick in decide(library_wins, k, "biased").picks] == ["aten"]


def test_around_max_autotune(descriptors_win):
    decision = decide(descriptors_win, 3, "biased", mode="max-autotune-no-cudagraphs")
    assert decision.reason is None and len(decision.picks) >= 3


def test_training_compiles_inside(templates_win):
    torch._dynamo.reset()
    network = torch.nn.Linear(1024, 2048).to(device="cuda", dtype=torch.bfloat16)
    x = operand(1311, 1024)
    with foretune.torch.autotune(templates_win, k=1, other_devices=True) as session:
        torch.compile(network)(x).float().sum().backward()
    assert {decision.operation for decision in session.decisions} == {"addmm", "mm"}
    assert network.weight.grad.isfinite().all()


def test_collects_what_inductor_measures(tmp_path):
    path = tmp_path / "mm.ftd"
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad(), foretune.torch.collect(path, search_space="DEFAULT") as collection:
            for name in ("linear", "biased", "batched"):
                function, shapes, _ = CASES[name]
                torch.compile(function, dynamic=False)(*(operand(*shape) for shape in shapes))
        found.append((len(collection.dataset()), collection.known))
    assert found[0][0] > 40 and found == [(found[0][0], 0), (found[0][0], 3)]
    assert len(collection.dataset().problems) == 3


@pytest.mark.skipif("H200" not in torch.cuda.get_device_name(), reason="the model is for H200s")
def test_the_shipped_model_covers_linear_layers():
    for k in (1, 5):
        torch._dynamo.reset()
        x, w, b = operand(1311, 1024), operand(2048, 1024), operand(2048)
        with torch.no_grad(), foretune.torch.autotune(k=k) as session:
            torch.compile(biased, dynamic=False)(x, w, b)
        (decision,) = session.decisions
        assert decision.reason is None and decision.candidates > 100
