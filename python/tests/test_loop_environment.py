"""LoopTune's environment with Gymnasium's interface."""

import concurrent.futures
import json
import math
import subprocess
import sys
import time
import warnings

import foretune
import numpy as np
import pytest
from foretune import loops
from loop_samples import needs_vectors

pytestmark = needs_vectors

PRODUCT = "mm m=64 n=48 k=32"
TENSORS = ["loops_tensor", "loops_features", "stride_tensor", "5_prev_actions_tensor"]


def make(computations=PRODUCT, **options):
    return loops.LoopNestEnv(computations, **{"peak_gflops": 100.0, **options})


def walk(env, rng, **options):
    """Runs an episode of random legal actions; returns observations, rewards, infos, and true when
    it was truncated."""
    observation, info = env.reset(**options)
    observations, rewards, infos = [observation], [], [info]
    terminated = truncated = False
    while not (terminated or truncated):
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        observation, reward, terminated, truncated, info = env.step(action)
        observations.append(observation)
        rewards.append(reward)
        infos.append(info)
    return observations, rewards, infos, truncated


@pytest.mark.parametrize("text", [PRODUCT, "conv c=4 h=8 w=8 o=16 r=3 s=3 pad=1",
                                  "reduce r=9 c=64"])
def test_rewards_add_up_to_what_the_end_has_over_the_start(text):
    env = make(text, actions="all", max_steps=12, max_loops=12)
    rng = np.random.default_rng(3)
    for _ in range(20):
        _, rewards, infos, truncated = walk(env, rng)
        gained = (infos[-1]["gflops"] - infos[0]["gflops"]) / env.peak_gflops
        assert math.fsum(rewards) == pytest.approx(gained, abs=1e-9)
        assert truncated == (len(rewards) == 12 and env.history[-1].action != "stop")
        assert [entry.reward for entry in env.history] == rewards
        assert env.best.gflops == max(info["gflops"] for info in infos)
        assert env.best.gflops == infos[env.best.steps]["gflops"]
        assert env.best.schedule == infos[env.best.steps]["schedule"]
        assert env.gflops == infos[-1]["gflops"]
        assert not env.action_masks().any()


def test_the_mask_is_what_step_takes():
    rng = np.random.default_rng(4)
    env = make(actions="all", max_steps=30)
    env.reset()
    for _ in range(40):
        mask, state, observation = env.action_masks(), env.state, env.observe("loops_tensor")
        assert mask.dtype == np.bool_ and mask.shape == (18,)
        for action in np.flatnonzero(~mask):
            with pytest.raises(ValueError, match=env.actions[action]) as caught:
                env.step(action)
            assert isinstance(caught.value, foretune.InvalidArgumentError)
            assert "\n" not in str(caught.value)
        assert env.state == state and (env.action_masks() == mask).all()
        assert (env.observe("loops_tensor") == observation).all()
        for action in np.flatnonzero(mask):
            env.reset(options={"state": state})
            env.step(action)
        env.reset(options={"state": state})
        action = rng.choice(np.flatnonzero(mask[:-1]))
        _, _, terminated, _, info = env.step(action)
        assert (info["action_mask"] == env.action_masks()).all()
        if terminated:
            env.reset()


def test_ignored_actions_cost_a_step_and_nothing_else():
    env = make(illegal="ignore", max_steps=3)
    first, info = env.reset()
    assert not info["ignored"]
    for step in range(3):
        observation, reward, terminated, truncated, info = env.step("up")
        assert (observation == first).all() and reward == 0 and not terminated
        assert info["ignored"] and info["reason"].startswith("up: ")
        assert truncated == (step == 2)
    assert env.history == [] and not env.action_masks().any()
    with pytest.raises(foretune.InvalidArgumentError, match="over after 3 steps"):
        env.step("up")
    env.reset()
    env.step("up")
    assert env.step("down")[3] is False
    assert env.step("up")[3] is True


def test_the_same_seed_draws_the_same_episodes():
    texts = [f"mm m={m} n=16 k=16" for m in (8, 12, 16, 20, 24)]

    def drawn(env, **options):
        names = [env.reset(**options)[1]["computation"]]
        return names + [env.reset()[1]["computation"] for _ in range(11)]

    names = drawn(make(texts), seed=7)
    assert names == drawn(make(texts), seed=7) == drawn(make(texts, seed=7))
    assert names != drawn(make(texts), seed=8)
    assert len(set(names)) > 2
    env = make(texts)
    one = [walk(env, np.random.default_rng(1), seed=5) for _ in range(2)]
    assert one[0][1] == one[1][1]
    assert [info["schedule"] for info in one[0][2]] == [info["schedule"] for info in one[1][2]]
    assert all((left == right).all() for left, right in zip(one[0][0], one[1][0]))


