"""Inputs of a run (encoder, texts, evaluation data), loaded once per process and shared."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn

from mtdlab.analysis.measures.geometry import singular_values
from mtdlab.corpus.augmented import augment
from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.documents import join_documents
from mtdlab.corpus.tokens import TokenStore, tokenise
from mtdlab.device import Device, choose_device
from mtdlab.encoders.adapters import add_adapters, check_adapters
from mtdlab.encoders.embed import Embedder, Sentences, Vectors
from mtdlab.encoders.folders import PROMPT_FILE, declared_prompt
from mtdlab.encoders.loading import Encoder, load_encoder, weights_digest
from mtdlab.encoders.pooling import embedding_block, position_embeddings
from mtdlab.encoders.tokenising import check_prompt
from mtdlab.encoders.traits import check_pooling
from mtdlab.errors import MtdlabError, TrialError, nearest
from mtdlab.evaluation.external import find_task, open_tasks, score_external, score_split
from mtdlab.evaluation.pairs import digest_splits, evaluation_folder, load_pairs, load_splits
from mtdlab.evaluation.suite import NAN, Evaluation, ExternalTask, StsTask, Suite, TaskScore
from mtdlab.methods.base import View
from mtdlab.methods.registry import BUILTIN, find_method
from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.settings.augmentation import SHUFFLE, parse_augmentation
from mtdlab.settings.tasks import DEV, EVALUATOR, LOWER, external_tasks, published_tasks, task_of
from mtdlab.settings.trainer import is_pairs
from mtdlab.terminal import begin_phase
from mtdlab.training.batches import BatchOrder
from mtdlab.training.present import averaged_sets

LOADED = frozenset(name for name, setting in settings_of(TrainerSettings).items() if setting.loaded)
"""The settings that, besides `augmentation`, determine what `load_inputs` loads."""


@dataclass(frozen=True)
class EncoderScores:
    """An encoder's scores on the dev and test pairs and on tasks, its singular values (D,)."""

    dev: Evaluation
    test: Evaluation
    spectrum: NDArray[np.float64]
    tasks: tuple[TaskScore, ...] = ()

    @property
    def named(self) -> dict[str, Evaluation | TaskScore]:
        """The evaluations and task scores by the name of their score."""
        pairs = {"sts_dev": self.dev, "sts_test": self.test}
        return pairs | {task_score.task: task_score for task_score in self.tasks}

    def by_name(self) -> dict[str, float]:
        """All scores, x 100; NaN for none."""
        scores = {name: result.score for name, result in self.named.items()}
        return {name: np.nan if score is None else score for name, score in scores.items()}

    def finite(self) -> dict[str, float]:
        """The scores of `by_name` that are there."""
        return {name: score for name, score in self.by_name().items() if np.isfinite(score)}


@dataclass(frozen=True)
class OpenedInputs:
    """The inputs that settings name, read but not yet processed; `external`: unpublished tasks."""

    encoder: Encoder
    corpus: Corpus
    dev: StsTask
    test: StsTask
    suite: Suite[Sentences]
    external: tuple[ExternalTask, ...]

    def evaluate(self, embedder: Embedder, dev: Vectors, test: Vectors) -> EncoderScores:
        """Scores on both splits and on tasks, and singular values of vectors as they are."""
        spectrum = singular_values(np.concatenate([dev, test]))
        pairs = (self.dev.evaluate(dev), self.test.evaluate(test))
        tasks = self.suite.score_all(self.suite.embed(embedder))
        tasks += score_external(embedder, self.external)
        return EncoderScores(*pairs, spectrum, tuple(tasks))


@dataclass(frozen=True)
class RunInputs(OpenedInputs):
    """The inputs of a run, with tokens, and scores of the encoder before training.

    Row i of each of the method's views is the same sentence as in `tokens`, or the other text of
    its pair, or in all views the same document.
    """

    tokens: TokenStore
    before: EncoderScores
    views: tuple[TokenStore, ...] = ()

    def batches(self, size: int, seed: int) -> BatchOrder:
        """Endless batches of the method's views. Raises MtdlabError for a corpus below a batch."""
        return BatchOrder(self.views or (self.tokens,), size, seed)


