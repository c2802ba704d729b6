"""Measures the keys of a run: fixed sentences are encoded at several of its steps.

`KeySimilarity` compares keys of the ages in use with the online encoder, in each run of a method
that has such keys. `Probe` compares keys at fixed lags, where `probe_every` asks for it.

Letters: M sentences, B stored earlier probes, P probes so far, L lags, D dimension.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mtdlab.corpus.tokens import TokenStore
from mtdlab.methods.base import Method, Tokens

SENTENCES = 64
"""How many sentences are probed; of a smaller corpus, all."""
LAGS = tuple(2**power for power in range(8))
"""The lags between compared probes, in probes: 1 to 128."""
Column = NDArray[np.float32]


def probed_rows(count: int, most: int = SENTENCES) -> NDArray[np.int64]:
    """M evenly spaced rows (M,) of `count` sentences, with both ends; the same in every trial."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(np.int64)


class Probe:
    """Cosines between the keys of fixed sentences now and some steps ago.

    The keys of the last 128 probes are stored: 25 MB for 64 sentences of dimension 768. Values
    stay on the device of the run, because copying them would synchronise with the GPU.
    """

    def __init__(self, tokens: TokenStore, every: int, device: torch.device) -> None:
        ids, mask = tokens.batch(probed_rows(len(tokens)))
        self._sentences: Tokens = ids.to(device), mask.to(device)
        self._every = every
        self._keys: deque[Tensor] = deque(maxlen=max(LAGS))
        self._steps: list[int] = []
        self._rows: list[Tensor] = []

    def record(self, step: int, method: Method[Any]) -> None:
        """Compare the keys with earlier ones before a step (0 is the first), if that is due."""
        if step % self._every:
            return
        keys = method.keys(*self._sentences)
        row = keys.new_full((1 + len(LAGS),), torch.nan, dtype=torch.float64)
        row[0] = mean_cosine_of_others(keys)
        for place, lag in enumerate(LAGS, 1):
            if lag <= len(self._keys):
                row[place] = (keys * self._keys[-lag]).sum(dtype=torch.float64) / len(keys)
        self._rows.append(row)
        self._steps.append(step)
        self._keys.append(keys)

    def columns(self) -> dict[str, Column]:
        """The measurements, (P,) each.

        step: number of steps done before the probe.
        cosine_different: mean cosine of different sentences' keys.
        cosine/LAG: mean cosine of a sentence's key now and LAG steps ago; NaN where there was none.
        """
        table = self._table().float().cpu().numpy()
        columns = {"step": np.array(self._steps, dtype=np.float32), "cosine_different": table[:, 0]}
        for place, lag in enumerate(LAGS, 1):
            if lag < len(self._steps):
                columns[f"cosine/{lag * self._every}"] = table[:, place]
        return columns

    def state_dict(self) -> dict[str, Tensor]:
        """Steps (P,), measurements (P, 1 + L), and the keys of earlier probes (B, M, D)."""
        keys = torch.stack(list(self._keys)) if self._keys else torch.empty(0)
        return {"steps": torch.tensor(self._steps), "values": self._table(), "keys": keys}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        device = self._sentences[0].device
        self._steps = [int(step) for step in state["steps"]]
        self._rows = [row.to(device) for row in state["values"]]
        self._keys = deque((keys.to(device) for keys in state["keys"]), maxlen=max(LAGS))

    def _table(self) -> Tensor:
        if not self._rows:
            return torch.empty(0, 1 + len(LAGS), dtype=torch.float64)
        return torch.stack(self._rows)


COMPARED = 24
"""How many sentences `KeySimilarity` compares; of a smaller corpus, all."""
MOMENTS = 3
"""Before how many steps it compares them: in the middle of each third of a run."""
_COLUMNS = ("step", "age", "oldest_age", "similarity", "oldest_similarity", "different")


class KeySimilarity:
    """Cosines between keys of the ages in use and what the online encoder makes of their sentences.

    The keys in use are represented by those of M fixed sentences that are as old. Ages follow from
    the settings, so that keys are made at the few steps from which a comparison needs them.
    """

    def __init__(self, tokens: TokenStore, method: Method[Any]) -> None:
        steps = method.settings.steps
        moments = {(2 * third + 1) * steps // (2 * MOMENTS) for third in range(MOMENTS)}
        found = {step: method.ages_in_use(step) for step in sorted(moments)}
        self._ages = {step: ages for step, ages in found.items() if ages is not None}
        ids, mask = tokens.batch(probed_rows(len(tokens), COMPARED))
        device = method.device.device
        self._sentences: Tokens = ids.to(device), mask.to(device)
        self._keys: dict[int, Tensor] = {}
        self._rows: list[Tensor] = []

    def record(self, step: int, method: Method[Any]) -> None:
        """Make keys, and compare earlier ones, before a step (0 is the first), if that is due."""
        if self._is_needed(step, since=step):
            self._keys[step] = method.keys(*self._sentences)
        if step not in self._ages:
            return
        ages = self._ages[step]
        # a run that continues from a checkpoint without them lacks the keys of some steps
        if all(step - age in self._keys for age in ages):
            mean, oldest = (self._keys[step - age].double() for age in ages)
            now = method.online_keys(*self._sentences).double()
            cosines, count = now @ mean.T, len(now)
            same = cosines.trace()
            different = (cosines.sum() - same) / (count * (count - 1))
            values = (same / count, (now * oldest).sum() / count, different)
            self._rows.append(torch.stack([now.new_tensor([step, *ages]), torch.stack(values)]))
        later = (made for made in self._keys if self._is_needed(made, since=step + 1))
        self._keys = {made: self._keys[made] for made in [*later]}

    def _is_needed(self, made: int, since: int) -> bool:
        """Whether keys of a step are compared before step `since` or a later one."""
        return any(at >= since and at - made in ages for at, ages in self._ages.items())

    def columns(self) -> dict[str, Column]:
        """The measurements, (3,) each or fewer; none where the ages of keys are not known.

        step: number of steps done before the comparison.
        age, oldest_age: mean and greatest age of the keys in use, in steps.
        similarity, oldest_similarity: mean cosine of a sentence's key of that age and its vector by
        the online encoder now.
        different: the same of keys of the mean age and vectors of other sentences.
        """
        if not self._rows:
            return {}
        table = torch.stack(self._rows).flatten(1).float().cpu().numpy()
        return dict(zip(_COLUMNS, table.T, strict=True))

    def state_dict(self) -> dict[str, Any]:
        """The measurements (P, 2, 3), and keys (M, D) by the step before which they were made."""
        return {"values": list(self._rows), "keys": dict(self._keys)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        device = self._sentences[0].device
        self._rows = [row.to(device) for row in state["values"]]
        self._keys = {int(step): keys.to(device) for step, keys in state["keys"].items()}


def mean_cosine_of_others(keys: Tensor) -> Tensor:
    """The mean cosine () of all pairs of different rows of unit vectors (M, D); NaN for one row."""
    count, wide = len(keys), keys.double()
    total = wide.sum(dim=0).square().sum() - wide.square().sum()
    return total / (count * (count - 1))
