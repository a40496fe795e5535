"""foretune.torch with any supported version of PyTorch, without a GPU: the hooks are Inductor's,
the device is simulated, no kernel runs."""

import math
import re

import foretune
import foretune.torch
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
if "triton" not in dict(foretune.families()):
    pytest.skip("this build has no family triton", allow_module_level=True)

from foretune.torch import _hooks  # noqa: E402

try:
    _hooks.open_inductor()
except foretune.UnsupportedError as refusal:  # test_torch_version.py looks at the sentence
    pytest.skip(str(refusal), allow_module_level=True)

import torch._inductor.choices  # noqa: E402
import torch._inductor.codecache  # noqa: E402
import torch._inductor.config as config  # noqa: E402
import torch._inductor.ir as ir  # noqa: E402
import torch._inductor.lowering  # noqa: E402
import torch._inductor.select_algorithm as algorithms  # noqa: E402
from torch._inductor.utils import fresh_cache  # noqa: E402
from torch._inductor.virtualized import V  # noqa: E402
from torch_formula import model_of  # noqa: E402
from torch_pretend import pretended_gpu  # noqa: E402

aten = torch.ops.aten


def trained(library_share):
    return model_of("NVIDIA H200", library_share, 0.98, threads=1)


@pytest.fixture(scope="module")
def slow_library():
    return trained(0.4)


@pytest.fixture(scope="module")
def fast_library():
    return trained(1.0)


@pytest.fixture(scope="module")
def gpu():
    with pretended_gpu() as made, fresh_cache():
        yield made


def graphs_of(gpu, k=1024):
    """Returns one graph per operation that models support."""
    a, weight = gpu.matrix(1311, k), gpu.matrix(2048, k)
    return {"mm": gpu.graph(aten.mm.default, a, weight.t()),
            "addmm": gpu.graph(aten.addmm.default, gpu.matrix(2048), a, weight.t()),
            "bmm": gpu.graph(aten.bmm.default, gpu.matrix(4, 1000, 1024),
                             gpu.matrix(4, 1024, 1024))}


def state():
    """Returns the state of PyTorch that a session must restore."""
    return (config.get_config_copy(), torch.compiler.config.cache_key_tag,
            torch.compiler.config.force_disable_caches, dict(torch._inductor.lowering.lowerings),
            V.choices, list(algorithms.get_algorithm_selector_cache().feedback_saver_fns),
            list(algorithms.get_algorithm_selector_cache().preprocessing_fns))


def library_of(buffer):
    """Returns the names of ATen's variants among a buffer's choices."""
    return sorted(choice.name.rstrip("0123456789") for choice in buffer.choices
                  if isinstance(choice, algorithms.ExternKernelCaller))


def keywords(choice):
    return choice.annotations["ktc"].params.to_kwargs()


def test_the_hooks_are_there():
    inductor = _hooks.open_inductor()
    for name, keys in inductor.operations.items():
        assert getattr(aten, name).default in keys
    assert inductor.cache_hits() >= 0 and inductor.allows_tf32() is False


def test_changed_hooks_are_refused(monkeypatch):
    def shorter(self, choices):
        return choices

    monkeypatch.setattr(torch._inductor.choices.InductorChoices, "_finalize_template_configs",
                        shorter)
    refusal = (re.escape(f"PyTorch {torch.__version__} ") + ".*written for "
               + ".*".join(re.escape(version) for version in _hooks.WRITTEN_FOR)
               + ".* takes choices")
    with pytest.raises(foretune.UnsupportedError, match=refusal):
        foretune.torch.autotune("none.ftm").__enter__()
    monkeypatch.undo()
    monkeypatch.delitem(torch._inductor.lowering.lowerings, aten.bmm.default)
    with pytest.raises(foretune.UnsupportedError, match="does not have the hooks"):
        foretune.torch.collect("none.ftd").__enter__()


def test_one_pick_is_one_kernel(gpu, slow_library):
    before = state()
    with foretune.torch.autotune(slow_library, k=1) as session:
        for graph in graphs_of(gpu).values():
            (buffer,) = gpu.lower(graph).operations
            assert type(buffer) is ir.TritonTemplateBuffer
    assert state() == before
    assert [decision.operation for decision in session.decisions] == ["mm", "addmm", "bmm"]
    for decision in session.decisions:
        assert decision.reason is None and decision.speedup > 1.1
        assert decision.ranking_seconds < 0.5
    assert session.decisions[0].problem == ("gemm op=mm m=1311 n=2048 k=1024 batch=1 dtype=bf16 "
                                            "layout=rcr")