def open_inputs(settings: TrainerSettings) -> OpenedInputs:
    """Read the inputs that settings name. Raises MtdlabError if one cannot be used."""
    pairs = load_splits(settings.evaluation)
    corpus = open_corpus(settings.corpus)
    begin_phase(f"loading encoder {settings.encoder_name}")
    encoder = load_encoder(
        settings.encoder, settings.dropout, settings.dropout_fields, settings.encoder_layers
    )
    add_adapters(encoder.model, settings)
    if (declared := declared_prompt(settings.encoder)) and not settings.prompt:
        raise MtdlabError(
            f"encoder {settings.encoder}: puts a prompt before each text ({PROMPT_FILE}); set "
            f"trainer.prompt to {declared!r}, or take default_prompt_name out of the file"
        )
    check_prompt(encoder.tokenizer, settings.representation)
    begin_phase(f"tokenising pairs: {encoder.reading(settings.representation)}")
    dev, test = (StsTask(split_pairs, encoder, settings.prompt) for split_pairs in pairs)
    collect = partial(encoder.sentences, prompt=settings.prompt)
    data = evaluation_folder(settings.evaluation)
    suite = Suite(published_tasks(settings.tasks), data, collect)
    if suite.missing:
        lacking = "; ".join(f"{task}: {reason}" for task, reason in suite.missing.items())
        raise MtdlabError(
            f"evaluation {settings.evaluation}: data of trainer.tasks are missing ({lacking}); "
            "name SentEval's folder, or remove these tasks"
        )
    external = open_tasks(external_tasks(settings.tasks), encoder, settings.prompt)
    if settings.select_on.endswith(DEV):
        find_task(settings.select_on, external)
    return OpenedInputs(encoder, corpus, dev, test, suite, external)


def load_inputs(settings: TrainerSettings) -> RunInputs:
    """Load the inputs that settings name; the latest are cached in this process.

    Raises MtdlabError if one, or a model of an augmentation, is missing or cannot be used.
    """
    loaded = TrainerSettings(**settings.model_dump(include=set(LOADED)))
    inputs = _load(loaded)
    check_encoder(inputs.encoder, settings)
    return replace(inputs, views=tuple(_view_tokens(view, loaded) for view in views_of(settings)))


def check_encoder(encoder: Encoder, settings: TrainerSettings) -> None:
    """Raise MtdlabError if an encoder cannot be trained by a method with these settings."""
    method, name = find_method(settings.method), settings.encoder
    for representation in (settings.representation, settings.training_representation):
        check_pooling(name, representation, causal=encoder.causal)
    check_adapters(settings)
    if method.changes_embeddings(settings):
        embedding_block(encoder.model)
    if settings.augmentation_draw == "published-code" and SHUFFLE in settings.augmentation:
        position_embeddings(encoder.model)
    if encoder.dropout_fields == () and not method.views_differ(settings):
        raise MtdlabError(
            f"encoder {name}: the family {encoder.model.config.model_type} has no dropout, so that "
            f"{settings.method} would compare a sentence with an equal view of itself; choose an "
            "augmentation, such as token-cutoff:0.1 or typos:0.1"
        )
    method.check_encoder(encoder, settings)


