"""Opening a study for a sweep: its row and trials created, or compared with the study file."""

from collections.abc import Iterator
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.config.settings import TrainerSection
from mtdlab.errors import MtdlabError
from mtdlab.store import Store
from mtdlab.store.database import writing_engine
from mtdlab.store.setting_names import present_settings
from mtdlab.sweep.optuna_study import OptunaStudy


def open_study(spec: StudySpec, url: str, command: str) -> Store:
    """Create the study or add the file's new trials to it, and repair what killed sweeps left.

    Raises MtdlabError where the file differs from the recorded one in more than added trials,
    StorageError where the database fails.
    """
    # mtdlab's tables first: a file that is no database is refused before Optuna opens it
    writing_engine(url)
    optuna_study = OptunaStudy(url, spec)
    store = Store(url, optuna_study.study_id)
    store.forget_deleted(spec.name, optuna_study.trial_ids)
    recorded = store.study()
    if recorded is None:
        _write(store, spec, command)
    else:
        _refuse_other_settings(spec, recorded.identity)
    if missing := store.add_units(spec.units()):
        raise MtdlabError(
            f"study {spec.name} holds {len(missing)} trials that the file no longer has "
            f"(such as seed {missing[0][1]}); put them back, or give the study another name"
        )
    _write(store, spec, command)
    optuna_study.synchronise(store)
    return store


def _write(store: Store, spec: StudySpec, command: str) -> None:
    description = getattr(spec, "description", "")
    store.write_study(
        spec.name, spec.metric, spec.identity(), spec.text, command, description=description
    )


def _refuse_other_settings(spec: StudySpec, recorded: dict[str, Any]) -> None:
    """Only trials may be added to a study: results of other settings are not comparable."""
    new = spec.identity()
    old = recorded | {name: present_settings(recorded[name]) for name in ("trainer", "search")}
    # a setting that did not exist yet when the study was begun had its default value
    old["trainer"] = _defaults(new["trainer"]) | old["trainer"]
    differences = [
        f"{setting}: was {before}, now {now}" for setting, before, now in _differences(old, new)
    ]
    if differences:
        raise MtdlabError(
            f"study {spec.name} was begun with another file ({'; '.join(differences)}); "
            "put that back, or give the study another name"
        )


def _defaults(trainer: dict[str, Any]) -> dict[str, Any]:
    defaults = TrainerSection().model_dump(mode="json")
    return {name: defaults[name] for name in trainer}


def _differences(old: object, new: object, path: str = "") -> Iterator[tuple[str, object, object]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new
