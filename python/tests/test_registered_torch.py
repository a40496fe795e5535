"""foretune.register_model and exported_layers with PyTorch itself."""

import foretune
import numpy as np
import pytest
from conftest import forward

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402


class Residual(nn.Module):
    """A network of a stem, blocks with batch normalisation and dropout, and a squeezed head."""

    def __init__(self, inputs, width=16, blocks=3):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.BatchNorm1d(width))
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU(inplace=True),
                          nn.BatchNorm1d(width), nn.Dropout(0.2), nn.Linear(width, width),
                          nn.BatchNorm1d(width, affine=False)) for _ in range(blocks))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = functional.relu(x + block(x))
            x = functional.dropout(x, 0.1, training=self.training)
        return self.head(x).squeeze(-1)


def fitted(module, rows, steps=30):
    torch.manual_seed(rows.seed)
    inputs, target, weight = (torch.from_numpy(values)
                              for values in (rows.inputs, rows.target, rows.weight))
    optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
    module.train()
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (weight * (module(inputs).reshape(-1) - target) ** 2).mean()
        loss.backward()
        optimizer.step()
    return module


def said(module, inputs):
    module.eval()
    with torch.no_grad():
        return module(torch.from_numpy(inputs)).numpy().reshape(-1)


def test_a_residual_network_says_the_same_when_it_is_stored_and_selects(tmp_path, training,
                                                                       validation):
    seen = []

    def fit(rows):
        module = fitted(Residual(rows.inputs.shape[1]), rows)
        assert module.training
        seen.append((rows, module))
        return module

    foretune.register_model("test-residual", fit, "residual blocks")
    model = foretune.train(training, model_type="test-residual", folds=2)
    assert all(part.training for _, module in seen for part in module.modules())
    assert model.info["kind"] == "network" and model.card["architecture"] == "test-residual"
    assert 0 <= model.metrics["max_difference_to_module"] < 1e-4
    assert model.metrics["mean_efficiency"] > 0.4
    model.save(tmp_path / "residual.ftm")
    read = foretune.Model.open(tmp_path / "residual.ftm")
    assert read.to_bytes() == model.to_bytes()
    problem = validation.problems[0]
    assert foretune.select(tmp_path / "residual.ftm", problem) == foretune.select(model, problem)

    rows, module = seen[-1]
    data = training.merge()
    order = np.argsort(data.problem_ids, kind="stable")
    assert len(order) == len(rows.target)
    predictor = foretune.Predictor(read)
    scores = [-np.log(predictor.predict(data.problems[data.problem_ids[row]],
                                        [data.configs[data.config_ids[row]]])[0]) for row in order]
    np.testing.assert_allclose(scores, said(module, rows.inputs), rtol=1e-4, atol=1e-4)


