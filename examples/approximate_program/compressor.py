#!/usr/bin/env python3
"""Tunes a compressor as an external program: fast settings that still compress well.

    python3 compressor.py

The compressor is zlib's, run by this script as a program of its own: the quality of its settings is
how many times smaller the output is, the cost their time in milliseconds. Some modules of Python's
library are compressed to choose, others to report.
"""

import importlib.util
import pathlib
import sys
import time
import zlib

TUNE = ["argparse", "typing", "inspect", "tarfile"]
TEST = ["doctest", "subprocess", "zipfile"]


def compress(level: str, window: str, modules: list[str]) -> None:
    """Compresses the modules' text and prints how many times smaller it is, and the time."""
    sources = [importlib.util.find_spec(module) for module in modules]
    text = b"".join(pathlib.Path(source.origin).read_bytes()
                    for source in sources if source is not None and source.origin is not None)
    begin = time.perf_counter()
    # "best" is the baseline of both operations.
    packer = zlib.compressobj(9 if level == "best" else int(level.removeprefix("level")),
                              wbits=15 if window == "best" else int(window.removeprefix("window")))
    packed = packer.compress(text) + packer.flush()
    print(f"ratio {len(text) / len(packed):.4f}")
    print(f"milliseconds {1e3 * (time.perf_counter() - begin):.3f}")


def main() -> None:
    # Here, and not above: the compressor needs none of it.
    from foretune.approx import ApproxKnob, CommandApp

    best = ApproxKnob("best", baseline_priority=1)
    app = CommandApp(
        "compressor",
        {"level": [best, *(ApproxKnob(f"level{level}") for level in (1, 2, 4, 6))],
         "window": [best, ApproxKnob("window10"), ApproxKnob("window13")]},
        [sys.executable, __file__, "{level}", "{window}"], tune_args=TUNE, test_args=TEST,
        qos_pattern=r"ratio (\S+)", cost_pattern=r"milliseconds (\S+)", timeout=60)
    ratio, milliseconds = app.measure_qos_cost({}, False)
    print(f"best settings: {ratio:.2f} times smaller in {milliseconds:.1f} ms")
    # At most a tenth more bytes, for the text that chooses and for the other one.
    for config in app.get_tuner().tune(12, 0.9 * ratio, strategy="local"):
        print(f"{config.qos:.2f} times smaller, {config.speedup:.1f} times as fast (other text: "
              f"{config.test_qos:.2f}): {config.knobs}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        compress(sys.argv[1], sys.argv[2], sys.argv[3:])
    else:
        main()
