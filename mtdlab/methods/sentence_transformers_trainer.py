"""The trainer and the losses of sentence-transformers around an encoder and a run of mtdlab's.

Importing it imports the library. Letters: N batch, L tokens, D dimension.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Any

import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    util,
)
from sentence_transformers.sentence_transformer import losses
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback, TrainerCallback

from mtdlab.encoders.folders import encoder_path, quiet
from mtdlab.encoders.loading import explain_errors, is_local, load_tokenizer
from mtdlab.errors import MtdlabError, nearest, one_line
from mtdlab.methods.base import Step, Steps, Tokens, Transformer

LOSSES: Mapping[str, Any] = {
    name: kind
    for name, kind in vars(losses).items()
    if isinstance(kind, type) and issubclass(kind, nn.Module)
}
"""Their losses by name."""
Encode = Callable[[Tensor, Tensor], Tensor]
"""Sentence vectors (N, D) of token ids and attention mask, both (N, L)."""


class _Encoder(nn.Module):
    """An encoder as a module of a SentenceTransformer, which reads it as mtdlab does."""

    def __init__(self, transformer: Transformer, encode: Encode, max_length: int) -> None:
        super().__init__()
        self.transformer, self._encode, self.max_seq_length = transformer, encode, max_length

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """The features with the vectors (N, D) of their tokens."""
        vectors = self._encode(features["input_ids"], features["attention_mask"])
        return features | {"sentence_embedding": vectors}

    def get_embedding_dimension(self) -> int:
        """D, which losses of several dimensions ask for."""
        return int(self.transformer.config.hidden_size)

    @property
    def tokenizer(self) -> Any:
        """The tokenizer, by which a guide with another one reads the texts of a batch."""
        return load_tokenizer(str(self.transformer.name_or_path))


def make_model(
    transformer: Transformer, encode: Encode, max_length: int, device: torch.device
) -> SentenceTransformer:
    """A SentenceTransformer that shares the weights of an encoder."""
    with quiet():
        module = _Encoder(transformer, encode, max_length)
        return SentenceTransformer(modules=[module], device=str(device))


def takes_temperature(name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a loss, or the one in it, has a scale or a temperature; also an unknown one."""
    names = (name, str(arguments.get("loss")))
    kinds = [LOSSES[loss] for loss in names if loss in LOSSES]
    return not kinds or any({"scale", "temperature"} & {*_declared(kind)} for kind in kinds)


def make_loss(
    model: SentenceTransformer, name: str, arguments: Mapping[str, Any], temperature: float
) -> nn.Module:
    """A loss of theirs; the arguments that it does not declare are those of the loss in it.

    Raises MtdlabError for a loss, or an argument, that is unknown, missing or invalid.
    """
    if name not in LOSSES:
        raise MtdlabError(f"loss {name!r} is not known; {nearest(name, LOSSES)}")
    given = _complete(model, name, arguments, temperature)
    try:
        with quiet():
            loss: nn.Module = LOSSES[name](model, **given)
    except AssertionError:
        # without a message, where a loss reads hidden layers
        raise MtdlabError(
            f"loss {name} reads the layers of an encoder, which mtdlab does not hand out; choose "
            "another one, such as MatryoshkaLoss"
        ) from None
    except Exception as error:
        # each loss checks its arguments in its own way
        raise MtdlabError(f"loss {name} cannot be made: {one_line(error)}") from None
    own = {id(parameter) for parameter in model.parameters()}
    if any(weight.requires_grad and id(weight) not in own for weight in loss.parameters()):
        raise MtdlabError(
            f"loss {name} trains weights beside those of the encoder, such as a decoder or a copy; "
            "choose another one, such as MultipleNegativesRankingLoss"
        )
    return loss


def _complete(
    model: SentenceTransformer, name: str, arguments: Mapping[str, Any], temperature: float
) -> dict[str, Any]:
    """The arguments of a loss, with its temperature, and what their names stand for."""
    declared = _declared(LOSSES[name])
    given = {key: value for key, value in arguments.items() if key in declared}
    others = {key: value for key, value in arguments.items() if key not in declared}
    if others and "loss" not in given:
        unknown = next(iter(others))
        raise MtdlabError(f"loss {name} has no argument {unknown!r}; {nearest(unknown, declared)}")
    empty = inspect.Parameter.empty
    if missing := [key for key in declared.keys() - given if declared[key].default is empty]:
        raise MtdlabError(f"loss {name} needs loss_arguments with {' and '.join(sorted(missing))}")
    if "scale" in declared:
        given["scale"] = 1 / temperature
    elif "temperature" in declared:
        given["temperature"] = temperature
    for key, value in given.items():
        if key == "guide":
            given[key] = _load_guide(str(value), str(model.device))
        elif key == "loss":
            given[key] = make_loss(model, str(value), others, temperature)
        elif inspect.isroutine(declared[key].default):
            given[key] = _function(name, key, value)
    return given


