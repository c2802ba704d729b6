"""Encoders of these tests compute in float32."""

import pytest


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the processor has bfloat16 instructions: results differ in the third digit."""
    monkeypatch.setattr("mtdlab.device._has_bfloat16", lambda _: False)
