"""The flow compared with autograd's Jacobian, its inverse, and a transcription of the program."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.processing import (
    ActNorm,
    Floats,
    Flow,
    FlowNetwork,
    fit_flow,
    parse_flow,
    train_flow,
)

Batch = tuple[Tensor, Tensor]
SETTINGS = [Flow(), Flow(levels=1, depth=1), Flow(levels=2, permutation="random", width=5)]


def batches_of(count: int, dimension: int) -> list[Batch]:
    """Batches of both sides of 8 pairs, in a narrow cone."""
    torch.manual_seed(1)
    spread = torch.linspace(0.1, 3, dimension).double()
    rows = torch.randn(count, 2, 8, dimension).double() * spread + 2
    return [(first, second) for first, second in rows]


def trained(dimension: int, settings: Flow) -> tuple[FlowNetwork, Tensor]:
    """A flow of random weights, in float64, and vectors."""
    [(rows, _)] = batches_of(1, dimension)
    flow = FlowNetwork(dimension, settings).double()
    flow(rows)
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    return flow, rows


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("dimension", [5, 7, 12])
def test_the_log_determinant_is_that_of_the_jacobian(dimension: int, settings: Flow) -> None:
    flow, rows = trained(dimension, settings)
    _, determinant = flow(rows)
    for row in rows[:3]:
        jacobian = torch.autograd.functional.jacobian(lambda one: flow(one[None])[0][0], row)
        _, logarithm = torch.linalg.slogdet(jacobian)
        assert float(determinant.detach()) == pytest.approx(float(logarithm), abs=1e-9)


class Program:
    """The published program, from its description: channels last, variables by name.

    changed  settings that differ from the program's, to show that each is needed.
    """

    def __init__(self, weights: Sequence[Tensor], changed: dict[str, Any]) -> None:
        published = {
            "levels": 3,
            "reversed": True,
            "log_scale_factor": 3.0,
            "inner_actnorm": True,
            "first_half_goes_on": True,
            "second_half_is_shifted": True,
            "both_sides": True,
            "decay": 0.01,
            "epsilon": 1e-6,
            "clip": 1.0,
            "bias_correction": False,
            "rate": 1e-3,
        }
        assert changed.keys() <= published.keys()
        self.set: dict[str, Any] = published | changed
        self.weights = iter(weights)
        self.variables: dict[str, Tensor] = {}
        self.moments: dict[str, tuple[Tensor, Tensor]] = {}
        self.step = 0

    def variable(self, name: str, initial: Tensor) -> Tensor:
        if name not in self.variables:
            self.variables[name] = initial.detach().clone().requires_grad_()
        return self.variables[name]

    def matrix(self, name: str) -> Tensor:
        if name not in self.variables:
            return self.variable(name, next(self.weights))
        return self.variables[name]

    def actnorm(self, name: str, x: Tensor) -> tuple[Tensor, Tensor]:
        factor = self.set["log_scale_factor"]
        x = x + self.variable(f"{name}/b", -x.mean(dim=0))
        variance = (x**2).mean(dim=0)
        initial = torch.log(1 / (torch.sqrt(variance) + 1e-6)) / factor
        logs = self.variable(f"{name}/logs", initial) * factor
        return x * torch.exp(logs), logs.sum()

    def network(self, name: str, x: Tensor) -> Tensor:
        for layer in ("1_1", "1_2"):
            x = x @ self.matrix(f"{name}/{layer}/W").T
            if self.set["inner_actnorm"]:
                x, _ = self.actnorm(f"{name}/{layer}", x)
            x = torch.relu(x)
        x = x @ self.matrix(f"{name}/zeros/W").T
        zeros = torch.zeros(x.shape[1]).double()
        x = x + self.variable(f"{name}/zeros/b", zeros)
        logs = self.variable(f"{name}/zeros/logs", zeros)
        return x * torch.exp(logs * self.set["log_scale_factor"])

    def bits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Bits per dimension, and z."""
        dimension = x.shape[1]
        objective, split_off = torch.zeros(len(x)).double(), []
        for level in range(self.set["levels"]):
            for number in range(2):
                x, logdet = self.actnorm(f"{level}/{number}", x)
                objective = objective + logdet
                if self.set["reversed"]:
                    x = x[:, list(range(x.shape[1]))[::-1]]
                half = x.shape[1] // 2
                kept, shifted = x[:, :half], x[:, half:]
                if not self.set["second_half_is_shifted"]:
                    kept, shifted = shifted, kept
                shifted = shifted + self.network(f"{level}/{number}/nn", kept)
                both = [kept, shifted] if self.set["second_half_is_shifted"] else [shifted, kept]
                x = torch.cat(both, dim=1)
            if level < self.set["levels"] - 1:
                first, second = x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]
                x, off = (first, second) if self.set["first_half_goes_on"] else (second, first)
                objective = objective + log_normal(off)
                split_off.append(off)
        objective = objective + log_normal(x)
        bits = -objective / (math.log(2) * dimension)
        return bits.mean(), torch.cat([*split_off, x], dim=1)

    def train(self, batch: Batch) -> None:
        sides = batch if self.set["both_sides"] else batch[:1]
        loss = sum(self.bits(side)[0] for side in sides)
        assert isinstance(loss, Tensor)
        names = list(self.variables)
        gradients = torch.autograd.grad(loss, [self.variables[name] for name in names])
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        self.step += 1
        for name, gradient in zip(names, gradients, strict=True):
            clipped = gradient * self.set["clip"] / max(norm, self.set["clip"])
            self.update(name, clipped)

    def update(self, name: str, gradient: Tensor) -> None:
        zeros = torch.zeros_like(gradient)
        m, v = self.moments.get(name, (zeros, zeros))
        m, v = 0.9 * m + 0.1 * gradient, 0.999 * v + 0.001 * gradient**2
        self.moments[name] = m, v
        if self.set["bias_correction"]:
            m, v = m / (1 - 0.9**self.step), v / (1 - 0.999**self.step)
        change = m / (torch.sqrt(v) + self.set["epsilon"])
        weight = self.variables[name].detach()
        weight = weight - self.set["rate"] * (change + self.set["decay"] * weight)
        self.variables[name] = weight.requires_grad_()


