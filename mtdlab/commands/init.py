"""The command init, which writes a study file."""

import itertools
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
import yaml

from mtdlab.analysis.data.durations import count
from mtdlab.api.report import check_name
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, wrap_text
from mtdlab.data_paths import packaged_studies
from mtdlab.errors import MtdlabError, reason_of
from mtdlab.methods import registry
from mtdlab.terminal import print_text, printable

BUILTIN = "builtin"
VALUES: Mapping[str, list[Any]] = {
    "ema_decay": [0.5, 0.75, 0.85, 0.9, 0.95, 0.97],
    "queue_size": [64, 256, 512, 1024],
    "batch_size": [32, 64, 128],
    "temperature": [0.03, 0.05, 0.1],
    "learning_rate": [1e-5, 3e-5, 1e-4],
    "method": [*registry.BUILTIN],
}
"""The values over which `init` varies a setting, unless it is given others."""

SETTINGS: Mapping[bool, Mapping[str, Any]] = {
    True: {"learning_rate": 1e-3, "steps": 160, "evaluate_every": 80},
    False: {"learning_rate": 3e-5, "steps": 200, "evaluate_every": 50},
}
"""The settings for the built-in encoder (True), and for others, which are trained already and whose
steps are long."""
_WIDEST = 80
_COMMENTS = {
    "encoder": "builtin, a folder, or a Hugging Face name",
    "pooling": "how the encoder was made; cls if its folder has no 1_Pooling/config.json",
    "corpus": "builtin, a text file with a sentence a line, or a folder of them",
    "evaluation": "builtin, or a folder with graded sentence pairs",
    "batch_size": "sentences of a training step",
    "queue_size": "keys in the negative queue",
    "steps": "training steps of a trial; mtdlab plan estimates the time",
}


@dataclass(frozen=True)
class NewStudy:
    """The answers that a new study is made from.

    `vary` has the values by setting; `seeds` is their number.
    """

    name: str
    encoder: str
    corpus: str
    evaluation: str
    vary: Mapping[str, list[Any]]
    seeds: int


def parse_varied(texts: Sequence[str]) -> dict[str, list[Any]]:
    """The settings to vary: each as NAME for the usual values, or as NAME=VALUE,VALUE.

    Values are read as in a study file. Raises MtdlabError for a text that is neither, and for a
    NAME without usual values.
    """
    # here, since --help imports this module
    from mtdlab.config.source import parse

    varied = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip()
        if not equals and name in VALUES:
            varied[name] = VALUES[name]
            continue
        listed = parse(f"--vary {text}", f"[{values}]").values
        if not name or not listed:
            raise MtdlabError(
                f"--vary {text}: write NAME=VALUE,VALUE, as in dropout=0.1,0.2; without values "
                f"only {', '.join(VALUES)}"
            )
        varied[name] = listed
    return varied


def write_study(new: NewStudy) -> str:
    """The text of the study file, with a comment beside what is likely to be changed."""
    builtin, varies_method = new.encoder == BUILTIN, "method" in new.vary
    trainer: dict[str, Any] = {"encoder": new.encoder}
    if not (builtin or varies_method):
        # here, as in parse_varied; methods have poolings of their own
        from mtdlab.encoders.folders import declared_pooling

        trainer["pooling"] = declared_pooling(new.encoder) or "cls"
    trainer |= {"corpus": new.corpus, "evaluation": new.evaluation, "batch_size": 64}
    trainer |= {} if varies_method else {"queue_size": 512}
    trainer |= SETTINGS[builtin]
    data = "the built-in, synthetic data" if new.corpus == BUILTIN else new.corpus
    encoder = "the built-in encoder" if builtin else new.encoder
    question = f"How does the score depend on {' and '.join(new.vary)}, for {encoder} trained on "
    kept = {name: value for name, value in trainer.items() if name not in new.vary}
    lines = [
        "# Written by mtdlab init. Next: mtdlab plan, then mtdlab sweep, with this file.",
        f"study: {new.name}",
        f"description: {_scalar(f'{question}{data}?')}",
        "metric: sts_test  # reported; sts_dev ranks the trials",
        "trainer:  # the same for every trial",
        *(line for name, value in kept.items() for line in _lines(name, value)),
        "search:  # varied",
        *(f"  {name}: [{', '.join(map(_scalar, values))}]" for name, values in new.vary.items()),
        f"seeds: {list(range(new.seeds))}",
        "sampler: grid",
    ]
    return "\n".join(lines) + "\n"


