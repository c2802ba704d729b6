"""The rows of trials that points of figures lead to."""

import re

_LINK = re.compile(r'<a href="#(trial-\d+)">')
_ROW = re.compile(r'<tr id="(trial-\d+)"')


def trial_anchor(number: int) -> str:
    """The id of a trial's row on the page."""
    return f"trial-{number}"


def drop_dead_links(html: str) -> str:
    """The page with the links of points alone whose trial has a row; the others keep their text.

    A large study shows a part of its trials.
    """
    rows = set(_ROW.findall(html))

    def keep(link: re.Match[str]) -> str:
        return link[0] if link[1] in rows else '<a tabindex="0">'

    return _LINK.sub(keep, html)
