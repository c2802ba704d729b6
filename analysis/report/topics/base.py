"""What a topic of a report consists of.

A topic is one file: it computes its results from a study, and turns them into CSV tables,
figures, tables of the page and text by separate functions. `topics/__init__.py` registers it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pandas as pd

from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table

Info = TypeVar("Info")


def _nothing(_: object) -> tuple[()]:
    return ()


def _no_text(_: object) -> str:
    return ""


@dataclass(frozen=True)
class Topic(Generic[Info]):
    """One topic of the page, in the order in which its parts stand there.

    name     anchor of its section, unique on the page.
    title    heading of its section.
    compute  its results, or None where the study has nothing on this topic; without
             matplotlib, as are all functions here but those that draw a panel.
    text     paragraphs; warnings: what limits the conclusions.
    missing  a sentence that stands in place of the section, among what limits the conclusions,
             where the study cannot answer the topic's question; else empty.
    figures  name of the file and of the figure -> what is drawn, or None for no figure.
    tables   the tables shown on the page.
    group    the heading in the contents under which its section stands.
    csv      name of the file -> the table written; one without rows is not written,
             unless keep_empty.
    """

    name: str
    title: str
    compute: Callable[[StudyContext], Info | None]
    csv: Mapping[str, Callable[[Info], pd.DataFrame]]
    figures: Mapping[str, Callable[[Info], Drawing | None]] = field(default_factory=dict)
    text: Callable[[Info], Sequence[str]] = _nothing
    warnings: Callable[[Info], Sequence[str]] = _nothing
    missing: Callable[[Info], str] = _no_text
    tables: Callable[[Info], Sequence[Table]] = _nothing
    keep_empty: bool = False
    group: str = "Results"
