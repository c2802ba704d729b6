"""The command plan: a study's configurations, power and looks, and an estimate of its cost."""

import os
import platform
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.api.given import Given
from mtdlab.api.plan import (
    BestPower,
    Design,
    NoEstimate,
    Power,
    find_costs,
    find_design,
    find_ended,
    find_warnings,
    list_configurations,
    read_begun,
    suggest_baseline,
)
from mtdlab.commands import options as opt
from mtdlab.commands.printing import count_noun, in_list, print_json, print_table, wrap_text
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.analysis.inference.power import Needed
    from mtdlab.config import StudySpec
    from mtdlab.cost.estimate import Estimate

Value = TypeVar("Value")
_WIDTH = 100


def plan(
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
        float, typer.Option(min=0.01, help="Points of the peak, slope or lead to be found.")
    ] = 2.0,
    sd: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Residual standard deviation of a run. Default: that of the study's runs, or 1.5.",
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
    from mtdlab.encoders.folders import POOLING_FILE
    from mtdlab.store.urls import storage_url

    given = Given(file, profile, set_, import_, evaluator, objective, storage)
    spec = read_begun(given)
    find = partial(find_design, spec, storage, effect=effect, sd=sd, record=record)
    # it takes seconds, in which a copy of this process finds it
    design = begin_in_copy(find) if measure and can_copy() else cache(find)
    rows = list_configurations(spec)
    warnings, ended = find_warnings(spec, rows), find_ended(spec, storage_url(storage))
    planned = {trial.key for trial in spec.planned_trials()}
    left = planned - ended.keys()
    find_these = partial(find_costs, spec, jobs, jobs_per_gpu, ended) if measure and left else None
    if as_json:
        costs = find_these(design) if find_these else None
        fields = {"study": spec.name, "trials": len(planned), "remaining": len(left)}
        fields |= {"settings": rows, "warnings": warnings, "baseline": spec.baseline}
        fields |= {"suggestion": suggest_baseline(spec) or None} | asdict(design())
        print_json(fields | ({"estimate": asdict(costs)} if costs else {}))
        raise typer.Exit(_exit_code(costs))

    @cache
    def print_design() -> None:
        print_text("\n".join(describe_design(design())), flush=True)
        for warning in warnings:
            print_text(wrap_text(f"warning {warning}"), flush=True)

    if rows:
        print_table(rows)
    print_text(describe_size(spec, len(rows), ended), flush=True)
    for text in filter(None, (describe_baseline(spec), describe_nuisance(spec))):
        print_text(text, flush=True)
    if pooling := spec.used_pooling:
        print_text(f"pooling {pooling}, from the encoder's {POOLING_FILE}")
    costs = find_these(print_design) if find_these else None
    print_design()
    if costs:
        print_text("\n".join(cost_lines(costs)))
    if not left:
        print_text(f"nothing is left to run; next: mtdlab report --study {spec.name}")
    raise typer.Exit(_exit_code(costs))


def _exit_code(costs: "Estimate | NoEstimate | None") -> int:
    return costs.exit_code if isinstance(costs, NoEstimate) else 0


def can_copy() -> bool:
    """Whether a copy of this process is safe and has a processor: on Linux, with several cores."""
    return platform.system() == "Linux" and (os.cpu_count() or 1) > 1


def begin_in_copy(function: Callable[[], Value]) -> Callable[[], Value]:
    """Call a function in a copy of this process; the returned function waits for its result.

    A copy starts at once, where a new process imports everything for seconds. Only where no other
    thread runs: locks that it holds stay locked in the copy.
    """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
    future = executor.submit(function)
    executor.shutdown(wait=False)
    return cache(future.result)


