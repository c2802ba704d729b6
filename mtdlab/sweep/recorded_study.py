"""A study as its database defines it, for processes that have no study file."""

from collections.abc import Sequence
from dataclasses import replace

from mtdlab.config import StudySpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.reader import defined_study
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.programs import Program
from mtdlab.store.recorded import RecordedStudy, read_file_of, read_recorded
from mtdlab.sweep.open_study import refuse_other_objective
from mtdlab.sweep.optuna_study import recorded_folder
from mtdlab.user_code import UserModule


def read_defined(
    study: str, url: str, modules: Sequence[UserModule] = (), program: Program | None = None
) -> tuple[StudySpec, str]:
    """A study with the profile and --set of its last sweep, and the command of that sweep.

    modules, program  the imported ones, which have to be those of the study.

    Raises NothingToReport where the study is missing, MtdlabError where it needs other modules or
    another program, or was recorded by a version that did not keep its definition; StorageError
    where the database fails.
    """
    recorded = read_recorded(url, study)
    refuse_other_objective(study, recorded.objective, program.reference if program else "")
    if recorded.definition is None:
        raise MtdlabError(
            f"study {study} was recorded by an earlier version, without what workers need; run "
            "mtdlab sweep FILE --jobs 0 once on its file"
        )
    # it may have been renamed since
    definition = recorded.definition | {"study": study}
    folder = recorded_folder(study, url)
    spec = as_begun(defined_study(definition, recorded.text, modules, folder, program), url)
    refuse_other_modules(study, recorded, spec)
    return spec, recorded.command


def as_begun(spec: StudySpec, url: str) -> StudySpec:
    """The study with the pooling that it was begun with, where its file leaves that to the encoder.

    What the encoder's files declare may have become known since: fetched, or read by a later
    version. A study that is not recorded, or was begun with other encoders, stays as it is.
    """
    try:
        begun, said = read_file_of(url, spec.name)
    except StorageError:
        return spec  # no database yet
    if not begun:
        return spec
    given = {*spec.trainer, *spec.search, *(said.get("trainer") or {})}
    if isinstance(spec, ProgramSpec) or "pooling" in given:
        return spec
    for method in spec.methods:
        section = begun["trainer"].get(method, {}) if "method" in spec.search else begun["trainer"]
        if not section:
            continue  # the file has added this method
        now = spec.fixed(method)
        plain = type(now).model_fields["pooling"].default
        # a version without this setting read every encoder with the default
        recorded = section.get("pooling", plain)
        if recorded != now.pooling and section.get("encoder", now.encoder) == now.encoder:
            return replace(spec, encoder_pooling=None if recorded == plain else recorded)
    return spec


def refuse_other_modules(study: str, recorded: RecordedStudy, spec: StudySpec) -> None:
    """Raise MtdlabError where other modules were imported than those of a recorded study."""
    if recorded.imports != spec.imports:
        listed = ", ".join(recorded.imports) or "none"
        raise MtdlabError(
            f"study {study} used other imported modules than these (recorded: {listed}); name "
            "them with --import"
        )
