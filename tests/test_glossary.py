"""docs/contributing/architecture.md: what has a word in its glossary is called by no other.

Read are the docstrings, messages and other texts of the product, and the pages. Words of Python
that are written as one, such as the names of modules, are none of these.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
INSTEAD = {
    "interim look": "look",
    "interim analysis": "look",
    "interim analyses": "look",
    "training function": "program",
    "user's program": "program",
    "user program": "program",
    "control configuration": "baseline",
    "reference configuration": "baseline",
    "combination of settings": "configuration",
    "combinations of settings": "configuration",
    "hyper-parameter": "setting",
    "snapshot": "checkpoint",
    "lease": "claim",
    "evaluation point": "item",
}
"""Other words for what the glossary has a word for."""


def glossary() -> dict[str, str]:
    """The words of the page with their meanings."""
    page = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", page, flags=re.MULTILINE)
    words = next(text for text in section if text.startswith("Glossary"))
    items = re.findall(r"^- \*\*(.+?)\*\*: (.+(?:\n  .+)*)", words, re.MULTILINE)
    return {word: " ".join(meaning.split()) for word, meaning in items}


def words_in(text: str, *words: str) -> list[str]:
    """Where one of `words` stands in a text, in any case, in one line or two, or in the plural."""
    spaced = (r"[\s#|]+".join(map(re.escape, word.split())) for word in words)
    pattern = rf"(?<![\w-])(?:{'|'.join(spaced)})s?(?![\w-])"
    return re.findall(pattern, text, re.IGNORECASE)


def product_texts() -> Iterator[tuple[Path, str]]:
    for path in [*(ROOT / "analysis").rglob("*.py"), *(ROOT / "mtdlab").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value


def test_the_glossary_has_a_sentence_for_each_word() -> None:
    words = glossary()
    assert set(INSTEAD.values()) <= set(words)
    assert len(words) > 15
    for word, meaning in words.items():
        assert re.fullmatch(r"[A-Z].*\.", meaning), word
        assert meaning.count(". ") == 0, word


def test_no_other_word_stands_in_the_product_or_on_a_page() -> None:
    texts = [*product_texts(), *((page, page.read_text(encoding="utf-8")) for page in PAGES)]
    assert len(texts) > 5_000
    wrong = [
        f"{path.relative_to(ROOT)}: {match}; see INSTEAD"
        for path, text in texts
        for match in words_in(text, *INSTEAD)
    ]
    assert wrong == []


@pytest.mark.parametrize("text", ["Interim\n    looks at it", "an interim look.", "INTERIM LOOK"])
def test_other_words_are_found(text: str) -> None:
    assert len(words_in(text, "interim look")) == 1


@pytest.mark.parametrize("text", ["interim_analysis", "release", "leased line", "please"])
def test_parts_of_words_are_not_found(text: str) -> None:
    assert not words_in(text, "lease")
    assert not words_in(text, "interim analysis")
