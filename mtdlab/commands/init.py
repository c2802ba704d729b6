"""The command init, which writes a study file."""

import itertools
import math
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
import yaml

from mtdlab.analysis.data.defaults import BUILT_IN
from mtdlab.analysis.data.durations import format_count, format_seconds
from mtdlab.api.plan import NoEstimate, find_costs
from mtdlab.api.report import check_name
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, wrap_text
from mtdlab.data_paths import packaged_studies
from mtdlab.errors import MtdlabError, refusing
from mtdlab.methods import registry
from mtdlab.terminal import Phases, following_phases, print_text, printable
from mtdlab.trial.signals import OutOfTime, time_limit

if TYPE_CHECKING:
    # it imports torch
    from mtdlab.cost.estimate import CostEstimate

_MOST_ASKED = 1_000
"""The most seeds that a new study may be given."""
MOST_SECONDS = 30
"""What timing steps may take; a study of which they take longer is the smallest."""
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
_COMMENTS = {
    "encoder": "builtin, a folder, or a Hugging Face name",
    "pooling": "how the encoder was made; cls if its folder has no 1_Pooling/config.json",
    "corpus": "builtin, a text file with a sentence a line, or a folder of them",
    "evaluation": "builtin (synthetic, for the built-in text), or a folder with graded pairs",
    "batch_size": "sentences of a training step",
    "queue_size": "keys in the negative queue",
    "steps": "training steps of a trial; mtdlab plan estimates the time",
}


def parse_varied(texts: Sequence[str]) -> dict[str, list[Any]]:
    """The settings to vary: each as NAME for the usual values, or as NAME=VALUE,VALUE.

    Values are read as in a study file. Raises MtdlabError for a text that is neither, and for a
    NAME without usual values.
    """
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


FEWEST, MOST_SEEDS = 3, 5
"""The values and seeds that stay for a test, and the seeds of a study that has the time."""


@dataclass(frozen=True)
class Size:
    """The values, by setting, and the number of seeds of a study; `part` divides its steps."""

    vary: Mapping[str, list[Any]]
    seeds: int = MOST_SEEDS
    part: int = 1

    @property
    def trials(self) -> int:
        """How many there are where all settings go together."""
        return self.seeds * math.prod(map(len, self.vary.values()))


def list_sizes(vary: Mapping[str, list[Any]], seeds: int | None) -> list[Size]:
    """The sizes of a study, the preferred first: whole runs, then many trials, then many seeds.

    The first has everything. What was not asked for may be less: lists that are those of `VALUES`,
    the seeds if None, and the steps, of which half stay.
    """
    values = [
        [_thin(listed, count) for count in range(FEWEST, len(listed) + 1)]
        if listed is VALUES.get(name)
        else [listed]
        for name, listed in vary.items()
    ]
    sizes = (
        Size(dict(zip(vary, chosen, strict=True)), count, part)
        for part in ([1] if "steps" in vary else [1, 2])
        for chosen in itertools.product(*values)
        for count in ([seeds] if seeds else range(FEWEST, MOST_SEEDS + 1))
    )
    return sorted(sizes, key=lambda size: (size.part, -size.trials, -size.seeds))


def _thin(values: list[Any], count: int) -> list[Any]:
    """So many of the values: of numbers evenly, with both ends; of names the first."""
    if isinstance(values[0], str):
        return values[:count]
    return [values[round(at * (len(values) - 1) / (count - 1))] for at in range(count)]


def choose_size(sizes: Sequence[Size], costs: "CostEstimate", hours: float) -> tuple[Size, float]:
    """The first size of at most so many hours, or the last, and its seconds; costs of the first."""
    mean = (costs.seconds[1] - costs.start) * costs.workers / costs.trials
    evaluation = min(costs.evaluation, mean)
    for size in sizes:
        rounds = math.ceil(costs.trials * size.trials / sizes[0].trials / costs.workers)
        seconds = costs.start + rounds * (evaluation + (mean - evaluation) / size.part)
        if seconds <= 3600 * hours:
            break
    return size, seconds


