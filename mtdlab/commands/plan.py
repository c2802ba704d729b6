"""The command plan: a study's configurations, power and looks, and an estimate of its cost."""

import shlex
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.commands.options import (
    AsJson,
    Evaluator,
    Imports,
    Jobs,
    JobsPerGpu,
    Objective,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    find_code,
    written_options,
)
from mtdlab.commands.printing import print_json, print_table, rounded_mtd
from mtdlab.errors import StorageError
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mtdlab.config import StudySpec

MAIN_SETTINGS = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")
"""Settings that the table shows whether they are searched or not: those behind the MTD."""


def plan(
    file: StudyFile,
    profile: Profile = None,
    set_: Overrides = None,
    import_: Imports = None,
    evaluator: Evaluator = None,
    objective: Objective = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Time a few steps to estimate the cost on this machine."
        ),
    ] = True,
    jobs: Jobs = None,
    jobs_per_gpu: JobsPerGpu = 1,
    effect: Annotated[
        float, typer.Option(min=0.01, help="Points of the peak or slope that has to be found.")
    ] = 2.0,
    sd: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            show_default=False,
            help="Residual standard deviation of a run. Default: that of the study's runs, or 1.5.",
        ),
    ] = None,
    storage: Storage = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record/--no-record", help="Record what the verdict is judged by in the database."
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show a study's configurations, the seeds that it needs, its looks, and estimate its cost.

    The cost is that of the trials that are left. Records margin, alpha, looks and metric with a
    hash, before the first trial.
    """
    from mtdlab.commands.plan_cost import cost_lines, find_costs
    from mtdlab.commands.plan_design import begin_design, describe_design
    from mtdlab.config import read_study
    from mtdlab.encoders.folders import POOLING_FILE
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.preflight import setting_warnings
    from mtdlab.sweep.recorded_study import as_begun

    code = find_code(import_, evaluator, objective, file)
    spec = as_begun(read_study(file, set_ or [], profile, *code), storage_url(storage))
    design = begin_design(spec, storage, effect=effect, sd=sd, record=record, in_copy=measure)
    rows = planned(spec)
    warnings = warn_of_design(rows) + setting_warnings(spec)
    ended = ended_trials(spec, storage_url(storage))
    units = {(unit.setting, unit.seed) for unit in spec.units()}
    is_measured = measure and bool(units - ended.keys())
    if as_json:
        found = {}
        if is_measured:
            found["estimate"] = find_costs(spec, jobs, jobs_per_gpu, ended, design)
        fields = {"study": spec.name, "trials": len(units), "remaining": len(units - ended.keys())}
        fields |= {"settings": rows, "warnings": warnings}
        print_json(fields | design() | found)
        raise typer.Exit(found.get("estimate", {}).get("exit_code", 0))

    @cache
    def print_design() -> None:
        print_text("\n".join(describe_design(design())), flush=True)
        print_text("".join(f"warning {warning}\n" for warning in warnings), end="", flush=True)

    if rows:
        print_table(rows)
    print_text(describe_size(spec, len(rows), ended), flush=True)
    pooling = spec.encoder_pooling
    if pooling and any(spec.fixed(method).pooling == pooling for method in spec.methods):
        print_text(f"pooling {pooling}, from the encoder's {POOLING_FILE}")
    costs = find_costs(spec, jobs, jobs_per_gpu, ended, print_design) if is_measured else None
    print_design()
    if costs is not None:
        options = written_options(
            profile=profile,
            set_=set_,
            import_=import_,
            evaluator=evaluator,
            objective=objective,
            storage=storage,
        )
        command = shlex.join(["mtdlab", "sweep", str(file), *options])
        print_text("\n".join(cost_lines(costs, command)))
    if not units - ended.keys():
        print_text(f"nothing is left to run; next: mtdlab report --study {spec.name}")
    raise typer.Exit((costs or {}).get("exit_code", 0))


def ended_trials(spec: "StudySpec", url: str) -> dict[tuple[str, int], str]:
    """The state of each trial that a sweep would not run, by configuration and seed."""
    from mtdlab.store.progress import FINISHED
    from mtdlab.store.recorded import read_states

    try:
        states = read_states(url, spec.name)
    except StorageError:
        return {}  # no database yet
    return {unit: state for unit, state in states.items() if state in FINISHED}


def describe_size(
    spec: "StudySpec", configurations: int, ended: "Mapping[tuple[str, int], str]"
) -> str:
    """How many trials a study has, and how many of them are left."""
    trials = len(spec.units())
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) > 1 else ''}"
    known = f"{configurations} configurations"
    what = known if configurations else f"{spec.trials} drawn by {spec.sampler}"
    most = "at most " if spec.until else ""
    text = f"study {spec.name}: {what} x {seeds} = {most}{trials} trials"
    if not ended:
        return text
    failed = sum(state == "FAIL" for state in ended.values())
    done = f"{len(ended) - failed} done" + (f", {failed} failed" if failed else "")
    return f"{text}; {done}, {most}{trials - len(ended)} left"


def planned(spec: "StudySpec") -> list[dict[str, Any]]:
    """A row per configuration, by MTD: its main settings and those that are searched.

    A setting that the configuration's method lacks is None, and so is the MTD of a method without
    one. Empty for a sampled study, whose configurations are drawn while it runs.
    """
    first = [unit for unit in spec.units() if unit.seed == spec.seeds[0]]
    rows = []
    for unit in first:
        if unit.parameters is None:
            return []
        settings = spec.settings(unit.parameters, unit.seed)
        names = dict.fromkeys((*MAIN_SETTINGS, *spec.search))
        values = settings.model_dump()
        row = {name: values.get(name) for name in names if name in spec.known}
        rows.append({"mtd": rounded_mtd(settings.mtd)} | row)
    return sorted(rows, key=lambda row: (row["mtd"] is None, row["mtd"]))


def warn_of_design(rows: "Sequence[Mapping[str, Any]]") -> list[str]:
    """What the planned configurations confound with MTD. rows  as from `planned`."""
    from analysis.confounding import describe_confounding

    traced = [row for row in rows if row["mtd"] is not None]
    decays = [row["ema_decay"] for row in traced]
    ratios = [row["queue_size"] / row["batch_size"] for row in traced]
    text = describe_confounding(decays, ratios)
    return [text] if text else []