def check_inputs(
    settings: TrainerSettings,
    augmentations: Iterable[str] = (),
    batch_size: int = 0,
    trials: Iterable[TrainerSettings] = (),
    scores: Iterable[str] = (),
    *,
    is_new: bool = False,
) -> dict[str, str]:
    """Check that texts, encoder and device exist; fill the token cache that workers share.

    `augmentations`, the smallest `batch_size`, and `trials` are those of all runs, by default of
    the settings. `scores` have to be among those of a user's function on the untrained encoder, of
    a new study within -1 to 1 where higher is better, since they are recorded x 100.
    Returns SHA-256 digests of the corpus, the encoder, and the dev and test pairs, by setting.
    Raises MtdlabError if an input is missing or cannot be used.
    """
    device = choose_device(settings)
    views_of(settings)
    opened = open_inputs(settings)
    for trial in trials or (settings,):
        check_encoder(opened.encoder, trial)
    _try_evaluator(opened, settings, device, scores, is_new=is_new)
    tokens = _tokens_of(View(prompt=settings.prompt), settings, opened)
    # before models change a large corpus; documents are fewer than sentences
    BatchOrder([tokens], batch_size or settings.batch_size, seed=0)
    for augmentation in augmentations or (settings.augmentation,):
        changed = settings.model_copy(update={"augmentation": augmentation})
        views = [_tokens_of(view, settings, opened) for view in views_of(changed)]
        BatchOrder(views, batch_size or settings.batch_size, seed=0)
    return {
        "corpus": opened.corpus.fingerprint,
        "encoder": weights_digest(opened.encoder.model),
        "evaluation": digest_splits([opened.dev.pairs, opened.test.pairs]),
    }


def views_of(settings: TrainerSettings) -> tuple[View, ...]:
    """The views of a method. Raises MtdlabError where it reads one text alone of each pair."""
    views = find_method(settings.method).views(settings)
    if is_pairs(settings.corpus) and not any(view.positive for view in views):
        raise MtdlabError(
            f"method {settings.method} makes its views of a single text, so it cannot train on "
            f"corpus {settings.corpus}; name a corpus of sentences, or another method, such as "
            f"{' or '.join([*BUILTIN][:2])}"
        )
    return views


def _try_evaluator(
    opened: OpenedInputs,
    settings: TrainerSettings,
    device: Device,
    scores: Iterable[str],
    *,
    is_new: bool,
) -> None:
    """Raise MtdlabError where a user's function fails, or a score is missing or out of bounds."""
    tasks = [task for task in opened.external if task.name == EVALUATOR]
    if not tasks:
        return
    begin_phase("trying the function of --evaluator")
    nn.Module.to(opened.encoder.model, device.device)
    embedder = Embedder(opened.encoder.model, settings.representation, device)
    returned = {one.task: one.score or 0.0 for one in score_external(embedder, tasks)}
    for name in (*scores, settings.select_on):
        if task_of(name) != EVALUATOR:
            continue
        if name not in returned:
            raise MtdlabError(
                f"{name}: the function of --evaluator returns no such score; "
                f"{nearest(name, list(returned))}"
            )
        # a cosine may be above 1 by rounding
        if is_new and not name.startswith(LOWER) and abs(returned[name]) > 100.01:
            raise MtdlabError(
                f"{name}: the function of --evaluator returns {returned[name] / 100:g}, and scores "
                "are recorded x 100, as correlations and shares are; return one within -1 to 1, or "
                "its negative with direction: minimize, which keeps its unit"
            )


@lru_cache(maxsize=1)
def _load(settings: TrainerSettings) -> RunInputs:
    representation, device = settings.representation, choose_device(settings)
    opened = open_inputs(settings)
    encoder = opened.encoder
    # here too, before the encoder is scored
    check_pooling(settings.encoder, representation, causal=encoder.causal)
    tokens = _tokens_of(View(prompt=settings.prompt), settings, opened)
    nn.Module.to(encoder.model, device.device)
    begin_phase("scoring the untrained encoder")
    embedder = Embedder(encoder.model, representation, device)
    vectors = (pairs.embed(embedder) for pairs in (opened.dev, opened.test))
    return RunInputs(**vars(opened), tokens=tokens, before=opened.evaluate(embedder, *vectors))


@lru_cache(maxsize=8)
def _view_tokens(view: View, settings: TrainerSettings) -> TokenStore:
    """The tokens of a view, cached apart from `_load`, which a study of augmentations runs once."""
    inputs = _load(settings)
    if view == View(prompt=settings.prompt):
        return inputs.tokens
    return _tokens_of(view, settings, inputs)


