"""Sentences that define the words of the built-in data set, for masked-language training.

They state which words are synonyms, which concepts are of one kind, and which forms belong to one
verb. They describe no events, so that none can be in a graded pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from mtdlab.builtin.concepts import Concept, actions, concepts_under, details, nouns
from mtdlab.builtin.render import conjugate

_SAME = (
    "another word for {x} is {y}.",
    "{x} means the same as {y}.",
    "{x}, that is to say {y}.",
    "{x} or {y}, it is the same.",
    "{x} is {y}.",
)
_KIND = (
    "{x} is a kind of {kind}.",
    "{x} is a {kind}.",
    "the {kind} is called {x}.",
    "{x} has to do with {field}.",
)
_SIBLINGS = "{x} and {y} are both of the kind {kind}."
_FORMS = ("to {v.base} is {v.ing}.", "{v.base}, {v.past}, {v.pp}, {v.ing}.")


def defining_sentences() -> list[str]:
    """Every defining sentence once, sorted, in lower case."""
    found: set[str] = set()
    for action in actions().values():
        verbs = [conjugate(word) for word in action.words]
        forms = [(v.base, v.past, v.pp, v.ing) for v in verbs]
        found.update(_define(action, forms))
        found.update(_siblings(action, actions()))
        found.update(template.format(v=verb) for verb in verbs for template in _FORMS)
    for table in (nouns(), details()):
        for concept in table.values():
            found.update(_define(concept, [(_bare(word),) for word in concept.words]))
            found.update(_siblings(concept, table))
    return sorted(found)


def _bare(word: str) -> str:
    return word.lstrip("~")


def _define(concept: Concept, words: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """`words` has the forms of each word in the same order, so that equal forms are paired."""
    for one, other in permutations(words, 2):
        for x, y in zip(one, other, strict=True):
            yield from (template.format(x=x, y=y) for template in _SAME)
    field, kind = concept.path[:2]
    for x in (form for forms in words for form in forms):
        yield from (template.format(x=x, kind=kind, field=field) for template in _KIND)


def _siblings(concept: Concept, table: dict[str, Concept]) -> Iterator[str]:
    for sibling in concepts_under(table, concept.kind):
        if sibling != concept:
            for word in concept.words:
                for other in sibling.words:
                    yield _SIBLINGS.format(x=_bare(word), y=_bare(other), kind=concept.path[1])
