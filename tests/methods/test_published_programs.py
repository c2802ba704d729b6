"""Every preset `published-code` compared with a transcription of the authors' program.

The transcriptions take mtdlab's batches of token ids and nothing else of the preset: heads and
their initialisation, AdamW with clipping and its exceptions, schedules, queues and losses are
written out, with the programs' numbers; the encoder is transformers'. No dropout, so that both draw
the same random numbers; float64. The presets `intended` or `paper` that `PROGRAMS` names are
compared with the same transcriptions, given the numbers of the paper.
"""

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize, pad
from transformers import BertModel

from mtdlab.methods.esimcse import Repetition
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, train
from tests.conftest import SHORT_PROMPTS, Settings
from tests.docs.reference import changed_settings

Parameters = dict[str, Tensor]
STEPS, WIDTH, CALLS, MASK_TOKEN = 26, 16, 40, 4
"""Steps of a run; dimension of the encoder; calls until MoCoSE's EMA decay is 1."""
CHANGED = 8
"""Steps of a run with one setting of a preset changed."""


@pytest.fixture
def double() -> Iterator[None]:
    """New modules and tensors in float64."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def inputs_of(settings: TrainerSettings) -> RunInputs:
    """The inputs of the settings, with the encoder's weights in the default precision."""
    found = load_inputs(settings)
    model = copy.deepcopy(found.encoder.model).to(torch.get_default_dtype())  # type: ignore[arg-type]
    return dataclasses.replace(found, encoder=dataclasses.replace(found.encoder, model=model))


def run(settings: TrainerSettings) -> Outcome:
    return train(settings, inputs_of(settings))


def losses_of(settings: TrainerSettings) -> list[float]:
    """What is back-propagated at each step: recorded losses are without their weight."""
    losses: list[float] = (settings.loss_weight * run(settings).curve["loss"]).tolist()
    return losses


@dataclasses.dataclass
class AdamW:
    """AdamW with clipping; without decay, where `spared`, of biases and LayerNorms.

    form      torch: decay, then ε outside of the root of the corrected variance; transformers: ε
              beside the root of the variance as it is, then decay.
    """

    parameters: Parameters
    steps: int
    rate: float
    decay: float = 1e-6
    spared: bool = False
    second_beta: float = 0.999
    epsilon: float = 1e-8
    form: Literal["torch", "transformers"] = "torch"
    corrected: bool = True
    most: float = math.inf
    warmup: int = 0
    count: int = 0

    def __post_init__(self) -> None:
        self.first = {name: torch.zeros_like(weights) for name, weights in self.parameters.items()}
        self.second = {name: torch.zeros_like(weights) for name, weights in self.parameters.items()}

    @torch.no_grad()
    def step(self, loss: Tensor) -> float:
        """One step; returns the norm of all gradients before clipping."""
        loss.backward()
        warm, steps, at = self.warmup, self.steps, self.count
        rate = self.rate * (at / warm if at < warm else (steps - at) / (steps - warm))
        self.count += 1
        gradients = {name: weights.grad for name, weights in self.parameters.items()}
        norm = math.sqrt(sum(float(g.square().sum()) for g in gradients.values() if g is not None))
        for name, value in self.parameters.items():
            gradient = gradients[name]
            assert gradient is not None
            gradient = gradient * min(1.0, self.most / (norm + 1e-6))
            spared = self.spared and ("bias" in name or "LayerNorm" in name)
            kept = 1.0 if spared else 1 - rate * self.decay
            self.first[name] = 0.9 * self.first[name] + 0.1 * gradient
            self.second[name] = (
                self.second_beta * self.second[name] + (1 - self.second_beta) * gradient.square()
            )
            one = 1 - 0.9**self.count if self.corrected else 1.0
            two = math.sqrt(1 - self.second_beta**self.count) if self.corrected else 1.0
            root = self.second[name].sqrt()
            if self.form == "torch":
                value.mul_(kept).sub_(rate * self.first[name] / one / (root / two + self.epsilon))
            else:
                value.sub_(rate * two / one * self.first[name] / (root + self.epsilon)).mul_(kept)
            value.grad = None
        return norm


