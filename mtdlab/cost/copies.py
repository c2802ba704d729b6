"""Copies of this process, which start at once: new processes import everything for seconds.

Only for a command that is the process's whole work: locks that other threads hold stay locked in a
copy.
"""

import multiprocessing
import os
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from typing import TypeVar

Value = TypeVar("Value")


def can_copy() -> bool:
    """Whether copies are safe and there is a processor for one: on Linux, with several cores."""
    return platform.system() == "Linux" and (os.cpu_count() or 1) > 1


def copies(count: int, prepare: Callable[[], None] | None = None) -> ProcessPoolExecutor:
    """An executor with copies of this process, each of which calls `prepare` first."""
    context = multiprocessing.get_context("fork")
    return ProcessPoolExecutor(count, mp_context=context, initializer=prepare)


def begin_in_copy(function: Callable[[], Value]) -> Callable[[], Value]:
    """Call a function in a copy of this process; the returned function waits for its result."""
    executor = copies(1)
    future = executor.submit(function)
    executor.shutdown(wait=False)
    return cache(future.result)
