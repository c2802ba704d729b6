"""`mtdlab.run_study` and `train`: a study, and a single training run."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.analysis.data.defaults import MODELS_FOLDER
from mtdlab.api.given import Given, Overrides, StudySource, assign
from mtdlab.errors import MtdlabError, TrialError, describe, naming_missing
from mtdlab.terminal import progress_bar, warn

if TYPE_CHECKING:
    from mtdlab.evaluation.suite import Evaluation
    from mtdlab.settings import TrainerSettings
    from mtdlab.sweep.run import SweepResult


@naming_missing()
def run_study(
    study: StudySource,
    *,
    storage: str | Path | None = None,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    objective: str | None = None,
    models: str | Path = MODELS_FOLDER,
    artifacts: str | Path | None = None,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    retry_failed: bool = False,
    changed_code: bool = False,
    max_failed: int | None = None,
    scheduler: str | None = None,
) -> "SweepResult":
    """Run or resume a study, as `mtdlab sweep`; read it with `load_study` afterwards.

    Args:
        storage: a database URL or a SQLite file; by default MTDLAB_STORAGE, then OPTUNA_STORAGE,
            then mtdlab.db in the working folder.
        profile: one of the file's profiles.
        imports: Python files or modules that define training methods.
        evaluator: MODULE:FUNCTION that scores encoders, as --evaluator.
        objective: what trains in place of mtdlab's trainer: MODULE:FUNCTION, or a method that
            brings a trainer.
        models: folder in which the best trial's model is kept, in one named after the study.
        artifacts: shared folder or fsspec URL to which models and checkpoints are copied, as
            --artifacts; by default that of the study's first sweep with one.
        jobs: worker processes; by default one a core, or `jobs_per_gpu` on each GPU.
        changed_code: with retry_failed: failed trials run with modules that have changed.
        max_failed: the sweep ends, with exit code 1, when so many trials of the study have failed.
        scheduler: of a dask cluster whose workers run the trials, tcp://HOST:PORT.

    Raises MtdlabError where the study cannot be run, StorageError where the database fails.
    """
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.run import Execution, sweep

    given = Given(study, profile, assign(overrides), imports, evaluator, objective, storage)
    return sweep(
        given.read(),
        storage_url(storage),
        Execution(jobs, jobs_per_gpu, retry_failed, changed_code, max_failed, scheduler=scheduler),
        models=Path(models),
        artifacts=artifacts if artifacts is None else str(artifacts),
        invocation=given.invocation(models, artifacts),
    )


@naming_missing()
def train(
    study: str | Path | None = None,
    *,
    profile: str | None = None,
    overrides: Overrides | None = None,
    imports: Sequence[str] = (),
    evaluator: str | None = None,
    out: str | Path | None = None,
) -> dict[str, Any]:
    """Train one encoder without a study, as `mtdlab train`; returns what that prints with --json.

    Args:
        study: a study file, or a packaged study, whose trainer section to take; None: the defaults.
        out: a folder for the model, as SentenceTransformer opens it; None keeps nothing.

    Raises MtdlabError where settings or data are wrong, TrialError where training fails.
    """
    given = Given(study, profile, assign(overrides), imports, evaluator)
    return run_once(given.settings(), None if out is None else Path(out))


def run_once(settings: "TrainerSettings", out: Path | None = None) -> dict[str, Any]:
    """Train one encoder and return scores, MTD and encoder; saves the best checkpoint to `out`.

    Raises TrialError where training fails, MtdlabError where `out` is there and no saved model.
    """
    from mtdlab.training.present import check_present, warn_of_data

    # before the seconds that importing torch takes
    check_present([settings])
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.settings.tasks import score_of_selection
    from mtdlab.training.export import check_model_folder, locked, save_model
    from mtdlab.training.inputs import load_inputs
    from mtdlab.training.loop import train
    from mtdlab.trial.environment import environment_of
    from mtdlab.trial.signals import stop_on_signals

    if out is not None:
        # before the training, not after it
        check_model_folder(out)
    with stop_on_signals() as stop, progress_bar(counts=True) as bar:
        task = bar.add_task("loading", total=settings.steps)
        inputs = load_inputs(settings)
        for warning in warn_of_data([settings]):
            warn(warning)
        bar.reset(task, description="training")

        def on_step(step: int, evaluation: "Evaluation | None") -> None:
            if stop.requested():
                raise KeyboardInterrupt
            bar.update(task, completed=step, description=settings.phase_after(step))
            if evaluation is not None:
                bar.console.print(
                    f"step {step}  {score_of_selection(settings.select_on)} {evaluation.score:.2f}",
                    highlight=False,
                )

        try:
            outcome = train(settings, inputs, on_step)
        except (MtdlabError, TrialError):
            raise
        except Exception as error:
            # of a method or a metric of the user's own, or of the memory
            raise TrialError(describe(error)) from error
    facts = environment_of(settings, inputs).sentences()
    if out is not None:
        with locked(out.absolute()):
            save_model(out, settings, inputs, outcome, facts)
    after = outcome.after
    return {
        "mtd": mtd_value(settings.mtd),
        "seed": settings.seed,
        "best_step": outcome.best_step,
        **after.finite(),
        "sts_test_before": outcome.before.test.score,
        "alignment": after.test.alignment,
        "uniformity": after.test.uniformity,
        "seconds": outcome.wall_seconds,
        "encoder": facts["encoder"],
    }
