"""Folders of encoders that bring Python code of their own, which is never run."""

import json
from pathlib import Path
from typing import Any

import transformers
from transformers import CONFIG_MAPPING

from mtdlab.encoders.folders import find_file
from mtdlab.errors import MtdlabError

NEVER: dict[str, Any] = {"trust_remote_code": False}
"""Argument of every `from_pretrained`. Without it transformers asks on the terminal whether to run
the folder's code."""


def refuse_own_code(what: str, name: str) -> None:
    """Raise MtdlabError for a model or tokenizer of a class that is only in its own folder.

    A folder whose `auto_map` names code beside a class that transformers has too is loaded as that
    class.

    what  names it in the message; name: of a folder or on the hub.
    """
    config, tokenizer = (_read(name, f"{each}config.json") for each in ("", "tokenizer_"))
    known = {
        "config.json": str(config.get("model_type")) in CONFIG_MAPPING,
        "tokenizer_config.json": hasattr(transformers, str(tokenizer.get("tokenizer_class"))),
    }
    for file, fields in (("config.json", config), ("tokenizer_config.json", tokenizer)):
        if fields.get("auto_map") and not known[file]:
            raise MtdlabError(
                f"{what}: needs Python code of its own ({file} has auto_map), which mtdlab never "
                "runs; choose an encoder of a family that transformers has"
            )


def _read(name: str, file: str) -> dict[str, Any]:
    """The fields of a JSON file; none where it is missing or damaged, which loading reports."""
    path = find_file(name, file)
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