def vectors_of(model: Any, ids: Tensor, mask: Tensor, *, at: int | None = None) -> Tensor:
    """[CLS] of the last layer, or the token `at`."""
    hidden: Tensor = model(input_ids=ids, attention_mask=mask).last_hidden_state
    return hidden[:, 0] if at is None else hidden[ids == at]


def cosines(first: Tensor, second: Tensor) -> Tensor:
    return cosine_similarity(first.unsqueeze(1), second.unsqueeze(0), dim=-1)


@torch.no_grad()
def average(old: Iterable[Tensor], new: Iterable[Tensor], decay: float) -> None:
    for mine, theirs in zip(old, new, strict=True):
        mine.copy_(decay * mine + (1 - decay) * theirs)


class Program:
    """An encoder and its training, as published or with the numbers of the paper."""

    def __init__(self, settings: Any) -> None:
        self.settings, self.inputs = settings, inputs_of(settings)
        self.published = settings.preset == "published-code"
        self.encoder: Any = copy.deepcopy(self.inputs.encoder.model)
        self.norms: list[float] = []
        torch.manual_seed(settings.seed)

    def optimise(self, heads: Parameters, **facts: Any) -> None:
        trained = dict(self.encoder.named_parameters()) | heads
        self.optimizer = AdamW(trained, self.settings.steps, self.settings.learning_rate, **facts)

    def losses(self) -> list[float]:
        """What is back-propagated at each step, in the program's own scale."""
        batches, found = self.inputs.batches(self.settings.batch_size, self.settings.seed), []
        for views in islice(batches, self.settings.steps):
            loss = self.loss(views)
            self.norms.append(self.optimizer.step(loss))
            found.append(float(loss.detach()))
        return found

    def loss(self, views: Any) -> Tensor:
        raise NotImplementedError

    def contrast(self, *columns: Tensor) -> Tensor:
        logits = torch.cat(columns, dim=1) / self.settings.temperature
        return cross_entropy(logits, torch.arange(len(logits)))


TRAINER: dict[str, Any] = {"decay": 0.0, "form": "transformers", "most": 1.0}
"""What the trainer of SimCSE's program does by default."""


class SimCSEProgram(Program):
    """Those of MixCSE, SNCSE and ESimCSE have another loss. As published the head starts normal."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.dense = nn.Linear(WIDTH, WIDTH)
        if self.published:
            nn.init.normal_(self.dense.weight, std=0.02)
            nn.init.zeros_(self.dense.bias)
        heads = {f"dense.{name}": weights for name, weights in self.dense.named_parameters()}
        self.optimise(heads, **(TRAINER if self.published else {}))

    def head(self, vectors: Tensor) -> Tensor:
        return torch.tanh(self.dense(vectors))

    def passes(self, views: Any) -> list[Tensor]:
        [(ids, mask)] = views
        return [self.head(vectors_of(self.encoder, ids, mask)) for _ in range(2)]

    def loss(self, views: Any) -> Tensor:
        return self.contrast(cosines(*self.passes(views)))


class MixCSEProgram(SimCSEProgram):
    """λ 0.2; 2N mixed columns, of which those with 0.8 of the row's own sentence are 0."""

    def loss(self, views: Any) -> Tensor:
        one, two = self.passes(views)
        following = [(i + 1) % len(one) for i in range(len(one))]
        mixed_one, mixed_two = (
            torch.stack(
                [0.2 * vectors[i] + 0.8 * vectors[j] for i, j in enumerate(following)]
            ).detach()
            for vectors in (one, two)
        )
        left, right = cosines(one, mixed_two), cosines(mixed_one, two)
        shown = torch.ones(2, len(one), len(one))
        for row, after in enumerate(following):
            shown[0, row, row - 1] = shown[1, row, after] = 0
        return self.contrast(cosines(one, two), left * shown[0], right * shown[1])


