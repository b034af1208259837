"""Times of the command and of the server: python -m tools.benchmarks.server [VOICE ...].

CPU seconds are those of the measured process until then: on an idle core they are the time.
"""

import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from typing import IO, NamedTuple

from utils.cli import print_text

TEXT = "The boy was released. He went home at once, and told his mother what he had seen."
ROUNDS = 5
N_REQUESTS = 32


class Took(NamedTuple):
    """A time by the clock, and of CPU, s."""

    clock_s: float
    cpu_s: float


def cpu_s_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1e6


def arion(*words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "bins.arion", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output_of(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # a pipe was asked for
    return stream


def first_sound_of_the_command() -> Took:
    start = time.monotonic()
    process = arion("say", TEXT, "-o", "-")
    output_of(process.stdout).read(45)  # the header and a sample
    took = Took(time.monotonic() - start, cpu_s_of(process.pid))
    process.communicate()
    return took


def port_of(server: subprocess.Popen[bytes]) -> int:
    lines = iter(output_of(server.stderr).readline, b"")
    return next(int(m[1]) for line in lines if (m := re.search(rb"http://[\d.]+:(\d+)", line)))


def spoken(port: int, voice: str) -> tuple[float, float]:
    """Seconds to the first byte of a response, and of sound in it."""
    connection = HTTPConnection("127.0.0.1", port, timeout=300)
    body = {"model": "arion", "voice": voice, "input": TEXT, "response_format": "pcm"}
    start = time.monotonic()
    headers = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/audio/speech", json.dumps(body), headers)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    response.read(1)
    first_s = time.monotonic() - start
    n_bytes = 1 + len(response.read())
    return first_s, n_bytes / 2 / 24000


def main() -> None:
    """Prints the figures."""
    voices = sys.argv[1:] or ["choir"]
    say = [first_sound_of_the_command() for _ in range(ROUNDS)]
    clock_s, cpu_s = (median(times) for times in zip(*say, strict=True))
    note(f"command to first sound: {clock_s:.2f} s by the clock, {cpu_s:.2f} s of CPU")
    server = arion("serve", *voices, "--port", "0")
    port = port_of(server)
    ThreadPoolExecutor(1).submit(output_of(server.stderr).read)
    for voice in voices:
        memory = megabytes_of(server.pid)
        first_s, _ = spoken(port, voice)
        memory = megabytes_of(server.pid) - memory
        note(f"{voice}, cold: {first_s:.2f} s to the first byte, {memory:.0f} MB more")
    first_s = median(spoken(port, voices[0])[0] for _ in range(ROUNDS))
    note(f"warm: {first_s:.2f} s to the first byte")
    for n_clients in (1, 4, 16):
        measure(server.pid, port, voices[0], n_clients)
    note(f"memory: {megabytes_of(server.pid):.0f} MB")
    server.terminate()


def measure(pid: int, port: int, voice: str, n_clients: int) -> None:
    start, cpu = time.monotonic(), cpu_s_of(pid)
    with ThreadPoolExecutor(n_clients) as pool:
        took = list(pool.map(lambda _: spoken(port, voice), range(N_REQUESTS)))
    cpu, clock = cpu_s_of(pid) - cpu, time.monotonic() - start
    factor = cpu / sum(sound_s for _, sound_s in took)
    note(
        f"{n_clients} clients: {N_REQUESTS / clock:.2f} requests/s by the clock,"
        f" {N_REQUESTS / cpu:.2f} per CPU second, real-time factor {factor:.3f} of CPU,"
        f" median {median(first for first, _ in took):.2f} s to the first byte"
    )


def note(line: str) -> None:
    print_text(f"{line}\n")


if __name__ == "__main__":
    main()
