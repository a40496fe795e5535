"""foretune.torch.convolutions without a GPU: its kernels stand in for those of the CPU, and a
planner of this file plays cuDNN, on the addresses that it is given."""

import contextlib
import ctypes
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "get_kernel"):
    pytest.skip("this PyTorch is too old", allow_module_level=True)

import foretune  # noqa: E402
from foretune.torch import _cudnn, _gpu_convolutions  # noqa: E402

functional = torch.nn.functional
TYPES = {0: torch.float32, 2: torch.float16, 9: torch.bfloat16}


class Plan:
    """Its trials, if any, need a growing workspace; the chosen engine needs none."""

    def __init__(self, problem, pointer, workspace, by_model, trials):
        self.problem, self.pointer, self.trials = problem, pointer, trials
        self._workspace, self._by_model = workspace, by_model

    def needs(self):
        if self.trials == 0:
            return self._workspace, True
        return self._workspace + 10 * (4 - self.trials), False

    @property
    def choice(self):
        return _cudnn.Choice(7, *self.needs()[:1], True, self._by_model,
                             "trials go on" if self.trials else "model: engine=7",
                             self.trials == 0)


def tensor_at(address, shape, dtype, channels_last):
    """The tensor at an address, packed as a problem says."""
    count = torch.Size(shape).numel()
    size = torch.empty(0, dtype=dtype).element_size()
    flat = torch.frombuffer((ctypes.c_char * (count * size)).from_address(address), dtype=dtype)
    if channels_last:
        return flat.view(shape[0], *shape[2:], shape[1]).movedim(-1, 1)
    return flat.view(shape)


class Planner:
    """Plays cuDNN: computes in double precision."""

    def __init__(self, workspace=0, by_model=True, status=0, refuses=(), trials=0):
        self.functions = self
        self.plans, self.ran = [], []
        self.workspace, self.by_model, self.status = workspace, by_model, status
        self.refuses, self.trials = refuses, trials

    def prepare(self, problem):
        if problem.operation in self.refuses:
            raise foretune.UnsupportedError("it has no engine")
        self.plans.append(Plan(problem, len(self.plans), self.workspace, self.by_model,
                               self.trials))
        return self.plans[-1]

    def run(self, pointer, handle, stream, x, w, y, workspace, workspace_bytes):
        plan = self.plans[pointer]
        problem = plan.problem
        self.ran.append((problem.operation, workspace))
        assert handle is None and workspace_bytes == plan.needs()[0]
        assert (workspace is not None) == (workspace_bytes > 0)
        plan.trials = max(0, plan.trials - 1)
        if self.status:
            return self.status
        spatial = problem.spatial

        def numbers(name):
            return list(getattr(problem, name))[:spatial]

        moves = [numbers(name) for name in ("stride", "padding", "dilation")]
        points = [(size + 2 * pad - step * (length - 1) - 1) // move + 1
                  for size, length, move, pad, step in zip(numbers("input"), numbers("filter"), *moves)]
        dtype, last = TYPES[problem.type], bool(problem.channels_last)
        tensors = [tensor_at(x, (problem.batch, problem.channels, *numbers("input")), dtype, last),
                   tensor_at(w, (problem.filters, problem.channels // problem.groups,
                                 *numbers("filter")), dtype, last),
                   tensor_at(y, (problem.batch, problem.filters, *points), dtype, last)]
        # A kernel runs below autograd; another thread does not.
        with ThreadPoolExecutor(1) as thread:
            exact = thread.submit(exact_of, *tensors, moves, problem.groups).result()
        tensors[(2, 0, 1)[problem.operation]].copy_(exact[problem.operation])
        return 0


def exact_of(x, w, dy, moves, groups):
    """Returns the output, and the gradients of input and weight for one of the output, in double
    precision."""
    with torch.enable_grad():
        x, w = (tensor.detach().double().requires_grad_() for tensor in (x, w))
        y = (functional.conv1d, functional.conv2d, functional.conv3d)[x.dim() - 3](
            x, w, None, *moves, groups)
        return y.detach(), *torch.autograd.grad(y, (x, w), dy.detach().double())


