#!/usr/bin/env python3
"""Writes the layers of real networks, one file a network, and checks them.

    scripts/network_layers.py             writes foretune/problem/{conv,gemm}/networks/*.txt
    scripts/network_layers.py --check     compares the files and their totals instead
    scripts/network_layers.py --diode operation_shapeset.json
                                          writes torch-diode's operation shapes

The networks are described in network_layers_conv*.py and network_layers_gemm.py. A file holds every
distinct layer once, for one image (conv) or one token (gemm); batches are for whoever reads it.
Networks are for training or for validation, and a layer that training networks have is dropped
from those for validation, at whatever map size, so that validation measures new layers only.

The check fails when a file differs from its description, when the multiply-adds or the parameters
of a network are more than 3 % off the published ones, or when a role lacks a kind of layer.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

# These register their networks.
import network_layers_conv  # noqa: F401
import network_layers_conv_branched  # noqa: F401
import network_layers_conv_depthwise  # noqa: F401
from network_layers_gemm import GEMM_MODELS
from network_layers_types import CONV_NETWORKS, TRAINING, VALIDATION, Layer
from sources import ROOT, report

TOLERANCE = 0.03  # small layers, biases and norms are not described
FEWEST = {("conv", TRAINING): 600, ("conv", VALIDATION): 400}
DIODE_FILE = ROOT / "foretune/problem/gemm/networks/diode_operations.txt"
DIODE_DTYPES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


class Network(Protocol):
    """Either kind of description."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def problem_type(self) -> str: ...
    @property
    def published(self) -> Mapping[str, float]: ...
    def layers(self) -> list[Layer]: ...
    def totals(self) -> dict[str, float]: ...


NETWORKS: list[Network] = [*CONV_NETWORKS, *GEMM_MODELS]


def distinct(network: Network) -> list[Layer]:
    """The first layer of every problem, in the network's order."""
    seen: dict[str, Layer] = {}
    for layer in network.layers():
        seen.setdefault(layer.text, layer)
    return list(seen.values())


def kept_layers() -> list[tuple[Network, list[Layer], int]]:
    """Returns every network with the layers of its file and how many were dropped."""
    trained = {(network.problem_type, layer.key) for network in NETWORKS
               if network.role == TRAINING for layer in network.layers()}
    out = []
    for network in NETWORKS:
        layers = distinct(network)
        kept = [layer for layer in layers
                if network.role == TRAINING or (network.problem_type, layer.key) not in trained]
        out.append((network, kept, len(layers) - len(kept)))
    return out


def file_of(network: Network) -> Path:
    return ROOT / "foretune/problem" / network.problem_type / "networks" / f"{network.name}.txt"


def text_of(network: Network, layers: list[Layer], dropped: int) -> str:
    lines = ["# foretune networks 1", f"# {network.title}", f"# role: {network.role}"]
    width = max(len(layer.name) for layer in layers)
    lines += [f"{layer.name:{width}}  {layer.text}" for layer in layers]
    if dropped:
        lines.append(f"# dropped because training networks have them: {dropped} layers")
    return "\n".join(lines) + "\n"


def check_files() -> Iterable[str]:
    expected = {file_of(network): text_of(network, layers, dropped)
                for network, layers, dropped in kept_layers()}
    if len(expected) != len(NETWORKS):
        yield "two networks have one name"
    for path, text in expected.items():
        if not path.exists() or path.read_text(encoding="ascii") != text:
            yield f"{path.relative_to(ROOT)} is not as scripts/network_layers.py writes it"
    for folder in sorted({path.parent for path in expected}):
        for path in sorted(set(folder.glob("*.txt")) - set(expected) - {DIODE_FILE}):
            yield f"{path.relative_to(ROOT)} belongs to no network"


def check_names() -> Iterable[str]:
    for network, layers, _ in kept_layers():
        names = collections.Counter(layer.name for layer in layers)
        for name, count in names.items():
            if count > 1:
                yield f"{network.name}: {count} layers are called {name}"


