"""The settings that all training methods share.

A method declares further settings in a subclass, in the method's file.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from mtdlab.settings import limits
from mtdlab.settings.augmentation import NEGATIONS, parse_augmentation
from mtdlab.settings.fields import costless, counted_in_steps, loaded, setting
from mtdlab.settings.representation import POOLING, Pooling, Representation
from mtdlab.settings.tasks import (
    DEV,
    SELECTIONS,
    check_selection,
    external_tasks,
    parse_tasks,
    score_name,
    task_of,
)


def _check_fields(text: str) -> str:
    names = sorted({name.strip() for name in text.split(",")} - {""})
    if wrong := [name for name in names if not re.fullmatch(r"[A-Za-z_]\w*", name)]:
        raise ValueError(
            f"dropout_fields {wrong[0]!r}: is no field of a configuration; write a list of names, "
            "such as [attention_dropout], or none"
        )
    return ",".join(names)


_LIST_SCHEMA = WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}})
_JOINED = BeforeValidator(lambda text: ",".join(map(str, text)) if type(text) is list else text)
Names = Annotated[str, _JOINED, _LIST_SCHEMA]
"""Task names separated by commas, or a list of them."""
TaskNames = Annotated[Names, AfterValidator(lambda text: ",".join(parse_tasks(text)))]
FieldNames = Annotated[Names, AfterValidator(_check_fields)]

PAIRS = "pairs:"
"""The prefix of the name of a file of text pairs, see `mtdlab.corpus.corpus`."""


def is_pairs(corpus: str) -> bool:
    """Whether a corpus consists of pairs, whose texts are the two views."""
    return corpus.startswith(PAIRS)


def name_with_layers(encoder: str, layers: int | None) -> str:
    """An encoder's name with the number of its first layers that are kept; None: all."""
    return encoder if layers is None else f"{encoder}, layers 1 to {layers}"


class RunSettings(Protocol):
    """The settings of one trial: `TrainerSettings`, or those of a program of the user."""

    @property
    def mtd(self) -> float | None:
        """Maximum traceable distance in steps; None where there is none."""

    def model_dump(self) -> dict[str, Any]:
        """Every setting by name, with the method and the seed."""


Precision = Literal["auto", "float32", "bfloat16"]
Positive = Annotated[int, Field(ge=1, le=limits.COUNT)]
Count = Annotated[int, Field(ge=0, le=limits.COUNT)]


def _check_augmentation(text: str) -> str:
    augmentations = parse_augmentation(text)
    for augmentation in augmentations:
        if augmentation.name in NEGATIONS.values():
            raise ValueError(
                f"augmentation {augmentation} reverses the meaning of a sentence, so it gives no "
                "positive pair; only methods that train with negations apply it"
            )
    return "+".join(map(str, augmentations)) or "none"


INTENDED = "intended"
"""The preset of the defaults, which every method has."""


@dataclass(frozen=True)
class Multiple:
    """A value of a preset in proportion to another setting, rounded down, or up, up to `most`."""

    factor: float
    of: str
    up: bool = False
    most: int = limits.COUNT

    def times(self, base: int) -> int:
        """The value where the other setting is `base`."""
        # a product such as 0.1 · 30 may lie just above its true value
        exact = round(self.factor * base, 9)
        return min(math.ceil(exact) if self.up else math.floor(exact), self.most)

    def __str__(self) -> str:
        """The multiple as in a formula: `2.5 · batch_size`."""
        multiple = f"{self.factor:g} · {self.of}"
        return multiple if self.most == limits.COUNT else f"{multiple}, at most {self.most}"


Preset = Mapping[str, Any]
"""Values of settings by name; each is a `Multiple` or the value itself."""


