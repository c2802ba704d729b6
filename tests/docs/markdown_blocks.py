"""The fenced code blocks of the documentation, and what marks one that is not run.

A block is run, and a study file read, unless an HTML comment stands before it:
`<!-- not run: REASON -->`. A study file that only a command of its document can read has
`<!-- not parsed: REASON -->`. A block whose first line is a comment with a file name, such as
`# my-study.yaml`, is saved under that name.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^```(\w*)$")
_MARK = re.compile(r"^<!-- not (run|parsed): (.+) -->$")
_FILE = re.compile(r"^# ([\w-]+\.(?:py|yaml))$")


@dataclass(frozen=True)
class Block:
    """One fenced block. not_run, not_parsed: why it is not, empty where it is."""

    document: Path
    line: int
    language: str
    text: str
    not_run: str
    not_parsed: str

    @property
    def place(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The name under which the block is saved, or empty."""
        found = _FILE.match(self.text.split("\n", 1)[0])
        return found[1] if found else ""

    @property
    def commands(self) -> list[str]:
        """The lines of a console block that begin with a prompt, without it."""
        lines = self.text.splitlines() if self.language == "console" else []
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def blocks_of(document: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    found: list[Block] = []
    before, language, start, inside = "", "", 0, []
    fenced = False
    for number, line in enumerate(document.read_text(encoding="utf-8").splitlines(), 1):
        if not fenced and (opening := _FENCE.match(line)):
            fenced, language, start, inside = True, opening[1], number, []
        elif fenced and line == "```":
            text = "".join(f"{row}\n" for row in inside)
            reasons = dict([mark.groups()]) if (mark := _MARK.match(before)) else {}
            not_run, not_parsed = reasons.get("run", ""), reasons.get("parsed", "")
            found.append(Block(document, start, language, text, not_run, not_parsed))
            fenced, before = False, ""
        elif fenced:
            inside.append(line)
        elif line.strip():
            before = line.strip()
    assert not fenced, f"{document}: the block in line {start} is not closed"
    return found


def prose_of(document: Path) -> str:
    """A document without its fenced blocks."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
