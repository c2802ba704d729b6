"""A sample of a study's texts, from which the cost of all of them is estimated."""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.measures import Floats
from mtdlab.config import TrainerSettings
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.lines import Tally
from mtdlab.corpus.tokens import token_folder, tokenise
from mtdlab.device import choose_device
from mtdlab.encoders.embed import Sentences
from mtdlab.evaluation.external import find_task
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.sts import StsTask
from mtdlab.evaluation.suite import Split
from mtdlab.methods.base import View
from mtdlab.settings.tasks import DEV
from mtdlab.training.inputs import OpenedInputs, open_inputs, view_corpus, views_of
from mtdlab.training.selection import StsAverage

DEV_AND_TEST: tuple[Split, ...] = ("dev", "test")
SENTENCES = 8192
"""Of the corpus: enough for steps of any size, and quickly tokenised."""
PAIRS, EMBEDDED = 16, 512
"""Graded pairs in the evaluation of the sample, and sentences whose embedding is timed."""


@dataclass(frozen=True)
class Scored:
    """Sentences that are scored together: their number of tokens, and seconds without encoding."""

    tokens: int = 0
    seconds: float = 0.0

    def cost(self, token: Floats) -> Floats:
        """Seconds to encode and score them; lower and upper bound, as those of a token, (2,)."""
        return token * self.tokens + self.seconds


@dataclass(frozen=True)
class Sample:
    """A folder with the beginning of a corpus and a few pairs, and the size of the whole.

    Attributes:
        corpus: the beginning of the corpus, in that folder.
        embedded: sentences drawn from the evaluation sentences, the shortest first.
        dev, test: the evaluation's dev pairs and test pairs.
        tasks: tokens of the tasks; their scores take little time.
        selections: what is scored to select a checkpoint, by `select_on` of a trial.
        load: seconds to load everything.
        tokenise: seconds to tokenise all views that are not kept yet.
    """

    folder: Path
    corpus: str
    embedded: list[str]
    dev: Scored
    test: Scored
    tasks: int
    selections: dict[str, Scored]
    load: float
    tokenise: float

    def score_all(self, token: Floats) -> Floats:
        """Seconds to encode and score all, as `Scored.cost`."""
        return self.dev.cost(token) + self.test.cost(token) + token * self.tasks

    def of(self, settings: TrainerSettings) -> TrainerSettings:
        """The same settings on the sample's texts."""
        return settings.model_copy(
            update={
                "corpus": self.corpus,
                "evaluation": str(self.folder),
                "tasks": "",
                "select_on": "dev",
            }
        )


def take_sample(trials: Sequence[TrainerSettings], folder: Path) -> Sample:
    """Load what the first trial's settings name and write a sample of it to `folder`.

    Tokenised are the views that the methods of all trials read. Raises MtdlabError where encoder,
    corpus or evaluation files are missing or do not fit.
    """
    started, settings = time.perf_counter(), trials[0]
    opened = open_inputs(settings)
    load = time.perf_counter() - started
    pairs = {"dev": opened.dev.pairs, "test": opened.test.pairs}
    for split, graded in pairs.items():
        _write_pairs(folder / f"sts-{split}.csv", graded)
    beginning = Tally()
    sampled = opened.corpus.write_beginning(folder, SENTENCES, beginning)
    views = dict.fromkeys(view for each in trials for view in views_of(each))
    to_tokenise = _seconds_to_tokenise(opened, settings, list(views), folder, sampled)
    every = sorted({text for each in pairs.values() for text in (*each.first, *each.second)})
    scored = {"dev": _score_pairs(opened, opened.dev), "test": _score_pairs(opened, opened.test)}
    selections = {
        name: scored.get(name) or _score_selection(name, settings, opened, scored["dev"])
        for name in dict.fromkeys(each.select_on for each in trials)
    }
    return Sample(
        folder,
        sampled,
        sorted(random.Random(0).sample(every, min(EMBEDDED, len(every))), key=len),
        **scored,
        tasks=_tokens_of_tasks(opened),
        selections=selections,
        load=load,
        tokenise=to_tokenise * max(beginning.total / max(beginning.done, 1), 1.0),
    )


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """Cache tokens in `folder` meanwhile, not beside those of whole corpora."""
    before = os.environ.get("MTDLAB_CACHE")
    os.environ["MTDLAB_CACHE"] = str(folder)
    try:
        yield
    finally:
        del os.environ["MTDLAB_CACHE"]
        if before is not None:
            os.environ["MTDLAB_CACHE"] = before


def _write_pairs(path: Path, pairs: Pairs) -> None:
    """Some pairs in STS-B's columns, from the lowest gold to the highest."""
    rows = np.argsort(pairs.gold, kind="stable")[:: max(1, len(pairs) // PAIRS)]
    lines = [
        "\t".join(["", "", "", "", str(pairs.gold[row]), pairs.first[row], pairs.second[row]])
        for row in rows
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _score(score: Callable[[Any], object], sentences: Sentences, opened: OpenedInputs) -> Scored:
    """Timed on random vectors of these sentences: their scores do not matter."""
    width = int(opened.encoder.model.config.hidden_size)
    vectors = np.random.default_rng(0).standard_normal((len(sentences), width), dtype=np.float32)
    started = time.perf_counter()
    score(vectors)
    return Scored(sum(map(len, sentences.tokens)), time.perf_counter() - started)


def _score_pairs(opened: OpenedInputs, pairs: StsTask) -> Scored:
    return _score(pairs.evaluate, pairs.sentences, opened)


def _tokens_of_tasks(opened: OpenedInputs) -> int:
    external = (
        task.tokens(split)
        for task in opened.external
        for split in (DEV_AND_TEST if task.has_dev else ("test",))
    )
    return sum(map(len, opened.suite.sentences.tokens)) + sum(external)


def _score_selection(
    select_on: str, settings: TrainerSettings, opened: OpenedInputs, dev: Scored
) -> Scored:
    """Of what selects a checkpoint: an average of sets, or the dev pairs and a task's dev data."""
    if select_on == "sts_average":
        average = StsAverage(settings.evaluation, opened.encoder, opened.test, settings.prompt)
        return _score_pairs(opened, average)
    if select_on.endswith(DEV):
        tokens = find_task(select_on, opened.external).tokens("dev")
        return replace(dev, tokens=dev.tokens + tokens)
    return dev


def _seconds_to_tokenise(
    opened: OpenedInputs,
    settings: TrainerSettings,
    views: Sequence[View],
    folder: Path,
    sampled: str,
) -> float:
    """Of the sampled corpus in `folder`, for the views that are not kept yet of the whole one."""
    encoder, device, seconds = opened.encoder, choose_device(settings), 0.0
    tokenizer, limit = encoder.tokenizer, encoder.token_limit(settings.max_length)
    beginning = open_corpus(sampled)
    for view in views:
        whole = view_corpus(view, settings, opened.corpus, encoder, device)
        if token_folder(whole, tokenizer, limit, view.prompt).is_dir():
            continue
        started = time.perf_counter()
        part = view_corpus(view, settings, beginning, encoder, device)
        with cache_in(folder):
            tokenise(part, tokenizer, limit, view.prompt)
        seconds += time.perf_counter() - started
    return seconds
