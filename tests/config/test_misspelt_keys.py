"""Every misspelt key is pointed at, with the right one."""

from pathlib import Path

import pytest

from mtdlab.config.source import SpecError
from mtdlab.config.study_file import StudyFile
from mtdlab.settings import TrainerSettings
from tests.config.conftest import Read

TOP = [name for name in StudyFile.model_fields if name != "description"]
SETTINGS = [name for name in TrainerSettings.model_fields if name != "seed"]


def edits(word: str) -> list[str]:
    """Words one edit away: a letter left out, doubled, replaced, swapped with the next."""
    found = [word[:at] + word[at + 1 :] for at in range(len(word))]
    found += [word[: at + 1] + word[at:] for at in range(len(word))]
    found += [word[:at] + "x" + word[at + 1 :] for at in range(len(word))]
    found += [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    return sorted({edit for edit in found if edit != word})


def misspelt(section: str, known: list[str]) -> list[tuple[str, str, str, int, int]]:
    """Edits of every key: text, what was written, what was meant, line, column."""
    cases = []
    for key in known:
        # settings' names are long: every edit of them would take a minute
        for wrong in edits(key)[:: 6 if section else 1]:
            if wrong in known or wrong == "seed":
                continue
            if section:
                text = f"study: a\n{section}:\n  # where\n  {wrong}: [1]\n"
                cases.append((text, wrong, key, 4, 3))
            else:
                rest = "" if key == "study" else "study: a\n"
                text = f"{rest}{wrong}: 1\n"
                cases.append((text, wrong, key, 1 + rest.count("\n"), 1))
    return cases


@pytest.mark.parametrize(
    ("section", "known"),
    [
        pytest.param("", TOP, marks=pytest.mark.slow),
        ("trainer", SETTINGS),
        pytest.param("search", SETTINGS, marks=pytest.mark.slow),
    ],
)
def test_every_misspelt_key_is_pointed_at_with_the_right_one(
    read: Read, path: Path, section: str, known: list[str]
) -> None:
    cases, right = misspelt(section, known), 0
    for text, wrong, meant, line, column in cases:
        with pytest.raises(SpecError, match="unknown key") as caught:
            read(text)
        message = str(caught.value)
        head, quoted, caret = message.split("\n")
        dotted = f"{section}.{wrong}" if section else wrong
        assert head.startswith(f"{path}:{line}:{column}: {dotted}: unknown key; "), message
        assert quoted == f"  {text.splitlines()[line - 1]}"
        assert caret.index("^") - 2 == column - 1
        right += head.endswith(f"did you mean {meant}?")
    assert len(cases) > 80
    assert right >= 0.95 * len(cases)


@pytest.mark.parametrize("key", ["choices", "distribution", "share_of", "times", "step"])
def test_a_misspelt_key_of_a_dimension(read: Read, key: str) -> None:
    for wrong in edits(key)[::3]:
        with pytest.raises(SpecError, match=rf":3:15: .*{wrong}: unknown key; did you mean {key}"):
            read(f"study: a\nsearch:\n  ema_decay: {{{wrong}: [0.5]}}\n")


def test_a_key_like_none_lists_what_is_known(read: Read) -> None:
    with pytest.raises(
        SpecError, match=r"qqqqqq: unknown key; choose from baseline, beyond_run, description, "
    ):
        read("study: a\nqqqqqq: 1\n")
