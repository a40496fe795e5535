"""The networks of the model zoo as modules of PyTorch, which importing this needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

# Keras' networks, which the weights come from, normalise with this.
_EPSILON = 1e-3


class _Classifier(nn.Module):
    """Convolutions, then linear layers on the flattened result.

    Args:
        convs: what computes (images, channels, rows, columns).
        linears: what computes (images, classes).
    """

    def __init__(self, convs: Sequence[nn.Module], linears: Sequence[nn.Module]) -> None:
        super().__init__()
        self.convs = nn.Sequential(*convs)
        self.linears = nn.Sequential(*linears)

    def forward(self, images: Tensor) -> Tensor:
        """Returns (images, classes) for (images, channels, rows, columns)."""
        return self.linears(self.convs(images).flatten(1))


def _plain(channels: int, rows: Sequence[tuple[int, int, bool]], activation: type[nn.Module],
           pool: Callable[[], nn.Module]) -> list[nn.Module]:
    """Returns convolutions that keep the extents, each with an activation at its end.

    A row has the filters, their extent, and True where a pool lies before the activation.
    """
    modules: list[nn.Module] = []
    for filters, extent, pools in rows:
        modules.append(nn.Conv2d(channels, filters, extent, padding=extent // 2))
        if pools:
            modules.append(pool())
        modules.append(activation())
        channels = filters
    return modules


def _dense(extents: Sequence[int], activation: type[nn.Module]) -> list[nn.Module]:
    """Returns linear layers with an activation between two of them."""
    modules: list[nn.Module] = []
    for inputs, outputs in zip(extents, extents[1:], strict=False):
        modules += [nn.Linear(inputs, outputs), activation()]
    return modules[:-1]


def _halves() -> nn.Module:
    return nn.MaxPool2d(2)


def _overlaps() -> nn.Module:
    return nn.MaxPool2d(3, stride=2)


class LeNet(_Classifier):
    """LeNet for MNIST: (images, 1, 28, 28) -> (images, 10)."""

    def __init__(self) -> None:
        super().__init__(_plain(1, [(32, 5, True), (64, 5, True)], nn.Tanh, _halves),
                         [*_dense([64 * 7 * 7, 1024, 10], nn.Tanh), nn.Tanh()])


class AlexNet(_Classifier):
    """AlexNet for CIFAR-10: (images, 3, 32, 32) -> (images, 10)."""

    def __init__(self) -> None:
        rows = [(64, 11, True), (192, 5, True), (384, 3, False), (256, 3, False), (256, 3, True)]
        super().__init__(_plain(3, rows, nn.Tanh, _halves), _dense([256 * 4 * 4, 10], nn.Tanh))


class AlexNet2(_Classifier):
    """A smaller AlexNet for CIFAR-10: (images, 3, 32, 32) -> (images, 10)."""

    def __init__(self) -> None:
        rows = [(filters, 3, pools) for filters in (32, 64, 128) for pools in (False, True)]
        super().__init__(_plain(3, rows, nn.Tanh, _halves), _dense([128 * 4 * 4, 10], nn.Tanh))


class AlexNetImageNet(_Classifier):
    """AlexNet for ImageNet: (images, 3, 224, 224) -> (images, 1000)."""

    def __init__(self) -> None:
        rows = [(192, 5, True), (384, 3, False), (256, 3, False), (256, 3, True)]
        first = [nn.Conv2d(3, 64, 11, stride=4, padding=2), _overlaps(), nn.ReLU()]
        super().__init__([*first, *_plain(64, rows, nn.ReLU, _overlaps)],
                         _dense([256 * 6 * 6, 4096, 4096, 1000], nn.ReLU))


class _Vgg16(_Classifier):
    """The thirteen convolutions of VGG-16, and linear layers of the given extents."""

    def __init__(self, extents: Sequence[int]) -> None:
        blocks = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]
        rows = [(filters, 3, i == count - 1) for filters, count in blocks for i in range(count)]
        super().__init__(_plain(3, rows, nn.ReLU, _halves), _dense(extents, nn.ReLU))


class VGG16Cifar10(_Vgg16):
    """VGG-16 for CIFAR-10: (images, 3, 32, 32) -> (images, 10)."""

    def __init__(self) -> None:
        super().__init__([512, 512, 10])


class VGG16Cifar100(_Vgg16):
    """VGG-16 for CIFAR-100: (images, 3, 32, 32) -> (images, 100)."""

    def __init__(self) -> None:
        super().__init__([512, 512, 100])


class VGG16ImageNet(_Vgg16):
    """VGG-16 for ImageNet: (images, 3, 224, 224) -> (images, 1000)."""

    def __init__(self) -> None:
        super().__init__([512 * 7 * 7, 4096, 4096, 1000])


class _Residual(nn.Module):
    """Adds a shortcut to a main line and applies ReLU to the sum.

    Args:
        mainline: operations of the main line.
        shortcut: operations of the shortcut; none for the input itself.
    """

    def __init__(self, mainline: Sequence[nn.Module], shortcut: Sequence[nn.Module]) -> None:
        super().__init__()
        self.mainline = nn.Sequential(*mainline)
        self.relu1 = nn.ReLU()
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the block's result for (images, channels, rows, columns)."""
        return self.relu1(self.mainline(x) + self.shortcut(x))


