"""YAML in, with the place of every value, and the mistakes of a file, which point at these places.

Numbers, booleans and nulls are read as YAML 1.2 reads them (3e-5 is a number, no is a word,
010 is ten). Duplicate keys, aliases and tags are refused: a study file needs none of them.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from mtdlab.errors import MtdlabError, nearest, reason_of
from mtdlab.settings.limits import FILE_BYTES, MISTAKES, NESTED

LARGEST = 2**63 - 1
"""The largest number that a file may hold: databases and random generators take no larger."""

QUOTED = 200
"""How many characters of a longer line an error quotes on either side of the place."""
TOO_DEEP = f"nested too deeply; at most {NESTED} levels"
OF_PROGRAM = " (settings and scores of a program of your own need --objective)"
KeyPath = tuple[str | int, ...]
Place = tuple[int, int] | str
"""Line and column, from 1, or the text of the --set that gives a value."""


class SpecError(MtdlabError):
    """A study file cannot be used; the message points at the place.

    Attributes:
        path: the key with the mistake.
        place: its line and column, None outside of the file.
        sentence: what is wrong, without the place and the profile.
        mistakes: the single mistakes, where the error is about several.
    """

    def __init__(
        self,
        message: str,
        *,
        path: KeyPath = (),
        place: tuple[int, int] | None = None,
        sentence: str = "",
        mistakes: tuple["SpecError", ...] = (),
    ) -> None:
        super().__init__(message)
        self.path, self.place, self.sentence = path, place, sentence or message
        self.mistakes = mistakes or (self,)


class _Loader(yaml.SafeLoader):
    """The SafeLoader without aliases and tags, and with the scalars of YAML 1.2."""

    yaml_implicit_resolvers = {}  # noqa: RUF012
    _depth = 0

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        # the scanner's work grows with the square of the depth
        if self.flow_level >= NESTED:
            raise yaml.scanner.ScannerError(None, None, TOO_DEEP, self.get_mark())
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event, problem = self.peek_event(), ""  # type: ignore[no-untyped-call]
        if self._depth > NESTED:
            problem = TOO_DEEP
        elif isinstance(event, yaml.AliasEvent):
            problem = "aliases are not allowed"
        elif event.tag is not None:
            problem = f"the tag {event.tag} is not allowed"
        if problem:
            raise yaml.composer.ComposerError(None, None, problem, event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|false)$"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(null|~|)$"), ["n", "~", ""])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"),
    list("-+.0123456789"),
)

Value = TypeVar("Value")


@dataclass
class Source:
    """A document's values, where each stands, by key path, and its mistakes.

    `profile` names the profile that has been laid over the values, if any. A check that reads a key
    with a mistake is left out by its caller: what it would report may follow from that mistake.
    """

    name: str
    text: str
    values: Any = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    profile: str = ""
    mistakes: list[SpecError] = field(default_factory=list)

    def error(self, path: KeyPath, message: str) -> SpecError:
        """An error at the nearest known place of `path`: a --set, or the line and a caret."""
        dotted, key = ".".join(str(part) for part in path), path
        sentence = bare = f"{dotted}: {message}" if dotted else message
        if self.profile:
            sentence = f"profile {self.profile}: {sentence}"
        while path and path not in self.places:
            path = path[:-1]
        place = self.places.get(path, self.name)
        if isinstance(place, str):
            return SpecError(f"{place}: {sentence}", path=key, sentence=bare)
        line, column = place
        # the end of a file that breaks off lies one line below its last
        quoted = [*self.text.splitlines(), ""][line - 1]
        # of a very long line only what stands around the place
        first = max(0, column - QUOTED) if len(quoted) > 2 * QUOTED else 0
        shown, caret = quoted[first : first + 2 * QUOTED], " " * (column - 1 - first) + "^"
        text = f"{self.name}:{line}:{column}: {sentence}\n  {shown}\n  {caret}"
        return SpecError(text, path=key, place=place, sentence=bare)

    def unknown(self, path: KeyPath, allowed: Iterable[str], otherwise: str = "") -> SpecError:
        """The error for a key that does not exist, with the nearest that does, see `nearest`."""
        return self.error(path, f"unknown key; {nearest(str(path[-1]), allowed, otherwise)}")

    def add(self, path: KeyPath, message: str) -> None:
        """Add a mistake at a key, as `collect` does."""
        self.collect([self.error(path, message)])

    def collect(self, errors: Iterable[SpecError]) -> None:
        """Add mistakes, each once at a place. Raises SpecError once there are `MISTAKES`."""
        known = {(mistake.place, mistake.sentence) for mistake in self.mistakes}
        for error in errors:
            if (error.place, error.sentence) not in known:
                known.add((error.place, error.sentence))
                self.mistakes.append(error)
                if len(self.mistakes) >= MISTAKES:
                    self.raise_all()

    def distinct(self, path: KeyPath, values: Sequence[Value]) -> tuple[Value, ...]:
        """The values of a list, each once; one that stands twice is a mistake."""
        once: dict[Value, int] = {}
        for place, value in enumerate(values):
            if once.setdefault(value, place) != place:
                self.add((*path, place), f"{value!r} stands twice; keep one")
        return tuple(once)

    def try_read(self, read: Callable[[], Value]) -> Value | None:
        """What `read` returns; None, with its mistakes added, where it raises SpecError."""
        try:
            return read()
        except SpecError as error:
            self.collect(error.mistakes)
            return None

    def is_correct(self, *keys: str | KeyPath) -> bool:
        """Whether there is no mistake at, above or below any of these keys."""
        paths = [(key,) if isinstance(key, str) else key for key in keys]
        return not any(
            path[: len(mistake.path)] == mistake.path or mistake.path[: len(path)] == path
            for mistake in self.mistakes
            for path in paths
        )

    def raise_all(self) -> None:
        """Raise SpecError with every mistake, in the order of the file, where there is one."""
        if len(self.mistakes) == 1:
            raise self.mistakes[0]
        if self.mistakes:
            ordered = sorted(self.mistakes, key=lambda mistake: mistake.place or (0, 0))
            count = f"{MISTAKES} or more" if len(ordered) >= MISTAKES else len(ordered)
            head = f"{count} mistakes in {self.name}"
            message = "\n".join([head, *map(str, ordered)])
            raise SpecError(message, sentence=head, mistakes=tuple(ordered))

    def override(self, assignment: str) -> None:
        """Apply `a.b=value`, the value read as YAML, over what the file says."""
        dotted, equals, text = assignment.partition("=")
        if not (equals and dotted.strip()):
            raise SpecError(f"--set {assignment}: write key=value, such as trainer.steps=50")
        *parents, last = dotted.strip().split(".")
        target = self.values
        for key in parents:
            target = target.setdefault(key, {}) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise SpecError(f"--set {assignment}: {'.'.join(parents)} is not a section")
        parsed = parse(f"--set {dotted.strip()}", text)
        parsed.raise_all()
        target[last] = parsed.values
        path, place = (*parents, last), f"--set {assignment}"
        for end in range(1, len(path)):
            self.places.setdefault(path[:end], place)
        self.put(path, {path: place})

    def put(self, path: KeyPath, places: dict[KeyPath, Place]) -> None:
        """Let `places` be those of the value at `path` and of what is in it."""
        kept = {at: place for at, place in self.places.items() if at[: len(path)] != path}
        self.places = kept | places


def read(path: Path) -> Source:
    """Read a YAML file. Raises SpecError where it is missing, too large or not YAML."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise SpecError(f"{path}: cannot read the study file: {reason_of(error)}") from None
    if len(data) > FILE_BYTES:
        raise SpecError(f"{path}: more than {FILE_BYTES:,} bytes, the most that a study file has")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 at byte {error.start}") from None
    return parse(str(path), text)