class SNCSEProgram(SimCSEProgram):
    """Three prompted views, read at their mask token; the margin loss with weight 1e-3."""

    def loss(self, views: Any) -> Tensor:
        one, two, three = (
            self.head(vectors_of(self.encoder, *view, at=MASK_TOKEN)) for view in views
        )
        change = cosine_similarity(one, three) - cosine_similarity(one, two)
        margin = torch.relu(change + 0.1) + torch.relu(-change - 0.3)
        return self.contrast(cosines(one, two)) + 1e-3 * margin.mean()


class ESimCSEProgram(SimCSEProgram):
    """η 0.995; the average moves before the keys' pass, the queue is cut after each batch.

    As published the momentum encoder starts from random weights.
    """

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.momentum: Any = copy.deepcopy(self.encoder)
        if self.published:
            self.momentum = BertModel(self.encoder.config)
            self.momentum.pooler = None
        draw = "published-code" if self.published else "paper"
        drawn = {"repetition_rate": 0.32, "repetition_draw": draw, "seed": settings.seed}
        made: Any = make_settings(method="esimcse", **drawn)
        self.repetition = Repetition(made, 64, torch.device("cpu"))
        self.queue: list[Tensor] = []

    def loss(self, views: Any) -> Tensor:
        [(ids, mask)] = views
        first = self.head(vectors_of(self.encoder, ids, mask))
        second = self.head(vectors_of(self.encoder, *self.repetition(ids, mask)))
        loss = self.contrast(cosines(first, torch.stack([*second, *self.queue])))
        average(self.momentum.parameters(), self.encoder.parameters(), 0.995)
        with torch.no_grad():
            keys = self.head(vectors_of(self.momentum.eval(), ids, mask))
        self.queue = [*keys, *self.queue][:20]
        return loss