def test_a_reset_starts_where_it_is_told():
    texts = [PRODUCT, "mm m=8 n=16 k=8"]
    env = make(texts)
    assert env.reset(options={"computation": 1})[1]["computation"] == texts[1]
    assert env.reset(options={"computation": "mm k=32 n=48 m=64"})[1]["computation"] == PRODUCT
    assert env.computation == loops.Computation(PRODUCT)
    options = {"computation": loops.Computation(PRODUCT), "schedule": "split m0 4, swap m1"}
    _, info = env.reset(options=options)
    assert info["schedule"] == "split m0 4, swap m1"
    assert env.state == "split m0 4, swap m1 @ m0"
    _, info = env.reset(options={"computation": 0, "state": "split m0 4, swap m1 @ n0"})
    assert env.state.endswith("@ n0") and "> " in env.render().splitlines()[-1]
    state = env.state
    for options, sentence in [
            ({"computation": 2}, "0 to 1"), ({"computation": "mm m=3"}, "not among"),
            ({"computation": 1.5}, "whole number"), ({"shape": 1}, "no option 'shape'"),
            ({"computation": 0, "state": "split m0 4 @ z9"}, "no loop for the cursor"),
            ({"computation": 0, "schedule": "fold m0"}, "fold"),
            ({"computation": 0, "schedule": "merge m0"}, "merge"), ({"schedule": 7}, "not int"),
            ({"schedule": "\ud800"}, "no UTF-8"), ([1], "mapping"),
            ({"schedule": "swap m0", "state": "swap m0 @ m0"}, "not both")]:
        with pytest.raises(foretune.Error, match=sentence) as caught:
            env.reset(options=options)
        assert "\n" not in str(caught.value)
        assert env.state == state
    with pytest.raises(foretune.InvalidArgumentError, match="seed"):
        env.reset(seed=-1)


def test_all_observations_have_their_kinds_and_shapes():
    options = {"max_loops": 7, "actions": ["down", "up", "split_2", "stop"]}
    env = make(**options)
    env.reset()
    env.step("split_2")
    for entry in env.observations():
        value = env.observe(entry.name)
        if entry.kind == "text":
            assert isinstance(value, str) and value
        else:
            assert value.shape == entry.shape
            assert value.dtype == (np.float32 if entry.kind == "tensor" else np.float64)
        single = make(observation=entry.name, **options)
        observed, _ = single.reset()
        assert single.observation_space.contains(observed), entry.name
        assert entry.what
    assert env.observe("loops_tensor").shape == (7, 20)
    assert env.observe("5_prev_actions_tensor").shape == (5, 4)
    assert env.observe("5_prev_actions_tensor")[-1].tolist() == [0, 0, 1, 0]
    assert env.observe("flops")[0] == env.gflops
    assert env.observe("runtime")[0] == env.runtime_seconds
    assert env.runtime_seconds == pytest.approx(env.runtime_ns / 1e9)
    assert env.gflops == pytest.approx(env.computation.flops / env.runtime_ns)
    names = [each.name for each in loops.observations()]
    assert names == [each.name for each in env.observations()]
    with pytest.raises(foretune.InvalidArgumentError, match="'loops' is no observation"):
        env.observe("loops")


def test_several_observations_are_a_dictionary():
    env = make(observation=[*TENSORS, "flops", "loop_tree"])
    observation, info = env.reset()
    assert list(observation) == [*TENSORS, "flops", "loop_tree"]
    for action in ("split_4", "split_4", "down"):
        assert env.observation_space.contains(observation)
        assert observation["flops"][0] == info["gflops"]
        assert observation["loop_tree"] == env.render()
        for name in TENSORS:
            assert (observation[name] == env.observe(name)).all()
        observation, _, _, _, info = env.step(action)


def test_arrays_of_earlier_steps_stay_as_they_were():
    env = make()
    before, info = env.reset()
    copies = before.copy(), info["action_mask"].copy()
    after, *_ = env.step("split_4")
    assert (before == copies[0]).all() and (info["action_mask"] == copies[1]).all()
    assert (before != after).any()


