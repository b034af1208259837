"""The plan for a GPU in miniature, on the CPU."""

import json
import time
from argparse import Namespace

import numpy as np
import pytest

from processors.metrics.families.pairs import mel_cepstral_distortion
from tools.gpu.plan import PIECES, Piece, _run, carry_out
from tools.gpu.results import mel_distances

TRAINING = [piece for piece in PIECES if piece.name.split()[0] in ("train", "finish")]
MEASUREMENT = [piece for piece in PIECES if piece.name == "training of freevgl"]


def arguments_of(out, minutes=9.0):
    (out / "results").mkdir(exist_ok=True)  # where `_run` logs
    return Namespace(out=out, store=None, device="cpu", minutes=minutes, small=True)


@pytest.mark.slow
def test_models_are_trained_scored_and_measured_and_small_enough_to_copy(tmp_path):
    assert carry_out(arguments_of(tmp_path), [*TRAINING, *MEASUREMENT]) == 0
    files = sorted(tmp_path.glob("results/*"))
    results = json.loads((tmp_path / "results" / "results.json").read_text())

    assert [file.name for file in files] == [
        *("benchmarks.json", "log.txt", "results.json"),
        *("vocoder-1.safetensors", "voice-1.safetensors"),
    ]
    assert len(files) <= 8
    assert all(file.stat().st_size < 16e6 for file in files)
    codes = {name: piece["code"] for name, piece in results["pieces"].items()}
    assert codes == {piece.name: 0 for piece in [*TRAINING, *MEASUREMENT]}
    measured = json.loads((tmp_path / "results" / "benchmarks.json").read_text())
    assert measured.keys() == {"freevgl-training"}
    assert all(0 < results["scores"][name]["mel_l1"] < 50 for name in ("voice", "vocoder"))
    assert results["experiments"]["voice"]["vocabulary.json"]


def test_a_call_goes_on_where_the_last_one_stopped(tmp_path):
    calls = []

    def piece(name, *codes):
        left = list(codes)
        return Piece(name, lambda _arguments, _end: calls.append(name) or left.pop(0))

    pieces = [piece("a", 0), piece("b", None, 1), piece("c", 0)]
    codes = [carry_out(arguments_of(tmp_path), pieces) for _ in range(3)]

    assert calls == ["a", "b", "c", "b"]
    assert codes == [3, 1, 1]
    state = json.loads((tmp_path / "state.json").read_text())
    assert (state["b"]["code"], state["b"]["calls"]) == (1, 2)


def test_no_training_that_failed_is_scored_and_no_piece_begun_late(tmp_path):
    scores = [piece for piece in TRAINING if piece.name == "finish voice"]
    assert carry_out(arguments_of(tmp_path), scores) == 1

    def begun(_arguments, _end):
        raise AssertionError

    assert carry_out(arguments_of(tmp_path, minutes=0.1), [Piece("late", begun)]) == 3


def test_a_command_is_stopped_at_the_end_of_a_call_and_its_code_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.gpu.plan._SAVING_S", 1)
    arguments = arguments_of(tmp_path)

    assert _run(arguments, ["timeit", "-n", "1", "-r", "1"], time.monotonic() + 60) == 0
    assert _run(arguments, ["no_such_module"], time.monotonic() + 60) == 1
    forever = ["timeit", "-n", "1", "import time; time.sleep(60)"]
    assert _run(arguments, forever, time.monotonic() + 2) is None


def test_distances_of_mels_are_those_of_the_metrics():
    generator = np.random.default_rng(0)
    mel, mel_hat = generator.normal(size=(2, 80, 7))
    bands = (np.arange(80) + 0.5) * np.pi / 80
    cepstra = [[np.mean(m * np.cos(k * bands)) for k in range(1, 25)] for m in mel.T]
    cepstra_hat = [[np.mean(m * np.cos(k * bands)) for k in range(1, 25)] for m in mel_hat.T]
    l1, distortion = mel_distances(mel, mel_hat)

    assert l1 == pytest.approx(np.abs(mel - mel_hat).mean())
    expected = mel_cepstral_distortion(np.array(cepstra), np.array(cepstra_hat))
    assert distortion == pytest.approx(expected)
    assert mel_distances(mel, mel) == (0, 0)