def _lines(name: str, value: Any) -> list[str]:
    """The lines of a setting and its comment, which stands above it where one line is too short."""
    text = f"  {name}: {_scalar(value)}"
    if name not in _COMMENTS:
        return [text]
    whole = f"{text:24}  # {_COMMENTS[name]}"
    return [whole] if len(whole) <= _WIDEST else [f"  # {_COMMENTS[name]}", text]


def _scalar(value: Any) -> str:
    """A value as YAML in one line, quoted where it must be."""
    if isinstance(value, float):
        return f"{value:g}"
    text = yaml.safe_dump(value, width=10**6, allow_unicode=True, default_flow_style=True)
    return text.removesuffix("...\n").strip()


Value = TypeVar("Value")

_DEFAULT_NAME = "my-study"
_DEFAULT_VARIED = "ema_decay"
_DEFAULT_SEEDS = 5


def init(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            autocompletion=opt.complete_packaged,
            help="Name of the new study, or of a packaged study to copy. Default: my-study.",
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="List the studies that come with mtdlab.")
    ] = False,
    encoder: Annotated[
        str | None, typer.Option(help="builtin, a folder, or a Hugging Face name.")
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="Training text: builtin, a file, a folder, or dataset:NAME#COLUMN."),
    ] = None,
    evaluation: Annotated[
        str | None, typer.Option(help="builtin, or a folder with graded sentence pairs.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=VALUE,...]",
            help=f"Setting to vary (repeatable); values may be left out for {', '.join(VALUES)}.",
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, max=1000, help="Number of seeds.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: NAME.yaml.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Write a study file: a new one from options or a few questions, or a copy of a packaged study.

    A copy: mtdlab init mtd

    From options: mtdlab init my-study --corpus text.txt --vary ema_decay

    Without options it asks, in a terminal.
    """
    if list_:
        _list(as_json)
        return
    given = any((encoder, corpus, evaluation, vary, seeds))
    copied = packaged_studies().get(name or "")
    asks = not (copied or given or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    chosen = _DEFAULT_NAME if name is None else name
    check_name(chosen, what="study")
    missing: list[str] = []
    path = out or Path(f"{chosen}.yaml")
    if out or name or not asks:
        _check_free(path)
    if copied:
        if given:
            raise MtdlabError(
                f"{name} is a packaged study, copied as it is; give the new study another name, "
                "or leave out the options and edit the copy"
            )
        text = copied.read_text(encoding="utf-8")
    elif asks:
        path, text = _ask(name, out)
    else:
        missing = _describe_missing(path, encoder=encoder, corpus=corpus, evaluation=evaluation)
        data = [_absolute(source or BUILTIN, path) for source in (encoder, corpus, evaluation)]
        varied = parse_varied(vary or [_DEFAULT_VARIED])
        new = NewStudy(chosen, data[0], data[1], data[2], varied, seeds or _DEFAULT_SEEDS)
        text = write_study(new)
    _write(path, text, missing, as_json)


def _describe_missing(file: Path, **named: str | None) -> list[str]:
    """A sentence on each input that is not here; the study may be written for another machine."""
    from mtdlab.training.present import check_input

    sentences = []
    for setting, name in named.items():
        try:
            if name and not (file.parent / name).exists():
                check_input(setting, name)
        except MtdlabError as error:
            sentences.append(str(error))
    return sentences


def _check_free(path: Path) -> None:
    if path.exists():
        raise MtdlabError(f"{path} exists and is not overwritten; name another file with --out")
    if not path.absolute().parent.is_dir():
        raise MtdlabError(f"{path} cannot be written: no such file or folder: {path.parent}")


def _absolute(value: str, file: Path) -> str:
    """A name as a study file in another folder writes it: an existing path becomes absolute."""
    elsewhere = file.absolute().parent != Path.cwd()
    return str(Path(value).resolve()) if elsewhere and Path(value).exists() else value


def _write(path: Path, text: str, missing: Sequence[str], as_json: bool) -> None:
    """Check the study, write its file, and print what it holds, what it lacks and what is next."""
    from mtdlab.config.reader import parse_study

    spec = parse_study("the new study", text)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MtdlabError(f"{path} cannot be written: {reason_of(error)}") from None
    trials, warnings = len(spec.planned_trials()), [*missing, *spec.warnings()]
    if as_json:
        fields = {"file": str(path), "study": spec.name, "trials": trials, "warnings": warnings}
        print_json(fields)
        return
    most = "at most " if spec.until else ""
    varied = f"{', '.join(spec.search) or 'nothing'} varied"
    seeds = count(len(spec.seeds), "seed")
    print_text(f"wrote {path}: study {spec.name}, {most}{trials} trials ({varied}, {seeds})")
    for warning in warnings:
        print_text(wrap_text(f"warning {warning}"))
    file = shlex.quote(str(path))
    print_text("next, to estimate time and number of seeds, to run it, and to write its page:")
    for command in (f"plan {file}", f"sweep {file}", f"report --study {spec.name}"):
        print_text(f"  mtdlab {command}")


def _ask(name: str | None, out: Path | None) -> tuple[Path, str]:
    """The file and text of a study from answers, each checked before the next question.

    KeyboardInterrupt writes nothing.
    """
    print_text("Enter keeps the value in brackets; mtdlab init --list lists complete studies.")
    name = name or _prompt("Name of the study", _DEFAULT_NAME, partial(_free_name, out=out))
    path = out or Path(f"{name}.yaml")
    encoder, corpus, evaluation = (
        _prompt(question, BUILTIN, partial(_present, setting, path))
        for setting, question in (
            ("encoder", "Encoder (builtin, a folder, a Hugging Face name)"),
            ("corpus", "Training text (builtin, a file with a sentence a line)"),
            ("evaluation", "Evaluation (builtin, a folder of graded pairs)"),
        )
    )
    if corpus != BUILTIN and evaluation == BUILTIN:
        print_text(
            wrap_text(
                "note: the built-in evaluation pairs are synthetic and say little about your own "
                "text; name a folder of graded pairs under evaluation in the file."
            )
        )
    new = NewStudy(name, encoder, corpus, evaluation, {}, _DEFAULT_SEEDS)
    print_text(
        wrap_text(f"Settings that can be varied: {', '.join(VALUES)}; others as NAME=VALUE,VALUE.")
    )

    def repeat(seeds: str) -> NewStudy:
        if not seeds.isdecimal() or not int(seeds):
            raise MtdlabError(
                f"{seeds!r}: write how many, 1 or more; a confidence interval needs 2"
            )
        return _checked(new, seeds=int(seeds))

    new = _prompt(
        "Vary (separated by spaces)",
        _DEFAULT_VARIED,
        lambda listed: _checked(new, vary=parse_varied(listed.split())),
    )
    new = _prompt("Seeds per configuration", str(new.seeds), repeat)
    return path, write_study(new)


def _prompt(question: str, default: str, read: Callable[[str], Value]) -> Value:
    """An answer as `read` returns it; the question is repeated while that raises MtdlabError."""

    def checked(answer: str) -> Value:
        try:
            return read(answer.strip())
        except MtdlabError as error:
            raise typer.BadParameter(printable(str(error))) from None

    answer: Value = typer.prompt(question, default, value_proc=checked)
    return answer


def _free_name(name: str, out: Path | None) -> str:
    """A name that the study and its file can have."""
    if name in packaged_studies():
        raise MtdlabError(f"{name} is the name of a packaged study; choose another")
    check_name(name, what="study")
    _check_free(out or Path(f"{name}.yaml"))
    return name


def _present(setting: str, file: Path, name: str) -> str:
    """The name of an encoder, text or evaluation that exists, as a study in `file` writes it."""
    # imported here to keep --help fast
    from mtdlab.training.present import check_input

    check_input(setting, name)
    return _absolute(name, file)


def _checked(new: NewStudy, **changed: Any) -> NewStudy:
    """A changed and checked study.

    Raises MtdlabError with its mistakes, without their places in the file.
    """
    from mtdlab.config.reader import parse_study
    from mtdlab.config.source import SpecError

    new = replace(new, **changed)
    try:
        parse_study("the new study", write_study(new))
    except SpecError as error:
        raise MtdlabError("; ".join(mistake.sentence for mistake in error.mistakes)) from None
    return new


def _list(as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for name, path in packaged_studies().items():
        text = path.read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        described = str(values.get("description") or _first_comment(text))
        # its first sentence
        question = re.split(r"(?<=[.?])\s", " ".join(described.split()))[0]
        profiles = list(values.get("profiles", {}))
        rows.append({"name": name, "question": question, "profiles": profiles})
    if as_json:
        print_json({"studies": rows})
        return
    width = max(len(row["name"]) for row in rows) + 2
    for row in rows:
        variants = f" Profiles: {', '.join(row['profiles'])}." if row["profiles"] else ""
        print_text(wrap_text(row["question"] + variants, f"{row['name']:{width}}"))
    print_text("\nmtdlab init NAME copies one; mtdlab sweep NAME runs it as it is.")


def _first_comment(text: str) -> str:
    """The comment that a file begins with, up to its first blank line."""
    lines = itertools.takewhile(lambda line: re.match(r"#\s*\S", line), text.splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)