def parse(name: str, text: str) -> Source:
    """Read YAML text; `name` is what errors call it.

    A key that stands twice and a number that is too large become `mistakes` of the result. Raises
    SpecError where the text is not YAML.
    """
    source = Source(name, text)
    if len(text) > FILE_BYTES:
        raise SpecError(f"{name}: more than {FILE_BYTES:,} characters")
    try:
        node = yaml.compose(text, Loader=_Loader)
        source.values = None if node is None else _value(node, (), source)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        source.places[()] = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise source.error((), f"not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: not valid YAML: {str(error).splitlines()[0]}") from None
    return source


def _value(node: yaml.Node, path: KeyPath, source: Source) -> Any:
    source.places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, source)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, index), source) for index, item in enumerate(node.value)]
    return _scalar(node, path, source)


def _mapping(node: yaml.MappingNode, path: KeyPath, source: Source) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        place = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        if not isinstance(key_node, yaml.ScalarNode):
            source.places[*path, ""] = place
            raise source.error((*path, ""), "a key is a word, not a list or a section")
        key = key_node.value
        here = (*path, key)
        source.places[here] = place
        if key in values:
            source.add(here, "this key stands twice; keep one")
        values[key] = _value(value_node, here, source)
    return values


def _scalar(node: yaml.Node, path: KeyPath, source: Source) -> Any:
    kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    if kind in ("null", "bool"):
        return None if kind == "null" else text == "true"
    if kind not in ("int", "float"):
        return text
    # as a float first: Python refuses to read an int of thousands of digits
    if abs(float(text)) > LARGEST or len(text) > 1000:
        source.add(path, f"the number is too large; the largest is {LARGEST}")
        return 0
    return int(text) if kind == "int" else float(text)
