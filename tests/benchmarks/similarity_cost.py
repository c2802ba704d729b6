"""How many steps comparing the keys of a run with the online encoder takes as long as.

    python tests/benchmarks/similarity_cost.py [--steps N] [--corpus FILE]

Processor time of one thread, for three sizes of encoder. The number of comparisons does not depend
on the length of a run; its evaluations are not counted.
"""

import argparse
import time
from typing import Any
from unittest.mock import patch

import torch
from training_speed import SIZES, inputs_of, seconds_per_step, sentences

from mtdlab.device import choose_device
from mtdlab.settings import TrainerSettings
from mtdlab.training.probe import KeySimilarity


def main() -> None:
    """Print the steps of each size."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--corpus")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device = choose_device(TrainerSettings())
    tokens, record = sentences(given.corpus), KeySimilarity.record
    for size in SIZES:
        spent = [0.0]

        def timed(*arguments: Any, spent: list[float] = spent) -> None:
            began = time.process_time()
            record(*arguments)
            spent[0] += time.process_time() - began

        with patch.object(KeySimilarity, "record", timed):
            inputs = inputs_of(size, tokens, device)
            step = seconds_per_step(inputs, given.steps, time.process_time)
        steps = spent[0] / step
        print(f"{size}: {steps:.2f} steps, {100 * steps / 160:.2f} % of 160")


if __name__ == "__main__":
    main()