class Variants(nn.Module):
    """A module with every supported way to write the same layer."""

    def __init__(self, way):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(5, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.flat, self.same = nn.Flatten(), nn.Identity()
        self.way = way

    def forward(self, x):
        return self.way(self, x)


@pytest.mark.parametrize("way", [
    lambda self, x: self.last(torch.relu(self.first(x))),
    lambda self, x: self.last(self.first(x).relu()).squeeze(1),
    lambda self, x: self.last(functional.relu(self.first(self.flat(x)), inplace=True)).flatten(),
    lambda self, x: self.last(self.same(self.first(x).relu_()))[:, 0],
    lambda self, x: torch.squeeze(self.last(self.first(x)), dim=-1),
    lambda self, x: torch.flatten(self.last(torch.flatten(self.first(x), 1)), start_dim=0),
])
def test_ways_to_write_a_chain_are_exported(way):
    module = Variants(way)
    inputs = np.random.default_rng(3).normal(size=(50, 5)).astype(np.float32)
    np.testing.assert_allclose(forward(foretune.exported_layers(module), inputs),
                               said(module, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", [
    lambda self, y: torch.add(y, self.second(torch.relu(self.second(y)))),
    lambda self, y: self.second(torch.relu(self.second(y))).add(y),
    lambda self, y: self.second(self.second(y)) + self.same(y),
])
def test_ways_to_write_a_block_are_exported(way):
    module = Variants(lambda self, x: self.last(way(self, torch.relu(self.first(x)))))
    inputs = np.random.default_rng(4).normal(size=(50, 5)).astype(np.float32)
    layers = foretune.exported_layers(module)
    assert [layer[0] for layer in layers].count("begin_block") == 1
    np.testing.assert_allclose(forward(layers, inputs), said(module, inputs), rtol=1e-4, atol=1e-5)


def test_layers_are_copies_in_float32_and_a_single_layer_is_a_module():
    module = nn.Linear(3, 1).double()
    (kind, weight, bias), = foretune.exported_layers(module)
    assert kind == "linear" and weight.dtype == bias.dtype == np.float32 and weight.shape == (1, 3)
    before = weight.copy()
    with torch.no_grad():
        module.weight += 1
    np.testing.assert_array_equal(weight, before)
    assert module.training


@pytest.mark.parametrize("module, sentence", [
    (nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 1)), "the layer '1', a Softplus"),
    (Variants(lambda self, x: self.last(functional.gelu(self.first(x)))), r"calls gelu\(\)"),
    (Variants(lambda self, x: self.last(self.first(x).tanh())), r"calls tanh\(\)"),
    (Variants(lambda self, x: self.last(self.first(x) + 1)), "something else than x"),
    (Variants(lambda self, x: self.last(torch.add(y := self.first(x), self.second(y), alpha=2))),
     "something else than x"),
    (Variants(lambda self, x: self.last(self.first(x)) + self.last(self.first(x).relu())),
     "something else than the layer before"),
    (Variants(lambda self, x: (self.last(self.first(x)), x)), "something else than its last layer"),
    (Variants(lambda self, x: self.last(functional.dropout(self.first(x)))), "when it predicts"),
    (Variants(lambda self, x: self.last(self.first(x))[:, 1:]), "some of the columns"),
    (Variants(lambda self, x: self.first(x).flatten()), "flattens more"),
    (Variants(lambda self, x: self.last(self.first(x if x.sum() > 0 else -x))), "torch.fx cannot"),
    (nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 1)),
     "without running statistics"),
])
def test_anything_else_is_refused_by_its_name(module, sentence):
    with pytest.raises(foretune.UnsupportedError, match=sentence) as caught:
        foretune.exported_layers(module)
    assert "\n" not in str(caught.value) and type(module).__name__ in str(caught.value)
    assert module.training


def test_a_module_that_does_something_beside_its_layers_is_refused(training):
    class Sly(nn.Module):
        def __init__(self, inputs):
            super().__init__()
            self.layer = nn.Linear(inputs, 1)

        def forward(self, x):
            return self.layer(x)

        def __call__(self, x):
            return super().__call__(x) if isinstance(x, torch.fx.Proxy) else self.layer(x) + 1

    import torch.fx

    foretune.register_model("test-sly", lambda rows: Sly(rows.inputs.shape[1]))
    with pytest.raises(foretune.UnsupportedError, match="beside them"):
        foretune.train(training, model_type="test-sly", folds=0)


def test_modules_of_wrong_shapes_are_refused(training):
    foretune.register_model("test-wide", lambda rows: nn.Linear(rows.inputs.shape[1], 2))
    with pytest.raises(foretune.InvalidArgumentError, match="predicted an array of shape"):
        foretune.train(training, model_type="test-wide", folds=0)
    foretune.register_model("test-narrow", lambda rows: nn.Linear(3, 1))
    with pytest.raises(RuntimeError, match="shape"):
        foretune.train(training, model_type="test-narrow", folds=0)


def test_a_function_that_asks_torch_is_an_experiment(training, validation):
    def fit(rows):
        module = fitted(nn.Sequential(nn.Linear(rows.inputs.shape[1], 16), nn.Tanh(),
                                      nn.Linear(16, 1)), rows)
        return lambda inputs: module(torch.from_numpy(inputs))

    foretune.register_model("test-tanh", fit)
    model = foretune.train(training, model_type="test-tanh", folds=2)
    assert model.info["kind"] == "function"
    assert foretune.evaluate(model, validation, training).mean_efficiency > 0.3