def _basic_block(channels: int, filters: int) -> nn.Module:
    """Returns two convolutions of 3 x 3; more filters than channels halve the extents."""
    widens = filters != channels
    stride = 2 if widens else 1
    return _Residual([nn.Conv2d(channels, filters, 3, stride=stride, padding=1), nn.ReLU(),
                      nn.Conv2d(filters, filters, 3, padding=1)],
                     [nn.Conv2d(channels, filters, 1, stride=stride)] if widens else [])


def _bottleneck(channels: int, filters: int, stride: int) -> nn.Module:
    """Returns three normalised convolutions, the last of which has four times the filters."""

    def normalised(inputs: int, outputs: int, extent: int, step: int = 1) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, extent, stride=step, padding=extent // 2),
                nn.BatchNorm2d(outputs, eps=_EPSILON)]

    wide = 4 * filters
    shortcut = normalised(channels, wide, 1, stride) if channels != wide or stride > 1 else []
    return _Residual([*normalised(channels, filters, 1, stride), nn.ReLU(),
                      *normalised(filters, filters, 3), nn.ReLU(), *normalised(filters, wide, 1)],
                     shortcut)


class ResNet18(_Classifier):
    """A residual network of 20 layers for CIFAR-10: (images, 3, 32, 32) -> (images, 10)."""

    def __init__(self) -> None:
        widths = [16, *(width for width in (16, 32, 64) for _ in range(3))]
        blocks = [_basic_block(*pair) for pair in zip(widths, widths[1:], strict=False)]
        super().__init__([*_plain(3, [(16, 3, False)], nn.ReLU, _halves), *blocks,
                          nn.AvgPool2d(8)], [nn.Linear(64, 10)])


class ResNet50(_Classifier):
    """ResNet-50 for ImageNet: (images, 3, 224, 224) -> (images, 1000).

    As in PredTuner the first convolution is normalised behind its ReLU, and the convolution of
    1 x 1 has the stride.
    """

    def __init__(self) -> None:
        modules: list[nn.Module] = [nn.Conv2d(3, 64, 7, stride=2, padding=3), _overlaps(),
                                    nn.ReLU(), nn.BatchNorm2d(64, eps=_EPSILON)]
        channels = 64
        for filters, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
            for i in range(count):
                stride = 2 if i == 0 and filters > 64 else 1
                modules.append(_bottleneck(channels, filters, stride))
                channels = 4 * filters
        super().__init__([*modules, nn.AvgPool2d(7)], [nn.Linear(channels, 1000)])


def _separable(channels: int, filters: int, extent: int, stride: int) -> nn.Module:
    """Returns a convolution, and behind it a depthwise one of 3 x 3 with the stride."""
    return nn.Sequential(
        nn.Conv2d(channels, filters, extent, padding=extent // 2, bias=False),
        nn.BatchNorm2d(filters, eps=_EPSILON), nn.ReLU(),
        nn.Conv2d(filters, filters, 3, stride=stride, padding=1, groups=filters, bias=False),
        nn.BatchNorm2d(filters, eps=_EPSILON), nn.ReLU())


class MobileNet(_Classifier):
    """MobileNet for CIFAR-10: (images, 3, 32, 32) -> (images, 10)."""

    def __init__(self) -> None:
        modules: list[nn.Module] = [_separable(3, 32, 3, 1)]
        channels = 32
        # Filters, and the stride of the depthwise convolution behind them.
        for filters, stride in ((64, 2), (128, 1), (128, 2), (256, 1), (256, 2),
                                *[(512, 1)] * 5, (512, 2), (1024, 1)):
            modules.append(_separable(channels, filters, 1, stride))
            channels = filters
        super().__init__([*modules, nn.Conv2d(channels, channels, 1, bias=False),
                          nn.BatchNorm2d(channels, eps=_EPSILON), nn.ReLU(), nn.AvgPool2d(2)],
                         [nn.Linear(channels, 10)])


LeNetMnist = LeNet
AlexNetCifar10 = AlexNet
AlexNet2Cifar10 = AlexNet2
ResNet18Cifar10 = ResNet18
MobileNetCifar10 = MobileNet
ResNet50ImageNet = ResNet50