def _propose(
    name: str, inputs: Mapping[str, Any], sizes: Sequence[Size], hours: float, file: Path
) -> tuple[Size, float | None, str]:
    """The size of a new study in `file`, its duration in seconds, and both in words.

    The durations of a few steps choose it: the first size where they are not known, the last where
    timing them takes too long; both have no duration.
    """
    from mtdlab.config.reader import parse_study

    text = write_study(name, inputs, sizes[0])
    spec = parse_study("the new study", text, folder=file.absolute().parent)
    size, seconds, costs = sizes[-1], None, None
    with suppress(OutOfTime), time_limit(MOST_SECONDS):
        costs = find_costs(spec, None, 1, ())
    if costs is None:
        sentence = f"Timing steps took more than {MOST_SECONDS} s here, so the study is small."
    elif isinstance(costs, NoEstimate):
        # a path in it may have a line end
        size, reason = sizes[0], " ".join(costs.reason.split())
        sentence = f"How long it takes is not known: {reason}."
    else:
        size, seconds = choose_size(sizes, costs, hours)
        advice = "; take fewer values or pairs, or a smaller encoder" * (seconds > 3600 * hours)
        workers = format_count(costs.workers, "trial")
        sentence = f"About {format_seconds(seconds)} on this machine, {workers} at a time{advice}."
    left = f"Left out for {format_seconds(3600 * hours)} (--hours): {_left_out(sizes[0], size)}."
    return size, seconds, f"{sentence} {left}"


def _fit_queue(corpus: str) -> tuple[int, str]:
    """The size of a queue in which few texts meet keys of their own, and why it is small, if so."""
    # imported here to start fast: both import NumPy
    from mtdlab.analysis.measures.repeats import RunSizes, describe_repeats
    from mtdlab.corpus.corpus import check_corpus

    texts, sizes = 2_000, (512, 256, 128, 64)
    # what is missing here may be there where the study runs
    with suppress(MtdlabError):
        texts = len(list(islice(check_corpus(corpus).sides()[0].sentences(), texts)))
    runs = {size: [RunSizes(64, size, texts)] for size in sizes}
    fitting = (size for size in sizes if not describe_repeats(texts, "", 0, runs[size]))
    queue = next(fitting, min(sizes))
    if queue == max(sizes):
        return queue, ""
    why = f" The queue has {queue} keys: in a larger one the {texts} texts would meet their own."
    return queue, why


def _left_out(whole: Size, size: Size) -> str:
    left = [
        f"{name} {', '.join(map(_scalar, missing))}"
        for name, values in whole.vary.items()
        if (missing := [value for value in values if value not in size.vary[name]])
    ]
    left += [f"{whole.seeds - size.seeds} of {whole.seeds} seeds"] * (size.seeds < whole.seeds)
    left += ["half of the steps"] * (size.part > 1)
    return "; ".join(left) or "nothing"


def write_study(name: str, inputs: Mapping[str, Any], size: Size, sentence: str = "") -> str:
    """The text of a new study file, with a comment beside what is likely to be changed.

    `inputs`: encoder, corpus, evaluation, perhaps queue size. `sentence`: on size and duration.
    """
    vary = size.vary
    encoder, corpus, varies_method = inputs["encoder"], inputs["corpus"], "method" in vary
    trainer: dict[str, Any] = {"encoder": encoder}
    if not (encoder == BUILT_IN or varies_method):
        # methods have poolings of their own
        from mtdlab.encoders.folders import declared_pooling

        trainer["pooling"] = declared_pooling(encoder) or "cls"
    trainer |= {**inputs, "batch_size": 64, **SETTINGS[encoder == BUILT_IN]}
    for key in ("steps", "evaluate_every"):
        trainer[key] //= size.part
    question = (
        f"How does the score of encoder {encoder}, trained on corpus {corpus}, depend on "
        f"{' and '.join(vary)}?"
    )
    lines = [
        "# Written by mtdlab init. Next: mtdlab plan, then mtdlab sweep, with this file.",
        *textwrap.wrap(sentence, 100, initial_indent="# ", subsequent_indent="# "),
        f"study: {name}",
        f"description: {_scalar(question)}",
        "metric: sts_test  # reported; sts_dev ranks the trials",
        "trainer:  # the same for every trial",
    ]
    for key in trainer:
        if key not in vary:
            lines += [f"  # {_COMMENTS[key]}"] if key in _COMMENTS else []
            lines.append(f"  {key}: {_scalar(trainer[key])}")
    lines += [
        "search:  # varied",
        *(f"  {key}: [{', '.join(map(_scalar, values))}]" for key, values in vary.items()),
        f"seeds: {list(range(size.seeds))}",
        "sampler: grid",
    ]
    return "\n".join(lines) + "\n"


