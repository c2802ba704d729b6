"""A corpus whose sentences are changed: line i of it is line i of its source, augmented.

What is drawn for a line depends on the line's number alone, so it is the same in every process,
order and epoch.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from random import Random

from mtdlab.corpus.corpus import Corpus
from mtdlab.corpus.lines import Tally
from mtdlab.corpus.negation import negate
from mtdlab.corpus.noise import repetition, typos
from mtdlab.corpus.rewrite import Rewriter
from mtdlab.corpus.synonyms import Synonyms
from mtdlab.data_paths import is_folder
from mtdlab.device import Device
from mtdlab.errors import MtdlabError
from mtdlab.settings.augmentation import NEGATION, TEXT_LEVEL, Augmentation

SEED = 0
RULES = 1
"""Part of an augmented corpus' fingerprint; goes up when a sentence is changed in another way."""
SENTENCES = 1024
"""Changed at once; a fixed number from the first line on, so that models see the same batches."""

Numbered = list[tuple[int, str]]
"""Sentences with their line numbers, from 0."""
Change = Callable[[Numbered], list[str]]


@dataclass(frozen=True)
class AugmentedCorpus(Corpus):
    """`source`, every sentence changed by `augmentations`, one after the other."""

    source: Corpus
    augmentations: tuple[Augmentation, ...]
    device: Device

    @property
    def doing(self) -> str:
        """The progress bar's text: what takes the time while it is read."""
        return ", ".join(augmentation.name for augmentation in self.augmentations)

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """As many as the source has; one of which a change leaves nothing stays as it is.

        Raises MtdlabError where a model is not there, or the source turns out damaged.
        """
        changes = [_change(augmentation, self.device) for augmentation in self.augmentations]
        numbered = enumerate(self.source.sentences(tally))
        while chunk := list(itertools.islice(numbered, SENTENCES)):
            for change in changes:
                changed = zip(chunk, change(chunk), strict=True)
                chunk = [(number, new.strip() or old) for (number, old), new in changed]
            yield from (sentence for _, sentence in chunk)


def augment(
    corpus: Corpus, augmentations: Sequence[Augmentation], device: Device
) -> AugmentedCorpus | None:
    """The corpus changed by those that act on text; None where none does.

    `synonyms`, `paraphrase` and `back-translation` run a model over every sentence, on `device`,
    while the corpus is read: a million sentences need a GPU. A model in a folder is known by its
    files' content, one of the hub by its name. Raises MtdlabError where a folder cannot be read.
    """
    on_text = tuple(each for each in augmentations if each.name in (*TEXT_LEVEL, NEGATION))
    if not on_text:
        return None
    spelled = "+".join(map(str, on_text))
    models = [_identity(model) for each in on_text for model in each.models]
    parts = [str(RULES), corpus.fingerprint, *(f"{each.name}:{each.share}" for each in on_text)]
    fingerprint = hashlib.sha256("\n".join([*parts, *models]).encode()).hexdigest()[:16]
    return AugmentedCorpus(f"{corpus.name}, {spelled}", fingerprint, corpus, on_text, device)


def _identity(model: str) -> str:
    if not is_folder(folder := Path(model)):
        return model
    digest = hashlib.sha256()
    try:
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    except OSError as error:
        raise MtdlabError(
            f"augmentation: the folder {model} cannot be read: "
            f"{(error.strerror or str(error)).lower()}; give a folder with its files"
        ) from None
    return digest.hexdigest()


def _draws(name: str, number: int) -> Random:
    return Random(f"{SEED} {name} {number}")


def _change(augmentation: Augmentation, device: Device) -> Change:
    """Raises MtdlabError where a model that it names is not there."""
    name, share, models = augmentation.name, augmentation.share or 0.0, augmentation.models
    if name == NEGATION:
        return lambda lines: [negate(text) for _, text in lines]
    if name in ("typos", "repetition"):
        noise = typos if name == "typos" else repetition
        return lambda lines: [noise(text, share, _draws(name, number)) for number, text in lines]
    if name == "synonyms":
        synonyms = Synonyms.load(models[0], device)
        return lambda lines: synonyms(
            [text for _, text in lines], [_draws(name, number) for number, _ in lines]
        )
    rewriters = [Rewriter.load(model, device, name) for model in models]
    return lambda lines: reduce(
        lambda texts, rewriter: rewriter(texts), rewriters, [text for _, text in lines]
    )
