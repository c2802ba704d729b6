"""The command plan: a study's configurations, power and looks, and an estimate of its cost."""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from mtdlab.analysis.data.durations import format_count, format_seconds
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.api.given import Given
from mtdlab.api.plan import (
    Design,
    NoEstimate,
    Power,
    Specification,
    find_costs,
    find_data_warnings,
    find_design,
    find_ended,
    list_configurations,
    read_begun,
    record_design,
    suggest_baseline,
    warn_of_confounding,
)
from mtdlab.commands import options as opt
from mtdlab.commands.printing import in_list, print_json, print_table, wrap_text
from mtdlab.commands.show import report_command
from mtdlab.terminal import Phases, begin_phase, following_phases, print_text

if TYPE_CHECKING:
    from mtdlab.analysis.inference.power import Needed, Target
    from mtdlab.config.study import StudySpec
    from mtdlab.cost.estimate import CostEstimate

_WIDTH = 100


def plan(
    context: typer.Context,
    file: opt.StudyFile,
    profile: opt.Profile = None,
    set_: opt.Overrides = None,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    objective: opt.Objective = None,
    measure: opt.Measure = True,
    jobs: opt.Jobs = None,
    jobs_per_gpu: opt.JobsPerGpu = 1,
    effect: Annotated[
        float | None,
        typer.Option(
            help="The peak, slope or lead to be found, in points or the score's own unit. Default: "
            "2 points, or 4 margins."
        ),
    ] = None,
    sd: Annotated[
        float | None,
        typer.Option(
            help="Residual standard deviation of a run. Default: that of the study's runs, or 1.5 "
            "points; without either the power of a score in its own unit is not known."
        ),
    ] = None,
    storage: opt.Storage = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record/--no-record", help="Record what the verdict is judged by in the database."
        ),
    ] = True,
    as_json: opt.AsJson = False,
) -> None:
    """Show a study's configurations, the seeds that it needs, its looks, and estimate its cost.

    The cost is that of the trials that are left. Records margin, alpha, looks and metric with a
    hash, before the first trial.
    """
    context.with_resource(following_phases(Phases(format_seconds)))
    begin_phase("importing the packages that plan")
    from mtdlab.store.urls import storage_url

    given = Given(file, profile, set_, import_, evaluator, objective, storage)
    spec, url = read_begun(given), storage_url(storage)
    design, rows = find_design(spec, url, effect=effect, sd=sd), list_configurations(spec)
    warnings, ended = warn_of_confounding(rows) + spec.warnings(), find_ended(spec, url)
    planned = {trial.key for trial in spec.planned_trials()}
    left = planned - ended.keys()
    if not as_json:
        if rows:
            print_table(rows)
        lines = [*_describe_study(spec, len(rows), ended), *describe_design(design)]
        lines += [wrap_text(f"warning {warning}") for warning in warnings]
        print_text("\n".join(lines), flush=True)
    # it takes seconds, after everything else is shown
    costs = find_costs(spec, jobs, jobs_per_gpu, ended) if measure and left else None
    code = costs.exit_code if isinstance(costs, NoEstimate) else 0
    of_data = find_data_warnings(spec) if left and not code else []
    # what a sweep would refuse is not recorded
    if record and not code:
        design = record_design(design, spec, url)
    if as_json:
        fields = {"study": spec.name, "trials": len(planned), "remaining": len(left)}
        fields |= {"settings": rows, "warnings": warnings + of_data, "baseline": spec.baseline}
        fields |= {"suggestion": suggest_baseline(spec) or None} | asdict(design)
        print_json(fields | ({"estimate": asdict(costs)} if costs else {}))
    else:
        lines = [
            *describe_specification(design.specification),
            *(cost_lines(costs) if costs else []),
            *(wrap_text(f"warning {warning}") for warning in of_data),
        ]
        lines += [] if left else [f"nothing is left to run; next: {report_command(spec.name, url)}"]
        print_text("\n".join(lines))
    raise typer.Exit(code)


def _describe_study(
    spec: "StudySpec", configurations: int, ended: "Mapping[tuple[str, int], str]"
) -> Iterable[str]:
    """Lines on the number of trials and on what else a study runs."""
    from mtdlab.config.method_study import MethodSpec

    lines = [describe_size(spec, configurations, ended), describe_baseline(spec)]
    lines.append(describe_nuisance(spec))
    if isinstance(spec, MethodSpec) and (pooling := spec.used_pooling):
        lines.append(f"pooling {pooling}, which the encoder's files declare")
    return filter(None, lines)


