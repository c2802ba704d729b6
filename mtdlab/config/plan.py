"""What a study's verdict is judged by, as a record with a hash."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mtdlab.config.study import StudySpec


def plan_of(spec: StudySpec) -> dict[str, Any]:
    """Study, metric, margin, alpha and the numbers of seeds at which its verdict is computed."""
    return {
        "study": spec.name,
        "metric": spec.metric,
        "margin": spec.margin,
        "alpha": spec.alpha,
        "looks": list(spec.looks),
    }


def sha256_of(plan: Mapping[str, Any]) -> str:
    """SHA-256 of a plan: of its JSON in UTF-8 with sorted keys, without spaces."""
    text = json.dumps(dict(plan), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
