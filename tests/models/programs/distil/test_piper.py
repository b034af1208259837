"""Voices of Piper as teachers, by the published piper-tts."""

import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.parser import parse_graph

from models.programs.distil.teachers import checked_sound, find_teacher
from tests.commands import command
from utils.errors import InputError

pytest.importorskip("piper")

PHONES = "_^$ ˈabdefhijklmnopstuvwzæðŋɐɑɔəɚɛɜɡɪɹʃʊʌʒθᵻː,.?!"
SAMPLES_PER_ID = 100


# Each id becomes 100 samples; each speaker adds a constant.
GRAPH = """
voice (int64[1, n] input, int64[1] input_lengths, float[3] scales{sid}) => (float[1, 1, s] output)
<int64[1] last = {{2}}, int64[3] flat = {{1, 1, -1}}, int64[1] first = {{0}},
 float[1] scale = {{0.01}}, float[{n}] heights = {{{heights}}}> {{
  ids = Cast <to = 1> (input)
  column = Unsqueeze (ids, last)
  samples = Mul (column, ones)
  wav = Reshape (samples, flat)
  scaled = Mul (wav, scale)
  height = Gather (heights, {speaker})
  output = Add (scaled, height)
}}
"""


def write_voice(path, speakers=()):
    """Writes a graph with Piper's inputs, and its settings."""
    sid, speaker = (", int64[1] sid", "sid") if speakers else ("", "first")
    heights = [0.25, 0.5, 1.0][: len(speakers)] if speakers else [1.0]
    constants = {"n": len(heights), "heights": ", ".join(map(str, heights))}
    graph = parse_graph(GRAPH.format(sid=sid, speaker=speaker, **constants))
    ones = np.ones((1, 1, SAMPLES_PER_ID), np.float32)
    graph.initializer.append(numpy_helper.from_array(ones, "ones"))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    config = {
        "num_symbols": len(PHONES),
        "num_speakers": max(1, len(speakers)),
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "en-us"},
        "phoneme_id_map": {phone: [n] for n, phone in enumerate(PHONES)},
        "speaker_id_map": {name: n for n, name in enumerate(speakers)},
    }
    path.with_name(f"{path.name}.json").write_text(json.dumps(config))
    return str(path)


def test_a_voice_speaks_its_sentences_one_after_another(tmp_path):
    teacher = find_teacher(write_voice(tmp_path / "joe.onnx"), None)
    assert (teacher.name, teacher.voices) == ("Piper joe", ("joe",))
    one, rate = checked_sound(teacher.speak("Hello there.", "joe"))
    two, _ = checked_sound(teacher.speak("Hello there. Hello there.", "joe"))
    assert rate == 16000
    assert len(one) > 10 * SAMPLES_PER_ID
    assert np.array_equal(two, np.concatenate([one, one]))


def test_a_voice_of_several_speakers_names_them(tmp_path):
    teacher = find_teacher(write_voice(tmp_path / "vctk.onnx", ("p225", "p226")), None)
    assert teacher.voices == ("p225", "p226")
    wavs = [teacher.speak("Hello there.", voice)[0] for voice in ("p225", "p226", "p226")]
    assert not np.allclose(wavs[0], wavs[1])
    assert np.array_equal(wavs[1], wavs[2])


def test_a_speaker_whom_the_voice_lacks_is_refused_with_the_nearest(tmp_path):
    (tmp_path / "t.txt").write_text("Hello there.\n")
    voice = write_voice(tmp_path / "two.onnx", ("anna", "bert"))
    done = command("distil", voice, tmp_path / "t.txt", tmp_path / "out", "--voices", "ana,bert")
    assert done.returncode == 2
    message = f"--voices: {voice} has no voice 'ana'; did you mean anna? (known: anna, bert)"
    assert message in done.stderr


@pytest.mark.parametrize(
    ("card", "line"),
    [
        ("# Model card\n\n* Language: en\n* License: CC0 \n* Quality: medium\n", "* License: CC0"),
        ("The licence is that of the data", "The licence is that of the data"),
        ("# Model card\n", ""),
    ],
)
def test_the_log_shows_what_the_card_next_to_it_has_about_a_licence(tmp_path, caplog, card, line):
    caplog.set_level("INFO")
    (tmp_path / "MODEL_CARD").write_text(card)
    find_teacher(write_voice(tmp_path / "joe.onnx"), None)
    shown = [f"{tmp_path}/MODEL_CARD, perhaps not of the speech: {line}"] if line else []
    assert caplog.messages == shown


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"joe.onnx.json: No such file"):
        find_teacher(str(tmp_path / "joe.onnx"), None)
    (tmp_path / "joe.onnx").write_text("no graph")
    (tmp_path / "joe.onnx.json").write_text("{}")
    with pytest.raises(InputError, match=r"joe.onnx: not a voice of Piper \("):
        find_teacher(str(tmp_path / "joe.onnx"), None)