def test_graphs_go_to_networkx():
    networkx = pytest.importorskip("networkx")
    env = make()
    env.reset()
    env.step("split_4")
    graph = env.observe_networkx()
    assert {"loop:m0", "loop:m1", "tensor:a", "operation"} <= set(graph.nodes)
    kinds = {data["kind"] for _, _, data in graph.edges(data=True)}
    assert kinds == {"nest", "access", "read", "write"}
    loop_tree = env.observe_networkx("ir_tree_networkx")
    assert networkx.is_arborescence(loop_tree) and len(loop_tree) == 5
    assert json.loads(env.observe("ir_graph_networkx"))["directed"]
    with pytest.raises(foretune.InvalidArgumentError, match="ir_graph and ir_tree"):
        env.observe_networkx("loops_tensor")


@pytest.mark.parametrize("options, sentence", [
    ({"actions": []}, "at least one"), ({"actions": ""}, "at least one"),
    ({"actions": ["down", "jump"]}, "jump"), ({"actions": ["up", "up"]}, "up"),
    ({"actions": [3]}, "names"), ({"observation": "loops"}, "no observation"),
    ({"observation": []}, "at least one"), ({"observation": [1]}, "no observation"),
    ({"max_steps": 0}, "max_steps"), ({"max_loops": 0}, "max_loops"),
    ({"max_loops": 256}, "max_loops"), ({"max_loops": "9"}, "whole number"),
    ({"peak_gflops": 0}, "above 0"), ({"peak_gflops": math.nan}, "above 0"),
    ({"peak_gflops": math.inf}, "at most"),
    ({"peak_gflops": "fast"}, "number"), ({"isa": "sse2"}, "avx2"), ({"isa": ""}, "avx2"),
    ({"seed": -1}, "seed"), ({"seed": 1.5}, "whole number"), ({"illegal": "warn"}, "illegal"),
    ({"render_mode": "human"}, "render_mode"), ({"computations": []}, "at least one"),
    ({"computations": 3}, "are a list"),
    ({"observation": 3}, "are a list"), ({"actions": 3}, "are a list"),
    ({"actions": "\ud800"}, "no UTF-8"),
    ({"computations": "mm m=0"}, "goes from 1"), ({"computations": [PRODUCT, 3]}, "not int"),
])
def test_senseless_options_are_refused(options, sentence):
    with pytest.raises(foretune.Error, match=sentence) as caught:
        make(**options)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_done_is_said():
    env = make()
    for use in (lambda: env.step(0), lambda: env.history, lambda: env.best, lambda: env.state,
                lambda: env.observe("flops"), env.render):
        with pytest.raises(foretune.InvalidArgumentError, match="starts with a reset"):
            use()
    assert not env.action_masks().any()
    env.reset()
    for action, sentence in ((99, "0 to 7"), (-1, "0 to 7"), (1.5, "number or a name"),
                             (None, "number or a name"), ("jump", "no action 'jump'"),
                             ("split_2", "no action 'split_2'"), (np.zeros(2), "number or a name")):
        with pytest.raises(foretune.InvalidArgumentError, match=sentence):
            env.step(action)
    assert env.step(np.int64(1))[4]["schedule"] == ""
    _, reward, terminated, truncated, _ = env.step("terminate")
    assert (reward, terminated, truncated) == (0, True, False)
    with pytest.raises(foretune.InvalidArgumentError, match="over after 2 steps"):
        env.step("down")
    env.close()
    env.close()
    with pytest.raises(foretune.InvalidArgumentError, match="closed"):
        env.reset()
    with pytest.raises(foretune.UnsupportedError, match="has 3 loops"):
        make(max_loops=2).reset()


def test_times_are_remembered_until_they_are_forgotten():
    env = make()
    env.reset()
    env.step("split_4")
    assert env.cache_info() == (0, 2, 2)
    gflops = env.gflops
    env.reset()
    env.step("split_4")
    assert env.cache_info() == (2, 2, 2) and env.gflops == gflops
    env.cache_clear()
    assert env.cache_info().size == 0
    env.reset()
    assert env.cache_info().misses == 3


