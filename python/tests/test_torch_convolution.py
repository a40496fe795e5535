"""foretune.torch.convolution and use_convolutions with any version of PyTorch, on the CPU."""

import copy
import io

import foretune
import foretune.torch
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as functional  # noqa: E402

CONVOLVE = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
# input, filters, filter points, then stride, padding, dilation and groups
CASES = [
    ((2, 6, 11), 8, (3,), 2, 1, 1, 1),
    ((2, 12, 9, 7), 20, (3, 3), (2, 1), 1, 1, 2),
    ((1, 3, 8, 8), 5, (1, 1), 1, 0, 1, 1),
    ((2, 16, 10, 9), 16, (3, 2), (1, 2), (2, 0), (2, 3), 16),
    ((1, 4, 5, 6, 7), 6, (3, 1, 2), (2, 1, 1), (1, 0, 1), 1, 2),
]


def draw(case, memory_format=torch.contiguous_format):
    shape, filters, points, *moves = case
    torch.manual_seed(3)
    x = torch.rand(shape) - 0.5
    if len(shape) == 4:
        x = x.contiguous(memory_format=memory_format)
    w = torch.rand((filters, shape[1] // moves[-1], *points)) - 0.5
    b = torch.rand(filters) - 0.5
    return [tensor.requires_grad_() for tensor in (x, w, b)], moves


def exact(tensors, moves, gradient=None):
    """Returns the definition in double precision, and the gradients for one of the output."""
    doubles = [tensor.detach().double().requires_grad_() for tensor in tensors]
    y = CONVOLVE[doubles[0].dim() - 2](*doubles, *moves)
    if gradient is None:
        return y.detach()
    return torch.autograd.grad(y, doubles, gradient.double())


def close(result, wanted):
    assert result.dtype == torch.float32
    torch.testing.assert_close(result.double(), wanted, rtol=0, atol=3e-5)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("case", CASES)
def test_the_output_and_all_gradients_are_pytorchs(case, memory_format):
    tensors, moves = draw(case, memory_format)
    y = foretune.torch.convolution(*tensors, *moves)
    close(y, exact(tensors, moves))
    if y.dim() == 4:
        assert y.is_contiguous(memory_format=torch.channels_last)
    gradient = torch.rand_like(y) - 0.5
    for ours, wanted in zip(torch.autograd.grad(y, tensors, gradient),
                            exact(tensors, moves, gradient)):
        close(ours, wanted)


def test_only_the_wanted_gradients_are_computed():
    (x, w, _), moves = draw(CASES[1])
    y = foretune.torch.convolution(x.detach(), w, None, *moves)
    y.sum().backward()
    assert x.grad is None
    close(w.grad, exact((x, w, torch.zeros(20)), moves, torch.ones_like(y))[1])


@pytest.mark.parametrize("case", CASES)
def test_gradients_have_gradients(case):
    tensors, moves = draw(case)
    y = foretune.torch.convolution(*tensors, *moves)
    gradient = (torch.rand_like(y) - 0.5).requires_grad_()
    directions = [torch.rand_like(tensor) - 0.5 for tensor in tensors[:2]]

    def second(convolve, x, w, b, dy, directions):
        first = torch.autograd.grad(convolve(x, w, b, *moves), (x, w), dy, create_graph=True)
        total = sum((part * direction).sum() for part, direction in zip(first, directions))
        return torch.autograd.grad(total, (x, w, dy))

    doubles = [tensor.detach().double().requires_grad_() for tensor in (*tensors, gradient)]
    wanted = second(CONVOLVE[y.dim() - 2], *doubles, [part.double() for part in directions])
    for ours, other in zip(second(foretune.torch.convolution, *tensors, gradient, directions),
                           wanted):
        close(ours, other)


def test_the_operators_keep_pytorchs_rules():
    tensors, moves = draw(CASES[1])
    moves = [[2, 1], [1, 1], [1, 1], 2]
    checks = ("test_schema", "test_autograd_registration", "test_faketensor",
              "test_aot_dispatch_static", "test_aot_dispatch_dynamic")
    foretune.torch.convolution(*tensors, *moves)  # registers them
    torch.library.opcheck(torch.ops.foretune.conv.default, (*tensors, *moves), test_utils=checks)
    y = exact(tensors, moves).float().requires_grad_()
    torch.library.opcheck(torch.ops.foretune.conv_input_gradient.default,
                          (y, tensors[1], list(tensors[0].shape), *moves), test_utils=checks)
    torch.library.opcheck(torch.ops.foretune.conv_weight_gradient.default,
                          (tensors[0], y, list(tensors[1].shape), *moves), test_utils=checks)


def test_compile_keeps_the_operator_in_one_graph():
    tensors, moves = draw(CASES[1])
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    def network(x, w, b):
        return foretune.torch.convolution(x, w, b, *moves).relu()

    compiled = torch.compile(network, backend=backend, fullgraph=True)
    close(compiled(*tensors), exact(tensors, moves).relu())
    assert len(graphs) == 1


def test_an_empty_batch_is_empty():
    (x, w, b), moves = draw(CASES[1])
    y = foretune.torch.convolution(x[:0], w, b, *moves)
    assert y.shape == (0, 20, 5, 7)
    y.sum().backward()
    assert torch.equal(w.grad, torch.zeros_like(w))


def test_other_types_are_refused():
    (x, w, b), moves = draw(CASES[1])
    with pytest.raises(foretune.UnsupportedError, match="cpu-conv computes in f32"):
        foretune.torch.convolution(x.double(), w.double(), b.double(), *moves)
    with pytest.raises(foretune.InvalidArgumentError, match="channels"):
        foretune.torch.convolution(x[:, :4], w, b, *moves)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU(),
            torch.nn.Conv2d(8, 8, 3, padding="same", groups=8, bias=False),
            torch.nn.Conv2d(8, 8, 2, padding="same"),
            torch.nn.Conv2d(8, 8, 3, padding=1, padding_mode="reflect"),
            torch.nn.Conv2d(8, 4, 1, stride=2, padding="valid"))

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("constant_weights", [False, True])
def test_a_network_computes_the_same_with_our_modules(constant_weights):
    torch.manual_seed(1)
    network = Network()
    ours = copy.deepcopy(network)
    assert foretune.torch.use_convolutions(ours, constant_weights=constant_weights) == 5
    assert list(ours.state_dict()) == list(network.state_dict())
    x = torch.rand(2, 3, 12, 10)
    exactly = network.double()
    close(ours(x), exactly(x.double()))
    with torch.no_grad():
        for _ in range(2):
            close(ours(x), exactly(x.double()))
        close(ours(x[0]), exactly(x[0].double()))
        # A step of an optimiser is seen.
        for mine, other in zip(ours.parameters(), exactly.parameters()):
            mine.mul_(0.5)
            other.mul_(0.5)
        close(ours(x), exactly(x.double()))
    ours(x).sum().backward()
    exactly(x.double()).sum().backward()
    for mine, other in zip(ours.parameters(), exactly.parameters()):
        torch.testing.assert_close(mine.grad.double(), other.grad, rtol=1e-4, atol=1e-3)
    # Copies and files have what PyTorch's modules have.
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    with torch.no_grad():
        for again in (copy.deepcopy(ours), torch.load(file, weights_only=False)):
            close(again(x), exactly(x.double()))
    # Types without our kernels are left to PyTorch.
    assert ours.double()(x.double()).dtype == torch.float64


def test_subclasses_stay_as_they_are():
    class Own(torch.nn.Conv2d):
        pass

    model = torch.nn.Sequential(Own(1, 1, 1), torch.nn.Conv1d(1, 2, 1), torch.nn.Conv3d(1, 2, 1))
    assert foretune.torch.use_convolutions(model) == 2
    assert type(model[0]) is Own
    close(model[1](torch.ones(1, 1, 4)), functional.conv1d(
        torch.ones(1, 1, 4).double(), model[1].weight.double(), model[1].bias.double()).detach())
