#!/usr/bin/env python3
"""Draws the pictures of docs/pictures that show results, from measurements of bench/training, by the
program's own commands:

    scripts/doc_pictures.py build/dev/tools/foretune/foretune [NAME...]

Nothing is measured: the family recorded replays times. Same data, same pictures; the date in a picture is
that of the last commit of its data.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs/pictures"
MAX_BYTES = 60_000
GEMM = "bench/training/cpu-gemm-avx512-1.ftd"
CONV = "bench/training/cpu-conv-avx512-1-validation.ftd"
REPLAY = ("--family", "recorded", "--family-data")
LAYER = ("conv n=8 c=64 k=128 hi=32 wi=32 y=4 x=4 stride_h=2 stride_w=2 pad_h=1 pad_w=1 weights=constant")
PRODUCTS = ("m=416 n=48 k=992", "m=32 n=208 k=64", "m=88 n=800 k=64", "m=176 n=2512 k=32", "m=8 n=2168 k=480",
            "m=1680 n=1032 k=8", "m=200 n=344 k=112", "m=232 n=16 k=176", "m=936 n=208 k=424",
            "m=488 n=80 k=2320", "m=632 n=440 k=232", "m=192 n=24 k=992")
# Each picture: its data, the arguments that draw it into the folder {out}, and its file there.
COMMANDS: dict[str, tuple[str, Sequence[str], str]] = {
    "picks": (CONV, ("evaluate", "--model", "foretune/dispatch/models/cpu-conv-avx512-1.ftm", "--dataset", CONV,
                     "--figures", "{out}"), "picks.svg"),
    "front": (CONV, ("tune", *REPLAY, CONV, "--objective", "pareto time_ns pack_ns", "--strategy", "exhaustive",
                     "--budget", "1000", "--figures", "{out}", LAYER), "1-time_ns-pack_ns.svg"),
    "search": (GEMM, ("tune", *REPLAY, GEMM, "--shapeset", "{out}/products.txt", "--strategies",
                      "random,local,annealing,evolution", "--budget", "60", "--folder", "{out}/contest"),
               "contest/gain.svg"),
}


def committed_at(data: str) -> str:
    return subprocess.run(["git", "log", "-1", "--format=%cs", "--", data], cwd=ROOT, capture_output=True,
                          text=True, check=True).stdout.strip()


def draw(program: str, name: str) -> None:
    data, arguments, file = COMMANDS[name]
    with tempfile.TemporaryDirectory() as out:
        (Path(out) / "products.txt").write_text("".join(f"gemm {each}\n" for each in PRODUCTS), encoding="utf-8")
        command = [program, *(argument.replace("{out}", out) for argument in arguments)]
        print("foretune", *(repr(each) if " " in each else each for each in arguments))
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        text = (Path(out) / file).read_text(encoding="utf-8")
    text = re.sub(r"20\d\d-\d\d-\d\d", committed_at(data), text)
    if len(text.encode()) > MAX_BYTES:
        raise SystemExit(f"{name}.svg has {len(text.encode()):,} bytes, more than {MAX_BYTES:,}")
    (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")


def main() -> int:
    names = sys.argv[2:] or list(COMMANDS)
    if len(sys.argv) < 2 or not set(names) <= set(COMMANDS):
        print(__doc__, file=sys.stderr)
        return 2
    program = str(Path(sys.argv[1]).resolve())
    for name in names:
        draw(program, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
