"""Voices of Piper as teachers, by the published piper-tts."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from models.programs.distil.teachers import checked_sound, find_teacher
from tests.commands import command
from utils.errors import InputError

pytest.importorskip("piper")

PHONES = "_^$ ˈabdefhijklmnopstuvwzæðŋɐɑɔəɚɛɜɡɪɹʃʊʌʒθᵻː,.?!"
SAMPLES_PER_ID = 100


def write_voice(path, speakers=()):
    """A graph with Piper's inputs: each id becomes 100 samples; each speaker adds a constant."""
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [1, "n"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    heights = [1.0] if not speakers else [0.25, 0.5, 1.0][: len(speakers)]
    constants = {
        "ones": np.ones((1, 1, SAMPLES_PER_ID), np.float32),
        "flat": np.array([1, 1, -1], np.int64),
        "last": np.array([2], np.int64),
        "scale": np.array([0.01], np.float32),
        "heights": np.array(heights, np.float32),
        "first": np.array([0], np.int64),
    }
    if speakers:
        inputs.append(helper.make_tensor_value_info("sid", TensorProto.INT64, [1]))
    nodes = [
        helper.make_node("Cast", ["input"], ["ids"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["ids", "last"], ["column"]),
        helper.make_node("Mul", ["column", "ones"], ["samples"]),
        helper.make_node("Reshape", ["samples", "flat"], ["wav"]),
        helper.make_node("Mul", ["wav", "scale"], ["scaled"]),
        helper.make_node("Gather", ["heights", "sid" if speakers else "first"], ["height"]),
        helper.make_node("Add", ["scaled", "height"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "voice",
        inputs,
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, "s"])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
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
