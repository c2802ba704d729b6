"""What one training run is: every setting, its default and its bounds.

Defaults are the preset `intended`: the MoCoSE paper's method at its base size, with what the
paper leaves open taken from its published code. `presets.py` has the others.
"""

import itertools
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from analysis.trace import d_trace
from mtdlab.config.augmentation import parse_augmentation
from mtdlab.config.presets import SIMCSE, Method, Preset, filled
from mtdlab.config.schedules import ema_decay_at
from mtdlab.config.tasks import parse_tasks

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Pooling = Literal["cls", "mean", "first-last", "last2"]


def parse_slices(text: str) -> list[tuple[int, int]] | None:
    """Half-open ranges of queue positions, 0 the newest; None for "all".

    Raises ValueError where the text is neither "all" nor ranges such as "0-256,768-1024".
    """
    if text == "all":
        return None
    slices = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (dash and first.isdigit() and last.isdigit() and int(first) < int(last)):
            raise ValueError(f'{part.strip()!r} is no range; write "all" or "0-256,768-1024"')
        slices.append((int(first), int(last)))
    if any(start < end for (_, end), (start, _) in itertools.pairwise(slices)):
        raise ValueError(f"{text!r}: ranges must ascend and not overlap, or keys count twice")
    return slices


def _checked_slices(text: str) -> str:
    parse_slices(text)
    return text


def _checked_augmentation(text: str) -> str:
    return "+".join(map(str, parse_augmentation(text))) or "none"


def _checked_tasks(text: str) -> str:
    return ",".join(parse_tasks(text))


def _joined(names: Any) -> Any:
    """A list of task names as the text that stands for it."""
    return ",".join(map(str, names)) if isinstance(names, list) else names


def is_number(setting: str, kind: type[int] | type[float]) -> bool:
    """Whether a setting always holds a number of that kind."""
    return TrainerSettings.model_fields[setting].annotation is kind


class TrainerSection(BaseModel):
    """What a trainer section may hold. Frozen, every value checked; an unknown key is an error.

    Each value by itself: what does not fit beside another may yet be searched.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    preset: Preset = "intended"
    method: Method = "mocose"
    encoder: str = Field("builtin", min_length=1)
    pooling: Pooling = "cls"
    corpus: str = Field("builtin", min_length=1)
    evaluation: str = Field("builtin", min_length=1)
    tasks: Annotated[str, BeforeValidator(_joined), AfterValidator(_checked_tasks)] = ""
    select_on: Literal["dev", "test"] = "dev"

    ema_decay: Decay = 0.85
    ema_decay_end: Annotated[float, Field(ge=0, le=1)] | None = None
    ema_schedule_steps: Positive | None = None
    ema_order: Literal["after-step", "before-target"] = "after-step"
    queue_size: Count = 512
    initial_queue_size: Count = 128
    queue_slice: Annotated[str, AfterValidator(_checked_slices)] = "all"
    queue_fill: Literal["exact", "published"] = "exact"
    queue_clusters: Count = 0
    batch_size: Positive = 64
    in_batch_negatives: bool = True
    temperature: float = Field(0.05, gt=0)
    detach_keys: bool = True
    target_dropout: bool = True
    augmentation: Annotated[str, AfterValidator(_checked_augmentation)] = "none"
    fgsm_epsilon: float = Field(5e-9, ge=0)
    fgsm_gradient: Literal["previous", "current"] = "previous"
    projection_layers: Count = 1
    prediction_layers: Count = 2
    prediction_dim: Positive | None = None

    learning_rate: float = Field(3e-5, gt=0)
    weight_decay: float = Field(1e-6, ge=0)
    dropout: float = Field(0.1, ge=0, lt=1)
    max_length: int = Field(32, ge=3)
    steps: Positive = 15625
    evaluate_every: Positive = 100
    seed: Count = 0
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")
    precision: Literal["auto", "float32", "bfloat16"] = "auto"

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, values: Any) -> Any:
        """Preset and method speak for what is not given; whole settings come out as they are."""
        return filled(values) if isinstance(values, dict) else values


def rule_broken(error: ValidationError) -> str:
    """The sentence behind settings that do not go together."""
    return error.errors()[0]["msg"].removeprefix("Value error, ")


class TrainerSettings(TrainerSection):
    """One run's settings: a trainer section whose values also go together."""

    @model_validator(mode="after")
    def _together(self) -> Self:
        self._check_method()
        self._check_queue()
        if self.ema_decay_end is not None and self.ema_decay_end < self.ema_decay:
            raise ValueError(
                f"ema_decay {self.ema_decay} lies above ema_decay_end {self.ema_decay_end}, and a "
                "schedule rises; for a constant give ema_decay_end: null"
            )
        if self.queue_size == 0 and not (self.in_batch_negatives and self.batch_size > 1):
            raise ValueError(
                "queue_size 0 leaves no negatives with batch_size 1 or without in_batch_negatives"
            )
        return self

    def _check_method(self) -> None:
        if self.method != "simcse":
            return
        if self.preset != "intended":
            raise ValueError(
                f"preset {self.preset} is of the method mocose; leave it out with method simcse"
            )
        for name, value in SIMCSE.items():
            if (given := getattr(self, name)) != value:
                raise ValueError(
                    f"{name} {given} does not go with method simcse, which has one encoder and "
                    f"no queue: leave {name} out"
                )

    def _check_queue(self) -> None:
        if self.initial_queue_size > self.queue_size:
            raise ValueError(
                f"initial_queue_size {self.initial_queue_size} exceeds queue_size "
                f"{self.queue_size}; it may be 0 to queue_size"
            )
        slices = parse_slices(self.queue_slice) or []
        for first, last in slices:
            if last > self.queue_size:
                raise ValueError(
                    f"queue_slice {first}-{last} lies outside queue_size {self.queue_size}"
                )
        used = sum(last - first for first, last in slices) or self.queue_size
        if self.queue_clusters > used:
            raise ValueError(
                f"queue_clusters {self.queue_clusters} exceeds the {used} positions in use; "
                "it may be 0 (no clusters) to that"
            )

    @property
    def mtd(self) -> float:
        """The maximum traceable distance, in steps (MoCoSE, equation 4).

        Where the decay is scheduled, the mean over the run's steps; where the schedule reaches
        1, at which there is no finite distance, that of its start, by which the paper names its
        runs. 0 for SimCSE, whose one encoder remembers nothing.
        """
        if self.method == "simcse":
            return 0.0
        decays = [self.ema_decay]
        if self.ema_decay_end not in (None, 1):
            decays = [ema_decay_at(step, self) for step in range(self.steps)]
        return float(np.mean(d_trace(decays, self.queue_size, self.batch_size)))