class Device:
    """The CPU as the kernels see it; only float types other than double are cuDNN's."""

    key = "CPU"

    def __init__(self):
        self.allocated, self.capturing = [], False
        self.guard = lambda device: contextlib.nullcontext()

    def current(self):
        return -1

    def stream(self, device):
        return 0

    def allocate(self, size, stream):
        self.allocated.append(size)
        return 4096

    def free(self, pointer):
        assert pointer == 4096
        self.allocated.append(0)

    def is_capturing(self):
        return self.capturing

    def takes(self, *arguments):
        assert len(arguments) == 10
        return arguments[0].dtype != torch.float64

    def memory_format(self, input, weight):
        last = LAST[input.dim()]
        is_last = any(tensor.stride(1) == 1 and tensor.is_contiguous(memory_format=last)
                      for tensor in (input, weight) if tensor.shape[1] > 1)
        return last if is_last else torch.contiguous_format


def session_of(planner, device=None):
    return _gpu_convolutions.Convolutions(planner, device or Device())


# input, filters, filter points, then stride, padding, dilation and groups
CASES = [
    ((2, 6, 11), 8, (3,), (2,), (1,), (1,), 1),
    ((2, 12, 9, 7), 20, (3, 3), (2, 1), (1, 1), (1, 1), 2),
    ((1, 3, 8, 8), 5, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 16, 10, 9), 16, (3, 2), (1, 2), (2, 0), (2, 3), 16),
    ((1, 4, 5, 6, 7), 6, (3, 1, 2), (2, 1, 1), (1, 0, 1), (1, 1, 1), 2),
]
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def draw(case, last_input=False, last_weight=False, dtype=torch.float32):
    shape, filters, points, *moves, groups = case
    torch.manual_seed(3)
    x = torch.rand(shape, dtype=dtype) - 0.5
    w = torch.rand((filters, shape[1] // groups, *points), dtype=dtype) - 0.5
    if last_input and x.dim() in LAST:
        x = x.contiguous(memory_format=LAST[x.dim()])
    if last_weight and w.dim() in LAST:
        w = w.contiguous(memory_format=LAST[w.dim()])
    return x.requires_grad_(), w.requires_grad_(), moves, groups


def convolve(x, w, bias, moves, groups):
    return torch.convolution(x, w, bias, *moves, False, [0] * (x.dim() - 2), groups)


def close(result, wanted, tolerance=1e-4):
    torch.testing.assert_close(result.double(), wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("last_input", "last_weight"),
                         [(False, False), (True, True), (True, False), (False, True)])
@pytest.mark.parametrize("case", CASES)
def test_results_gradients_and_formats_are_pytorchs(case, last_input, last_weight):
    x, w, moves, groups = draw(case, last_input, last_weight)
    bias = torch.rand(w.shape[0]).requires_grad_()
    planner = Planner(workspace=100)
    device = Device()
    with session_of(planner, device) as session:
        y = convolve(x, w, bias, moves, groups)
        gradient = torch.rand_like(y)
        found = torch.autograd.grad(y, (x, w, bias), gradient, retain_graph=True)
        # A gradient that is spread out has to be packed for the library.
        spread = torch.rand(1, 1).expand_as(y) if y.dim() == 2 else torch.rand(
            [1] * y.dim()).expand_as(y)
        again = torch.autograd.grad(y, (x, w), spread)
    exact = exact_of(x, w, gradient, moves, groups)
    close(y, exact[0] + bias.detach().double().view(-1, *[1] * (x.dim() - 2)))
    for ours, wanted in zip(found, (exact[1], exact[2],
                                    gradient.double().sum([0, *range(2, y.dim())]))):
        close(ours, wanted)
    for ours, wanted in zip(again, exact_of(x, w, spread, moves, groups)[1:]):
        close(ours, wanted)
    assert [operation for operation, _ in planner.ran] == [0, 1, 2, 1, 2]
    assert device.allocated == [100, 0] * 5
    if x.dim() in LAST:
        for tensor in (y, *found[:2]):
            assert tensor.is_contiguous(memory_format=device.memory_format(x, w))
    assert all(decision.by_model for decision in session.decisions if "float32" in decision.problem)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_types_reach_the_library_as_its_numbers(dtype):
    x, w, moves, groups = draw(CASES[1], dtype=dtype)
    planner = Planner()
    with session_of(planner):
        y = convolve(x, w, None, moves, groups)
    close(y, exact_of(x, w, y, moves, groups)[0], 5e-2)
    problem = planner.plans[0].problem
    assert (problem.type, problem.tf32) == ({torch.float16: 2, torch.bfloat16: 9}[dtype], 0)


def test_a_known_call_is_not_prepared_again_and_another_one_is():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()
    with session_of(planner):
        for _ in range(3):
            convolve(x, w, None, moves, groups)
        assert len(planner.plans) == 1
        convolve(x[:1], w, None, moves, groups)
        convolve(x, w, None, [[1, 1], *moves[1:]], groups)
        assert len(planner.plans) == 3
    assert len(planner.ran) == 5


def test_only_the_wanted_gradients_are_computed():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()
    with session_of(planner):
        convolve(x.detach(), w, None, moves, groups).sum().backward()
    assert x.grad is None
    assert [operation for operation, _ in planner.ran] == [0, 2]


def test_settings_of_pytorch_are_followed():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()

    def last():
        convolve(x, w, None, moves, groups)
        return planner.plans[-1].problem

    with session_of(planner):
        assert (last().tf32, last().deterministic) == (1, 0)
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            assert (last().tf32, last().deterministic) == (0, 1)
        torch.use_deterministic_algorithms(True)
        try:
            assert last().deterministic == 1
        finally:
            torch.use_deterministic_algorithms(False)
        ran = len(planner.ran)
        with torch.backends.cudnn.flags(enabled=False):
            convolve(x, w, None, moves, groups)
        assert len(planner.ran) == ran


def test_benchmark_mode_decides_where_the_model_does_not():
    x, w, moves, groups = draw(CASES[1])
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        for by_model in (True, False):
            planner = Planner(by_model=by_model)
            with session_of(planner) as session:
                y = convolve(x, w, None, moves, groups)
            close(y, exact_of(x, w, y, moves, groups)[0])
            assert len(planner.ran) == by_model
    assert "benchmark mode" in session.report()


def test_a_plan_on_trial_gets_the_workspace_that_its_next_run_needs():
    x, w, moves, groups = draw(CASES[1])
    planner, device = Planner(by_model=False, trials=3), Device()
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        with session_of(planner, device) as session:
            convolve(x, w, None, moves, groups)
            assert session.decisions[0].choice == "trials go on"
            assert not session.is_settled
            for _ in range(4):
                convolve(x, w, None, moves, groups)
    assert device.allocated == [10, 0, 20, 0, 30, 0]
    assert session.is_settled
    assert session.decisions[0].choice == "model: engine=7"
    assert "by measuring" in session.report()


def test_other_calls_take_pytorchs_kernels():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()
    with session_of(planner) as session:
        double = convolve(x.double(), w.double(), None, moves, groups)
        assert double.dtype == torch.float64
        empty = convolve(x[:0], w, None, moves, groups)
        assert empty.shape[0] == 0
        empty.sum().backward()
        torch.convolution(x, torch.rand(12, 5, 3, 3), None, *moves, True, [0, 0], 2)
    assert not planner.ran
    reasons = {decision.reason for decision in session.decisions}
    assert {"it is empty", "it is transposed"} <= reasons
    assert any("float32" in reason for reason in reasons)


def test_what_has_no_plan_or_is_refused_takes_pytorchs_kernels():
    x, w, moves, groups = draw(CASES[1])
    wanted = exact_of(x, w, torch.ones(2, 20, 5, 7), moves, groups)
    for planner, ran, reason in (
            (Planner(refuses=(0, 1, 2)), 0, "it has no engine"),
            (Planner(refuses=(1, 2)), 2, "it has no engine"),
            (Planner(status=3000), 2, "refused to run it (3000)"),
            (Planner(status=2000), 4, None)):
        x.grad = w.grad = None
        with session_of(planner) as session:
            for _ in range(2):
                y = convolve(x, w, None, moves, groups)
                close(y, wanted[0])
                y.sum().backward()
        close(x.grad, 2 * wanted[1])
        close(w.grad, 2 * wanted[2], 1e-3)
        assert len(planner.ran) == ran
        assert reason is None or reason in session.report()


def test_the_kernels_are_there_while_a_session_is_open_only():
    x, w, moves, groups = draw(CASES[1])
    outer, inner = Planner(), Planner()
    first, second = session_of(outer), session_of(inner)
    convolve(x, w, None, moves, groups)
    assert not outer.ran
    with first:
        with second:
            convolve(x, w, None, moves, groups)
        convolve(x, w, None, moves, groups)
        second.install()
        convolve(x, w, None, moves, groups)
        second.uninstall()
    convolve(x, w, None, moves, groups)
    assert (len(outer.ran), len(inner.ran)) == (1, 2)
    with pytest.raises(foretune.InvalidArgumentError, match="not installed"):
        first.uninstall()


def test_an_error_closes_the_session():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()
    with pytest.raises(RuntimeError, match="channels"), session_of(planner):
        convolve(x[:, :5], w, None, moves, groups)
    convolve(x, w, None, moves, groups)
    assert not planner.ran


def test_plans_are_bounded_but_those_of_graphs_stay(monkeypatch):
    monkeypatch.setattr(_gpu_convolutions, "MOST_PLANS", 3)
    x, w, moves, groups = draw(CASES[1])
    planner, device = Planner(), Device()
    with session_of(planner, device) as session:
        device.capturing = True
        convolve(x, w, None, moves, groups)
        device.capturing = False
        for height in range(4, 9):
            convolve(x[:, :, :height], w, None, moves, groups)
        assert len(session._entries) == 3
        assert len(session._captured) == 1
        convolve(x, w, None, moves, groups)
        assert len(planner.plans) == 7


def test_convolutions_are_in_compiled_graphs():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()

    def network(x, w):
        return convolve(x, w, None, moves, groups).relu()

    with session_of(planner):
        y = torch.compile(network, backend="aot_eager", fullgraph=True)(x, w)
        y.sum().backward()
    close(y, exact_of(x, w, y, moves, groups)[0].relu())
    assert [operation for operation, _ in planner.ran] == [0, 1, 2]


def test_autocast_and_double_backward_go_on_working():
    x, w, moves, groups = draw(CASES[1])
    planner = Planner()
    with session_of(planner):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = torch.nn.functional.conv2d(x, w, None, *moves, groups)
        assert y.dtype == torch.bfloat16
        assert planner.plans[0].problem.type == 9
        y = convolve(x, w, None, moves, groups)
        first, = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        first.square().sum().backward()
    double_x, double_w = (tensor.detach().double().requires_grad_() for tensor in (x, w))
    y = convolve(double_x, double_w, None, moves, groups)
    first, = torch.autograd.grad(y.square().sum(), double_x, create_graph=True)
    first.square().sum().backward()
    close(x.grad, double_x.grad, 1e-1)
    close(w.grad, double_w.grad, 1.0)


def test_wrong_arguments_are_refused():
    with pytest.raises(foretune.InvalidArgumentError, match="margin"):
        _gpu_convolutions.convolutions(margin=-1)
    for share in (0, 1.5, float("nan")):
        with pytest.raises(foretune.InvalidArgumentError, match="share"):
            _gpu_convolutions.convolutions(share=share)
