"""A corpus whose sentences are changed: line i of it is line i of its source, augmented.

What is drawn for a line depends on the line's number alone, so it is the same in every process,
order and epoch. Typos and repetitions need no model; words are separated by spaces.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from random import Random

from mtdlab.corpus.corpus import Corpus, fingerprint_of
from mtdlab.corpus.language import Rewriter, Synonyms
from mtdlab.corpus.lines import Tally, reading
from mtdlab.corpus.negation import negate
from mtdlab.data_paths import is_folder
from mtdlab.device import Device
from mtdlab.settings.augmentation import NEGATIONS, TEXT_LEVEL, Augmentation

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
"""A US keyboard; each row is half a key to the right of the one above."""
_PLACES = {
    key: complex(column + row / 2, row)
    for row, keys in enumerate(_ROWS)
    for column, key in enumerate(keys)
}
NEIGHBOURS = {
    key: "".join(other for other, there in _PLACES.items() if 0 < abs(there - place) < 1.2)
    for key, place in _PLACES.items()
}
"""The keys beside each key, on its row and on those above and below."""


def typos(sentence: str, share: float, random: Random) -> str:
    """Each word is mistyped, in one character, with probability `share`.

    A character is doubled, left out, swapped with the next, or becomes a key beside it: one of
    what is possible there, each as likely. A word never vanishes and always changes.
    """

    def retype(word: re.Match[str]) -> str:
        return _mistype(word[0], random) if random.random() < share else word[0]

    return re.sub(r"\S+", retype, sentence)


def _mistype(word: str, random: Random) -> str:
    place = random.randrange(len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    possible = [before + letter + letter + after]
    if len(word) > 1:
        possible.append(before + after)
    if after and after[0] != letter:
        possible.append(before + after[0] + letter + after[1:])
    if keys := NEIGHBOURS.get(letter.lower()):
        key = random.choice(keys)
        possible.append(before + (key.upper() if letter.isupper() else key) + after)
    return random.choice(possible)


def repetition(sentence: str, share: float, random: Random) -> str:
    """Of n words, k are doubled in place, k uniform in 0 to max(2, ⌊share·n⌋), at most n.

    ESimCSE (Wu et al. 2022), equation 2, on words where the paper takes sub-words; it uses a
    share of 0.32.
    """
    words = sentence.split()
    most = min(len(words), max(2, int(share * len(words))))
    doubled = set(random.sample(range(len(words)), random.randint(0, most)))
    return " ".join(
        f"{word} {word}" if place in doubled else word for place, word in enumerate(words)
    )


SEED = 0
RULES = 2
"""A part of an augmented corpus' fingerprint; it is raised when the rules of a change differ."""
SENTENCES = 1024
"""How many sentences are changed at once: a fixed number, so that models see the same batches."""


@dataclass(frozen=True)
class AugmentedCorpus(Corpus):
    """`source`, every sentence changed by `augmentations`, one after the other."""

    source: Corpus
    augmentations: tuple[Augmentation, ...]
    device: Device

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """The changed sentences, as many as the source has; one that would be empty is not changed.

        Raises MtdlabError where a model is not there, or the source turns out damaged.
        """
        changes = [(part.name, _change(part, self.device)) for part in self.augmentations]
        source = self.source.sentences(tally)
        for first in itertools.count(0, SENTENCES):
            if not (texts := list(itertools.islice(source, SENTENCES))):
                return
            for name, change in changes:
                draws = (Random(f"{SEED} {name} {number}") for number in itertools.count(first))
                changed = zip(texts, change(texts, draws), strict=True)
                texts = [new.strip() or old for old, new in changed]
            yield from texts


def augment(
    corpus: Corpus, augmentations: Sequence[Augmentation], device: Device
) -> AugmentedCorpus | None:
    """The corpus changed by the augmentations that act on text; None where none does.

    Models run over every sentence, on `device`, while the corpus is read. One in a folder is known
    by its files' content, one of the hub by its name. Raises MtdlabError for an unreadable folder.
    """
    on_text = tuple(
        part for part in augmentations if part.name in (*TEXT_LEVEL, *NEGATIONS.values())
    )
    if not on_text:
        return None
    models = [_identity(model) for part in on_text for model in part.models]
    parts = [str(RULES), corpus.fingerprint, *(f"{part.name}:{part.share}" for part in on_text)]
    fingerprint = fingerprint_of("\n".join([*parts, *models]))
    name = f"{corpus.name}, {'+'.join(map(str, on_text))}"
    return AugmentedCorpus(name, fingerprint, corpus, on_text, device)


def _identity(model: str) -> str:
    if not is_folder(folder := Path(model)):
        return model
    digest = hashlib.sha256()
    with reading(f"augmentation: the folder {model}", "give a folder with its files"):
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _change(
    augmentation: Augmentation, device: Device
) -> Callable[[Sequence[str], Iterator[Random]], list[str]]:
    """The function of an augmentation. Raises MtdlabError without a model that it names."""
    name, share, models = augmentation.name, augmentation.share or 0.0, augmentation.models
    if name in NEGATIONS.values():
        keeping = name == NEGATIONS["kept"]
        return lambda texts, _: [negate(text, keeping=keeping) for text in texts]
    if name in ("typos", "repetition"):
        noise = typos if name == "typos" else repetition
        return lambda texts, draws: [noise(text, share, next(draws)) for text in texts]
    if name == "synonyms":
        return Synonyms.load(models[0], device)
    rewriters = [Rewriter.load(model, device, name) for model in models]
    return lambda texts, _: reduce(lambda new, rewriter: rewriter(new), rewriters, list(texts))
