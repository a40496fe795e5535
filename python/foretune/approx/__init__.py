"""Networks that compute less: what a tuner of approximations chooses from.

The names are those of PredTuner, so that its users find them::

    import foretune.approx as pt
    from foretune.approx.model_zoo import CIFAR, VGG16Cifar10

    network = pt.from_torch(VGG16Cifar10(), np.zeros((1, 3, 32, 32)))
    tune_set = CIFAR.from_file("tune_input.bin", "tune_labels.bin")
    knob = next(knob for knob in pt.get_knobs_from_file() if knob.name == "123")
    layers = {each.name: knob.layer() for each in network.layers
              if knob.is_applicable(each, network)[0]}
    plan = network.plan(images=64, layers=layers)
    print(pt.accuracy(plan(tune_set.images[:64]), tune_set.labels[:64]))

Importing this does not import torch, and works without it. Every function documents its thread
safety.
"""

from ._datasets import accuracy
from ._torch_import import from_torch
from .knobs import (ApproxKnob, Conv2dSampling, FP16Approx, FP32Baseline, PerforateConv2dStride,
                    PromiseSim, get_knobs_from_file)

__all__ = ["ApproxKnob", "Conv2dSampling", "FP16Approx", "FP32Baseline", "PerforateConv2dStride",
           "PromiseSim", "accuracy", "from_torch", "get_knobs_from_file"]
