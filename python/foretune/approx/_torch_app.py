"""Neural networks as applications: executed by this library, with measured time and quality."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _foretune
from .._errors import InvalidArgumentError, UnsupportedError
from ..networks import Layer, Network, Operation, Plan
from ._apps import BASELINE, ICostModel, IQoSModel, ModeledApp
from ._datasets import _as_array
from ._models import LinearCostModel, MeasuredCostModel, QoSModelP1, QoSModelP2
from ._torch_import import from_torch, torch_or_none
from .knobs import ApproxKnob

__all__ = ["TorchApp"]

Array = npt.NDArray[Any]
Batch = tuple[Array, Any]

# Images that stand for all when ranges of integers are found.
_CALIBRATION_IMAGES = 256
# Times are of so many images, at most: more tell nothing new about a choice.
_TIMED_IMAGES = 64
# Every time is the smallest of so many at least, in turns with the baseline, and of more where they
# take less than so many seconds together.
_ROUNDS = 5
_MEASURE_SECONDS = 0.05
# Operations that HPVM's text lists behind the layer that they run with, by its names.
_FUSED = {"relu": "relu", "tanh": "tanh", "max_pool": "pool_max"}


class TorchApp(ModeledApp):
    """A neural network as an application.

    Quality is that of the network as it is executed here, with layers that really compute less;
    cost is the measured time of a batch (its first 64 images at most) in seconds, taken in turns
    with the baseline's. It has the models ``"cost_linear"`` (multiply-adds divided by expected
    speedups), ``"cost_measured"`` (measured times of layers), ``"qos_p1"`` and ``"qos_p2"``. The
    operations are the network's convolutions and linear layers.

    Args:
        app_name: any name.
        module: a ``torch.nn.Module``, which ``from_torch`` turns into a network, or a
            ``foretune.networks.Network`` of one input and one output.
        tune_dataloader, test_dataloader: batches (images, labels), such as a ``DataLoader``. Each
            is read once, and all its images are kept in memory as float32.
        knobs: knobs for all layers that they apply to.
        tensor_to_qos: returns the quality of a batch for (output, labels); it gets tensors where
            the module is PyTorch's, else arrays.
        combine_qos: returns one quality for the list of those of all batches.
        target_device: leaves out knobs that PredTuner's device lacks; None: none.
        torch_device: ignored; networks run on this CPU.
        model_storage_folder: folder for the tables of ``"qos_p1"`` and ``"qos_p2"``; None: they are
            not stored.
        threads: threads of a plan; None: all cores of the process.
        measure_top: as for ``Network.plan``, where time is measured.

    Raises:
        InvalidArgumentError: an argument makes no sense, or no knob applies to any layer.
        UnsupportedError: PyTorch is not installed, or the module cannot be imported.

    Thread safety: one thread at a time; it measures time.
    """

    cost_is_seconds = True

    def __init__(self, app_name: str, module: Any, tune_dataloader: Iterable[Any],
                 test_dataloader: Iterable[Any], knobs: Iterable[ApproxKnob],
                 tensor_to_qos: Callable[[Any, Any], float],
                 combine_qos: Callable[[list[float]], Any] = np.mean,
                 target_device: str | None = None, torch_device: Any = None,
                 model_storage_folder: str | os.PathLike[str] | None = None, *,
                 threads: int | None = 1, measure_top: int = 8) -> None:
        del torch_device  # PredTuner's scripts pass it
        if not callable(tensor_to_qos) or not callable(combine_qos):
            raise InvalidArgumentError("tensor_to_qos and combine_qos are functions")
        self._name = app_name
        self._tune = _batches(tune_dataloader, "tune_dataloader")
        self._test = _batches(test_dataloader, "test_dataloader")
        self._torch = None if isinstance(module, Network) else torch_or_none()
        self.network = (module if isinstance(module, Network)
                        else from_torch(module, self._tune[0][0][:1]))
        inner = self.network._inner  # noqa: SLF001
        if len(inner.inputs) != 1 or len(inner.outputs) != 1:
            raise InvalidArgumentError(f"{self.network.name} has several inputs or outputs; a "
                                       "TorchApp has one each")
        self._metric, self._combine = tensor_to_qos, combine_qos
        self._storage = model_storage_folder
        self._threads, self._measure_top = threads, measure_top
        self._ranges: dict[str, tuple[float, float]] = {}
        self._seconds: float | None = None
        self._exact_plan: Plan | None = None
        self._key: str | None = None
        super().__init__(self._applicable(list(knobs)), target_device)

    @property
    def name(self) -> str:
        """Returns the application's name."""
        return self._name

    def _applicable(self, knobs: Sequence[ApproxKnob]) -> dict[str, list[ApproxKnob]]:
        """Returns the knobs that apply to each layer and that this CPU has kernels for."""
        runs: dict[str, bool] = {}
        found: dict[str, list[ApproxKnob]] = {}
        for operation in self.network.layers:
            found[operation.name] = []
            for knob in knobs:
                if not isinstance(knob, ApproxKnob):
                    raise InvalidArgumentError(f"a knob is an ApproxKnob, not "
                                               f"{type(knob).__name__}")
                if not knob.is_applicable(operation, self.network)[0]:
                    continue
                kind = f"{operation.kind} {knob.layer().dtype}"
                if kind not in runs:
                    runs[kind] = self._has_kernel(operation, knob.layer().dtype)
                if runs[kind]:
                    found[operation.name].append(knob)
        if not any(found.values()):
            raise InvalidArgumentError(f"no knob applies to any layer of {self._name}")
        return found

    def _has_kernel(self, operation: Operation, dtype: str) -> bool:
        """Returns true when this CPU computes such a layer in the type."""
        layer = Layer(dtype)
        if layer == Layer():
            return True
        try:
            self.network.plan(layers={operation.name: layer}, measure_top=0,
                              ranges=self._ranges_for([layer]))
        except UnsupportedError:
            return False
        return True

    def _ranges_for(self, layers: Iterable[Layer]) -> dict[str, tuple[float, float]]:
        """Returns the ranges of all tensors where a layer of integers needs them."""
        if all(layer.dtype != "i8" for layer in layers):
            return {}
        if not self._ranges:
            images: list[Array] = []
            for batch, _ in self._tune:
                images.append(batch[:_CALIBRATION_IMAGES - sum(map(len, images))])
                if sum(map(len, images)) >= _CALIBRATION_IMAGES:
                    break
            self._ranges = self.network.calibrate(np.concatenate(images))
        return self._ranges

    def _layers(self, with_approxes: Mapping[str, str]) -> dict[str, Layer]:
        """Returns the layers of a choice that do not compute exactly."""
        chosen = self.add_baseline_to_knobs(with_approxes)
        layers = {op: next(knob for knob in self.op_knobs[op] if knob.name == name).layer()
                  for op, name in chosen.items() if name != BASELINE}
        return {op: layer for op, layer in layers.items() if layer != Layer()}

    def plan(self, with_approxes: Mapping[str, str], images: int, *,
             measure_top: int | None = None) -> Plan:
        """Returns the network made ready for so many images with a choice of knobs.

        Raises:
            InvalidArgumentError: the choice or the number of images makes no sense.
        """
        layers = self._layers(with_approxes)
        return self.network.plan(
            images=images, threads=self._threads, layers=layers,
            ranges=self._ranges_for(layers.values()),
            measure_top=self._measure_top if measure_top is None else measure_top)

    def _outputs(self, with_approxes: Mapping[str, str], batches: Sequence[Batch]) -> list[Array]:
        """Returns the network's output of every batch.

        Models choose the kernels, so that the same choice has the same numbers again.
        """
        plans: dict[int, Plan] = {}
        outputs = []
        for images, _ in batches:
            if len(images) not in plans:
                plans[len(images)] = self.plan(with_approxes, len(images), measure_top=0)
            outputs.append(plans[len(images)](images))
        return outputs

    def _quality(self, outputs: Sequence[Array], batches: Sequence[Batch]) -> float:
        """Returns the quality of outputs."""
        found = []
        for output, (_, labels) in zip(outputs, batches, strict=True):
            given: tuple[Any, Any] = (output, labels)
            if self._torch is not None:
                # A copy: the caller's function may write to it.
                given = (self._torch.from_numpy(np.array(output)), self._torch.as_tensor(labels))
            found.append(float(self._metric(*given)))
        return float(self._combine(found))

    def measure_qos(self, with_approxes: Mapping[str, str], is_test: bool) -> float:
        """Returns the quality over all tuning or test images."""
        batches = self._test if is_test else self._tune
        return self._quality(self._outputs(with_approxes, batches), batches)

    def measure_cost(self, with_approxes: Mapping[str, str], is_test: bool) -> float:
        """Returns the time of the first batch, or of its first 64 images, in seconds.

        It is the baseline's first time multiplied by the ratio of times taken in turns, so that a
        machine that slows down later changes nothing.
        """
        images = self._tune[0][0][:_TIMED_IMAGES]
        if self._exact_plan is None:
            self._exact_plan = self.plan({}, len(images))
        plans = [self._exact_plan, self.plan(with_approxes, len(images))]
        times = [float("inf")] * 2
        spent, rounds = 0.0, 0
        while rounds < _ROUNDS or spent < _MEASURE_SECONDS:
            for i, plan in enumerate(plans):
                begin = time.perf_counter()
                plan(images)
                taken = time.perf_counter() - begin
                times[i] = min(times[i], taken)
                spent += taken
            rounds += 1
        if self._seconds is None:
            self._seconds = times[0]
        return self._seconds * times[1] / times[0]

    def empirical_measure_qos_cost(self, with_approxes: Mapping[str, str], is_test: bool
                                   ) -> tuple[float, float]:
        """Returns the quality over all tuning or test images, and a batch's time in seconds."""
        return (self.measure_qos(with_approxes, is_test),
                self.measure_cost(with_approxes, is_test))

    def get_models(self) -> list[ICostModel | IQoSModel]:
        """Returns the four models."""
        speedups = {knob.name: knob.expected_speedup for knob in self.knobs}
        costs = {each.name: each.multiply_adds for each in self.network.layers}
        return [LinearCostModel(self, costs, speedups), MeasuredCostModel(self, self._step_times),
                QoSModelP1(self, self._joined_outputs, self._joined_quality, self._storage),
                QoSModelP2(self, self._storage, lambda knobs: self.measure_qos(knobs, False))]

    def _joined_outputs(self, with_approxes: Mapping[str, str]) -> Array:
        return np.concatenate(self._outputs(with_approxes, self._tune))

    def _joined_quality(self, outputs: Array) -> float:
        ends = np.cumsum([len(images) for images, _ in self._tune])[:-1]
        return self._quality(np.split(outputs, ends), self._tune)

    def _step_times(self) -> tuple[dict[tuple[str, str], float], float]:
        """Returns nanoseconds of every layer with every knob, and those of all other steps.

        A knob is measured on all its layers at once, in turns with the baseline, whose times of
        the beginning make different turns comparable.
        """
        images = self._tune[0][0][:_TIMED_IMAGES]
        exact_plan = self.plan({}, len(images))
        first = _fastest_steps([exact_plan], images)[0]
        exact = self.baseline_knob.name
        times = {(op, exact): first.get(op, 1.0) for op in self.ops}
        for knob in self.knobs:
            ops = [op for op in self.ops if knob in self.op_knobs[op]]
            if knob.name == exact or not ops:
                continue
            changed = self.plan({op: knob.name for op in ops}, len(images))
            before, after = _fastest_steps([exact_plan, changed], images)
            for op in ops:
                ratio = after.get(op, 1.0) / before.get(op, 1.0)
                times[op, knob.name] = times[op, exact] * ratio
        return times, sum(value for name, value in first.items() if name not in self.op_knobs)

    def table_key(self) -> str:
        """Returns digests of the weights and of the tuning images, and the versions."""
        if self._key is None:
            digest = hashlib.sha256(f"{_foretune.version} {len(self._tune)}".encode())
            with tempfile.TemporaryDirectory(prefix="foretune-") as folder:
                path = os.path.join(folder, "network.ftn")
                self.network.save(path)
                with open(path, "rb") as file:
                    digest.update(file.read())
            for images, labels in self._tune:
                for array in (images, np.ascontiguousarray(_as_array(labels))):
                    digest.update(f"{array.dtype} {array.shape}".encode())
                    digest.update(array.tobytes())
            metric = getattr(self._metric, "__qualname__", type(self._metric).__qualname__)
            self._key = f"{digest.hexdigest()} {metric}"
        return self._key

    def knob_key(self, op: str, knob_name: str) -> str:
        """Returns the operation and the layer that the knob makes of it."""
        return f"{op} {self._layers({op: knob_name}).get(op, Layer())}"

    def hpvm_operations(self, op: str) -> list[str]:
        """Returns HPVM's names of the layer and of the operations that run with it."""
        operations = self.network.operations
        place = next(i for i, each in enumerate(operations) if each.name == op)
        names = ["conv" if operations[place].kind == "conv" else "mul", "add"]
        for each in operations[place + 1:]:
            if each.kind not in _FUSED:
                break
            names.append(_FUSED[each.kind])
        return names