def describe_size(
    spec: "StudySpec", configurations: int, ended: "Mapping[tuple[str, int], str]"
) -> str:
    """How many trials a study has, and how many of them are left."""
    trials = len(spec.planned_trials())
    seeds = format_count(len(spec.seeds), "seed")
    known = f"{configurations} configurations"
    what = known if configurations else f"{spec.trials} drawn by {spec.sampler}"
    if spec.baseline is not None:
        what = f"({what} + baseline)"
    if spec.nuisance is not None:
        tried, own = format_count(len([*spec.nuisance.candidates()]), "value"), spec.nuisance.seeds
        seeds = f"({seeds} + {tried} x {format_count(len(own), 'seed')} to choose by)"
    most = "at most " if spec.until else ""
    text = f"study {spec.name}: {what} x {seeds} = {most}{trials} trials"
    if not ended:
        return text
    failed = sum(state == "FAIL" for state in ended.values())
    done = f"{len(ended) - failed} done" + (f", {failed} failed" if failed else "")
    return f"{text}; {done}, {most}{trials - len(ended)} left"


def describe_baseline(spec: "StudySpec") -> str:
    """The settings of the baseline, or that of one that is suggested; empty where none is."""
    if spec.baseline is not None:
        return f"baseline {in_list(spec.baseline)}"
    text = suggest_baseline(spec)
    return text and wrap_text(f"baseline {text}")


def describe_nuisance(spec: "StudySpec") -> str:
    """What is chosen of nuisance settings, for what, and by which score; empty without any."""
    if spec.nuisance is None:
        return ""
    values = "; ".join(
        f"{name} of {', '.join(map(str, tried))}" for name, tried in spec.nuisance.values.items()
    )
    of = f"value of {' and '.join(spec.nuisance.per)}" if spec.nuisance.per else "configuration"
    seeds = ", ".join(map(str, spec.nuisance.seeds))
    return wrap_text(f"nuisance {values}: chosen for each {of} by {spec.select_by}, seeds {seeds}")


def cost_lines(costs: "CostEstimate | NoEstimate") -> list[str]:
    """Time, memory and disk, a line each; or why there is no estimate."""
    from rich.filesize import decimal

    if isinstance(costs, NoEstimate):
        return [f"no estimate: {costs.reason}"]
    workers, threads = format_count(costs.workers, "worker"), format_count(costs.threads, "thread")
    fewest = f"{costs.fewest} to " * (costs.fewest != costs.trials)
    start, trials = format_seconds(costs.start), format_count(costs.trials, "trial")
    lines = [
        f"time    about {_span(costs.seconds)}: {start} to start, {fewest}{trials} of "
        f"{_span(costs.trial)} on {workers} with {threads}",
        f"memory  up to {decimal(costs.memory)}: {workers} of {decimal(costs.worker_memory)}",
    ]
    if costs.gpu_memory:
        fit = f"up to {costs.gpu_workers} fit on each GPU (--jobs-per-gpu)"
        fit = fit if costs.gpu_workers else "more than the smallest GPU has"
        lines.append(f"GPU     {decimal(costs.gpu_memory)} for each worker: {fit}")
    return [
        *lines,
        f"disk    {decimal(costs.database)} of database, {decimal(costs.model)} for the best model",
        *(f"encoder {name}: {text}" for name, text in costs.encoders.items()),
        *(f"warning {warning}" for warning in costs.warnings),
    ]


def _span(bounds: tuple[float, float]) -> str:
    """Two durations in whole seconds or more, the unit of both once: 12 to 30 min."""
    low, high = map(format_seconds, map(round, bounds))
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    # 67 min to 2 h 23 min: of hours, the unit of both is not the last one
    shares_unit = number.isdigit() and high.split()[1:] == [unit]
    return f"{number if shares_unit else low} to {high}"


def describe_design(design: Design) -> list[str]:
    """Power and looks in a few lines."""
    write = ScoreFormat(design.specification.metric, design.specification.margin)
    lines = _describe_power(design.power, write) if design.power else []
    if not (lines or write.unit):
        lines = [f"power   not known: state --sd, the scatter of {write.name} between seeds"]
    if len(design.looks) > 1:
        levels = ", ".join(f"{look.seeds} ({look.nominal_level:.2g})" for look in design.looks)
        lines.append(f"looks   at seeds (nominal level): {levels}")
    return lines