def check_totals() -> Iterable[str]:
    for network in NETWORKS:
        totals = network.totals()
        for name, published in network.published.items():
            off = totals[name] / published - 1
            print(f"{network.name:20} {name:8} {totals[name]:12.2f} M, published "
                  f"{published:12.2f} M, {100 * off:+5.2f} %")
            if abs(off) > TOLERANCE:
                yield f"{network.name}: {name} are {100 * off:+.1f} % off the published number"


def check_roles() -> Iterable[str]:
    """A layer of several files counts once."""
    kinds: dict[tuple[str, str], dict[str, str]] = {}
    for network, layers, _ in kept_layers():
        of_role = kinds.setdefault((network.problem_type, network.role), {})
        of_role.update((layer.text, layer.kind) for layer in layers)
    everything = {problem_type: {kind for (other, _), found in kinds.items()
                                 if other == problem_type for kind in found.values()}
                  for problem_type, _ in kinds}
    for (problem_type, role), found in kinds.items():
        counts = collections.Counter(found.values())
        print(f"{problem_type}, {role}: {len(found)} distinct layers ("
              + ", ".join(f"{count} {kind}" for kind, count in counts.most_common()) + ")")
        for kind in sorted(everything[problem_type] - set(counts)):
            yield f"{problem_type}, {role}: no layer is {kind}"
        if len(found) < FEWEST.get((problem_type, role), 0):
            yield f"{problem_type}, {role}: only {len(found)} distinct layers"


def check() -> int:
    problems = [*check_totals(), *check_roles(), *check_names(), *check_files()]
    return report(problems, f"network layers: {len(NETWORKS)} networks")


def write() -> int:
    for network, layers, dropped in kept_layers():
        path = file_of(network)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(network, layers, dropped), encoding="ascii", newline="\n")
    return 0


def diode_problems(operations: Mapping[str, Mapping[str, list[dict[str, object]]]],
                   ) -> tuple[int, list[str]]:
    """Returns the number of shapes and the distinct problems as text.

    As foretune/interop/diode/exchange_diode.cc reads them: a batch above 1 makes any shape a bmm, and the
    layout is ours, because theirs tells only how the output lies.
    """
    count = 0
    problems: dict[str, None] = {}
    for operation, content in operations.items():
        for shape in content["shapes"]:
            count += 1
            if shape["M_dtype"] != shape["K_dtype"]:
                raise SystemExit(f"{operation}: a shape whose matrices have different data types")
            batch = shape["B"]
            op = "bmm" if batch != 1 else operation
            text = f"gemm op={op} m={shape['M']} n={shape['N']} k={shape['K']}"
            if batch != 1:
                text += f" batch={batch}"
            problems[f"{text} dtype={DIODE_DTYPES[str(shape['M_dtype'])]}"] = None
    return count, list(problems)


def write_diode(source: Path) -> int:
    document = json.loads(source.read_text(encoding="utf-8"))
    count, problems = diode_problems(document["operations"])
    title = ("Operation shapes that torch-diode ships (github.com/exclamaforte/diode, Apache-2.0): "
             f"its {count:,} shapes without repeats and without those that differ only in how "
             "outputs lie in memory")
    lines = ["# foretune networks 1", f"# {title}", "# role: shapes"]
    lines += [f"shape{i:04d} {problem}" for i, problem in enumerate(problems)]
    DIODE_FILE.write_text("\n".join(lines) + "\n", encoding="ascii", newline="\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes or checks the layers of real networks.")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="compare instead of writing")
    mode.add_argument("--diode", type=Path, metavar="JSON",
                      help="write torch-diode's operation shapes, from its operation_shapeset.json")
    options = parser.parse_args()
    if options.diode:
        return write_diode(options.diode)
    return check() if options.check else write()


if __name__ == "__main__":
    sys.exit(main())
