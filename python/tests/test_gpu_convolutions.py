"""foretune.torch.convolutions on a GPU: results beside those of double precision and of PyTorch,
in eager mode, graphs, streams, threads and torch.compile."""

import os
import threading

import foretune.torch
import pytest
from gpu import torch

functional = torch.nn.functional
CONVOLVE = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
# A model of the family cudnn; without it the shipped one, or cuDNN's heuristic.
MODEL = os.environ.get("FORETUNE_CUDNN_MODEL")

# input, filters, filter points, then stride, padding, dilation and groups
CASES = {
    "plain": ((4, 64, 30, 28), 96, (3, 3), 1, 1, 1, 1),
    "point": ((4, 64, 30, 28), 256, (1, 1), 1, 0, 1, 1),
    "strided": ((4, 32, 31, 29), 64, (3, 3), 2, 1, 1, 1),
    "stem": ((4, 3, 65, 67), 32, (7, 7), 2, 3, 1, 1),
    "groups": ((4, 128, 14, 14), 128, (3, 3), 1, 1, 1, 32),
    "depthwise": ((4, 96, 17, 15), 96, (5, 5), 1, 2, 1, 96),
    "dilated": ((2, 64, 33, 33), 64, (3, 3), 1, 4, 4, 1),
    "uneven": ((3, 24, 19, 23), 40, (3, 5), (2, 1), (1, 2), 1, 1),
    "line": ((4, 32, 203), 48, (7,), 2, 3, 1, 1),
    "line in groups": ((4, 64, 99), 64, (9,), 1, 4, 1, 4),
    "volume": ((2, 16, 9, 12, 10), 24, (3, 3, 3), 1, 1, 1, 1),
    "flat volume": ((2, 16, 1, 12, 10), 24, (1, 3, 3), 1, (0, 1, 1), 1, 1),
}
# Winograd's and Fourier's algorithms, which are among the picks, lose more than others.
TOLERANCE = {torch.float32: 3e-5, torch.float16: 8e-3, torch.bfloat16: 6e-2}


@pytest.fixture(scope="module", params=[(0, 1), (6, 1), (6, 0.2)],
                ids=["picked", "measured", "shared"])
def session(request):
    measure, share = request.param
    return foretune.torch.convolutions(MODEL, measure=measure, share=share)