def _batches(given: Iterable[Any], argument: str) -> list[Batch]:
    """Returns batches as float32 images with their labels, after a look at their lengths."""
    batches: list[Batch] = []
    for batch in given:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise InvalidArgumentError(f"{argument}: a batch is a pair (images, labels)")
        images = np.ascontiguousarray(_as_array(batch[0]), np.float32)
        if images.ndim < 2 or len(images) == 0 or len(images) != len(batch[1]):
            raise InvalidArgumentError(f"{argument}: a batch has as many labels as images, at "
                                       "least one")
        batches.append((images, batch[1] if hasattr(batch[1], "detach") else np.asarray(batch[1])))
    if not batches:
        raise InvalidArgumentError(f"{argument} has no batch")
    return batches


def _fastest_steps(plans: Sequence[Plan], images: Array) -> list[dict[str, float]]:
    """Returns nanoseconds by operation for each plan, the smallest of turns."""
    fastest: list[dict[str, float]] = [{} for _ in plans]
    for _ in range(_ROUNDS):
        for plan, best in zip(plans, fastest, strict=True):
            steps: dict[str, float] = {}
            for step in plan.profile(images):
                steps[step.name] = steps.get(step.name, 0.0) + step.nanoseconds
            for name, value in steps.items():
                best[name] = max(1.0, min(best.get(name, float("inf")), value))
    return fastest
