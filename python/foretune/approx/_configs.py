"""Choices of knobs with their quality and cost, and the files that keep them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from .._errors import (CorruptDataError, InputOutputError, InvalidArgumentError, MismatchError,
                       NotFoundError)
from ._apps import ApproxApp

__all__ = ["Config", "ValConfig", "load_configs", "load_hpvm_configs"]

Path = str | os.PathLike[str]
FORMAT = "foretune-approx-configs"
VERSION = 1


@dataclasses.dataclass
class Config:
    """A choice of knobs.

    Attributes:
        qos: quality on the tuning inputs, predicted where a model predicts it.
        cost: cost divided by the baseline's.
        knobs: names of knobs by operation.
        test_qos: quality on the test inputs; None: not measured.

    Thread safety: a plain value.
    """

    qos: float
    cost: float
    knobs: dict[str, str]
    test_qos: float | None = None

    @property
    def speedup(self) -> float:
        """Returns the baseline's cost divided by this one's."""
        return 1.0 / self.cost


@dataclasses.dataclass
class ValConfig(Config):
    """A choice of knobs whose quality was predicted.

    Attributes:
        validated_qos: quality measured on the tuning inputs; None: not measured.
    """

    validated_qos: float | None = None


def write_text(path: Path, text: str) -> None:
    """Writes a file at once, and its folder where it is missing.

    Raises:
        InputOutputError: the operating system refuses.
    """
    target = pathlib.Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, target)
    except OSError as failure:
        temporary.unlink(missing_ok=True)
        raise InputOutputError(f"{target} cannot be written: {failure.strerror}") from failure


def _read_text(path: Path) -> str:
    try:
        return pathlib.Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as failure:
        raise NotFoundError(f"there is no file {os.fspath(path)}") from failure
    except UnicodeDecodeError as failure:
        raise CorruptDataError(f"{os.fspath(path)} is no text") from failure
    except OSError as failure:
        raise InputOutputError(f"{os.fspath(path)} cannot be read: {failure.strerror}") from failure


def config_entry(config: Config, is_best: bool) -> dict[str, Any]:
    """Returns a choice as its file has it."""
    return {**dataclasses.asdict(config), "best": is_best}


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise CorruptDataError(f"{where} is no finite number")
    return float(value)


def _config(entry: Any, where: str) -> ValConfig:
    """Returns the choice of one entry, ours or PredTuner's."""
    if not isinstance(entry, dict) or not isinstance(entry.get("knobs"), dict):
        raise CorruptDataError(f"{where} is no object with knobs")
    knobs = entry["knobs"]
    if not all(isinstance(each, (str, int)) for each in knobs.values()):
        raise CorruptDataError(f"{where}: a knob is neither a text nor a number")
    cost = _number(entry.get("cost"), f"{where}: cost")
    if cost <= 0:
        raise CorruptDataError(f"{where}: cost is not positive")
    later = {name: None if entry.get(name) is None else _number(entry[name], f"{where}: {name}")
             for name in ("test_qos", "validated_qos")}
    return ValConfig(_number(entry.get("qos"), f"{where}: qos"), cost,
                     {str(op): str(knob) for op, knob in sorted(knobs.items())}, **later)


def load_configs(path: Path) -> list[ValConfig]:
    """Reads choices of knobs from a file of ``dump_configs``, ours or PredTuner's.

    Raises:
        NotFoundError, InputOutputError: the file cannot be read.
        CorruptDataError: it holds no such choices.
        MismatchError: a later version wrote it.

    Thread safety: any number of threads.
    """
    name = os.fspath(path)
    try:
        content = json.loads(_read_text(path))
    except ValueError as failure:
        if isinstance(failure, CorruptDataError):
            raise
        raise CorruptDataError(f"{name} is no JSON: {failure}") from failure
    if isinstance(content, dict):
        if content.get("format") != FORMAT:
            raise CorruptDataError(f"{name} holds no choices of knobs")
        if content.get("version") != VERSION:
            raise MismatchError(f"{name} has version {content.get('version')}; this build reads "
                                f"version {VERSION}")
        content = content.get("configs")
    if not isinstance(content, list):
        raise CorruptDataError(f"{name} holds no list of choices")
    return [_config(entry, f"{name}: entry {i}") for i, entry in enumerate(content)]


