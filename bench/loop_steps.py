#!/usr/bin/env python3
"""Measures how many steps a second `foretune.loops.LoopNestEnv` takes from Python.

    PYTHONPATH=build/dev/python build/venv/bin/python bench/loop_steps.py --json FILE

One product, 64 x 64 x 64, on one core. Steps lead to schedules that were measured before: twenty
episodes of random legal actions are played once, and then again and again with the same actions. Times
are microseconds, the least of five means of a second: a step, with the mask, `loops_tensor` and the
schedule's text; a reset; and the choice of a random action by the mask, which is Python's own.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from foretune import loops

SECONDS = 5


def least_us(play: Callable[[], int]) -> float:
    """Returns the least microseconds of what `play` does so many times, over some seconds."""
    found = []
    for _ in range(SECONDS):
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < 1:
            count += play()
        found.append((time.perf_counter() - begin) / count * 1e6)
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", metavar="FILE", type=Path, help="writes the figures here")
    arguments = parser.parse_args()
    env = loops.LoopNestEnv(["mm m=64 n=64 k=64"], seed=1)
    drawn = random.Random(1)

    def draw(mask: np.ndarray) -> int:
        return int(drawn.choice(np.flatnonzero(mask)))

    def walk() -> list[int]:
        """Plays an episode of legal actions and returns them."""
        _, info = env.reset()
        actions, is_over = [], False
        while not is_over:
            actions.append(draw(info["action_mask"]))
            _, _, terminated, truncated, info = env.step(actions[-1])
            is_over = terminated or truncated
        return actions

    episodes = [walk() for _ in range(20)]
    mask = env.reset()[1]["action_mask"]

    def reset() -> int:
        for _ in episodes:
            env.reset()
        return len(episodes)

    def repeat() -> int:
        for actions in episodes:
            env.reset()
            for action in actions:
                env.step(action)
        return len(episodes)

    def choose() -> int:
        for _ in range(100):
            draw(mask)
        return 100

    reset_us = least_us(reset)
    steps = sum(len(actions) for actions in episodes) / len(episodes)
    figures = {"reset": reset_us, "step": (least_us(repeat) - reset_us) / steps,
               "choice": least_us(choose)}
    print(", ".join(f"{name} {us:.2f} us" for name, us in figures.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
