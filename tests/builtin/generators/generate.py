"""Generation of the texts of the built-in data set, which the package contains as files.

    python -m tests.builtin.generators.generate

The sentences are generated from events (people, animals and things acting at places and times),
each of which can be worded in many ways. Seeds are fixed, so that the texts are the same on every
machine.
"""

import gzip
import itertools
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

from mtdlab.builtin import Pair, data_file
from tests.builtin.generators.concepts import ACTIONS, NOUNS, Concept, concepts_under
from tests.builtin.generators.events import SCENES, Event, draw_event, similarity
from tests.builtin.generators.render import draw_wording, render, reword

_CORE = ("action", "agent", "patient")

# How the second event is derived from the first, with frequencies in percent. A tuple changes as
# many of the core parts, each to a concept of the same kind (True) or of another kind (False).
_PLANS: tuple[tuple[float, str | tuple[bool, ...]], ...] = (
    (17, "same"),
    (7, "leave out a detail"),
    (10, (True,)),
    (10, (True, True)),
    (10, (False,)),
    (10, (True, False)),
    (13, (False, False)),
    (3, "exchange roles"),
    (8, "same field of action"),
    (15, "unrelated"),
)
# Probabilities that a word is replaced by a synonym, and that the frame or the form changes.
_NEW_WORD = 0.55
_NEW_FRAME = 0.9
_NEW_FORM = 0.35
# Probability that two events with a similarity below `_HIGH` are worded alike, so that they share
# more words than two wordings of one event do.
_SAME_WORDING = 0.15
_HIGH = 3.5


def _other(rng: Random, concept: Concept, pool: Iterable[Concept], near: bool) -> Concept:
    candidates = [c for c in pool if c != concept and (c.kind == concept.kind) == near]
    return rng.choice(candidates) if candidates else concept


def _fits(action: Concept, patient: Concept | None) -> bool:
    usual, rare = SCENES[action.name]["patient"]
    return patient in (*usual, *rare) if patient else not usual


def _change(rng: Random, event: Event, part: str, near: bool) -> Event:
    """The event with one core part replaced; unchanged if no other concept fits."""
    old: Concept = getattr(event, part)
    pool: Iterable[Concept] = itertools.chain(*SCENES[event.action.name].get(part, ()))
    if part == "action":
        pool = (action for action in ACTIONS.values() if _fits(action, event.patient))
    elif near:
        pool = concepts_under(NOUNS, old.kind)
    changed: dict[str, Any] = {part: _other(rng, old, pool, near)}
    return replace(event, **changed)


def _without_a_detail(rng: Random, event: Event) -> Event:
    bare = (replace(event, place=None), replace(event, time=None), replace(event, manner=None))
    shorter = [other for other in bare if other != event]
    return rng.choice(shorter) if shorter else event


def _events(rng: Random) -> tuple[Event, Event]:
    """Two events, the second derived from the first by a plan drawn from `_PLANS`."""
    event = draw_event(rng)
    plan = rng.choices([plan for _, plan in _PLANS], [share for share, _ in _PLANS])[0]
    if isinstance(plan, tuple):
        other = event
        parts = [part for part in _CORE if getattr(event, part) is not None]
        for part, near in zip(rng.sample(parts, len(parts)), plan, strict=False):
            other = _change(rng, other, part, near)
        return event, other
    if plan == "exchange roles":
        while event.patient is None or event.patient.path[0] not in ("person", "animal"):
            event = draw_event(rng)
        return event, replace(event, agent=event.patient, patient=event.agent)
    if plan == "leave out a detail":
        return event, _without_a_detail(rng, event)
    if plan == "same field of action":
        field = concepts_under(ACTIONS, event.action.path[0])
        return event, draw_event(rng, rng.choice(field))
    return event, draw_event(rng) if plan == "unrelated" else event


def draw_pair(rng: Random) -> tuple[str, str, float]:
    """Two sentences and their gold similarity, from 0 to 5."""
    event, other = _events(rng)
    gold = similarity(event, other)
    wording = draw_wording(rng)
    alike = gold < _HIGH and rng.random() < _SAME_WORDING
    second = (
        wording
        if alike
        else reword(rng, wording, words=_NEW_WORD, frame=_NEW_FRAME, form=_NEW_FORM)
    )
    return render(event, wording), render(other, second), gold


SENTENCES = 24_000
PAIRS = 1_500
_SEEDS = {"test": 1, "dev": 2, "train": 3}


def generate_pairs() -> dict[str, list[Pair]]:
    """The pairs of both splits; they are made together, so that no sentence is in two pairs."""
    seen: set[str] = set()
    splits = {}
    for split in ("test", "dev"):
        rng = Random(_SEEDS[split])
        pairs: list[Pair] = []
        while len(pairs) < PAIRS:
            left, right, gold = draw_pair(rng)
            if left != right and left not in seen and right not in seen:
                seen.update((left, right))
                pairs.append((left, right, gold))
        splits[split] = pairs
    return splits


def generate_files() -> dict[str, str]:
    """The text of each file by name: a sentence in each line, or a pair and its gold similarity."""
    pairs = generate_pairs()
    held_out = {text for split in pairs.values() for pair in split for text in pair[:2]}
    rng = Random(_SEEDS["train"])
    # a dict, because the order of a set of strings differs between processes
    sentences: dict[str, None] = {}
    while len(sentences) < SENTENCES:
        sentence = render(draw_event(rng), draw_wording(rng))
        if sentence not in held_out:
            sentences[sentence] = None
    # repr of a float gives the same bits again
    rows = {name: ["\t".join([*pair[:2], repr(pair[2])]) for pair in pairs[name]] for name in pairs}
    return {name: "\n".join(lines) for name, lines in {"sentences": [*sentences], **rows}.items()}


if __name__ == "__main__":
    for name, text in generate_files().items():
        # without a time in it, so that the same text gives the same file
        data_file(name).write_bytes(gzip.compress(text.encode(), mtime=0))
