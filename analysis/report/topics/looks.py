"""Topic: the specification of the verdict, when it was recorded, and the looks."""

import itertools
import math
from dataclasses import replace

from mtdlab.analysis.data.frames import Plan, StudyFrames
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.inference.looks import over_looks_of
from mtdlab.analysis.inference.verdict import UNMEASURED
from mtdlab.analysis.questions.wording import clean, describe_recorded, format_p
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic

_LABELS = {
    "runs": "trials",
    "alpha": "nominal level",
    "spent": "error probability spent so far",
    "p_value": "p",
    "added": "trials added",
}
_LATE = (
    "What the verdict is judged by was specified or changed when trials had begun: its error rate "
    "holds only if the results were not looked at."
)
_KEPT = "levels of MTD beyond the run kept, "
_SPECIFIED = ("metric", "margin", "alpha", "beyond_run", "looks")
_ENDS = {
    "decided": "The study ended there, because its verdict was decided.",
    "flat": "The study ended there for futility: any two levels differ by less than the margin.",
    "equivalent": "The study ended there for futility: what may be the best, or is asked about, "
    "differs by less than the margin.",
    "max_seeds": "The study ended there undecided, at its largest number of seeds.",
    "no scores": "The study ended there, because there was nothing to compare.",
}

# looks that were recorded before history was asked for
_NAMED = dict.fromkeys(("flat", "equivalent"), UNMEASURED)


def _describe_plans(plans: tuple[Plan, ...]) -> str:
    if not plans:
        return ""
    first, values = plans[0], plans[0].values
    write = ScoreFormat(str(values["metric"]), float(values["margin"]))
    changes = []
    for old, new in itertools.pairwise(plans):
        pairs = ((name, old.values[name], new.values[name]) for name in _SPECIFIED)
        changed = [f"{name} from {was} to {now}" for name, was, now in pairs if was != now]
        changed += ["the questions"] if old.questions != new.questions else []
        changes.append(f"{clean(', '.join(changed))} {describe_recorded(new.trials)}")
    afterwards = f"Changed afterwards: {'; '.join(changes)}."
    return (
        f"Recorded {describe_recorded(first.trials)}: metric {clean(write.name)}, margin "
        f"{write.stated_margin}, α {values['alpha']:g}, "
        f"{_KEPT if values['beyond_run'] == 'keep' else ''}verdict computed at "
        f"{', '.join(map(str, values['looks']))} seeds (SHA-256 {clean(first.sha256)}). "
        f"{afterwards if changes else 'This was not changed afterwards.'}"
    )


def _describe_looks(study: StudyFrames) -> tuple[str, ...]:
    planned = list(study.plans[-1].values["looks"]) if study.plans else [0]
    if not len(study.looks):
        first = "The first look at the verdict is taken when its trials have ended."
        return (first,) if len(planned) > 1 else ()
    last = study.looks.iloc[-1]
    p_value, over = format_p(float(last["p_value"])), over_looks_of(study)
    if over and over.taken > 1 and math.isfinite(over.p_value):
        p_value += f"; {format_p(over.p_value)} over the looks so far, by stage-wise ordering"
    ending = _ENDS.get(last["decision"], "Trials are added up to the next look.")
    configurations = int(study.trials.groupby("seed").size().max()) if len(study.trials) else 0
    return (
        f"Look {last['look']} of {len(planned)}, at {last['seeds']} seeds: {last['verdict']} "
        f"({p_value}). {ending} It took {format_count(int(last['runs']), 'trial')}; all "
        f"configurations with all seeds would be {configurations * planned[-1]:,}.",
        "Each look compares p with a nominal level, so that all looks together have the error "
        "rate α (Lan and DeMets 1983; spent in proportion to the seeds). The verdict above is "
        "that of the last look and of its trials. Its intervals are made at the confidence that "
        f"belongs to the nominal level of that look, {100 * (1 - last['alpha']):.3g} %, so that "
        f"those of all looks together have {100 * (1 - study.alpha):.3g} %. The nominal levels "
        "hold also where a study that could have ended for futility is continued.",
    )


def build(context: StudyContext) -> Contents | None:
    """The specifications and looks; None for a study that recorded neither."""
    study, known = context.study, context.question.judged.history
    if known is not None and not known.is_shown:
        study = replace(study, looks=study.looks.replace({"verdict": _NAMED}))
    if not study.plans and not len(study.looks):
        return None
    looks = study.looks.drop(columns="trials")
    return Contents(
        csv={"looks": looks},
        text=(_describe_plans(study.plans), *_describe_looks(study)),
        warnings=[_LATE] if any(plan.trials for plan in study.plans) else [],
        tables=[make_table(looks, caption="Looks at the verdict.", csv="looks", labels=_LABELS)],
        folded=True,
    )


TOPIC = Topic("looks", "What was specified beforehand", build, csv=["looks"])