def draw(case, dtype, last):
    shape, filters, points, *moves = CASES[case]
    torch.manual_seed(3)
    x = (torch.rand(shape, device="cuda") - 0.5).to(dtype)
    w = (torch.rand((filters, shape[1] // moves[-1], *points), device="cuda") - 0.5).to(dtype)
    if last and x.dim() in LAST:
        x, w = (tensor.contiguous(memory_format=LAST[x.dim()]) for tensor in (x, w))
    b = (torch.rand(filters, device="cuda") - 0.5).to(dtype)
    return [tensor.requires_grad_() for tensor in (x, w, b)], moves


def results(tensors, moves, gradient):
    y = CONVOLVE[tensors[0].dim() - 2](*tensors, *moves)
    return [y.detach(), *torch.autograd.grad(y, tensors, gradient.to(y.dtype))]


def exact(tensors, moves, gradient):
    with torch.backends.cudnn.flags(enabled=False):
        return results([tensor.detach().double().requires_grad_() for tensor in tensors], moves,
                       gradient)


def error(found, wanted):
    """The largest difference over the largest value."""
    return float((found.double() - wanted).abs().max() / wanted.abs().max().clamp_min(1e-30))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("case", list(CASES))
def test_results_are_as_exact_as_pytorchs(session, case, dtype, last):
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        tensors, moves = draw(case, dtype, last)
        shape = CONVOLVE[tensors[0].dim() - 2](*tensors, *moves).shape
        gradient = torch.rand(shape, device="cuda").to(dtype) - 0.5
        theirs = results(tensors, moves, gradient)
        wanted = exact(tensors, moves, gradient)
        for _ in range(4):  # of different engines, while some are tried
            with session:
                ours = results(tensors, moves, gradient)
            for name, mine, other, right in zip(("output", "input", "weight", "bias"), ours,
                                                theirs, wanted):
                assert mine.dtype == other.dtype and mine.shape == other.shape
                assert mine.stride() == other.stride(), name
                assert error(mine, right) <= max(TOLERANCE[dtype], 2 * error(other, right)), name


def test_tf32_is_used_where_pytorch_allows_it(session):
    tensors, moves = draw("plain", torch.float32, True)
    gradient = torch.rand(4, 96, 30, 28, device="cuda") - 0.5
    wanted = exact(tensors, moves, gradient)
    with session:
        for allowed, most in ((False, 3e-5), (True, 2e-3)):
            with torch.backends.cudnn.flags(enabled=True, allow_tf32=allowed):
                for mine, right in zip(results(tensors, moves, gradient)[:3], wanted):
                    assert error(mine, right) <= most


def test_deterministic_results_repeat(session):
    tensors, moves = draw("strided", torch.bfloat16, True)
    gradient = torch.rand(4, 64, 16, 15, device="cuda") - 0.5
    with session, torch.backends.cudnn.flags(enabled=True, deterministic=True):
        first = results(tensors, moves, gradient)
        for _ in range(5):
            for mine, again in zip(first, results(tensors, moves, gradient)):
                assert torch.equal(mine, again)


def network():
    torch.manual_seed(5)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(32), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 32, 3, 1, 1, groups=8), torch.nn.ReLU(),
        torch.nn.Conv2d(32, 64, 1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(64, 10)).cuda().to(memory_format=torch.channels_last)


def train(model, x, steps=3):
    """Returns the losses of some steps under autocast."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses)


def images(count=8, size=64):
    torch.manual_seed(7)
    return torch.rand(count, 3, size, size, device="cuda").contiguous(
        memory_format=torch.channels_last)


def test_training_under_autocast_goes_the_same_way(session):
    theirs = train(network(), images())
    before = len(session.decisions)
    with session:
        ours = train(network(), images())
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=1e-3)
    assert len(session.decisions) > before


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_training_goes_the_same_way(session, mode):
    torch._dynamo.reset()
    theirs = train(network(), images())
    with session:
        before = len(session.decisions)
        ours = train(torch.compile(network(), mode=mode), images(), 3)
    torch.testing.assert_close(ours, theirs, rtol=5e-2, atol=2e-3)
    del before


def test_compiled_code_runs_our_kernels():
    mine = foretune.torch.convolutions(MODEL)
    torch._dynamo.reset()
    with mine:
        train(torch.compile(network()), images(6, 48))
    assert {decision.operation for decision in mine.decisions} == {
        "forward", "input gradient", "weight gradient"}
    assert all(decision.reason is None for decision in mine.decisions), mine.report()


@pytest.mark.parametrize("warm", [True, False])
def test_graphs_capture_plans_made_before_or_meanwhile(warm):
    mine = foretune.torch.convolutions(MODEL)
    # A size of its own, so that no plan is there.
    x = torch.rand(3, 32, 21 + warm, 25, device="cuda", dtype=torch.bfloat16)
    w = torch.rand(48, 32, 3, 3, device="cuda", dtype=torch.bfloat16)
    wanted = functional.conv2d(x, w, padding=1)
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with mine:
        if warm:
            with torch.cuda.stream(stream):
                functional.conv2d(x, w, padding=1)
            torch.cuda.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            y = functional.conv2d(x, w, padding=1)
    x.copy_(x.flip(0))
    graph.replay()
    torch.testing.assert_close(y, wanted.flip(0), rtol=2e-2, atol=2e-2)
    assert all(decision.reason is None for decision in mine.decisions)


def test_results_follow_the_current_stream(session):
    x = torch.rand(16, 64, 56, 56, device="cuda", dtype=torch.bfloat16).contiguous(
        memory_format=torch.channels_last)
    w = torch.rand(64, 64, 3, 3, device="cuda", dtype=torch.bfloat16).contiguous(
        memory_format=torch.channels_last)
    wanted = functional.conv2d(x, w, padding=1)
    with session:
        for _ in range(3):
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                late = torch.zeros_like(x)
                torch.cuda._sleep(2_000_000)
                late.copy_(x)
                y = functional.conv2d(late, w, padding=1)
            stream.synchronize()
            torch.testing.assert_close(y, wanted, rtol=2e-2, atol=2e-2)


def test_threads_convolve_at_once(session):
    x = torch.rand(4, 32, 24, 24, device="cuda", dtype=torch.bfloat16)
    w = torch.rand(32, 32, 3, 3, device="cuda", dtype=torch.bfloat16)
    wanted = functional.conv2d(x, w, padding=1)
    failures = []

    def work(number):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
                for i in range(40):
                    y = functional.conv2d(x, w, padding=1)
                    other = functional.conv2d(x[:, :, :8 + (i + number) % 16], w)
                    assert other.shape[2] == 6 + (i + number) % 16
                torch.cuda.current_stream().synchronize()
                torch.testing.assert_close(y, wanted, rtol=2e-2, atol=2e-2)
        except BaseException as error:  # noqa: BLE001  shown by the main thread
            failures.append(error)

    with session:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures[0]


def test_operands_at_odd_addresses_are_convolved(session):
    block = torch.rand(2 * 8 * 9 * 9 + 1, device="cuda", dtype=torch.bfloat16)
    x = block[1:].view(2, 8, 9, 9)
    w = torch.rand(8, 8, 3, 3, device="cuda", dtype=torch.bfloat16)
    wanted = functional.conv2d(x.clone(), w)
    with session:
        torch.testing.assert_close(functional.conv2d(x, w), wanted, rtol=2e-2, atol=2e-2)
