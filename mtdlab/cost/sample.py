"""A sample of a study's texts, from which the cost of all of them is estimated."""

import math
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mtdlab.analysis.data.tasks import LAST
from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.lines import Tally
from mtdlab.corpus.tokens import token_folder, tokenise
from mtdlab.evaluation.external import find_task
from mtdlab.evaluation.pairs import Pairs
from mtdlab.settings import TrainerSettings
from mtdlab.settings.tasks import DEV
from mtdlab.training.inputs import OpenedInputs, StsAverage, open_inputs, view_corpus, views_of

SENTENCES = 8192
"""Of the corpus: enough for steps of any size, and quickly tokenised."""
PAIRS = 32
"""Graded pairs of each split: of middle length, so that a batch of them has as little padding as
those of a whole evaluation."""


@dataclass(frozen=True)
class Sample:
    """A folder with the beginning of a corpus and a few pairs, and the size of the whole.

    Attributes:
        corpus: the beginning of the corpus, in that folder.
        tokens: how many are encoded to select a checkpoint, by the `select_on` of a trial, and
            (`all`) to score an encoder on everything.
        load: seconds to load everything.
        tokenise: seconds to tokenise all views that are not kept yet.
    """

    folder: Path
    corpus: str
    tokens: dict[str, int]
    load: float
    tokenise: float

    def of(self, settings: TrainerSettings) -> TrainerSettings:
        """The same settings on the sample's texts."""
        texts = {"corpus": self.corpus, "evaluation": str(self.folder)}
        return settings.model_copy(update=texts | {"tasks": "", "select_on": "dev"})

    def encoded(self, trial: TrainerSettings) -> int:
        """Tokens of a trial's evaluations and final scoring, without the split that selects."""
        selected = self.tokens[trial.select_on]
        again = selected if trial.select_on in ("dev", LAST, "test") else 0
        evaluations = math.ceil(trial.steps / trial.evaluate_every)
        return evaluations * selected + self.tokens["all"] - again


def take_sample(trials: Sequence[TrainerSettings], folder: Path) -> Sample:
    """Load what the first trial's settings name and write a sample of it to `folder`.

    Tokenised are the views that the methods of all trials read. Raises MtdlabError where encoder,
    corpus or evaluation files are missing or do not fit.
    """
    started = time.perf_counter()
    opened = open_inputs(trials[0])
    load = time.perf_counter() - started
    for split, task in (("dev", opened.dev), ("test", opened.test)):
        _write_pairs(folder / f"{split}.tsv", task.pairs)
    beginning = Tally()
    corpus = opened.corpus.write_beginning(folder, SENTENCES, beginning)
    whole = max(beginning.total / max(beginning.done, 1), 1.0)
    tokenise = whole * _seconds_to_tokenise(opened, trials, folder, open_corpus(corpus))
    return Sample(folder, corpus, _count_tokens(opened, trials), load, tokenise)


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """Cache tokens in `folder` meanwhile, not beside those of whole corpora."""
    before = os.environ.pop("MTDLAB_CACHE", None)
    os.environ["MTDLAB_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["MTDLAB_CACHE"]
        os.environ |= {} if before is None else {"MTDLAB_CACHE": before}


def _write_pairs(path: Path, pairs: Pairs) -> None:
    """Write the pairs of middle length, with scores that rise: what they are does not matter."""
    lines = sorted(map("\t".join, zip(pairs.first, pairs.second, strict=True)), key=len)
    begin = max(0, len(lines) - PAIRS) // 2
    rows = [f"{line}\t{at}\n" for at, line in enumerate(lines[begin : begin + PAIRS])]
    path.write_text("".join(rows), encoding="utf-8")


def _count_tokens(opened: OpenedInputs, trials: Sequence[TrainerSettings]) -> dict[str, int]:
    """The tokens of `Sample.tokens`."""
    dev, test = opened.dev.sentences.token_count, opened.test.sentences.token_count
    tokens = {"dev": dev, LAST: dev, "test": test}
    tokens["all"] = dev + test + opened.suite.sentences.token_count
    for task in opened.external:
        tokens["all"] += task.tokens("test") + (task.tokens("dev") if task.has_dev else 0)
    settings = trials[0]
    for name in {trial.select_on for trial in trials} - tokens.keys():
        if name.endswith(DEV):
            tokens[name] = dev + find_task(name, opened.external).tokens("dev")
        else:
            average = StsAverage(settings.evaluation, opened.encoder, opened.test, settings.prompt)
            tokens[name] = average.sentences.token_count
    return tokens


def _seconds_to_tokenise(
    opened: OpenedInputs, trials: Sequence[TrainerSettings], folder: Path, sampled: Corpus
) -> float:
    """Of the sampled corpus in `folder`, for the views that are not kept yet of the whole one."""
    settings, encoder, seconds = trials[0], opened.encoder, 0.0
    limit = encoder.token_limit(settings.max_length)
    for view in {view for trial in trials for view in views_of(trial)}:
        whole, part = (
            view_corpus(view, settings, corpus, encoder) for corpus in (opened.corpus, sampled)
        )
        if token_folder(whole, encoder.tokenizer, limit, view.prompt).is_dir():
            continue
        started = time.perf_counter()
        with cache_in(folder):
            tokenise(part, encoder.tokenizer, limit, view.prompt)
        seconds += time.perf_counter() - started
    return seconds