def test_the_picked_kernel_is_fused_and_written_out(gpu, slow_library):
    with foretune.torch.autotune(slow_library, k=1):
        code = gpu.lower(graphs_of(gpu)["addmm"], codegen=True).code
    assert code.count("@triton_heuristics.template") == 1 and "extern_kernels." not in code


def test_several_picks_are_measured_with_the_library(gpu, slow_library):
    variants = {}
    with config.patch(max_autotune=True):
        for operation, graph in graphs_of(gpu, k=1000).items():
            (buffer,) = gpu.lower(graph).operations
            variants[operation] = library_of(buffer)
    with foretune.torch.autotune(slow_library, k=4) as session:
        for operation, graph in graphs_of(gpu, k=1000).items():
            (buffer,) = gpu.lower(graph).operations
            assert type(buffer) is ir.MultiTemplateBuffer
            # ATen's choices are those without the session; for a bias they depend on the version.
            assert library_of(buffer) == variants[operation]
            templates = [choice for choice in buffer.choices
                         if isinstance(choice, algorithms.TritonTemplateCaller)]
            assert len(templates) == 3 == len(buffer.choices) - len(variants[operation])
            for choice in templates:
                k = 1024 if operation == "bmm" else 1000
                # Inductor sets these keywords itself, whatever the pick.
                assert keywords(choice)["EVEN_K"] == (k % keywords(choice)["BLOCK_K"] == 0)
                assert keywords(choice)["ACC_TYPE"] == "tl.float32"
    assert [len(decision.picks) for decision in session.decisions] == [
        3 + len(variants[operation]) for operation in ("mm", "addmm", "bmm")]
    assert len(variants["mm"]) == len(variants["bmm"]) == 1


def test_the_variants_for_a_bias_count_as_one(gpu, slow_library, fast_library):
    graph = gpu.graph(aten.addmm.default, gpu.matrix(2048).expand(1311, 2048),
                      gpu.matrix(1311, 1024), gpu.matrix(2048, 1024).t())
    with foretune.torch.autotune(slow_library, k=3) as session:
        (buffer,) = gpu.lower(graph).operations
    assert library_of(buffer) == ["addmm", "bias_addmm"] and len(buffer.choices) == 4
    assert [pick.split("::")[0] for pick in session.decisions[0].picks] == [
        "triton", "triton", "aten", "aten"]
    # When only ATen is kept, it is the usually faster variant, in whatever order they are offered.
    with config.patch(max_autotune=True), foretune.torch.autotune(fast_library, k=1) as session:
        (buffer,) = gpu.lower(graph).operations
    assert type(buffer) is ir.ExternKernelOut and "bias_addmm" in buffer.python_kernel_name
    assert session.decisions[0].picks == ("aten::bias_addmm",)


def test_an_operation_that_becomes_another_is_lowered_once(gpu, slow_library):
    """Some versions turn an ``addmm`` without its bias into an ``mm``."""
    graph = gpu.graph(aten.addmm.default, gpu.matrix(2048), gpu.matrix(1311, 1024),
                      gpu.matrix(2048, 1024).t(), beta=0)
    with foretune.torch.autotune(slow_library, k=1) as session:
        (buffer,) = gpu.lower(graph).operations
    assert type(buffer) is ir.TritonTemplateBuffer
    *before, last = session.decisions
    assert last.reason is None and last.picks[0].startswith("triton::mm")
    assert [decision.reason for decision in before] == (
        [] if last.operation == "addmm" else ["Inductor lowers it as mm"])


def test_small_devices_are_left_alone(gpu, slow_library, monkeypatch):
    monkeypatch.setattr(torch._inductor.utils, "is_big_gpu", lambda *_: False)
    with foretune.torch.autotune(slow_library) as session:
        for graph in graphs_of(gpu).values():
            (buffer,) = gpu.lower(graph).operations
            assert type(buffer) is ir.ExternKernelOut
    assert [decision.reason for decision in session.decisions] == [
        "Inductor offers no template that the model knows"] * 3
    assert all(decision.problem.startswith("gemm op=") for decision in session.decisions)