class ConSERTProgram(Program):
    """Hooks on the embedding block, explicit position ids; the mean of the last layer.

    The draws of a perturbation are repeated here from a generator with the same seed. As in the
    paper: the mean of the last two layers, and the optimizer of the defaults.
    """

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        facts: dict[str, Any] = {}
        if self.published:
            facts = {"decay": 0.01, "spared": True, "epsilon": 1e-6, "form": "transformers"}
            facts |= {"corrected": False, "most": 1.0, "warmup": -(-settings.steps // 10)}
        self.optimise({}, **facts)
        self.generator = torch.Generator().manual_seed(settings.seed + 3_000_017)

    def cut(self, _block: Any, _inputs: Any, out: Tensor) -> Tensor:
        out = out.clone()
        draws = torch.rand(len(out), 1, out.shape[2], generator=self.generator)
        for row in range(len(out)):
            out[row][:, draws[row, 0].argsort()[: int(0.2 * out.shape[2] + 1e-9)]] = 0
        return out

    def pooled(self, ids: Tensor, mask: Tensor, **places: Tensor) -> Tensor:
        states = self.encoder(
            input_ids=ids, attention_mask=mask, output_hidden_states=True, **places
        ).hidden_states
        layer = states[-1] if self.published else (states[-1] + states[-2]) / 2
        return torch.stack([layer[row, : int(n)].mean(dim=0) for row, n in enumerate(mask.sum(1))])

    def loss(self, views: Any) -> Tensor:
        ((ids, mask),) = views
        hook = self.encoder.embeddings.register_forward_hook(self.cut)
        first = self.pooled(ids, mask)
        hook.remove()
        draws = torch.rand(mask.shape, generator=self.generator)
        positions = torch.arange(mask.shape[1]).repeat(len(ids), 1)
        for row, count in enumerate(mask.sum(dim=1).tolist()):
            for place, token in enumerate((draws[row, 1:count].argsort() + 1).tolist(), 1):
                positions[row, token] = place
        second = self.pooled(ids, mask, position_ids=positions)
        both = self.direction(first, second) + self.direction(second, first)
        return 0.15 * both if self.published else both / 2

    def direction(self, own: Tensor, other: Tensor) -> Tensor:
        """The mean over the N vectors of one view; the other view and its own are compared."""
        itself = 1e9 * torch.eye(len(own))
        return self.contrast(
            cosines(own, other), cosines(own, own) - itself * self.settings.temperature
        )


def slow_crop(ids: list[int], u: float, v: float, draws: list[float]) -> list[int]:
    """A crop of one document from its random numbers: 5 to 50 %, a tenth of it deleted."""
    inner = ids[1:-1]
    size = min(max(1, int((0.05 + 0.45 * u) * len(inner))), len(inner))
    begin = int(v * (len(inner) - size + 1))
    chosen = range(begin, begin + size)
    left = [at for at in chosen if draws[at + 1] >= 0.1]
    left = left or [max(chosen, key=lambda at: draws[at + 1])]
    return [ids[0], *(inner[at] for at in left), ids[-1]]


class ContrieverProgram(Program):
    """Lists, transformers' forward pass, one document at a time."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.target: Any = copy.deepcopy(self.encoder)
        self.queue = list(normalize(torch.randn(settings.queue_size, WIDTH), dim=1))
        facts: dict[str, Any] = {"warmup": settings.steps // 25}
        if self.published:
            facts |= {"decay": 0.01, "second_beta": 0.98, "epsilon": 1e-6}
        self.optimise({}, **facts)
        self.generator = torch.Generator().manual_seed(settings.seed + 4_000_037)

    def vectors(self, model: Any, ids: Tensor, mask: Tensor) -> list[Tensor]:
        """Of one crop of each document."""
        u, v = (torch.rand(len(ids), 1, generator=self.generator) for _ in range(2))
        draws = torch.rand(mask.shape, generator=self.generator).tolist()
        found = []
        for i, length in enumerate(mask.sum(dim=1).tolist()):
            crop = slow_crop(ids[i, :length].tolist(), float(u[i]), float(v[i]), draws[i])
            mean = model(input_ids=torch.tensor([crop])).last_hidden_state[0].mean(dim=0)
            found.append(mean / mean.norm() if self.settings.normalise else mean)
        return found

    def loss(self, views: Any) -> Tensor:
        ((ids, mask),) = views
        queries = self.vectors(self.encoder, ids, mask)
        average(self.target.parameters(), self.encoder.parameters(), self.settings.ema_decay)
        with torch.no_grad():
            keys = self.vectors(self.target, ids, mask)
        total = torch.zeros(())
        for query, key in zip(queries, keys, strict=True):
            logits = torch.stack([query @ key, *(query @ queued for queued in self.queue)])
            total = total - (logits / self.settings.temperature).log_softmax(dim=0)[0]
        self.queue = [*keys, *self.queue][: self.settings.queue_size]
        return total / len(queries)


def heads_of(pretrained: Any, projected: int) -> Parameters:
    """Pooler, projection and predictor of MoCoSE's online branch, as parameters by name.

    Each Linear layer is drawn by torch and then by BERT's rule, the layers in order; the pooler is
    that of the checkpoint.
    """
    shapes = {
        "pooler": (WIDTH, WIDTH),
        "projection": (WIDTH, projected),
        "hidden": (projected, projected),
        "output": (projected, projected),
    }
    modules: dict[str, nn.Module] = {name: nn.Linear(*shape) for name, shape in shapes.items()}
    for module in modules.values():
        nn.init.normal_(module.get_parameter("weight"), std=0.02)
        nn.init.zeros_(module.get_parameter("bias"))
    modules["pooler"].load_state_dict(pretrained.state_dict())
    modules |= {f"{name}.LayerNorm": nn.LayerNorm(projected) for name in ("projection", "hidden")}
    return {
        f"{name}.{part}": value
        for name, module in modules.items()
        for part, value in module.named_parameters()
    }


def linear(values: Tensor, heads: Parameters, name: str) -> Tensor:
    return values @ heads[f"{name}.weight"].T + heads[f"{name}.bias"]


def normed(values: Tensor, heads: Parameters, name: str) -> Tensor:
    """A Linear layer and a LayerNorm with BERT's ε."""
    values = linear(values, heads, name)
    centred = values - values.mean(dim=1, keepdim=True)
    deviation = (centred.square().mean(dim=1, keepdim=True) + 1e-12).sqrt()
    weight, bias = heads[f"{name}.LayerNorm.weight"], heads[f"{name}.LayerNorm.bias"]
    return centred / deviation * weight + bias


def projected(model: Any, words: Tensor, mask: Tensor, heads: Parameters) -> Tensor:
    vectors = model(inputs_embeds=words, attention_mask=mask).last_hidden_state[:, 0]
    return normed(linear(vectors, heads, "pooler"), heads, "projection")


class MoCoSEProgram(Program):
    """Keys take gradients to the shared embeddings and the target's projection. K 24, K_s 8."""

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        width = settings.prediction_dim or WIDTH
        pooler: Any = self.inputs.encoder.pooler
        self.heads = heads_of(pooler.dense, width)
        self.queue = list(normalize(torch.randn(24, width), dim=1))
        self.counter, self.calls, self.gradient = 8, 0, torch.tensor(0.0)
        self.columns: list[int] = []
        self.target = copy.deepcopy(self.encoder)
        self.target.embeddings = self.encoder.embeddings
        self.target.encoder.requires_grad_(False)
        # a copy of its own, of which the projection is trained and the pooler is not
        self.target_heads = {
            name: value.detach().clone().requires_grad_(name.startswith("projection"))
            for name, value in self.heads.items()
            if name.startswith(("pooler", "projection"))
        }
        own = {f"target.{name}": weights for name, weights in self.target_heads.items()}
        trained = {name: weights for name, weights in own.items() if weights.requires_grad}
        self.optimise(self.heads | trained, **TRAINER | {"decay": 0.5, "spared": True})

    def loss(self, views: Any) -> Tensor:
        # as in the program, so that gradients of batches have one shape
        ids, mask = (pad(part, (0, self.settings.max_length - part.shape[1])) for part in views[0])
        self.calls += 1
        decay = 1 - (1 - 0.75) * (math.cos(math.pi * self.calls / CALLS) + 1) / 2
        average(self.target.encoder.parameters(), self.encoder.encoder.parameters(), decay)
        heads = [self.heads[name] for name in self.target_heads]
        average(self.target_heads.values(), heads, decay)
        first, second = (self.encoder.embeddings.word_embeddings(ids) for _ in range(2))
        shift = 1e-3 * self.gradient.sign()
        query = projected(self.encoder, first + shift, mask, self.heads)
        query = linear(normed(query, self.heads, "hidden"), self.heads, "output").tanh()
        key = projected(self.target, second + shift, mask, self.target_heads)
        used = self.queue[: self.counter + 8] if self.counter + 8 < 24 else self.queue
        similarity = cosines(query, torch.cat([key, torch.stack(used)]))
        self.queue, self.counter = [*key.detach(), *self.queue], self.counter + len(key)
        self.queue = self.queue[:24] if self.counter > 24 else self.queue
        self.columns.append(len(used))
        first.register_hook(self.keep)
        return cross_entropy(similarity / 0.05, torch.arange(len(query)))

    def keep(self, gradient: Tensor) -> None:
        """Of the first words, for the next batch."""
        self.gradient = gradient


# a random encoder's sentences differ by less than 0.001: at 0.05 every loss is log 8
SHARP = {"temperature": 5e-3, "learning_rate": 1e-3}
GIVEN: dict[str, dict[str, Any]] = {
    "mocose": {
        "batch_size": 8,
        "queue_size": 24,
        "initial_queue_size": 8,
        "fgsm_epsilon": 1e-3,
        "weight_decay": 0.5,
        "ema_schedule_steps": CALLS,
    },
    **dict.fromkeys(("simcse", "mixcse", "esimcse", "consert"), SHARP),
    "sncse": SHARP | SHORT_PROMPTS,
    "contriever": {
        "batch_size": 4,
        "max_length": 24,
        "queue_size": 10,
        "ema_decay": 0.7,
        "learning_rate": 1e-2,
        "temperature": 0.5,
    },
}
"""What the runs here set themselves, since encoder and batches are tiny."""


@pytest.fixture
def tiny_run(settings_of: Settings) -> Settings:
    """Settings of a run without dropout, of a preset."""

    def settings(method: str, preset: str, **changed: Any) -> TrainerSettings:
        steps = changed.get("steps", STEPS)
        values: dict[str, Any] = {
            "method": method,
            "preset": preset,
            "dropout": 0.0,
            "steps": STEPS,
            "evaluate_every": steps,
            **GIVEN[method],
        }
        return settings_of(**values | changed)

    return settings


CLASSES: dict[str, type[Any]] = {
    "mocose": MoCoSEProgram,
    "simcse": SimCSEProgram,
    "mixcse": MixCSEProgram,
    "sncse": SNCSEProgram,
    "esimcse": ESimCSEProgram,
    "consert": ConSERTProgram,
    "contriever": ContrieverProgram,
}
OTHERS = [
    *((method, "intended") for method in ("simcse", "sncse", "contriever")),
    *((method, "paper") for method in ("esimcse", "consert")),
]
PROGRAMS = [
    *((method, "published-code") for method in CLASSES),
    *(pytest.param(*preset, marks=pytest.mark.slow) for preset in OTHERS),
]


def program_of(settings: TrainerSettings) -> Any:
    return CLASSES[settings.method](settings)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("method", "preset"), PROGRAMS, ids=str)
def test_a_preset_is_its_program(tiny_run: Settings, method: str, preset: str) -> None:
    settings = tiny_run(method, preset, steps=STEPS if preset == "published-code" else 10)
    program, outcome = program_of(settings), run(settings)
    losses = settings.loss_weight * outcome.curve["loss"]
    assert losses.tolist() == pytest.approx(program.losses(), rel=1e-6)
    if method == "mocose":
        columns = outcome.curve["queue_fill"].tolist()
        assert columns == program.columns == [16, 32, 40, *[24] * (STEPS - 3)]
        # clipping acts with another factor at each step: AdamW ignores a constant one
        assert min(program.norms) > 1


def test_every_published_program_is_transcribed() -> None:
    assert CLASSES.keys() == PRESETS.keys()


SIZES = ("batch_size", "queue_size", "evaluate_every", "max_length")
"""Of a preset, but set here."""
OF_MANY = {("contriever", "select_on")}
"""Has no effect on a run with one evaluation; tested in tests/training/test_loop.py."""
NEEDS: dict[str, dict[str, Any]] = {
    "target_dropout": {"dropout": 0.2},
    "augmentation_draw": {"augmentation": "token-cutoff:0.3"},
    "augmented_branch": {"augmentation": "typos:0.5"},
    "rescaled_dropout": {"first_perturbation": "dropout:0.3"},
    "warmup_steps": {"steps": 20},
    "max_gradient_norm": {"temperature": 1e-5},
    "loss_weight": {"temperature": 0.5},
}
"""Settings beside which a setting has an effect within a few steps."""
CHANGES = [
    (method, name)
    for method in PRESETS
    for name in changed_settings(method, "published-code")
    if name not in SIZES and (method, name) not in OF_MANY
]


@pytest.fixture
def contractions(tiny_sentences: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The corpus, with a contraction in each sentence."""
    path = tmp_path_factory.mktemp("corpus") / "contractions.txt"
    path.write_text("\n".join(f"{sentence} can't" for sentence in tiny_sentences) + "\n")
    return str(path)


@pytest.mark.slow
@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(("method", "name"), CHANGES, ids=str)
def test_each_setting_of_a_preset_matters(
    tiny_run: Settings, contractions: str, method: str, name: str
) -> None:
    """Otherwise the transcription could not detect a wrong value of the setting."""
    given = {"steps": CHANGED, "corpus": contractions, **NEEDS.get(name, {})}
    back = {name: getattr(tiny_run(method, "intended"), name)}
    if name == "ema_schedule_steps":
        back[name] = 2 * CALLS
    settings = [tiny_run(method, "published-code", **given | change) for change in ({}, back)]
    assert getattr(settings[0], name) != getattr(settings[1], name)
    one, other = (run(own) for own in settings)
    if name.startswith("select_"):
        assert one.curve["score"][-1] != pytest.approx(other.curve["score"][-1], rel=1e-6)
    else:
        weights = [
            torch.cat([w.flatten() for w in trained.weights.values()]) for trained in (one, other)
        ]
        # equal runs end with the same bits
        assert float((weights[0] - weights[1]).abs().max()) > 1e-12


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("projected", [8, 24])
def test_the_prediction_dimension_is_that_of_queries_keys_and_queue(
    tiny_run: Settings, projected: int
) -> None:
    settings = tiny_run("mocose", "published-code", prediction_dim=projected, steps=CHANGED)
    expected = program_of(settings).losses()
    assert losses_of(settings) == pytest.approx(expected, rel=1e-6)
    other = tiny_run("mocose", "published-code", predictor_hidden_dim=projected, steps=CHANGED)
    assert losses_of(other) != pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
def test_the_preset_of_mocose_is_the_published_program_in_float32(tiny_run: Settings) -> None:
    """To 1e-5, a hundred units in the last place; 4e-7 was measured on one processor."""
    settings = tiny_run("mocose", "published-code")
    assert losses_of(settings) == pytest.approx(program_of(settings).losses(), rel=1e-5)


@pytest.mark.usefixtures("double")
def test_vectors_that_contriever_normalises(tiny_run: Settings) -> None:
    settings = tiny_run("contriever", "intended", normalise=True, steps=6)
    assert losses_of(settings) == pytest.approx(program_of(settings).losses(), rel=1e-6)


def test_simcse_draws_two_dropout_masks(tiny_run: Settings) -> None:
    """Without them the positive pair would be the same vector twice, of cosine 1."""
    dropped, plain = (
        losses_of(tiny_run("simcse", "intended", dropout=rate, steps=1))[0] for rate in (0.2, 0.0)
    )
    assert dropped > plain + 0.01


@pytest.mark.usefixtures("double")
def test_checkpoints_are_compared_with_the_head_and_scored_without(tiny_run: Settings) -> None:
    settings = tiny_run("mixcse", "published-code", steps=4)
    inputs = inputs_of(settings)
    outcome = train(settings, inputs)
    encoder: Any = copy.deepcopy(inputs.encoder.model).eval()
    encoder.load_state_dict(outcome.states["encoder"])
    heads, read = outcome.states["heads"], partial(inputs.encoder.tokenizer, return_tensors="pt")
    tokens = (read(text) for text in inputs.dev.sentences.texts)
    with torch.no_grad():
        plain = torch.cat(
            [
                vectors_of(encoder, encoded["input_ids"], encoded["attention_mask"])
                for encoded in tokens
            ]
        )
    headed = torch.tanh(linear(plain, heads, "pooler"))
    selected, scored = (
        inputs.dev.evaluate(vectors.float().numpy()).score for vectors in (headed, plain)
    )
    assert outcome.curve["score"][-1] == pytest.approx(selected, abs=1e-3)
    assert outcome.after.dev.score == pytest.approx(scored, abs=1e-3)
    assert selected != pytest.approx(scored, abs=1e-3)


def test_the_precision_is_not_part_of_a_preset(tiny_run: Settings) -> None:
    assert not any(
        "precision" in values for preset in PRESETS.values() for values in preset.values()
    )
    expected = losses_of(tiny_run("mocose", "published-code", steps=4))
    other = tiny_run("mocose", "published-code", steps=4, precision="bfloat16")
    assert losses_of(other) != pytest.approx(expected, rel=1e-3)


def test_positions_are_permuted_where_repetition_makes_a_sentence_longer(
    tiny_run: Settings,
) -> None:
    """Than `max_length`."""
    given = {"augmentation": "position-shuffle", "augmentation_draw": "published-code"}
    settings = tiny_run("esimcse", "intended", steps=2, max_length=8, **given)
    assert np.isfinite(run(settings).curve["loss"]).all()
