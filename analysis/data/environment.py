"""What a trial ran with, as fields, the sentences printed of them, and fields read from JSON."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from mtdlab.analysis.data.defaults import BUILT_IN as BUILT_IN

Whole = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True)
class RecordedCorpus:
    """The training texts.

    Attributes:
        amount: how many there are of `unit`, such as sentences.
        unknown: of each view the percentage of its tokens that are `unknown_token`; empty where
            none is.
        repeated: the chance that two of the texts are the same, 0 to 1.
        left_out: how many lines and texts are left out or replaced, and why; empty where none is.
    """

    name: str
    amount: Whole
    unit: str
    sha256: str
    unknown_token: str = ""
    unknown: tuple[Finite, ...] = ()
    repeated: Finite = 0.0
    left_out: str = ""

    @property
    def size(self) -> str:
        """The name with the number of texts: `builtin: 24,000 sentences`."""
        return f"{self.name}: {self.amount:,} {self.unit}"

    def __str__(self) -> str:
        text = "; ".join(filter(None, (f"{self.size}, SHA-256 {self.sha256}", self.left_out)))
        if not self.unknown:
            return text
        shares = ", ".join(f"{share:.2f} %" for share in self.unknown)
        of = "each view" if len(self.unknown) > 1 else "it"
        return f"{text}; {self.unknown_token} (words that the vocabulary lacks), of {of}: {shares}"


@dataclass(frozen=True)
class RecordedEncoder:
    """The encoder that was trained: its parameters, how a sentence is read from it, its kind."""

    name: str
    weights: Whole
    representation: str = ""
    kind: str = ""

    @property
    def size(self) -> str:
        """The number of weights: `4.39 million weights`."""
        return f"{self.weights / 1e6:.2f} million weights"

    def __str__(self) -> str:
        read = f", {self.representation}" if self.representation else ""
        return f"{self.name}: {self.size}{read}" + (f"; {self.kind}" if self.kind else "")


@dataclass(frozen=True)
class RecordedEvaluation:
    """The graded pairs.

    Attributes:
        tasks: the setting `tasks`; empty for none.
        averaged: the sets on whose average checkpoints were selected; empty for another selection.
        shortfalls: what a task's files lack of the published ones, by task.
        left_out: how many lines of a split's file are no pair, and why, by split.
        shared: test pairs that are dev pairs too.
    """

    name: str
    dev_pairs: Whole
    test_pairs: Whole
    tasks: str = ""
    averaged: str = ""
    shortfalls: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    shared: Whole = 0

    @property
    def size(self) -> str:
        """The name with the numbers of pairs."""
        pairs = f"{self.dev_pairs:,} dev pairs (sts_dev) and {self.test_pairs:,} test pairs"
        return f"{self.name}: {pairs} (sts_test)"

    def __str__(self) -> str:
        lacking = {**self.left_out, **self.shortfalls}
        parts = [self.size, *(f"{name}: {text}" for name, text in lacking.items())]
        if self.averaged:
            parts.insert(1, f"checkpoints selected on the average of {self.averaged}")
        if self.tasks:
            parts.insert(1, f"tasks {self.tasks}")
        return "; ".join(parts)


@dataclass(frozen=True)
class RecordedProgram:
    """The program of the user that trained, MODULE:FUNCTION, and the digest of its file."""

    reference: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.reference}, SHA-256 {self.sha256}"


@dataclass(frozen=True)
class Environment:
    """What a trial ran with; empty or None where a value is not known.

    Attributes:
        device: `cpu`, or the name of the GPU.
        precision: of the matrix products, float32 or bfloat16.
        threads: how many a trial has; sums over another number end with other bits.
        architecture, instructions, processor: of the machine, such as x86_64, the instruction set
            that is used, and the name of the processor.
        versions: of Python and of packages, by name.
        commit: of a checkout of mtdlab, with -dirty for changes on top.
        code: the SHA-256 of each module of the user, by name; a program's is with it.
    """

    corpus: RecordedCorpus | None = None
    encoder: RecordedEncoder | None = None
    evaluation: RecordedEvaluation | None = None
    program: RecordedProgram | None = None
    device: str = ""
    precision: str = ""
    threads: Whole | None = None
    architecture: str = ""
    instructions: str = ""
    processor: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    code: Mapping[str, str] = field(default_factory=dict)

    @property
    def own_code(self) -> str:
        """The modules of the user, or the program, with their SHA-256; empty without any."""
        program = {self.program.reference: self.program.sha256} if self.program else self.code
        return ", ".join(f"{name} {digest[:12]}" for name, digest in program.items())

    @property
    def all_versions(self) -> dict[str, str]:
        """The versions, and the commit where it is known."""
        return {**self.versions, **({"commit": self.commit} if self.commit else {})}

    @property
    def machine(self) -> str:
        """Architecture, instruction set and processor, each named once."""
        parts = (self.architecture, self.instructions, self.processor)
        return ", ".join(dict.fromkeys(part for part in parts if part))

    def sentences(self) -> dict[str, str]:
        """What is known, by name, in the order to print it."""
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        threads = "" if self.threads is None else f"threads a trial: {self.threads}"
        texts = {
            "program": self.program,
            "code": "" if self.program else self.own_code,
            "corpus": self.corpus,
            "encoder": self.encoder,
            "evaluation": self.evaluation,
            "device": ", ".join(filter(None, (self.device, self.precision, threads))),
            "processor": self.machine,
            "versions": f"{versions} (commit {self.commit})" if self.commit else versions,
        }
        return {name: str(text) for name, text in texts.items() if text}


def join_sentences(environments: Iterable[Environment]) -> dict[str, str]:
    """The sentences of several environments by name; different ones are joined by semicolons."""
    texts: dict[str, dict[str, None]] = {}
    for environment in environments:
        for name, text in environment.sentences().items():
            texts.setdefault(name, {})[text] = None
    return {name: "; ".join(different) for name, different in texts.items()}


T = TypeVar("T")
_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(TypeAdapter)


def read_fields(kind: type[T], value: object) -> T:
    """A dataclass of texts, numbers, tuples, mappings by name, and dataclasses of these.

    `value` is what JSON holds; names that are no field are ignored. Raises ValueError for a value
    of another type or outside its range, and for a missing field that has no default.
    """
    try:
        result: T = _adapter(kind).validate_python(value)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"{value!r:.60} is no {kind.__name__}: {place or 'all of it'}") from None
    return result
