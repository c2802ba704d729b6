"""SOURCE_DATE_EPOCH: the time that a reproducible build states in place of the present one."""

import os
from datetime import UTC, datetime

from mtdlab.errors import MtdlabError


def source_date() -> datetime | None:
    """That time; None where it is not set. Raises MtdlabError where it is no time.

    Every command checks it: NumPy reads it too when it is imported, as a whole number of seconds.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return None
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise MtdlabError(
            f"SOURCE_DATE_EPOCH is {given!r}; give whole seconds since 1970, such as 1700000000"
        ) from None
