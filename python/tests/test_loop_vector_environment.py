"""Tests of many episodes of loop nests at once."""

import concurrent.futures
import subprocess
import sys
import warnings

import foretune
import numpy as np
import pytest
from foretune import loops
from loop_samples import needs_vectors

pytestmark = needs_vectors

TEXTS = ["mm m=16 n=32 k=24", "reduce r=32 c=64"]


def make(**arguments):
    return loops.LoopNestVectorEnv(TEXTS, **{"num_envs": 6, "max_steps": 5, "peak_gflops": 100.0,
                                             **arguments})


def random_actions(info, rng):
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])


def test_rewards_of_an_episode_add_up_to_its_gain():
    env = loops.LoopNestVectorEnv(TEXTS[0], num_envs=1, max_steps=5, peak_gflops=100.0)
    rng = np.random.default_rng(1)
    _, info = env.reset(seed=3)
    # Stopping at once shows the start.
    _, rewards, _, _, info = env.step(np.array([env.STOP]))
    start = info["log_share"][0]
    assert rewards[0] == 0
    for _ in range(5):
        total, over, steps = 0.0, False, 0
        while not over:
            action = random_actions(info, rng)
            _, rewards, terminated, truncated, info = env.step(action)
            total += rewards[0]
            steps += 1
            over = bool(terminated[0] or truncated[0])
            assert terminated[0] == (action[0] == env.STOP)
            assert truncated[0] == (steps == 5 and not terminated[0])
        assert total == pytest.approx(info["log_share"][0] - start, abs=1e-4)


def test_observations_follow_the_nest():
    env = make()
    observation, info = env.reset(seed=1)
    assert observation["loops"].shape == (6, 12, 36) and observation["whole"].shape == (6, 30)
    assert observation["loops"].dtype == observation["whole"].dtype == np.float32
    assert info["action_mask"].shape == (6, 337) and (info["action_mask"][:, env.STOP] == 1).all()
    rows = (observation["loops"] != 0).any(axis=2).sum(axis=1)
    for row, computation in zip(rows, info["computation"]):
        assert row == len(env.computations[computation].variables)
    assert env.schedule(0) == ""
    split = next(action for action in np.flatnonzero(info["action_mask"][0])
                 if env.action_text(action).startswith("split 0"))
    actions = np.full(6, env.STOP)
    actions[0] = split
    observation, _, terminated, _, _ = env.step(actions)
    assert terminated.tolist() == [False] + [True] * 5
    assert (observation["loops"][0] != 0).any(axis=1).sum() == rows[0] + 1
    assert env.schedule(0).startswith("split ")


def test_the_same_seed_draws_the_same_computations_and_known_schedules_cost_nothing():
    env = make()
    runs = []
    for _ in range(2):
        rng = np.random.default_rng(5)
        observation, info = env.reset(seed=9)
        seen = [observation["loops"]]
        for _ in range(8):
            observation, rewards, _, _, info = env.step(random_actions(info, rng))
            seen += [observation["loops"], rewards]
        runs.append((seen, env.evaluations))
    assert all((a == b).all() for a, b in zip(runs[0][0], runs[1][0]))
    assert runs[0][1] == runs[1][1] > 6


def test_views_change_and_copies_do_not():
    env = make(copy=False)
    observation, info = env.reset(seed=1)
    copied = make()
    before, _ = copied.reset(seed=1)
    kept = before["loops"].copy()
    actions = random_actions(info, np.random.default_rng(2))
    env.step(actions)
    copied.step(actions)
    assert (before["loops"] == kept).all() and not (observation["loops"] == kept).all()
    with pytest.raises(ValueError):
        observation["loops"][0] = 0


def test_wrong_calls_are_refused():
    env = make()
    with pytest.raises(foretune.InvalidArgumentError, match="reset"):
        env.step(np.zeros(6, int))
    _, info = env.reset(seed=1)
    before = env.evaluations
    illegal = np.where(info["action_mask"] == 0)[1][0]
    for actions in (np.zeros(5, int), np.zeros(6), np.full(6, -1), np.full(6, 337),
                    np.full(6, illegal)):
        with pytest.raises(foretune.InvalidArgumentError):
            env.step(actions)
    assert env.evaluations == before
    for arguments in ({"reward": "best_of_all"}, {"num_envs": 0}, {"price": -1}, {"isa": "sse"},
                      {"max_steps": 0}, {"peak_gflops": 0.0}):
        with pytest.raises(foretune.InvalidArgumentError):
            make(**arguments)
    with pytest.raises(foretune.InvalidArgumentError):
        env.reset(options={"start": "plain"})
    with pytest.raises(foretune.InvalidArgumentError):
        loops.LoopNestVectorEnv([])


def test_threads_take_turns_or_get_an_error():
    env = make()
    env.reset(seed=1)
    stop = np.full(6, env.STOP)

    def run(_):
        refused = 0
        for _ in range(200):
            try:
                env.step(stop)
            except foretune.InvalidArgumentError as error:
                refused += "another thread" in str(error)
        return refused

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))
    env.reset(seed=2)


def test_it_is_a_vector_environment_of_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")

    env = make()
    assert isinstance(env, gymnasium.vector.VectorEnv)
    observation, _ = env.reset(seed=1)
    assert observation in env.observation_space
    assert env.action_space.shape == (6,)
    recorded = gymnasium.wrappers.vector.RecordEpisodeStatistics(make())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, info = recorded.reset(seed=1)
        _, _, terminated, _, info = recorded.step(np.full(6, env.STOP))
    assert terminated.all() and (info["episode"]["l"] == 1).all()


def test_it_needs_no_gymnasium():
    code = f"""
import sys
sys.modules["gymnasium"] = None
import numpy as np
from foretune import loops
env = loops.LoopNestVectorEnv({TEXTS!r}, num_envs=2, peak_gflops=100.0)
_, info = env.reset(seed=1)
assert env.single_action_space.n == 337
_, _, terminated, truncated, _ = env.step(np.full(2, env.STOP))
assert terminated.all() and not truncated.any()
"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