def _scalar(value: Any) -> str:
    """A value as YAML in one line, quoted where it must be."""
    if isinstance(value, float):
        return f"{value:g}"
    text = yaml.safe_dump(value, width=10**6, allow_unicode=True, default_flow_style=True)
    return text.removesuffix("...\n").strip()


Value = TypeVar("Value")

_DEFAULT_NAME = "my-study"
_DEFAULT_VARIED = "ema_decay"
_SEEDS_THAT_FIT = f"up to {MOST_SEEDS} that fit the time"
_QUESTIONS = {
    "encoder": "Encoder (builtin, a folder, a Hugging Face name)",
    "corpus": "Training text (builtin, a file with a sentence a line)",
    "evaluation": "Evaluation (builtin: synthetic, for the built-in text; a folder of pairs)",
}


def init(
    context: typer.Context,
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
    seeds: Annotated[
        int | None, typer.Option(min=1, max=_MOST_ASKED, help="Number of seeds.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, help="What the study may take on this machine.")
    ] = 1.0,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: NAME.yaml.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Write a study file: a new one from options or a few questions, or a copy of a packaged study.

    A copy: mtdlab init mtd

    From options: mtdlab init my-study --corpus text.txt --vary ema_decay

    Without options it asks, in a terminal. Of usual values, 5 seeds and the steps as many are
    written as take an hour here, by the durations of a few steps.
    """
    if list_:
        _list(as_json)
        return
    inputs = {"encoder": encoder, "corpus": corpus, "evaluation": evaluation}
    given = any((*inputs.values(), vary, seeds))
    copied = packaged_studies().get(name or "")
    asks = not (copied or given or as_json) and sys.stdin.isatty() and sys.stdout.isatty()
    chosen = _DEFAULT_NAME if name is None else name
    check_name(chosen, what="study")
    context.with_resource(following_phases(Phases(format_seconds)))
    path = out or Path(f"{chosen}.yaml")
    if out or name or not asks:
        _check_free(path)
    if copied and given:
        raise MtdlabError(
            f"{name} is a packaged study, copied as it is; give the new study another name, "
            "or leave out the options and edit the copy"
        )
    if copied:
        _write(path, copied.read_text(encoding="utf-8"), as_json)
        return
    if asks:
        chosen, written, varied, seeds = _ask(name, out)
        path = out or Path(f"{chosen}.yaml")
    else:
        written = {key: _absolute(source or BUILT_IN, path) for key, source in inputs.items()}
        varied = parse_varied(vary or [_DEFAULT_VARIED])
    sizes, why = list_sizes(varied, seeds), ""
    if {"method", "queue_size"}.isdisjoint(varied):
        written["queue_size"], why = _fit_queue(written["corpus"])
    size, seconds, sentence = _propose(chosen, written, sizes, hours, path)
    sentence += why
    text = write_study(chosen, written, size, sentence)
    _write(path, text, as_json, {"seconds": seconds, "size": sentence})


def _check_free(path: Path) -> None:
    if path.exists():
        raise MtdlabError(f"{path} exists and is not overwritten; name another file with --out")
    if not path.absolute().parent.is_dir():
        raise MtdlabError(f"{path} cannot be written: no such file or folder: {path.parent}")


def _absolute(value: str, file: Path) -> str:
    """A name as a study file in another folder writes it: an existing path becomes absolute."""
    elsewhere = file.absolute().parent != Path.cwd()
    return str(Path(value).resolve()) if elsewhere and Path(value).exists() else value


def _write(path: Path, text: str, as_json: bool, found: Mapping[str, Any] | None = None) -> None:
    """Check the study, write its file, and print what it holds, what it lacks and what is next."""
    from mtdlab.config.reader import parse_study

    spec = parse_study("the new study", text)
    with refusing(OSError, what=f"{path} cannot be written"):
        path.write_text(text, encoding="utf-8")
    trials, warnings = len(spec.planned_trials()), spec.warnings()
    if as_json:
        fields = {"file": str(path), "study": spec.name, "trials": trials, "warnings": warnings}
        print_json({**fields, **(found or {})})
        return
    most = "at most " if spec.until else ""
    varied = f"{', '.join(spec.search) or 'nothing'} varied"
    seeds = format_count(len(spec.seeds), "seed")
    print_text(f"wrote {path}: study {spec.name}, {most}{trials} trials ({varied}, {seeds})")
    if found:
        print_text(wrap_text(found["size"]))
    for warning in warnings:
        print_text(wrap_text(f"warning {warning}"))
    file = shlex.quote(str(path))
    print_text("next, to estimate time and number of seeds, to run it, and to write its page:")
    for command in (f"plan {file}", f"sweep {file}", f"report --study {spec.name}"):
        print_text(f"  mtdlab {command}")


def _ask(
    name: str | None, out: Path | None
) -> tuple[str, dict[str, Any], dict[str, list[Any]], int | None]:
    """A study's name, inputs, varied values and seeds, each checked before the next question."""
    from mtdlab.config.reader import parse_study

    print_text("Enter keeps the value in brackets; mtdlab init --list lists complete studies.")
    name = name or _prompt("Name of the study", _DEFAULT_NAME, partial(_free_name, out=out))
    path = out or Path(f"{name}.yaml")
    inputs = {
        setting: _prompt(question, BUILT_IN, partial(_present, setting, path))
        for setting, question in _QUESTIONS.items()
    }
    print_text(
        wrap_text(f"Settings that can be varied: {', '.join(VALUES)}; others as NAME=VALUE,VALUE.")
    )

    def read_varied(listed: str) -> dict[str, list[Any]]:
        varied = parse_varied(listed.split())
        parse_study("the new study", write_study(name, inputs, Size(varied)))
        return varied

    varied = _prompt("Vary (separated by spaces)", _DEFAULT_VARIED, read_varied)
    return name, inputs, varied, _prompt("Seeds per configuration", _SEEDS_THAT_FIT, _read_seeds)


def _prompt(question: str, default: str, read: Callable[[str], Value]) -> Value:
    """An answer as `read` returns it; the question is repeated while that raises MtdlabError."""
    from mtdlab.config.source import SpecError

    def checked(answer: str) -> Value:
        try:
            return read(answer.strip())
        except SpecError as error:
            # without their places in a file that is not written yet
            sentence = "; ".join(mistake.sentence for mistake in error.mistakes)
        except MtdlabError as error:
            sentence = str(error)
        raise typer.BadParameter(printable(sentence))

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
    from mtdlab.training.present import check_input

    check_input(setting, name)
    return _absolute(name, file)


def _read_seeds(seeds: str) -> int | None:
    """How many; None for as many as fit the time."""
    if seeds == _SEEDS_THAT_FIT:
        return None
    if not seeds.isdecimal() or not 1 <= int(seeds) <= _MOST_ASKED:
        raise MtdlabError(
            f"{seeds!r}: write how many, 1 to {_MOST_ASKED:,}; a confidence interval needs 2"
        )
    return int(seeds)


def _list(as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for name, path in packaged_studies().items():
        text = path.read_text(encoding="utf-8")
        values = yaml.safe_load(text)
        # else the comment at its beginning
        described = values.get("description") or text.partition("\nstudy:")[0].replace("#", "")
        # the first sentence
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
