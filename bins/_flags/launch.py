"""How training is started: one process per GPU, on one machine or several."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from utils.cli import UsageError
from utils.config_tree import read_yaml

# --quiet: the trainer reports errors; a traceback of the launcher adds nothing
_LAUNCHER = ["-m", "accelerate.commands.launch", "--quiet"]
_LAUNCHER += ["--mixed_precision", "no", "--dynamo_backend", "no"]
_MAX_PORT = 65535


@dataclass(frozen=True)
class Machines:
    """The machines that train one experiment: how many, or a file of `accelerate config`."""

    count: int = 1
    rank: int | None = None  # number of this one
    address: str = ""  # of machine 0
    port: int = 29500
    config: Path | None = None

    def launcher(self, n_gpus: int) -> list[str]:
        """Returns arguments of Python before `-m MODULE`: a process for each GPU, or for the CPU.

        There are none for a single process: `accelerate launch` would end before it has saved.
        """
        local = max(n_gpus, 1)
        if self.config is not None:
            _check_file(self.config, local)
            rank = [] if self.rank is None else ["--machine_rank", str(self.rank)]
            return [*_LAUNCHER, "--config_file", str(self.config), *rank]
        if self.count * local == 1:
            return []
        counts = ("--num_processes", str(self.count * local), "--num_machines", str(self.count))
        if self.count == 1:
            return [*_LAUNCHER, "--multi_gpu", *counts, "--main_process_port", "0"]
        meeting_point = ("--main_process_ip", self.address, "--main_process_port", str(self.port))
        rank = ["--machine_rank", str(self.rank), "--same_network"]
        return [*_LAUNCHER, "--multi_gpu", *counts, *rank, *meeting_point]

    def check_meeting_point(self) -> None:
        """Makes sure that machine 0 has an address, and on machine 0 that its port is free."""
        import socket  # a tenth of all that a recipe would import at once

        try:
            family, *_ = socket.getaddrinfo(self.address, self.port, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError) as error:
            raise UsageError(f"--main_process_ip {self.address}: {error}") from error
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                if self.rank == 0:
                    listener.bind(("", self.port))
            except OSError as error:
                fault = f"--main_process_port {self.port}: {error.strerror}"
                raise UsageError(f"{fault}; give another one on every machine") from error


def _check_file(path: Path, local: int) -> None:
    """Checks a file of `accelerate config`, for a machine of so many processes."""
    flag, keys = f"--accelerate_config {path}", read_yaml(path)
    if (distributed_type := keys.get("distributed_type")) != "MULTI_GPU":
        fault = f"distributed_type is {distributed_type!r}, expected MULTI_GPU (also for CPUs)"
        raise UsageError(f"{flag}: {fault}")
    counts: list[int] = []
    for key in ("num_processes", "num_machines"):
        number = keys.get(key)
        if not isinstance(number, int) or not 1 <= number <= _MAX_PORT:
            raise UsageError(f"{flag}: {key} is {number!r}, expected 1 to {_MAX_PORT}")
        counts.append(number)
    processes, machines = counts
    each, rest = divmod(processes, machines)
    if rest:
        fault = f"num_processes {processes} is no multiple of num_machines {machines}"
        raise UsageError(f"{flag}: {fault}")
    if each != local:
        fault = f"{each} processes a machine, found {local} (the GPUs in --gpu; 1 for the CPU)"
        raise UsageError(f"{flag}: {fault}")


def count_gpus(names: str) -> int:
    """Counts those of the named GPUs that PyTorch finds, in another process to save memory."""
    if not names:
        return 0
    script = "import torch; print(torch.cuda.device_count())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    if done.returncode:
        raise UsageError(f"{sys.executable} cannot import torch; run make venv, or set PYTHON")
    n_gpus = int(done.stdout)
    if n_gpus not in (0, names.count(",") + 1):
        raise UsageError(f"--gpu {names}: this machine has only {n_gpus} of these")
    return n_gpus