def test_without_measuring_the_first_pick_is_taken(gpu, slow_library):
    with config.patch(deterministic=True), foretune.torch.autotune(slow_library, k=4) as session:
        for graph in graphs_of(gpu).values():
            (buffer,) = gpu.lower(graph).operations
            assert type(buffer) is ir.TritonTemplateBuffer
    assert [len(decision.picks) for decision in session.decisions] == [1, 1, 1]


def test_both_templates_are_candidates(gpu, slow_library):
    with foretune.torch.autotune(slow_library, k=40) as session:
        gpu.lower(graphs_of(gpu)["mm"])
    names = {pick.split()[0] for pick in session.decisions[0].picks}
    assert names == {"aten::mm", "triton::mm", "triton::mm_persistent_tma"}
    # Tensor descriptors want rows that begin at multiples of 16 bytes.
    with foretune.torch.autotune(slow_library, k=40) as session:
        gpu.lower(graphs_of(gpu, k=1003)["mm"])
    names = {pick.split()[0] for pick in session.decisions[0].picks}
    assert names == {"aten::mm", "triton::mm"}


@pytest.mark.parametrize("operation", ["mm", "addmm", "bmm"])
def test_the_library_is_lowered_as_without_us(gpu, fast_library, operation):
    graph = graphs_of(gpu)[operation]
    expected = gpu.lower(graph, codegen=True).code
    with foretune.torch.autotune(fast_library, k=1) as session:
        assert gpu.lower(graph, codegen=True).code == expected
    assert session.decisions[0].picks[0].startswith("aten::") and "extern_kernels." in expected


@pytest.mark.parametrize("outer", [{}, {"max_autotune": True}, {"max_autotune_gemm": True}])
@pytest.mark.parametrize("operation", ["mm", "addmm", "bmm"])
def test_an_abstention_is_as_without_us(gpu, fast_library, operation, outer):
    tensors = {"mm": [(64, 40), (40, 8)], "addmm": [(8,), (64, 40), (40, 8)],
               "bmm": [(2, 64, 40), (2, 40, 8)]}[operation]
    graph = gpu.graph(getattr(aten, operation).default,
                      *(gpu.matrix(*sizes, dtype=torch.float16) for sizes in tensors))

    def shown():
        (buffer,) = gpu.lower(graph).operations
        choices = [(choice.name.rstrip("0123456789"), choice.description)
                   for choice in getattr(buffer, "choices", [])]
        return type(buffer), str(buffer.layout), [str(x.layout) for x in buffer.inputs], choices

    with config.patch(outer):
        expected = shown()
        with foretune.torch.autotune(fast_library, k=3) as session:
            assert shown() == expected
    assert session.decisions[0].reason == (
        "The problem lies outside of what the model was trained on.")
    assert bool(expected[3]) == bool(outer)


def test_the_users_autotuning_gets_the_picks(gpu, slow_library):
    with config.patch(max_autotune=True), foretune.torch.autotune(slow_library, k=2):
        (buffer,) = gpu.lower(graphs_of(gpu)["mm"]).operations
        assert len(buffer.choices) == 2
        assert config.max_autotune and not config.max_autotune_gemm


def test_a_lookup_table_keeps_its_place(gpu, slow_library, fast_library):
    class Mine(torch._inductor.choices.InductorChoices):
        asked = 0

        def get_template_configs(self, *arguments, **keywords):
            Mine.asked += 1
            return super().get_template_configs(*arguments, **keywords)

    mine = Mine()
    with V.set_choices_handler(mine):
        with foretune.torch.autotune(slow_library, k=1):
            gpu.lower(graphs_of(gpu)["mm"])
            assert V.choices is mine
        assert Mine.asked == 1
    assert V.choices is not mine


# -- compiling, on the CPU ------------------------------------------------------------------------


def product(a, b):
    return a @ b


def compiled_product():
    torch._dynamo.reset()
    return torch.compile(product)(torch.ones(8, 16), torch.ones(16, 4))


def test_other_devices_are_left_alone(fast_library):
    before = state()
    with fresh_cache(), foretune.torch.autotune(fast_library, k=5) as session:
        assert compiled_product().sum() == 8 * 16 * 4
    assert state() == before
    assert [decision.reason for decision in session.decisions] == [
        "the operands are on cpu, which is no GPU of NVIDIA's"]


