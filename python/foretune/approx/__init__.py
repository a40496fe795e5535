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

A tuner finds out which layers may compute less (``docs/guides/networks.md``)::

    app = pt.TorchApp("vgg16", module, tune_loader, test_loader, pt.get_knobs_from_file(),
                      pt.accuracy)
    tuner = app.get_tuner()
    tuner.tune(1000, 2.0, 3.0, is_threshold_relative=True, qos_model="qos_p1")
    tuner.dump_configs("configs.json")

Importing this does not import torch, and works without it. Every function documents its thread
safety.
"""

from ._apps import ApproxApp, ICostModel, IQoSModel, ModeledApp
from ._command_app import CommandApp
from ._configs import Config, ValConfig, load_configs, load_hpvm_configs
from ._datasets import accuracy
from ._logging import config_pylogger
from ._models import LinearCostModel, MeasuredCostModel, QoSModelP1, QoSModelP2
from ._torch_app import TorchApp
from ._torch_import import from_torch
from ._tuner import ApproxModeledTuner, ApproxTuner
from .knobs import (ApproxKnob, Conv2dSampling, FP16Approx, FP32Baseline, PerforateConv2dStride,
                    PromiseSim, get_knobs_from_file)

__all__ = ["ApproxApp", "ApproxKnob", "ApproxModeledTuner", "ApproxTuner", "CommandApp", "Config",
           "Conv2dSampling", "FP16Approx", "FP32Baseline", "ICostModel", "IQoSModel",
           "LinearCostModel", "MeasuredCostModel", "ModeledApp", "PerforateConv2dStride",
           "PromiseSim", "QoSModelP1", "QoSModelP2", "TorchApp", "ValConfig", "accuracy",
           "config_pylogger", "from_torch", "get_knobs_from_file", "load_configs",
           "load_hpvm_configs"]