def describe_specification(specified: Specification) -> list[str]:
    """What is asked, a line a question, what answers are judged by, and whether it is recorded."""
    from mtdlab.analysis.questions.wording import describe_recorded

    state, write = "not recorded", ScoreFormat(specified.metric, specified.margin)
    if specified.trials_started is not None:
        state = f"recorded {describe_recorded(specified.trials_started)}"
    declared = "" if specified.is_declared else " (follows from what varies)"
    asked = [
        yaml.safe_dump(question, default_flow_style=True, width=1_000).strip()[1:-1]
        for question in specified.questions
    ]
    return [
        f"asks    {asked[0]}{declared}",
        *(f"        {question}" for question in asked[1:]),
        f"verdict margin {write.stated_margin}, alpha {specified.alpha:g}, metric {write.name}, "
        f"{write.say('higher')} is better; {state}",
        f"        SHA-256 {specified.sha256}",
    ]


def _describe_power(power: Power, write: ScoreFormat) -> list[str]:
    """What the planned seeds find, what 80 % power takes, and what both assume."""
    seeds, precision, bases = format_count(power.seeds, "seed"), power.precision, power.bases
    cells = [("", f"found with {seeds}", "80 % power takes")]
    for target in power.targets:
        found = "" if target.found is None else f"{100 * target.found:.0f} %"
        cells.append(
            (_describe_target(target, power, write), found, _needed(target.needed, power.items))
        )
    first, second, _ = (max(map(len, column)) for column in zip(*cells, strict=True))
    table = [f"{text:{first}}  {found:{second}}  {need}".rstrip() for text, found, need in cells]
    notes = [
        f"residual standard deviation {write.with_unit(f'{precision.residual_sd:.2g}')}, "
        f"{bases['errors']}; correlations {bases['correlations']}"
    ]
    if bases["errors"] == "assumed":
        notes.append(
            "the power holds for this assumption alone (peak of 4 points, 5 levels, 8 seeds: 87 % "
            "with 1.5 points, 21 % with 3.4); a pilot measures it: mtdlab sweep FILE --set "
            "study=pilot --set seeds=[0,1,2], then mtdlab plan of the same, then this with --sd"
        )
    if power.seeds < 2:
        notes.insert(0, "one seed finds nothing: a comparison takes at least two")
    if power.items:
        more = "seeds" if precision.of_seeds > precision.of_items else "items"
        notes += [
            f"standard error of a difference: {write.with_unit(f'{precision.of_seeds:.2g}')} from "
            f"{seeds}, "
            f"{precision.of_items:.2g} from {power.items:,} items; more {more} help more"
        ]
    notes.append(f"evaluation items {bases['items']}")
    indent = 8 * " "
    wrapped = [textwrap.wrap(note, _WIDTH - 10, subsequent_indent="  ") for note in notes]
    lines = [indent + line for line in [*table, *chain.from_iterable(wrapped)]]
    return ["power" + lines[0][5:], *lines[1:]]


def _describe_target(target: "Target", power: Power, write: ScoreFormat) -> str:
    """What a study is to show, in a few words."""
    from mtdlab.analysis.data.runs import format_mtd

    size, where = write.with_unit(f"{target.points:.3g}"), ""
    if target.found is None:
        where = f" with {target.compared} levels"
    elif power.peak_mtd and power.peak_points and power.peak_points < 0.995 * target.points:
        # its top is in the middle of the range, between two levels
        where = f" ({power.peak_points:.2f} at MTD {format_mtd(power.peak_mtd)})"
    texts = {
        "peak": f"{write.say('peak')} of {size}{where}",
        "slope": f"slope of {size} over the range",
        "end": f"slope up to its end, within {size}",
        "flat": f"flat within {size}",
        "best": f"best of {target.compared} configurations by {size}",
        "equivalent": f"all within {size}",
        "difference": f"difference of {size}",
    }
    return texts[target.kind]


def _needed(needed: "Needed", items: int) -> str:
    """What 80 % power takes: seeds, or items where no number of seeds is enough."""
    if needed.seeds:
        return f"{needed.seeds} seeds"
    if not needed.items:
        return "more than 512 seeds"
    # rounded up to two digits
    unit = 10 ** max(len(str(needed.items)) - 2, 0)
    return f"{-(-needed.items // unit) * unit:,} items or more (now {items:,})"
