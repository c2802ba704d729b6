"""A training run without a study, for the command train."""

import math
import sys
from pathlib import Path
from typing import Any

from mtdlab.commands.printing import rounded_mtd
from mtdlab.config import TrainerSettings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.sts_average import warn_of_missing_sets
from mtdlab.sweep.environment import environment
from mtdlab.sweep.signals import Interrupted, stop_on_signals
from mtdlab.terminal import print_text, progress_bar
from mtdlab.training.export import check_model_folder, locked, save_model
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train


def run_once(settings: TrainerSettings, out: Path | None = None) -> dict[str, Any]:
    """Train one encoder and return its scores and MTD; saves the best checkpoint to `out`.

    Raises TrialError where training fails, KeyboardInterrupt where it is interrupted, and
    MtdlabError where `out` exists and is not a saved model.
    """
    if out is not None:
        # before the training, not after it
        check_model_folder(out)
    with stop_on_signals() as stop, progress_bar(counts=True) as bar:
        task = bar.add_task("loading", total=settings.steps)
        inputs = load_inputs(settings)
        for warning in _warnings(settings, inputs):
            print_text(f"mtdlab: {warning}", file=sys.stderr)
        bar.reset(task, description="training")

        def on_step(step: int, evaluation: Evaluation | None) -> None:
            if stop.requested():
                raise Interrupted
            # this function is called next after the evaluation: shown one step before it
            ahead = min(step + 1, settings.steps)
            is_evaluated = ahead == settings.steps or ahead % settings.evaluate_every == 0
            phase = "evaluating" if is_evaluated else "training"
            bar.update(task, completed=step, description=phase)
            if evaluation is not None:
                bar.console.print(
                    f"step {step}  {settings.select_on} {evaluation.score:.2f}", highlight=False
                )

        try:
            outcome = train(settings, inputs, on_step)
        except Interrupted:
            raise KeyboardInterrupt from None
    if out is not None:
        with locked(out.absolute()):
            save_model(out, settings, inputs, outcome, environment(settings, inputs))
    after = outcome.after
    return {
        "mtd": rounded_mtd(settings.mtd),
        "seed": settings.seed,
        "best_step": outcome.best_step,
        **{task: score for task, score in outcome.all_scores().items() if math.isfinite(score)},
        "sts_test_before": outcome.before.test.score,
        "alignment": after.test.alignment,
        "uniformity": after.test.uniformity,
        "seconds": outcome.wall_seconds,
    }


def _warnings(settings: TrainerSettings, inputs: RunInputs) -> list[str]:
    """The sets that `sts_average` lacks, and the tasks whose files are shorter than published."""
    found = [f"task {name}: {text}" for name, text in inputs.suite.shortfalls.items()]
    if settings.select_on == "sts_average" and (
        warning := warn_of_missing_sets(settings.evaluation)
    ):
        found.append(warning)
    return found
