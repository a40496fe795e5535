"""PredTuner's tutorial with only the import changed. with_torch.py runs this with Debian's
PyTorch."""

import importlib.util
import pathlib

import numpy as np
import pytest
from approx_samples import labels_of, stripes
from foretune import approx

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

TUTORIAL = """
from pathlib import Path
import torch
from torch.utils.data import DataLoader
import foretune.approx as pt
from foretune.approx.model_zoo import CIFAR

prefix = Path("model_params/vgg16_cifar10")
tune_set = CIFAR.from_file(prefix / "tune_input.bin", prefix / "tune_labels.bin")
tune_loader = DataLoader(tune_set, batch_size=500)
test_set = CIFAR.from_file(prefix / "test_input.bin", prefix / "test_labels.bin")
test_loader = DataLoader(test_set, batch_size=500)

module = VGG16Cifar10()
module.load_state_dict(torch.load("model_params/vgg16_cifar10.pth.tar"))

msg_logger = pt.config_pylogger(output_dir="vgg16_cifar10/", verbose=True)

app = pt.TorchApp(
  "TestTorchApp",  # Application name -- can be anything
  module,
  tune_loader,
  test_loader,
  knobs=pt.get_knobs_from_file(),
  tensor_to_qos=pt.accuracy,
  model_storage_folder="vgg16_cifar10/",
)

tuner = app.get_tuner()
tuner.tune(
  max_iter=ITERATIONS,
  qos_tuner_threshold=2.0,  # QoS threshold to guide tuner into
  qos_keep_threshold=3.0,  # QoS threshold for which we actually keep the configurations
  is_threshold_relative=True,  # Thresholds are relative to baseline -- baseline_acc - 2.0
  take_best_n=20,
  cost_model="cost_linear",  # Use linear cost predictor
)

tuner.dump_configs("vgg16_cifar10/configs.json", best_only=False)
if HAS_MATPLOTLIB:
  fig = tuner.plot_configs(show_qos_loss=True)
  fig.savefig("vgg16_cifar10/configs.png")
empirical = tuner

tuner = app.get_tuner()
tuner.tune(
  max_iter=ITERATIONS,
  qos_tuner_threshold=2.0,  # QoS threshold to guide tuner into
  qos_keep_threshold=3.0,  # QoS threshold for which we actually keep the configurations
  is_threshold_relative=True,  # Thresholds are relative to baseline -- baseline_acc - 2.0
  take_best_n=20,
  cost_model="cost_linear",  # Use linear cost predictor
  qos_model="qos_p1"
)
"""


class Tiny(nn.Module):
    """Stands for VGG16Cifar10, which takes minutes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(4),
                                    nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Flatten(),
                                    nn.Linear(8 * 64, 10))

    def forward(self, x):
        return self.layers(x)


def trained():
    """Returns a network that tells stripes apart, so that it bears a little less computing."""
    torch.manual_seed(1)
    module = Tiny()
    images, widths = (torch.from_numpy(each) for each in stripes(256, 3, (3, 32, 32)))
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(module(images), widths).backward()
        optimizer.step()
    return module.eval()


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    """Runs the tutorial in a folder with the files that it reads, and returns its names."""
    folder = tmp_path_factory.mktemp("tutorial")
    files = folder / "model_params" / "vgg16_cifar10"
    files.mkdir(parents=True)
    module = trained()
    torch.save(module.state_dict(), folder / "model_params" / "vgg16_cifar10.pth.tar")
    for name, images, seed in (("tune", 96, 1), ("test", 64, 2)):
        pictures, _ = stripes(images, seed, (3, 32, 32))
        with torch.no_grad():
            labels = labels_of(module(torch.from_numpy(pictures)).numpy())
        pictures.tofile(files / f"{name}_input.bin")
        labels.astype(np.int32).tofile(files / f"{name}_labels.bin")
    names = {"VGG16Cifar10": Tiny, "ITERATIONS": 60,
             "HAS_MATPLOTLIB": importlib.util.find_spec("matplotlib") is not None}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(TUTORIAL, "tutorial.py", "exec"), names)  # noqa: S102
        names["folder"] = pathlib.Path.cwd()
    return names


def test_the_tutorial_runs_with_only_the_import_changed(tutorial):
    first, second = tutorial["empirical"], tutorial["tuner"]
    assert len(first.all_configs) == len(second.all_configs) == 61
    assert first.baseline_tune_qos == second.baseline_tune_qos == pytest.approx(87.5, abs=3)
    for tuner in (first, second):
        assert len(tuner.best_configs_prefilter) == min(20, len(tuner.kept_configs))
        assert tuner.best_configs and max(each.speedup for each in tuner.kept_configs) > 1.0
        assert all(each.test_qos >= tuner.baseline_test_qos - 3.0 for each in tuner.best_configs)
    assert all(each.validated_qos >= second.baseline_tune_qos - 3.0 for each in second.best_configs)
    stored = tutorial["folder"] / "vgg16_cifar10"
    assert approx.load_configs(stored / "configs.json") == first.kept_configs
    assert len(list(stored.glob("p1-*"))) == 1


def test_the_network_is_the_module(tutorial):
    app, module = tutorial["app"], tutorial["module"]
    images, _ = stripes(4, 5, (3, 32, 32))
    with torch.no_grad():
        expected = module(torch.from_numpy(images)).numpy()
    assert np.abs(app.plan({}, 4)(images) - expected).max() < 1e-4


def test_a_metric_of_tensors_gets_tensors(tutorial):
    kinds = set()

    def metric(output, target):
        kinds.update((type(output), type(target)))
        return float((output.argmax(1) == target).float().mean())

    app = approx.TorchApp("a", tutorial["module"], tutorial["tune_loader"],
                          tutorial["test_loader"], approx.get_knobs_from_file(), metric, max)
    assert 0.8 < app.measure_qos({}, False) < 0.95 and kinds == {torch.Tensor}
