"""Many requests: each response is whole, and memory does not grow. Run by `make test-slow`."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
import pytest

from models.synthesizer.synthesizer import Synthesizer
from models.synthesizer.vocoders import BUNDLED
from processors.audio.streams import encoded

ROOT = Path(__file__).parents[4]
FORMATS = ("wav", "mp3", "opus", "flac", "pcm")


@pytest.fixture
def process(folders):
    words = sys.executable, "-m", "bins.arion", "serve", str(folders["tiny"]), "--port", "0"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    yield process
    process.kill()


def megabytes_of(process):
    return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads memory from /proc")
def test_100_parallel_and_1000_serial_requests_are_whole_and_leave_memory_as_it_was(
    process, folders, capfd
):
    lines = iter(process.stderr.readline, "")
    url = next(found[0] for line in lines if (found := re.search(r"http://[\d.:]+", line)))
    drained = ThreadPoolExecutor(1).submit(lambda: sum(1 for _ in lines))
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    voice = Synthesizer(folders["tiny"], BUNDLED)
    texts = [f"Was it {word}? Yes, so it was." for word in ("so", "you", "good", "late", "me")]
    cases = [(text, format) for text in texts for format in FORMATS]
    expected = {
        (text, format): b"".join(encoded(voice.generate(text), format, 22050, voice.tag))
        for text, format in cases
    }

    def is_whole(case):
        text, format = case
        sound = client.audio.speech.create(
            model="tts-1", voice="tiny", input=text, response_format=format
        ).content
        return sound == expected[case]

    with ThreadPoolExecutor(100) as pool:
        assert all(pool.map(is_whole, cases * 4))
    memory = []
    for n in range(1000):
        assert is_whole(cases[n % len(cases)])
        memory.append(megabytes_of(process))
    assert memory[-1] < 1.05 * memory[99]
    process.terminate()
    process.wait(20)
    assert drained.result() > 1100  # a line for each request
