"""The ten networks that PredTuner is shown with, and its data sets::

    from foretune.approx.model_zoo import CIFAR, VGG16Cifar10

    module = VGG16Cifar10()                                 # random weights
    module.load_state_dict(torch.load("vgg16_cifar10.pth.tar"))
    images = CIFAR.from_file("tune_input.bin", "tune_labels.bin")

The networks are classes of ``torch.nn.Module`` whose constructors take no arguments. Their
parameters have PredTuner's names, so that its files of weights load. An input is (images, channels,
rows, columns) of float32, an output (images, classes) of float32.

================ ======================= ============== =======
class            another name            input          classes
================ ======================= ============== =======
LeNet            LeNetMnist              (1, 28, 28)    10
AlexNet          AlexNetCifar10          (3, 32, 32)    10
AlexNet2         AlexNet2Cifar10         (3, 32, 32)    10
VGG16Cifar10                             (3, 32, 32)    10
VGG16Cifar100                            (3, 32, 32)    100
ResNet18         ResNet18Cifar10         (3, 32, 32)    10
MobileNet        MobileNetCifar10        (3, 32, 32)    10
AlexNetImageNet                          (3, 224, 224)  1000
VGG16ImageNet                            (3, 224, 224)  1000
ResNet50         ResNet50ImageNet        (3, 224, 224)  1000
================ ======================= ============== =======

Importing this works without PyTorch; constructing a network then raises ``UnsupportedError``. The
data sets work without it. Thread safety: any number of threads may construct networks and use a
data set; a module itself is as safe as PyTorch's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._datasets import CIFAR, MNIST, ImageNet
from ._torch_import import need_torch, torch_or_none

if TYPE_CHECKING:
    from ._zoo_networks import (AlexNet, AlexNet2, AlexNet2Cifar10, AlexNetCifar10,
                                AlexNetImageNet, LeNet, LeNetMnist, MobileNet, MobileNetCifar10,
                                ResNet18, ResNet18Cifar10, ResNet50, ResNet50ImageNet,
                                VGG16Cifar10, VGG16Cifar100, VGG16ImageNet)

__all__ = ["CIFAR", "MNIST", "AlexNet", "AlexNet2", "AlexNet2Cifar10", "AlexNetCifar10",
           "AlexNetImageNet", "ImageNet", "LeNet", "LeNetMnist", "MobileNet", "MobileNetCifar10",
           "ResNet18", "ResNet18Cifar10", "ResNet50", "ResNet50ImageNet", "VGG16Cifar10",
           "VGG16Cifar100", "VGG16ImageNet"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if torch_or_none() is None:

        def refuse() -> None:
            need_torch(name)

        refuse.__name__ = refuse.__qualname__ = name
        return refuse
    from . import _zoo_networks

    globals()[name] = value = getattr(_zoo_networks, name)
    return value