def _declared(loss: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a loss but the model, by name."""
    return {
        name: argument
        for name, argument in inspect.signature(loss.__init__).parameters.items()
        if name not in ("self", "model")
    }


def _function(loss: str, argument: str, name: Any) -> Any:
    """A function of their module `util`, such as dot_score. Raises MtdlabError for no such name."""
    found = getattr(util, str(name), None)
    if not callable(found):
        raise MtdlabError(
            f"loss {loss}: {argument} {name!r} is no function of sentence_transformers.util, such "
            "as dot_score"
        )
    return found


@lru_cache(maxsize=1)
def _load_guide(name: str, device: str) -> SentenceTransformer:
    """An encoder that is not trained. Raises MtdlabError where it cannot be loaded."""
    with quiet(), explain_errors(f"guide {name}", name):
        return SentenceTransformer(
            encoder_path(name), device=device, local_files_only=is_local(name)
        ).requires_grad_(False)


def loss_of(loss: nn.Module, views: Sequence[Tokens]) -> Tensor:
    """The loss () of the first and the last view, or of the only one with itself."""
    features = [{"input_ids": ids, "attention_mask": mask} for ids, mask in (views[0], views[-1])]
    value = loss(features, None)
    return torch.stack([*value.values()]).sum() if isinstance(value, dict) else value


class _Trainer(SentenceTransformerTrainer):
    """Their trainer on the steps of a run, without a model card."""

    def __init__(self, steps: Steps, **given: Any) -> None:
        self.steps, self.step_loss = steps, torch.zeros(())
        super().__init__(**given)

    def get_train_dataloader(self) -> Any:
        """The batches of the run as columns; each begins a step when it is asked for."""
        while self.steps.left:
            views = self.steps.begin()
            yield {
                f"{column}_{part}": tensor
                for column, tokens in (("anchor", views[0]), ("positive", views[-1]))
                for part, tensor in zip(("input_ids", "attention_mask"), tokens, strict=True)
            }

    def compute_loss(self, *given: Any, **named: Any) -> Any:
        """Their loss, weighted; the curve has it without the weight."""
        loss: Any = super().compute_loss(*given, **named)
        self.step_loss = loss.detach()
        return self.steps.settings.loss_weight * loss

    def add_model_card_callback(self, *_: Any) -> None:
        """None is written: mtdlab writes the card of the model that it keeps."""


class _Arguments(SentenceTransformerTrainingArguments):
    """The arguments of their trainer for one GPU, that of the run, not all that are visible."""

    @property
    def n_gpu(self) -> int:
        """0 or 1: of several their trainer would make copies of the model."""
        return int(super().n_gpu > 0)


class _EndStep(TrainerCallback):
    """Ends a step of the run after each of theirs: it is recorded, evaluated and saved."""

    def __init__(self, trainer: _Trainer) -> None:
        self.trainer = trainer

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """End the step; an exception that this raises passes through their trainer."""
        self.trainer.steps.end(Step(self.trainer.step_loss))


def take_steps(model: SentenceTransformer, loss: nn.Module, steps: Steps) -> None:
    """Take the steps of a run that are left, with its optimizer, whose rates it sets each step."""
    settings, device = steps.settings, model.device
    gpus = [device] if device.type == "cuda" else []
    with quiet(), TemporaryDirectory() as folder:
        arguments = _Arguments(
            output_dir=folder,
            max_steps=steps.left,
            per_device_train_batch_size=settings.batch_size,
            max_grad_norm=settings.max_gradient_norm,
            seed=settings.seed,
            use_cpu=not gpus,
            eval_strategy="no",
            save_strategy="no",
            logging_strategy="no",
            # reading each loss would wait for the GPU
            logging_nan_inf_filter=False,
            report_to="none",
            disable_tqdm=True,
        )
        # it seeds torch, whose state may be that of a resumed run
        with torch.random.fork_rng(devices=gpus):
            trainer = _Trainer(
                steps,
                model=model,
                args=arguments,
                loss=loss,
                optimizers=(steps.optimizer, LambdaLR(steps.optimizer, lambda _: 1.0)),
            )
        trainer.add_callback(_EndStep(trainer))
        trainer.remove_callback(PrinterCallback)
        trainer.train()