def log_normal(x: Tensor) -> Tensor:
    return (-(x**2) / 2 - 0.5 * math.log(2 * math.pi)).sum(dim=1)


STEPS = 12


def new_flow() -> FlowNetwork:
    torch.manual_seed(2)
    return FlowNetwork(16, Flow(depth=2, width=6)).double()


@cache
def of_flow(steps: int) -> Tensor:
    """Loss and z of the flow, (1 + N·D,), after some steps of training."""
    batches, flow = batches_of(STEPS + 1, 16), new_flow()
    train_flow(flow, batches[: steps + 1], 1e-3)
    rows = batches[-1][1]
    return torch.cat([flow.bits_per_dimension(rows)[None], flow(rows)[0].flatten()])


def of_program(steps: int, changed: dict[str, Any]) -> Tensor:
    """Loss and z of the program, (1 + N·D,), after some steps from the weights of the flow."""
    batches = batches_of(STEPS + 1, 16)
    program = Program(
        [weights.detach() for weights in new_flow().parameters() if weights.ndim == 2], changed
    )
    program.bits(batches[0][0])
    for batch in batches[1 : steps + 1]:
        program.train(batch)
    loss, z = program.bits(batches[-1][1])
    return torch.cat([loss[None], z.flatten()])


@pytest.mark.parametrize("steps", [0, 1, 4, STEPS])
def test_it_is_the_published_program(steps: int) -> None:
    assert float((of_flow(steps) - of_program(steps, {})).detach().abs().max()) < 1e-6


OTHERS = {
    "levels": 2,
    "reversed": False,
    "log_scale_factor": 1.0,
    "inner_actnorm": False,
    "first_half_goes_on": False,
    "second_half_is_shifted": False,
    "both_sides": False,
    "decay": 0.0,
    "epsilon": 1e-8,
    "clip": 1e6,
    "bias_correction": True,
    "rate": 2e-3,
}


@pytest.mark.parametrize("name", OTHERS)
def test_each_setting_of_the_program_is_needed(name: str) -> None:
    other = of_program(4, {name: OTHERS[name]})
    assert float((of_flow(4) - other).detach().abs().max()) > 1e-5