class TrainerSettings(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The settings of one run. Frozen; every value is checked, and an unknown key is an error.

    `partial` checks single values, but not their combination: the trainer section of a study file
    is completed by the values that are searched.

    Attributes:
        presets: the presets of the method by name. Each replaces the values that it states of
            `intended`, which holds the defaults that are in proportion to other settings.
        least_batch: the smallest batch; 2 where only it has negatives in the first step.
    """

    presets: ClassVar[Mapping[str, Preset]] = {INTENDED: {}}
    least_batch: ClassVar[int] = 1

    method: str = setting("mocose", "training method; `mtdlab methods` lists them")
    preset: str = costless(
        INTENDED,
        "set of values for settings that are not given; `published-code`: those of the program "
        "that the method's authors published; `mtdlab methods` lists each method's",
    )
    encoder: str = loaded("builtin", "`builtin`, a folder, or a Hugging Face name", min_length=1)
    encoder_layers: Positive | None = loaded(
        None, "how many of the encoder's layers are kept, the first ones; by default all"
    )
    pooling: Pooling = loaded(
        "cls", f"{POOLING}; not given: that of the encoder's `1_Pooling/config.json`, if it has one"
    )
    training_pooling: Pooling | Literal["same"] = setting(
        "same", "pooling during training, where it is not that of evaluation; `same`: `pooling`"
    )
    prompt: str = loaded(
        "",
        "text around each sentence, in training and evaluation: `{sentence}` stands for the "
        "sentence, `{mask}` for the mask token that the pooling `mask` reads; empty: none",
    )
    segment_length: Count = loaded(
        0,
        "tokens of the segments into which a sentence is cut; its vector is the mean of theirs, "
        "weighted by length; 0: not cut",
        unit="tokens",
    )
    corpus: str = loaded(
        "builtin",
        "training text: `builtin`, a file, a folder, `dataset:NAME#COLUMN`, or `pairs:FILE`, whose "
        "two texts a line are the two views",
        min_length=1,
    )
    evaluation: str = loaded(
        "builtin",
        "graded pairs behind `sts_dev` and `sts_test`: `builtin`, a folder with `dev.tsv` and "
        "`test.tsv` (first sentence, second, score), or one in SentEval's layout or STS-B's",
        min_length=1,
    )
    tasks: TaskNames = loaded(
        "",
        "tasks scored at the end of each trial: `[STS12, SICKR]`, `sts`, `transfer`, "
        "`beir:FOLDER`, `mteb:TASK`, `evaluator` (the function of --evaluator)",
        step_cost="none",
    )
    select_on: Annotated[
        str,
        AfterValidator(check_selection),
        WithJsonSchema(
            {"anyOf": [{"enum": list(SELECTIONS)}, {"type": "string", "pattern": f"{DEV}$"}]}
        ),
    ] = costless(
        "dev",
        "pairs on which the checkpoint is selected, or the dev data of one of `tasks`: "
        "`beir:FOLDER:dev`, `evaluator:KEY:dev`; `last`: none is selected, the checkpoint is that "
        "of the last step; `test`, and `sts_average`, the average of the "
        "STS test sets in the folder of `evaluation` (its test pairs where there are none), are "
        "for reproducing published selections and are stated in every figure",
    )
    batch_size: Positive = setting(64, "sentences per training step", symbol="N", unit="sentences")
    temperature: float = costless(0.05, "temperature of the contrastive loss", symbol="τ", gt=0)
    augmentation: Annotated[str, AfterValidator(_check_augmentation)] = setting(
        "none", "augmentations in addition to dropout, joined with `+`"
    )
    augmentation_draw: Literal["tokens", "published-code"] = setting(
        "tokens",
        "what cut-offs and position shuffle may change: a sentence's tokens but [CLS]; "
        "`published-code`: any of `max_length` positions, at least one, and one permutation for a "
        "whole batch, as in MoCoSE's program",
    )
    loss_weight: float = costless(
        1.0,
        "factor of the loss before its gradient is computed; recorded losses are without it",
        gt=0,
    )
    learning_rate: float = costless(
        3e-5, "highest learning rate of AdamW; after `warmup_steps` it decays linearly to 0", gt=0
    )
    warmup_steps: Count = costless(
        0, "steps over which the learning rate rises linearly from 0; 0: none", unit="steps"
    )
    weight_decay: float = costless(1e-6, "weight decay of AdamW", ge=0)
    weight_decay_exceptions: Literal["none", "biases-and-norms"] = costless(
        "none", "parameters without weight decay: none, or biases and LayerNorms"
    )
    adam_beta1: float = costless(0.9, "decay of AdamW's mean of gradients", symbol="β₁", ge=0, lt=1)
    adam_beta2: float = costless(
        0.999, "decay of AdamW's mean of squared gradients", symbol="β₂", ge=0, lt=1
    )
    adam_epsilon: float = costless(1e-8, "ε in the denominator of AdamW's step", gt=0)
    adam_bias_correction: bool = costless(
        True, "whether AdamW corrects both means for their start at 0"
    )
    adam_formula: Literal["torch", "transformers"] = costless(
        "torch",
        "order within AdamW's step: `torch`: decay, then a step with ε after the bias correction; "
        "`transformers` (its version 4): a step with ε before the bias correction, then decay",
    )
    max_gradient_norm: float = setting(
        0.0,
        "L2 norm of all gradients together above which they are scaled down to it; 0: no clipping",
        step_cost="switch",
        ge=0,
    )
    dropout: float = loaded(0.1, "dropout rate of encoder and heads", ge=0, lt=1)
    dropout_fields: FieldNames = loaded(
        "",
        "fields of the encoder's configuration that are dropout rates, for a family that is not "
        "known: `[resid_pdrop]`; `none`: it has no dropout; empty: those of a known family",
    )
    lora_rank: Count = loaded(
        0,
        "rank of the adapters that are trained instead of the encoder's weights (LoRA, extra "
        "`peft`); 0: the weights themselves are trained",
    )
    lora_alpha: int = loaded(
        16,
        "scale of the adapters: their output is multiplied by `lora_alpha` / `lora_rank`",
        step_cost="none",
        ge=1,
        le=limits.COUNT,
    )
    lora_targets: Names = loaded(
        "all-linear",
        "layers with adapters: `all-linear`, or ends of their names: `[q_proj, v_proj]`",
        min_length=1,
    )
    max_length: int = loaded(
        32,
        "tokens per training sentence; longer sentences are truncated",
        unit="tokens",
        ge=3,
        le=limits.COUNT,
    )
    steps: int = costless(15625, "training steps", unit="steps", ge=1, le=limits.STEPS)
    sentences: Positive | None = costless(
        None,
        "training sentences in place of `steps`, which are then ⌊`sentences` / `batch_size`⌋; a "
        "document or a pair counts as one",
        unit="sentences",
    )
    evaluate_every: Positive = costless(100, "steps between two evaluations", unit="steps")
    probe_every: Count = setting(
        0,
        "steps between two measurements of the change of keys, on 64 sentences; 0: none",
        unit="steps",
    )
    seed: int = costless(0, "random seed of a run; a study lists its seeds under `seeds`", ge=0)
    device: str = loaded(
        "auto", "`auto`, `cpu`, `cuda`, or `cuda:1`", pattern=r"^(auto|cpu|cuda(:\d+)?)$"
    )
    precision: Precision = loaded(
        "auto", "`auto`: bfloat16 on hardware with instructions for it, else float32"
    )

    def evaluates_at(self, step: int) -> bool:
        """Whether an evaluation follows the step of this number, from 1."""
        return step == self.steps or step % self.evaluate_every == 0

    def phase_after(self, step: int) -> str:
        """What begins after so many steps: training, or the evaluation that ends the next one."""
        return "evaluating" if self.evaluates_at(min(step + 1, self.steps)) else "training"

    @classmethod
    def partial(cls, values: Mapping[str, Any]) -> Self:
        """Settings whose combination is not checked. Raises ValidationError for a single value."""
        return cls.model_validate(dict(values), context={"partial": True})

    @classmethod
    def fill(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The preset's values, which replace the defaults of the fields, with `values` given."""
        stated = cls.presets.get(str(values.get("preset", INTENDED)), {})
        filled: dict[str, Any] = {}
        # those of the preset first: those of `intended` may be multiples of them
        for name, value in {**stated, **cls.presets[INTENDED], **stated}.items():
            if not isinstance(value, Multiple):
                filled[name] = value
                continue
            base = values.get(value.of, filled.get(value.of, cls.model_fields[value.of].default))
            if isinstance(base, int) and base >= 0:
                filled[name] = value.times(base)
        return filled

    @field_validator("preset", mode="before")
    @classmethod
    def _check_preset(cls, preset: Any) -> Any:
        if not isinstance(preset, str) or preset not in cls.presets:
            raise ValueError(f"preset {preset!r}: the method has {', '.join(cls.presets)}")
        return preset

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        given = cls._with_steps(values)
        return cls._without_shares({**cls.fill(given), **given})

    @classmethod
    def _with_steps(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The values with the steps that `sentences` make, where they give these."""
        sentences = values.get("sentences")
        batch = (cls.fill(values) | values).get(
            "batch_size", cls.model_fields["batch_size"].default
        )
        if type(sentences) is not int or type(batch) is not int or min(sentences, batch) < 1:
            return values
        steps = sentences // batch
        if not steps:
            raise ValueError(f"sentences {sentences} are less than one batch of batch_size {batch}")
        if values.get("steps") not in (None, steps):
            raise ValueError(
                f"sentences {sentences} are {steps} steps of batch_size {batch}, but steps is "
                f"{values['steps']}; give one of them, and the other as null"
            )
        return values | {"steps": steps}

    @classmethod
    def _without_shares(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The values with numbers of steps, rounded up, in place of shares of the run."""
        steps = values.get("steps", cls.model_fields["steps"].default)
        if type(steps) is not int:
            return values
        return values | {
            name: Multiple(value, "steps", up=True).times(steps)
            for name, value in values.items()
            if type(value) is float and 0 < value < 1 and name in counted_in_steps(cls)
        }

    @model_validator(mode="after")
    def _together(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get("partial"):
            self._check_values()
            self.representation.check()
            self.training_representation.check()
            self.check()
        return self

    def _check_values(self) -> None:
        if self.sentences and self.steps < self.evaluate_every:
            raise ValueError(
                f"sentences {self.sentences} are {self.steps} steps of batch_size "
                f"{self.batch_size}, fewer than evaluate_every {self.evaluate_every}; it may be a "
                "share of the run, such as 0.125"
            )
        if self.probe_every >= self.steps:
            raise ValueError(
                f"probe_every {self.probe_every} gives fewer than two probes in {self.steps} "
                "steps; it must be below steps, or 0 for none"
            )
        if self.warmup_steps >= self.steps:
            raise ValueError(
                f"warmup_steps {self.warmup_steps} leaves no step at the full learning rate in "
                f"{self.steps} steps; it must be below steps"
            )
        if self.augmentation_draw != "tokens" and self.segment_length:
            raise ValueError(
                f"augmentation_draw {self.augmentation_draw} needs segment_length 0: it "
                "permutes the positions of whole sentences"
            )
        transformers = self.adam_formula == "transformers"
        if transformers and self.learning_rate * self.weight_decay >= 1:
            raise ValueError(
                f"learning_rate {self.learning_rate:g} times weight_decay {self.weight_decay:g} is "
                "what a step takes of each weight; it must be below 1"
            )
        names = [task_of(score_name(task)) for task in external_tasks(self.tasks)]
        if self.select_on.endswith(DEV) and task_of(self.select_on) not in names:
            raise ValueError(
                f"select_on {self.select_on} needs the task {task_of(self.select_on)}, which "
                f"tasks lacks; it has {', '.join(names) or 'none of this kind'}"
            )
        pooling = self.training_representation.pooling
        if pooling == "last-token" and "position-shuffle" in self.augmentation:
            raise ValueError(
                f"augmentation {self.augmentation}: position-shuffle moves the token that the "
                "pooling last-token reads; choose another augmentation, or pooling mean"
            )

    def check(self) -> None:
        """Raise ValueError for an invalid combination of values."""
        if self.batch_size < self.least_batch:
            raise ValueError(
                f"batch_size {self.batch_size} leaves no negatives; it must be at least "
                f"{self.least_batch}"
            )

    @property
    def encoder_name(self) -> str:
        """The encoder, and how many of its first layers are kept where these are not all."""
        return name_with_layers(self.encoder, self.encoder_layers)

    @property
    def representation(self) -> Representation:
        """How sentences become vectors in evaluation and by the saved model."""
        return Representation(self.pooling, self.prompt, self.segment_length)

    @property
    def training_representation(self) -> Representation:
        """How sentences become vectors in training."""
        pooling = self.pooling if self.training_pooling == "same" else self.training_pooling
        return replace(self.representation, pooling=pooling)

    @property
    def mtd(self) -> float | None:
        """Maximum traceable distance in steps; None for a method without momentum or queue."""
        return None

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The settings that change nothing with these values, and the value that makes it so."""
        return {}

    @property
    def encoder_copies(self) -> int:
        """Number of sets of encoder weights in a checkpoint."""
        return 1