def test_a_file_remembers_for_the_next_environment(tmp_path):
    path = tmp_path / "nests.ftd"
    env = make(cache=path)
    env.reset()
    env.step("split_4")
    gflops = env.gflops
    assert env.cache_info() == (0, 2, 2)
    with pytest.raises(foretune.InputOutputError):
        make(cache=path)
    env.close()
    env = make(cache=path)
    env.reset()
    env.step("split_4")
    # A schedule that was stopped early may be measured again.
    info = env.cache_info()
    assert info.hits >= 1 and info.hits + info.misses == 2
    if info.hits == 2:
        assert env.gflops == pytest.approx(gflops, rel=1e-6)
    env.close()
    with pytest.raises(foretune.MismatchError, match="another type"):
        make("reduce r=9 c=64", cache=path)
    with pytest.raises(foretune.UnsupportedError, match="no type"):
        make("elementwise r=16 c=64 multiply=in1 add=0.5", cache=path)


def test_steps_that_were_measured_before_are_fast():
    env = make()
    actions = ["split_4", "down", "swap_down", "up", "swap_down", *["down", "up"] * 2, "down"]

    def steps_per_second():
        begin = time.perf_counter()
        for _ in range(200):
            env.reset()
            for action in actions:
                env.step(action)
        return 200 * len(actions) / (time.perf_counter() - begin)

    # About 400,000 on an idle machine.
    assert max(steps_per_second() for _ in range(5)) > 20_000
    assert env.cache_info().size < 5


def test_refused_schedules_are_worth_nothing():
    env = make("mm m=64 n=64 k=64", actions=["down", "up", "swap_down", "vectorize", "stop"])
    env.reset()
    env.step("down")
    _, reward, _, _, info = env.step("vectorize")
    assert info["gflops"] == 0 and "lanes" in info["reason"] and reward < 0
    assert math.isinf(env.runtime_seconds)
    assert env.best.steps == 0


def test_another_thread_gets_an_error_and_no_crash():
    env = make(actions="all", max_steps=8)
    env.reset()

    def run(seed):
        rng = np.random.default_rng(seed)
        busy = 0
        for _ in range(300):
            try:
                mask = env.action_masks()
                if mask.any():
                    env.step(int(rng.choice(np.flatnonzero(mask))))
                else:
                    env.reset()
            except foretune.InvalidArgumentError as error:
                busy += "another thread" in str(error)
        return busy

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))
    env.reset()


def test_it_is_an_environment_of_gymnasium():
    gymnasium = pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    for observation in ("loops_tensor", ["loops_tensor", "flops"], "flops", "ir"):
        env = make(observation=observation, illegal="ignore", render_mode="ansi")
        assert isinstance(env, gymnasium.Env)
        with warnings.catch_warnings():
            # The checker warns that the environment is not registered, and about infinite bounds.
            warnings.simplefilter("ignore")
            check_env(env)
    wrapped = gymnasium.wrappers.TimeLimit(make(max_steps=50), 2)
    wrapped.reset(seed=1)
    assert wrapped.step(4)[3] is False and wrapped.step(1)[3] is True


def test_it_needs_neither_gymnasium_nor_networkx():
    code = f"""
import sys
sys.modules["gymnasium"] = sys.modules["networkx"] = None
import foretune, numpy as np
from foretune import loops
texts = ["mm m=8 n=16 k=8", {PRODUCT!r}]
env = loops.LoopNestEnv(texts, peak_gflops=100.0, observation=["loops_tensor", "flops", "ir"])
names = []
for seed in (3, None, None, None):
    observation, info = env.reset(seed=seed)
    names.append(info["computation"])
    assert observation in env.observation_space
    assert env.observation_space["loops_tensor"].shape == (10, 20)
    env.action_space.seed(1)
    while info["action_mask"].any():
        action = env.action_space.sample(info["action_mask"])
        assert action in env.action_space and info["action_mask"][action]
        observation, _, _, _, info = env.step(action)
    sample = env.observation_space.sample()
    assert sample in env.observation_space
assert env.action_space.n == 8 and env.unwrapped is env
try:
    env.observe_networkx()
except foretune.UnsupportedError as error:
    assert "pip install foretune[loops]" in str(error)
print(*names, sep="\\n")
"""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    # With Gymnasium, the same seeds draw the same computations.
    env = make(["mm m=8 n=16 k=8", PRODUCT])
    names = [env.reset(seed=seed)[1]["computation"] for seed in (3, None, None, None)]
    assert done.stdout.splitlines() == names