def test_the_first_rows_initialise_actnorm() -> None:
    torch.manual_seed(0)
    norm = ActNorm(4).double()
    scale = torch.tensor([1.0, 5.0, 0.1, 0.0])
    rows = (torch.randn(32, 4) * scale + 3).double()
    for mapped in (norm(rows), norm(torch.cat([rows, rows + 1]))[:32]):
        assert torch.allclose(mapped.mean(dim=0), torch.zeros(4).double(), atol=1e-6)
        deviation = mapped.std(dim=0, correction=0)
        assert torch.allclose(deviation, torch.tensor([1.0, 1, 1, 0]).double(), atol=1e-4)


def pairs(count: int) -> tuple[Floats, Floats]:
    random = np.random.default_rng(0)
    first, second = (random.normal(size=(count, 3)) for _ in range(2))
    mixing = random.normal(size=(3, 12))
    noise = 0.1 * random.normal(size=(2, count, 12))
    return first @ mixing + 5 + noise[0], second @ mixing + 5 + noise[1]


def test_training_raises_the_likelihood_and_repeats_itself() -> None:
    sides = pairs(100)
    settings = Flow(seed=3, batch_size=8)
    state = torch.get_rng_state()
    flow = fit_flow(*sides, settings)
    assert torch.equal(torch.get_rng_state(), state), "other random draws are not affected"
    rows = torch.from_numpy(np.concatenate(sides))
    untrained = fit_flow(*sides, settings.model_copy(update={"learning_rate": 1e-9}))
    with torch.no_grad():
        assert flow.bits_per_dimension(rows) < untrained.bits_per_dimension(rows) - 0.1
    mapped = settings(*sides)
    assert [side.shape for side in mapped] == [(100, 12)] * 2
    assert np.allclose(mapped, settings(*sides))


ONES = ["levels=2", "depth=2", "width=8", "permutation=random", "batch_size=16"]


@pytest.mark.parametrize("changed", ["4", *(f"3,{one}" for one in ONES), "3,learning_rate=1e-4"])
def test_each_setting_of_the_flow_changes_it(changed: str) -> None:
    sides = pairs(100)
    found = np.stack(Flow(seed=3)(*sides)), np.stack(parse_flow(changed)(*sides))
    assert np.abs(found[0] - found[1]).max() > 1e-3


@pytest.mark.parametrize("count", [2, 31, 70])
def test_an_epoch_is_of_full_batches(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sentence once before any twice; one batch more, which initialises."""
    seen: list[Any] = []
    monkeypatch.setattr(
        "mtdlab.evaluation.processing.train_flow",
        lambda _flow, batches, _rate: seen.extend(batches),
    )
    first = np.repeat(np.arange(count, dtype=np.float64)[:, None], 6, axis=1)
    fit_flow(first, -first, Flow())
    size = min(count, 32)
    assert [len(side) for sides in seen for side in sides] == [size] * 2 * (count // size + 1)
    assert all(torch.equal(left, -right) for left, right in seen)
    order = torch.cat([left[:, 0] for left, _ in seen]).tolist()
    assert len(set(order[:count])) == len(order[:count])


def test_a_constant_dimension_keeps_its_scale() -> None:
    first, second = pairs(100)
    first[:, 2] = second[:, 2] = 0.3
    assert np.abs(np.stack(Flow()(first, second))).max() < 100


def test_single_sentences_have_one_side() -> None:
    first, _ = pairs(40)
    mapped, nothing = Flow()(first, first[:0])
    assert mapped.shape == (40, 12)
    assert nothing.shape == (0, 12)


def test_settings_are_parsed_copied_into_words_and_checked() -> None:
    flow = parse_flow("7,levels=2,permutation=random")
    assert flow == Flow(seed=7, levels=2, permutation="random")
    assert str(flow) == "mapped by a flow (seed 7, levels 2, permutation random)"
    for text, reason in (
        ("x", "seed: 'x': must be a whole number"),
        ("-1", "seed: '-1': must be 0 or more"),
        ("0,levels", "give a seed, then NAME=VALUE"),
        ("0,level=2", "level: '2': is not allowed here"),
        ("0,permutation=none", "unknown permutation 'none'; choose from reversed, random"),
        ("0,learning_rate=0", "must be above 0"),
    ):
        with pytest.raises(MtdlabError, match=reason):
            parse_flow(text)


def test_vectors_that_cannot_be_mapped_are_refused() -> None:
    with pytest.raises(ValueError, match="have 4 dimensions; a flow of 3 levels needs at least 5"):
        Flow()(np.ones((5, 4)), np.ones((5, 4)))
