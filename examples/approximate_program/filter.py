#!/usr/bin/env python3
"""Tunes an image filter as an external program: less work for a picture that looks the same.

    python3 filter.py

A bilateral filter smooths a noisy picture and keeps its edges. It may leave out rows of its output,
which are then interpolated, and points of its window. The quality is the structural similarity
(SSIM) to the whole filter's picture, the cost its time in milliseconds. One picture chooses, another
one reports.
"""

import sys
import time

import numpy as np

SIZE = 96
RADIUS = 5


def picture(seed: int) -> np.ndarray:
    """Returns discs of different brightness, with noise."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    out = np.full((SIZE, SIZE), 0.2, np.float32)
    for _ in range(12):
        row, column, radius = random.uniform(0, [SIZE, SIZE, SIZE / 4])
        out[(rows - row) ** 2 + (columns - column) ** 2 < radius ** 2] = random.uniform()
    return out + random.normal(0, 0.05, out.shape).astype(np.float32)


def smooth(image: np.ndarray, row_step: int, tap_step: int) -> np.ndarray:
    """Returns the filtered picture, of every `row_step`th row and every `tap_step`th point."""
    padded = np.pad(image, RADIUS, mode="edge")
    centre = image[::row_step]
    total, weights = np.zeros_like(centre), np.zeros_like(centre)
    taps = range(-RADIUS, RADIUS + 1)
    for number, (dr, dc) in enumerate((dr, dc) for dr in taps for dc in taps):
        # The middle of the window is the 61st of its 121 points and belongs to every choice.
        if number % tap_step:
            continue
        near = padded[RADIUS + dr:RADIUS + dr + SIZE:row_step, RADIUS + dc:RADIUS + dc + SIZE]
        weight = np.exp(-(dr * dr + dc * dc) / 18 - (near - centre) ** 2 / 0.05)
        total += weight * near
        weights += weight
    out = np.empty_like(image)
    out[::row_step] = total / weights
    for row in range(SIZE):
        if row % row_step:
            above = row - row % row_step
            below = min(above + row_step, (SIZE - 1) // row_step * row_step)
            share = (row - above) / row_step
            out[row] = (1 - share) * out[above] + share * out[below]
    return out


def similarity(image: np.ndarray, other: np.ndarray) -> float:
    """Returns the SSIM of two pictures (Wang et al. 2004), with their Gaussian windows."""
    distances = np.arange(-5, 6)
    window = np.exp(-distances ** 2 / (2 * 1.5 ** 2))
    window /= window.sum()

    def mean(values: np.ndarray) -> np.ndarray:
        for axis in (0, 1):
            values = np.apply_along_axis(np.convolve, axis, values, window, "valid")
        return values

    x, y = image.astype(np.float64), other.astype(np.float64)
    c1, c2 = (0.01 * np.ptp(x)) ** 2, (0.03 * np.ptp(x)) ** 2
    mx, my = mean(x), mean(y)
    vx, vy, both = mean(x * x) - mx * mx, mean(y * y) - my * my, mean(x * y) - mx * my
    return float(np.mean((2 * mx * my + c1) * (2 * both + c2)
                         / ((mx ** 2 + my ** 2 + c1) * (vx + vy + c2))))


def measure(rows: str, taps: str, seed: int) -> None:
    """Filters a picture and prints its likeness to the exact one, and the time."""
    image = picture(seed)
    begin = time.perf_counter()
    # "all" is the baseline of both operations.
    found = smooth(image, 1 if rows == "all" else int(rows.removeprefix("rows")),
                   1 if taps == "all" else int(taps.removeprefix("taps")))
    milliseconds = 1e3 * (time.perf_counter() - begin)
    print(f"ssim {similarity(smooth(image, 1, 1), found):.5f}")
    print(f"milliseconds {milliseconds:.3f}")


def main() -> None:
    # Here, and not above: the filter needs none of it.
    from foretune.approx import ApproxKnob, CommandApp

    every = ApproxKnob("all", baseline_priority=1)
    app = CommandApp(
        "bilateral",
        {"rows": [every, ApproxKnob("rows2"), ApproxKnob("rows3")],
         "taps": [every, *(ApproxKnob(f"taps{step}") for step in (2, 3, 4, 6))]},
        [sys.executable, __file__, "{rows}", "{taps}"], tune_args=["1"], test_args=["2"],
        qos_pattern=r"ssim (\S+)", cost_pattern=r"milliseconds (\S+)", timeout=60)
    print(f"the whole filter takes {app.measure_qos_cost({}, False)[1]:.1f} ms")
    for config in app.get_tuner().tune(12, 0.95, strategy="local"):
        print(f"SSIM {config.qos:.3f}, {config.speedup:.1f} times as fast (other picture: "
              f"{config.test_qos:.3f}): {config.knobs}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