def describe_size(
    spec: "StudySpec", configurations: int, ended: "Mapping[tuple[str, int], str]"
) -> str:
    """How many trials a study has, and how many of them are left."""
    trials = len(spec.planned_trials())
    seeds = count_noun(len(spec.seeds), "seed")
    known = f"{configurations} configurations"
    what = known if configurations else f"{spec.trials} drawn by {spec.sampler}"
    if spec.baseline is not None:
        what = f"({what} + baseline)"
    if spec.nuisance is not None:
        tried, own = count_noun(len([*spec.nuisance.candidates()]), "value"), spec.nuisance.seeds
        seeds = f"({seeds} + {tried} x {count_noun(len(own), 'seed')} to choose by)"
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


def cost_lines(costs: "Estimate | NoEstimate") -> list[str]:
    """Time, memory and disk, a line each; or why there is no estimate."""
    from rich.filesize import decimal

    if isinstance(costs, NoEstimate):
        return [f"no estimate: {costs.reason}"]
    workers, trials = count_noun(costs.workers, "worker"), count_noun(costs.trials, "trial")
    threads = count_noun(costs.threads, "thread")
    if costs.fewest != costs.trials:
        trials = f"{costs.fewest} to {trials}"
    whole = _span(costs.between)
    if costs.seconds is not None:
        whole = f"about {format_seconds(costs.seconds)}"
    lines = [
        f"time    {whole}: {trials} of {_span(costs.trial)} on {workers} with {threads}, after "
        f"{format_seconds(costs.start)} to start",
        f"memory  up to {decimal(costs.memory)}: {workers} of {decimal(costs.worker_memory)}",
    ]
    if costs.gpu_memory:
        fit = f"up to {costs.gpu_workers} fit on each GPU (--jobs-per-gpu)"
        fit = fit if costs.gpu_workers else "more than the smallest GPU has"
        lines.append(f"GPU     {decimal(costs.gpu_memory)} for each worker: {fit}")
    others = "; others varied or follow from smaller batches"
    return [
        *lines,
        f"disk    {decimal(costs.database)} of database, {decimal(costs.model)} for the best model",
        *(f"encoder {name}: {text}" for name, text in costs.encoders.items()),
        f"basis   {costs.known} of {costs.kinds} kinds of step were timed to within 10 %"
        + others * (costs.known < costs.kinds),
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
    """The design in a few lines."""
    from mtdlab.analysis.inference.looks import describe_recorded

    lines, specified = [], design.specification
    if isinstance(design.power, BestPower):
        lines += _describe_best_power(design.power, specified.looks, specified.margin)
    elif design.power:
        lines += _describe_power(design.power, specified.looks, specified.margin)
    if len(design.looks) > 1:
        levels = ", ".join(f"{look.seeds} ({look.nominal_level:.2g})" for look in design.looks)
        lines.append(f"looks   at seeds (nominal level): {levels}")
    state = "not recorded"
    if specified.trials_started is not None:
        state = f"recorded {describe_recorded(specified.trials_started)}"
    return [
        *lines,
        f"verdict margin {specified.margin:g}, alpha {specified.alpha:g}, metric "
        f"{specified.metric}; {state}",
        f"        SHA-256 {specified.sha256}",
    ]


def _describe_power(power: Power, looks: list[int], margin: float) -> list[str]:
    """What the study finds, what 80 % power takes, and what that assumes."""
    items, precision = power.items, power.precision
    seeds, (own, *others) = count_noun(looks[-1], "seed"), power.needs
    texts = [_describe_found(power, looks)]
    if own.peak:
        peaks = [f"with {need.levels} levels {_needed(need.peak, items)}" for need in others]
        needed = "; ".join([_needed(own.peak, items), *peaks])
        texts += [*_describe_tested(power), f"80 % power in one test for the peak takes {needed}"]
    texts.append(f"80 % power in one test for the slope takes {_needed(own.slope, items)}")
    if flat := power.flat:
        texts.append(
            f"{seeds} show a flat score to be flat within {flat.margin:.2g} points (80 % power)"
        )
        if flat.items:
            texts[-1] += (
                f", any number of seeds within {flat.least:.2g}; the margin of {margin:g} takes "
                f"at least {_at_least(flat.items)} items"
            )
    texts.append(
        f"residual standard deviation {precision.residual_sd:.2g} points, "
        f"{power.bases['errors']}; correlations between levels {power.bases['correlations']}"
    )
    return _wrap("power", texts) + _describe_precision(power, seeds, "levels")


def _describe_best_power(power: BestPower, looks: list[int], margin: float) -> list[str]:
    """The power of a study that compares configurations, what 80 % takes, and what it assumes."""
    items, need, seeds = power.items, power.need, count_noun(power.seeds, "seed")
    what = f"a best of {power.compared} configurations, {power.effect:g} points above the others"
    found = (
        f"{seeds}{_at_looks(looks)} separate {what}, in {100 * power.separated:.0f} % of studies"
    )
    if looks[-1] < 2:
        found = "one seed finds nothing: configurations are compared over at least two"
    texts = [
        found,
        f"80 % power in one test to separate it takes {_needed(need.separated, items)}",
        f"80 % power to show that configurations without a difference lie within {margin:g} points "
        f"of each other takes {_needed(need.equivalent, items)}",
        f"residual standard deviation {power.precision.residual_sd:.2g} points, "
        f"{power.bases['errors']}; errors of configurations independent",
    ]
    return _wrap("power", texts) + _describe_precision(power, seeds, "configurations")


def _describe_precision(power: Power | BestPower, seeds: str, compared: str) -> list[str]:
    """What limits a comparison of two levels, or configurations: seeds or items."""
    precision, basis = power.precision, power.bases["items"]
    more = "seeds" if precision.of_seeds > precision.of_items else "items"
    text = (
        f"standard error of a difference between two {compared}: {precision.of_seeds:.2g} points "
        f"from {seeds}, {precision.of_items:.2g} from {power.items:,} evaluation items ({basis}); "
        f"more {more} help more"
    )
    return _wrap("items", [text if power.items else basis])


def _at_looks(looks: list[int]) -> str:
    return f", with looks at {', '.join(map(str, looks))}," if len(looks) > 1 else ""


def _describe_found(power: Power, looks: list[int]) -> str:
    """How often the study finds a peak or a slope."""
    if looks[-1] < 2:
        return "one seed finds nothing: levels are compared over at least two"
    effect, planned = power.effect, power.planned
    slope = f"a slope of {effect:g} points over the range in {100 * planned.slope:.0f} %"
    if planned.peak is None:
        both = f"{slope} of studies; two levels show no peak"
    else:
        both = f"a peak of {effect:g} points in {100 * planned.peak:.0f} % of studies, {slope}"
    return f"{looks[-1]} seeds{_at_looks(looks)} find {both}"


def _describe_tested(power: Power) -> list[str]:
    """What the peak is at the levels that are tested, where its top lies between them."""
    from mtdlab.analysis.data.runs import format_mtd

    tested = power.tested
    if tested.above_ends > 0.995 * power.effect or tested.mtd is None:
        return []
    return [
        "the peak is a parabola in log MTD with its top in the middle of the range: at MTD "
        f"{format_mtd(tested.mtd)}, its highest tested level, {tested.above_ends:.2f} points "
        "above both ends"
    ]


def _needed(needed: "Needed | None", items: int) -> str:
    """What 80 % power takes: seeds, or that no number of them is enough."""
    if needed and needed.seeds:
        return f"{needed.seeds} seeds"
    if needed and needed.items:
        wanted = _at_least(needed.items)
        return f"at least {wanted} items instead of {items:,}, whatever the number of seeds"
    return "more than 512 seeds"


def _at_least(items: int) -> str:
    """A number of items, rounded up to two digits."""
    unit = 10 ** max(len(str(items)) - 2, 0)
    return f"{-(-items // unit) * unit:,}"


def _wrap(name: str, texts: list[str]) -> list[str]:
    """Texts, each from a new line, after a name."""
    lines = []
    for text in texts:
        lines += textwrap.wrap(text, _WIDTH, initial_indent=8 * " ", subsequent_indent=10 * " ")
    return [f"{name:<8}{lines[0].lstrip()}", *lines[1:]]