def test_cached_graphs_are_those_of_the_same_model_and_k(fast_library):
    with fresh_cache():
        compiled_product()
        counts = []
        for k in (1, 2, 1):
            with foretune.torch.autotune(fast_library, k=k) as session:
                compiled_product()
            counts.append((session.cached_graphs, len(session.decisions)))
        # The cache reuses neither graphs compiled without the session nor those of another k.
        assert counts == [(0, 1), (0, 1), (1, 0)]
        with foretune.torch.autotune(fast_library, k=9) as session:
            compiled_product()
            compiled_product()
        assert (session.cached_graphs, len(session.decisions)) == (1, 1)


def test_dynamic_sizes_are_left_alone(fast_library, monkeypatch):
    monkeypatch.setattr(_hooks, "_device_facts",
                        lambda *_: _hooks.DeviceFacts("NVIDIA H200", "sm_90"))
    torch._dynamo.reset()
    with fresh_cache(), foretune.torch.autotune(fast_library) as session:
        torch.compile(product, dynamic=True)(torch.ones(8, 16), torch.ones(16, 4))
    assert [decision.reason for decision in session.decisions] == ["sizes are dynamic"]


def test_an_exception_inside_restores(fast_library):
    before = state()
    with pytest.raises(ZeroDivisionError), foretune.torch.autotune(fast_library):
        1 / 0  # noqa: B018
    assert state() == before


# -- collecting -----------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """Replaces compiling and running: each further template is faster, the first one fails."""
    def benchmark(self, choices, *arguments, **keywords):
        templates = [choice for choice in choices
                     if isinstance(choice, algorithms.TritonTemplateCaller)]
        times = {choice: 0.5 for choice in choices}
        times.update({choice: 1 / (1 + number) for number, choice in enumerate(templates)})
        times[templates[0]] = math.inf
        return times

    cache = algorithms.AlgorithmSelectorCache
    monkeypatch.setattr(cache, "benchmark", benchmark)
    monkeypatch.setattr(cache, "make_precompile_fn", lambda *_, **__: dict)


def test_the_measured_winner_is_written_out(gpu, slow_library, measured):
    """Inductor measures when it schedules the graph, after the session's settings have ended."""
    with foretune.torch.autotune(slow_library, k=4) as session:
        code = gpu.lower(graphs_of(gpu)["mm"], codegen=True).code
    # The last template is the fastest here, the first fails.
    fastest = [pick for pick in session.decisions[0].picks if pick.startswith("triton")][-1]
    assert code.count("@triton_heuristics.template") == 1 and "extern_kernels." not in code
    for word in fastest.split()[1:]:
        name, value = word.split("=")
        assert (f"\n{name}={value},\n" if name.startswith("num")
                else f"{name.upper()} : tl.constexpr = {value}\n") in code


def test_what_inductor_measures_is_collected(gpu, measured, tmp_path):
    before = state()
    path = tmp_path / "mm.ftd"
    with foretune.torch.collect(path, search_space="DEFAULT") as collection:
        for graph in graphs_of(gpu).values():
            gpu.lower(graph)
    assert state() == before
    dataset = collection.dataset()
    assert [problem.split()[1] for problem in dataset.problems] == ["op=mm", "op=addmm", "op=bmm"]
    assert collection.problems == 3 and not collection.errors and collection.failures == 3
    templates = {int(config.split()[0].removeprefix("template=")) for config in dataset.configs}
    assert templates == {0, 1, 2} and 3 * 15 < len(dataset) < 3 * 40
    with foretune.torch.collect(path, search_space="DEFAULT") as again:
        (buffer,) = gpu.lower(graphs_of(gpu)["mm"]).operations
        assert type(buffer) is ir.ExternKernelOut
    assert again.known == 1 and again.problems == 0


def test_all_of_the_space_is_collected(gpu, measured, tmp_path):
    with foretune.torch.collect(tmp_path / "mm.ftd") as collection:
        gpu.lower(gpu.graph(aten.mm.default, gpu.matrix(64, 64), gpu.matrix(64, 64)))
    with foretune.torch.collect(tmp_path / "small.ftd", search_space="DEFAULT", tma=False) as small:
        gpu.lower(gpu.graph(aten.mm.default, gpu.matrix(64, 64), gpu.matrix(64, 64)))
    assert collection.measurements > 300 > 30 > small.measurements
