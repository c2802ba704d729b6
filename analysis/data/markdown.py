"""Tables in Markdown: of a page, of the reference and of a model's card."""

from collections.abc import Iterable, Sequence


def markdown_table(
    head: Sequence[str], rows: Iterable[Iterable[str]], rule: Sequence[str] = ()
) -> str:
    """A pipe table. Cells are Markdown; rule: `---:` for each column aligned right, else `---`."""
    lines = [head, rule or ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)
