"""What worker processes of tests do; a worker imports this file, and no pytest."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path


def add_slowly(key: str, items: Sequence[int]) -> int:
    time.sleep(0.2)
    return sum(items)


def add(key: str, items: Sequence[int]) -> int:
    return sum(items)


def add_unless_deadly(key: str, items: Sequence[int]) -> int:
    for item in items:
        if item == 13:
            os._exit(1)
        if item == 17:
            os.kill(os.getpid(), signal.SIGSEGV)
    return sum(items)


def add_after_one_crash(key: str, items: Sequence[Path]) -> int:
    for mark in items:
        if not mark.exists():
            mark.touch()
            os._exit(1)
    return len(items)


def die_in_company(key: str, items: Sequence[int]) -> int:
    # no item is deadly on its own: only the whole chunk is
    if len(items) > 2:
        os._exit(1)
    return 0


def fail(key: str, items: Sequence[int]) -> None:
    raise OSError(28, "No space left on device", key)


def limits_and_process(key: str, items: Sequence[int]) -> tuple[str | None, int, int]:
    import torch

    return os.environ.get("OMP_NUM_THREADS"), torch.get_num_threads(), os.getpid()


def sleep_unless_first(key: str, items: Sequence[int]) -> None:
    time.sleep(60 * items[0])


def ignores_ctrl_c(_key, _items):
    return signal.getsignal(signal.SIGINT) == signal.SIG_IGN