def dump_hpvm_configs(path: Path, app: ApproxApp, configs: Sequence[Config], baseline_ms: float,
                      baseline_qos: float) -> None:
    """Writes choices of knobs in HPVM's text, the baseline first.

    The first line is the baseline's time in milliseconds, 0 where it is not known. A block has a
    line ``confN speedup energy quality loss`` and one for every operation with its number, device,
    kind, type and knob. The quality is that of the test inputs where it was measured.

    Raises:
        InputOutputError: the file cannot be written.
    """
    baseline = Config(baseline_qos, 1.0, app.add_baseline_to_knobs({}), baseline_qos)
    lines = [f"{baseline_ms:.9g}"]
    for number, config in enumerate([baseline, *configs], 1):
        quality = config.qos if config.test_qos is None else config.test_qos
        lines += ["+++++", f"conf{number} {config.speedup:.9g} 1.0 {quality:.9g} "
                           f"{baseline_qos - quality:.9g}"]
        chosen = app.add_baseline_to_knobs(config.knobs)
        lines += [" ".join((str(place), app_line(app, op, chosen[op])))
                  for place, op in enumerate(app.ops, 1)]
        lines.append("-----")
    write_text(path, "\n".join(lines) + "\n")


def app_line(app: ApproxApp, op: str, knob_name: str) -> str:
    """Returns device, kind, type and knob of an operation and of those that it runs with."""
    parts = getattr(app, "hpvm_operations", lambda _: ["op"])(op)
    knob = next(each for each in app.op_knobs[op] if each.name == knob_name)
    exact = app.baseline_knob
    words = ["cpu", parts[0], knob.hpvm_type, knob.name]
    for part in parts[1:]:
        words += [part, exact.hpvm_type, exact.name]
    return " ".join(words)


def _hpvm_block(lines: Sequence[str], ops: Sequence[str], where: str) -> ValConfig:
    """Returns the choice of one block, without the lines around it."""
    head = lines[0].split() if lines else []
    if len(head) != 5 or not head[0].startswith("conf"):
        raise CorruptDataError(f"{where} does not begin with 'confN speedup energy quality loss'")
    if len(lines) - 1 != len(ops):
        raise MismatchError(f"{where} has {len(lines) - 1} operations, not {len(ops)}")
    try:
        speedup, quality = float(head[1]), float(head[3])
    except ValueError as failure:
        raise CorruptDataError(f"{where}: {failure}") from failure
    if not 0 < speedup < math.inf or not math.isfinite(quality):
        raise CorruptDataError(f"{where}: a speedup is positive and a quality finite")
    knobs = {}
    for op, line in zip(ops, lines[1:], strict=True):
        words = line.split()
        if len(words) < 5 or (len(words) - 2) % 3 != 0:
            raise CorruptDataError(f"{where}: {line!r} is no 'number device kind type knob'")
        knobs[op] = words[4]
    return ValConfig(quality, 1.0 / speedup, knobs, quality)


def load_hpvm_configs(path: Path, ops: Sequence[str]) -> list[ValConfig]:
    """Reads choices of knobs from HPVM's text, the baseline included.

    Args:
        path: the file.
        ops: names of the operations in the order of its lines, which have none: ``app.ops``.

    Returns choices whose ``qos`` and ``test_qos`` are both the file's quality.

    Raises:
        NotFoundError, InputOutputError: the file cannot be read.
        CorruptDataError: it is no such text.
        MismatchError: it has another number of operations.

    Thread safety: any number of threads.
    """
    name = os.fspath(path)
    if isinstance(ops, str):
        raise InvalidArgumentError("ops is a list of names, not one text")
    configs: list[ValConfig] = []
    block: list[str] | None = None
    for number, line in enumerate(_read_text(path).splitlines(), 1):
        text = line.strip()
        if text == "+++++" and block is None:
            block = []
        elif text == "-----" and block is not None:
            configs.append(_hpvm_block(block, ops, f"{name}: block {len(configs) + 1}"))
            block = None
        elif block is not None and text:
            block.append(text)
        elif text and number > 1:
            raise CorruptDataError(f"{name}: line {number} is outside of a block")
    if block is not None or not configs:
        raise CorruptDataError(f"{name} " + ("ends within a block" if block else "has no block"))
    return configs


def content_of(configs: Sequence[Config], best: Sequence[Config], header: Mapping[str, Any]) -> str:
    """Returns the text of a file of choices."""
    chosen = {id(config) for config in best}
    entries = [config_entry(config, id(config) in chosen) for config in configs]
    return json.dumps({"format": FORMAT, "version": VERSION, **header, "configs": entries},
                      indent=1, allow_nan=False) + "\n"
