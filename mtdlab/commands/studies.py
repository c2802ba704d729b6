"""The command studies: what a database holds."""

from typing import TYPE_CHECKING, Any

from mtdlab.commands.options import AsJson, Storage
from mtdlab.commands.printing import print_json, print_table, rounded_mtd
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.store import StudyOverview


def studies(storage: Storage = None, as_json: AsJson = False) -> None:
    """List the studies of a database: state, trials, best score, date of the last trial."""
    from mtdlab.store import list_studies
    from mtdlab.store.plans import planned_names
    from mtdlab.store.urls import storage_url

    found, planned = list_studies(storage), planned_names(storage_url(storage))
    if as_json:
        print_json({"studies": [study_fields(each) for each in found], "planned": planned})
        return
    if found:
        print_table([_row(each) for each in found])
        print_text("best: reported score of the trial that ranks first. More: mtdlab show STUDY")
    if planned:
        print_text(f"planned, without trials yet: {', '.join(planned)}; next: mtdlab sweep FILE")
    elif not found:
        print_text("no study yet")


def study_fields(study: "StudyOverview") -> dict[str, Any]:
    """A study as it is printed with --json; `last` is when a trial last began or ended."""
    states = ("COMPLETE", "RUNNING", "WAITING", "FAIL", "PRUNED")
    return {
        "study": study.name,
        "state": study.state,
        "metric": study.metric,
        "select_by": study.select_by,
        "planned": study.planned,
        **{state.lower(): study.counts.get(state, 0) for state in states},
        "best": best_fields(study),
        "last": study.last and study.last.isoformat(timespec="seconds"),
    }


def best_fields(study: "StudyOverview") -> dict[str, Any] | None:
    """The best trial with its MTD, the score that ranks it, and the score that is reported."""
    if (best := study.best) is None:
        return None
    mtd = rounded_mtd(best.mtd)
    ranking = {"select_by_score": best.ranking, "score": best.score}
    return {"trial": best.number, "mtd": mtd} | ranking


def _row(study: "StudyOverview") -> dict[str, Any]:
    failed = study.counts.get("FAIL", 0)
    best = study.best
    return {
        "study": study.name,
        "state": study.state + (f", {failed} failed" if failed and study.best else ""),
        "trials": f"{study.counts.get('COMPLETE', 0)}/{study.planned}",
        "metric": study.metric,
        "best": None if best is None or best.score is None else f"{best.score:.2f}",
        "trial": None if best is None else best.number,
        "last": study.last and f"{study.last:%Y-%m-%d %H:%M}",
    }
