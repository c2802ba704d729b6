"""What the scores of a study are held against: its untrained encoder, and words in common.

The encoder is read with each pooling that needs no prompt, as it is, whitened, and with a flow;
what is scored is the study's metric, if it is of graded pairs. All trials have ended then, so that
none draws another random number for it. It is recorded among the study's inputs: a fact of encoder
and pairs, whose digests stand there, is written once, and goes wherever the study is exported.
"""

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from mtdlab.analysis.data.tasks import STS, WORD_OVERLAP
from mtdlab.config.paths import Places, resolve_paths
from mtdlab.errors import MtdlabError, naming_missing
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.settings.tasks import BUILTIN, PAIR_SCORES, needed
from mtdlab.store.recorded import find_references, read_recorded, read_seconds
from mtdlab.store.rules import REFERENCES
from mtdlab.store.store import Store
from mtdlab.terminal import warn

if TYPE_CHECKING:
    # it imports torch, which a study whose references are recorded does without
    from mtdlab.evaluation.pairs import Pairs

SHARE, LEAST = 0.1, 5.0
"""The most of the trials' time that is spent unrequested, and the fewest seconds to begin with."""
POOLINGS: tuple[Pooling, ...] = ("mean", "first-last", "last2")
"""Those beside the first token, or the last one of a decoder."""
DIMENSIONS = 256
"""Kept by whitening, as by Su et al. (2021); of so few or fewer, all but one."""


@naming_missing()
def add_references(
    url: str, study: str, *, requested: bool = False, goes_on: Callable[[], bool] = lambda: True
) -> None:
    """Score and record the references of a complete study.

    Unless `requested`, it is done once, until a tenth of the time of its trials has passed. Nothing
    is recorded where `goes_on` turns False.

    Raises MtdlabError where encoder or pairs are missing, or are not those of the study, and of a
    request also where the study has none; StorageError where the database fails.
    """
    row = read_recorded(url, study)
    inputs, tasks = row.inputs or {}, needed(row.metric) or (row.metric,)
    has_any = not row.objective and {*tasks} <= {*STS, BUILTIN, *PAIR_SCORES}
    seconds = read_seconds(url, study) if has_any else 0.0
    if requested and not seconds:
        raise MtdlabError(
            f"study {study}: reference scores are those of a complete study of mtdlab's trainer "
            "whose metric is on graded pairs"
        )
    if not requested and (REFERENCES in inputs or SHARE * seconds < LEAST):
        return
    # it imports pandas, which a sweep of a study that has them does without
    from mtdlab.store.frames import load_frames

    used, columns = load_frames(study, url, curves=False).trials, ["encoder", "encoder_layers"]
    used = used.reindex(columns=[*columns, "evaluation"]).drop_duplicates(columns)
    used["encoder_layers"] = used["encoder_layers"].astype("float64")
    ends, found = math.inf if requested else time.monotonic() + SHARE * seconds, {}
    for name, layers, evaluation in used.itertuples(index=False, name=None):
        kept = None if math.isnan(layers) else int(layers)
        settings = TrainerSettings(encoder=name, evaluation=evaluation, precision="float32")
        settings = settings.model_copy(update={"encoder_layers": kept})
        encoder = settings.encoder_name
        known = find_references(url, row, encoder, evaluation)
        if requested or not known:
            # before a word of it: an install without torch scores nothing
            import_module("mtdlab.evaluation.suite")
            warn(f"scoring the untrained encoder {encoder}, which scores are held against")
            digests = [inputs.get(f"encoder {encoder}"), inputs.get(f"evaluation {evaluation}")]
            began, slowest = time.monotonic(), 0.0
            settings = resolve_paths(settings, Places(row.file_folder))
            for reading, score in _score(settings, tasks, digests):
                known[reading] = score
                slowest, began = max(slowest, time.monotonic() - began), time.monotonic()
                if not goes_on():
                    return
                if began + slowest > ends:
                    break
        found[encoder] = known
    Store(url, row.id).record_references(found)


def _score(
    settings: TrainerSettings, tasks: Sequence[str], digests: Sequence[str | None]
) -> Iterator[tuple[str, float]]:
    """Each reading with its score, the mean over the tasks; those without one are left out."""
    import numpy as np

    from mtdlab.analysis.measures.geometry import normalise_rows
    from mtdlab.device import choose_device
    from mtdlab.encoders.embed import Embedder, Vectors
    from mtdlab.encoders.loading import load_encoder, weights_digest
    from mtdlab.evaluation.pairs import digest_splits, load_pairs, load_scored
    from mtdlab.evaluation.processing import Flow, Processing, Whiten
    from mtdlab.evaluation.suite import process, spearman

    splits = [load_pairs(settings.evaluation, split) for split in ("dev", "test")]
    encoder = load_encoder(settings.encoder, None, kept=settings.encoder_layers)
    device = choose_device(settings)
    found = (weights_digest(encoder.model), digest_splits(splits))
    for known, digest in zip(digests, found, strict=True):
        if known not in (None, digest):
            raise MtdlabError(
                f"encoder {settings.encoder} or evaluation {settings.evaluation} is not that of "
                f"the study (SHA-256 {known[:12]} there, {digest[:12]} here)"
            )
    pairs = [load_scored(task, settings.evaluation) for task in tasks]
    overlaps = [spearman(np.array(find_overlap(one)), one.gold) for one in pairs]
    yield WORD_OVERLAP, float(np.mean(overlaps))
    encoder.model.to(device.device)
    sentences = encoder.sentences(text for one in pairs for text in (*one.first, *one.second))
    whiten = Whiten(min(DIMENSIONS, int(encoder.model.config.hidden_size) - 1))
    ways: dict[str, Processing | None] = {"": None, ", whitened": whiten, ", flow": Flow()}
    seen: list[Vectors] = []
    for pooling in ("last-token" if encoder.causal else "cls", *POOLINGS):
        vectors = sentences.embed(Embedder(encoder.model, Representation(pooling), device))
        # of an encoder of two layers the first is the one before the last
        if any(np.array_equal(vectors, other) for other in seen):
            continue
        seen.append(vectors)
        for name, way in ways.items():
            with suppress(ValueError):
                scores = []
                for one in pairs:
                    first, second = (
                        vectors[sentences.rows(side)].astype(np.float64)
                        for side in (one.first, one.second)
                    )
                    first, second = map(normalise_rows, process(first, second, way))
                    scores.append(spearman((first * second).sum(axis=1), one.gold))
                if np.isfinite(mean := float(np.mean(scores))):
                    yield pooling + name, mean


def find_overlap(pairs: "Pairs") -> list[float]:
    """Of each pair, the share of its different words, in lower case, that both sentences have."""
    both = zip(pairs.first, pairs.second, strict=True)
    words = [[set(re.findall(r"\w+", text.lower())) for text in pair] for pair in both]
    return [len(one & two) / max(len(one | two), 1) for one, two in words]
