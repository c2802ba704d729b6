"""Graded sentence pairs: events of known similarity, worded so that word overlap is misleading."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from mtdlab.builtin.concepts import Concept, actions, concepts_under, nouns
from mtdlab.builtin.events import Event, draw_event, similarity
from mtdlab.builtin.render import draw_wording, render, reword
from mtdlab.builtin.scenes import scenes

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
    found = [c for c in pool if c != concept and (c.kind == concept.kind) == near]
    return rng.choice(found) if found else concept


def _fits(action: Concept, patient: Concept | None) -> bool:
    usual, rare = scenes()[action.name].patients
    return patient in (*usual, *rare) if patient else not usual


def _change(rng: Random, event: Event, part: str, near: bool) -> Event:
    """The event with one core part replaced; unchanged if no other concept fits."""
    scene = scenes()[event.action.name]
    if part == "action":
        fitting = [action for action in actions().values() if _fits(action, event.patient)]
        return replace(event, action=_other(rng, event.action, fitting, near))
    old = event.agent if part == "agent" else event.patient
    if old is None:
        return event
    usual, rare = scene.agents if part == "agent" else scene.patients
    new = _other(rng, old, concepts_under(nouns(), old.kind) if near else (*usual, *rare), near)
    return replace(event, agent=new) if part == "agent" else replace(event, patient=new)


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
        field = concepts_under(actions(), event.action.path[0])
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