def _tokens_of(view: View, settings: TrainerSettings, opened: OpenedInputs) -> TokenStore:
    encoder = opened.encoder
    check_prompt(encoder.tokenizer, replace(settings.representation, prompt=view.prompt))
    viewed = view_corpus(view, settings, opened.corpus, encoder)
    limit = encoder.token_limit(settings.max_length)
    return tokenise(viewed, encoder.tokenizer, limit, view.prompt)


def view_corpus(view: View, settings: TrainerSettings, corpus: Corpus, encoder: Encoder) -> Corpus:
    """The texts of a view before its prompt: a side of pairs, sentences or documents, augmented."""
    corpus = corpus.sides()[view.positive]
    if view.document:
        limit = encoder.token_limit(settings.max_length)
        corpus = join_documents(corpus, encoder.tokenizer, limit)
    return augment(corpus, parse_augmentation(view.augmentation), choose_device(settings)) or corpus


class StsAverage(StsTask):
    """The pairs of several STS sets, each sentence encoded once; the score is their mean.

    All else, and the score without any such set, is that of the test pairs of `evaluation`.
    """

    def __init__(self, evaluation: str, encoder: Encoder, test: StsTask, prompt: str = "") -> None:
        """`test` are the test pairs of `evaluation`. Raises MtdlabError for a damaged file."""
        self._suite = _suite(evaluation, evaluation_folder(evaluation), encoder, prompt)
        self.sentences, self._test = self._suite.sentences, test
        self._test_rows = self.sentences.rows(test.sentences.texts)

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """The mean of the sets' Spearman correlations x 100; NaN where one has none."""
        geometry = self._test.evaluate(vectors[self._test_rows])
        if not self._suite.tasks:
            return geometry
        scores = [task_score.score for task_score in self._suite.score_all(vectors)]
        mean = float(np.mean([NAN if score is None else score for score in scores]))
        return replace(geometry, score=mean, items=None)


@lru_cache(maxsize=1)
def _suite(evaluation: str, folder: Path | None, encoder: Encoder, prompt: str) -> Suite[Sentences]:
    """The sets of pairs, cached, since every trial of a study reads the same ones."""
    pairs = {"test": load_pairs(evaluation, "test")}
    collect = partial(encoder.sentences, prompt=prompt)
    return Suite(averaged_sets(evaluation), folder, collect, pairs)


class DevSelection:
    """Selection on an external task's dev data; geometry is that of the dev pairs."""

    def __init__(self, name: str, tasks: Sequence[ExternalTask], pairs: StsTask) -> None:
        """`name` is that of a dev score. Raises MtdlabError as `find_task`."""
        self._name, self._task, self._pairs = name, find_task(name, tasks), pairs

    def measure(self, embedder: Embedder) -> tuple[Vectors, Evaluation]:
        """The dev score of an encoder, NaN for none, and the vectors of the dev pairs (S, D).

        Raises TrialError where vectors are not finite, or the function does not return the score.
        """
        vectors, geometry = self._pairs.measure(embedder)
        try:
            scores = score_split(embedder, self._task, "dev")
        except MtdlabError as error:
            raise TrialError(str(error), "error") from error
        by_task = {task_score.task: task_score.score for task_score in scores}
        if self._name not in by_task:
            raise TrialError(f"select_on {self._name}: there is no such score", "error")
        score = by_task[self._name]
        return vectors, replace(geometry, score=NAN if score is None else score, items=None)


def selection_of(settings: TrainerSettings, inputs: RunInputs) -> StsTask | DevSelection:
    """The data that `select_on` names, for `last` the dev pairs. Raises MtdlabError for none."""
    if settings.select_on.endswith(DEV):
        return DevSelection(settings.select_on, inputs.external, inputs.dev)
    if settings.select_on == "sts_average":
        return StsAverage(settings.evaluation, inputs.encoder, inputs.test, settings.prompt)
    return inputs.test if settings.select_on == "test" else inputs.dev
