import json
import os
import signal
import sys
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from config.preprocess import PreprocessConfig
from config.schema import InferenceConfig
from models.base.assets import Speaker
from models.synthesizer.runs import text_synthesis
from models.synthesizer.runs.results import ResultFolder, TextLine, row_of
from models.synthesizer.runs.text_synthesis import (
    InputText,
    Settings,
    TextSynthesis,
    assign_ids,
    line_of,
    read_input_texts,
    synthesise_dataset,
    synthesise_texts,
)
from models.synthesizer.settings import PitchContour
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Synthesizer
from modules.mel import MelConfig
from modules.variance.pitch_transform import PitchTransform
from preprocessors.manifest import (
    Listing,
    Splits,
    Utterance,
    read_utterances,
    write_manifest,
    write_splits,
)
from processors.extraction.features import feature_dependence
from processors.extraction.fingerprint import fingerprint_of, write_fingerprint
from processors.records import TimedPhone, TimedWord, Word
from tests.models.synthesizer.speeches import make_speech
from tests.models.synthesizer.test_synthesizer import make_voice
from utils.errors import InputError
from utils.locks import LOCK_FILE, locked


def write(folder: Path, text: str, name: str = "t.tsv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_a_text_file_has_a_text_a_line_in_utf_8(tmp_path):
    path = write(tmp_path, "\ufeffGrüße!\r\n\r\n\t Two\twords. \n", "texts.txt")
    assert read_input_texts(path) == [
        InputText("Grüße!", "texts.txt, line 1"),
        InputText("Two\twords.", "texts.txt, line 3"),
    ]
    path.write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(InputError, match=r"texts.txt: not UTF-8 at byte 2"):
        read_input_texts(path)
    with pytest.raises(InputError, match="no text in it; expected one a line"):
        read_input_texts(write(tmp_path, "\n \t \n", "texts.txt"))


def test_a_table_has_columns_in_any_order_and_cells_may_be_empty(tmp_path, monkeypatch):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.txt").write_text("0\n120\n")
    np.save(tmp_path / "b.npy", np.array([99.0]))
    write(
        tmp_path,
        "\ufeffoutput\ttext\tpitch\tspeaker\r\n"
        "one.wav\tGood day.\trows/a.txt\tanna\r\n"
        "\r\n"
        f'\tIt\'s "quoted".\t{tmp_path / "b.npy"}\n'
        "3-a_B.c\tBye.\n",
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_input_texts(Path("~/t.tsv")) == [
        InputText("Good day.", "t.tsv, line 2", "anna", "one", "rows/a.txt", (0.0, 120.0)),
        InputText(
            'It\'s "quoted".', "t.tsv, line 4", pitch_file=f"{tmp_path / 'b.npy'}", pitch=(99.0,)
        ),
        InputText("Bye.", "t.tsv, line 5", output="3-a_B.c"),
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "t.tsv: empty; expected a header line with the column text"),
        ("text\n\n", "t.tsv: no text in it; expected one in each line after the header"),
        ("output\tpitch\na\tb\n", "line 1: there is no column text; the columns are text, pitch, "),
        ("text\tptich\n", "line 1: unknown column 'ptich'; did you mean pitch.; the columns are"),
        ("Good day.\n", "line 1: unknown column 'Good day.'; the columns are text"),
        ("text\ttext\n", "line 1: a column is there twice"),
        ("text\nHi.\tmore\n", "^t.tsv, line 2: 2 cells, the header has 1"),
        ("output\ttext\na\t\n", "^t.tsv, line 2: the text is empty"),
        ("output\ttext\na\n", "^t.tsv, line 2: the text is empty"),
        ("text\tpitch\nHi.\tnone.npy\n", "^t.tsv, line 2: .*/none.npy: No such file"),
        ("text\tpitch\nHi.\tt.tsv\n", "line 2: .*/t.tsv, line 1: 'text.*; expected a finite num"),
        ("text\toutput\nHi.\ta\nHo.\ta.wav\n", "line 3: output 'a' is that of t.tsv, line 2 too"),
        ("text\toutput\nHi.\ta\nHo.\tA\n", "line 3: output 'A' is that of t.tsv, line 2 too"),
        ("text\toutput\nHi.\ttext-0001\n", "line 2: output 'text-0001' is a name of stage 3's"),
        ("text\toutput\nHi.\tscores.wav\n", "line 2: output 'scores.wav' is a name of stage 3's"),
        *(
            (
                f"text\toutput\nHi.\t{name}\n",
                "^t.tsv, line 2: output .*; expected a file name of up",
            )
            for name in (
                *("../a", "/a", "a/b", "a\\b", ".", "..", ".wav", ".a", "-a", "é", "a:b", "$a"),
                *("a b", "a" * 101),
            )
        ),
    ],
)
def test_faults_of_a_table_are_named(tmp_path, table, message):
    with pytest.raises(InputError, match=message) as fault:
        read_input_texts(write(tmp_path, table))
    assert "\n" not in str(fault.value)


HOP, RATE = 256, 22050


def plain(texts: list[str]) -> list[InputText]:
    return [InputText(text) for text in texts]


class FakeSynthesizer:
    """Says every text as one word of four frames; refuses the word "unspeakable"."""

    vocoder_name = "Griffin-Lim"
    tag = "Synthetic speech"
    speaker_id = Synthesizer.speaker_id

    def __init__(self, config, *names: str) -> None:
        self.config = config
        self.speakers = tuple(Speaker(name, "en-us") for name in names)
        self._default_id = 0 if len(names) == 1 else None
        self.weights = "of step 1000"
        self.calls: list[tuple[str, str, Settings]] = []
        self.pitches: list[tuple[float, ...] | None] = []

    def fingerprint(self) -> str:
        return self.weights

    def checked(self, settings: Settings, **changes: tuple[float, ...]) -> Settings:
        controls = ("pitch", "energy", "duration", "pitch_transform")
        return replace(settings, **changes).checked("FastSpeech2", controls)

    def phone_names(self, text: str, *, speaker: str, duration_control: float) -> tuple[str, ...]:
        return ("<sil>", "AH", "<.>")

    def __call__(self, text: str, settings: Settings, *, speaker: str, pitch=None) -> Speech:
        self.calls.append((text, speaker, settings))
        self.pitches.append(pitch)
        if "unspeakable" in text:
            raise InputError(f"{text!r}: there is nothing to speak in this text")
        if "interrupt" in text:
            raise KeyboardInterrupt
        texts = {"text": "uh.", "normalized": "uh.", "words": (Word("uh", 1, 2),)}
        speech = make_speech(("<sil>", "AH", "<.>"), [1, 2, 1], **texts)
        return replace(speech, text=text, speaker=speaker, tag=self.tag)


def make_synthesis(tmp_path: Path, *speakers: str, save_plots: bool = False) -> TextSynthesis:
    preprocess = PreprocessConfig(processed_dir=str(tmp_path / "data"))
    config = SimpleNamespace(
        preprocess=preprocess, inference=InferenceConfig(save_plots=save_plots)
    )
    return TextSynthesis(FakeSynthesizer(config, *(speakers or ("one",))), tmp_path / "out")


def prepare(tmp_path: Path, dataset: str = "Anna", **texts: str) -> None:
    """What stage 1 leaves: every utterance is a test utterance."""
    folder = tmp_path / "data" / dataset
    utterances = [Utterance(id, Path(f"{id}.wav"), text, "one") for id, text in texts.items()]
    write_manifest(folder / "manifest.jsonl", utterances)
    ids = sorted(texts)
    write_splits(folder, Splits(train=[], valid=[], test=ids, golden_test=ids[:1]))


def lines_of(folder: Path) -> list[dict]:
    return [json.loads(row) for row in (folder / "metadata.jsonl").read_text().splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != LOCK_FILE)


def test_alignments_and_pictures_lie_next_to_the_wavs_if_asked_for(tmp_path):
    synthesis = make_synthesis(tmp_path, save_plots=True)._replace(alignment="textgrid")
    with pytest.raises(InputError, match="1 of 2 texts could not be synthesised"):
        synthesise_texts(synthesis, plain(["Good day.", "unspeakable"]), Settings())
    folder, suffixes = tmp_path / "out" / "single", ("TextGrid", "png", "wav")
    assert names_in(folder) == ["metadata.jsonl", *(f"text-0001.{suffix}" for suffix in suffixes)]
    assert (folder / "text-0001.png").read_bytes().startswith(b"\x89PNG")
    synthesise_texts(synthesis._replace(alignment="json"), plain(["Good day."]), Settings())
    assert synthesis.synthesizer.calls[1:] == [("unspeakable", "one", Settings())]  # it is skipped
    assert (folder / "text-0001.json").exists()


def test_texts_become_numbered_files_in_single_and_are_never_names_of_files(tmp_path):
    hostile = "../../evil; $(touch evil) * /etc/passwd\n\0"
    synthesise_texts(make_synthesis(tmp_path), plain(["Good day.", hostile]), Settings())
    folder = tmp_path / "out" / "single"
    assert names_in(tmp_path) == ["out"]
    assert names_in(folder) == ["metadata.jsonl", "text-0001.wav", "text-0002.wav"]
    wav, rate = soundfile.read(folder / "text-0001.wav")
    assert (len(wav), rate) == (4 * HOP, RATE)
    assert soundfile.SoundFile(folder / "text-0001.wav").comment == "Synthetic speech"
    assert [line["text"] for line in lines_of(folder)] == ["Good day.", hostile]


def test_a_document_of_ssml_is_one_text_that_is_recorded_with_its_marks(tmp_path):
    voice = Synthesizer(make_voice(tmp_path / "voice"))
    synthesis = TextSynthesis(voice, tmp_path / "result", alignment="json")
    path = tmp_path / "a.ssml"
    source = '<speak>\n One <mark name="m"/><sub alias="two">2</sub>.\n\n Three. <b/></speak>\n'
    path.write_text(source)
    with pytest.raises(InputError, match=r"a\.ssml: line 4, column 9: unknown tag <b>"):
        synthesise_texts(synthesis, read_input_texts(path, strict=True), Settings())
    for _ in range(2):
        synthesise_texts(synthesis, read_input_texts(path), Settings())
    synthesise_texts(synthesis, plain(["One 2. Three."]), Settings())
    folder = synthesis.output / "single"
    first, second = lines_of(folder)
    assert (first["id"], first["text"], first["ssml"]) == ("text-0001", "One 2. Three.", source)
    assert (second["id"], second["text"], second["ssml"]) == ("text-0002", "One 2. Three.", "")
    assert [s["sentence"] for s in first["sentences"]] == ["One 2.", "Three."]
    assert [word["word"] for word in first["words"]] == ["One", "two", "Three"]
    (mark,) = json.loads((folder / "text-0001.json").read_text())["marks"]
    assert mark["mark"] == "m"
    assert mark["time_s"] == first["words"][1]["start_s"]


def test_later_runs_keep_what_the_first_one_said_under_its_numbers(tmp_path):
    synthesis = make_synthesis(tmp_path)
    for texts in (["first"], ["third"], ["first"], ["first", "second", "third"]):
        synthesise_texts(synthesis, plain(texts), Settings())
    assert spoken_texts(synthesis) == ["first", "third", "second"]
    lines = lines_of(tmp_path / "out" / "single")
    assert [(line["file"], line["text"]) for line in lines] == [
        ("text-0001.wav", "first"),
        ("text-0002.wav", "third"),
        ("text-0003.wav", "second"),
    ]


def test_two_runs_at_once_never_write_into_one_folder(tmp_path):
    synthesis, folder = make_synthesis(tmp_path), tmp_path / "out" / "single"
    prepare(tmp_path, a="A.")
    with locked(folder, ""), pytest.raises(InputError, match=r"single: process \d+ .* is using it"):
        synthesise_texts(synthesis, plain(["first"]), Settings())
    message = "wait until it ends, or choose another --infer_output_dir"
    with locked(tmp_path / "out", ""), pytest.raises(InputError, match=message):
        synthesise_dataset(synthesis, "Anna", "test", Settings())
    assert synthesis.synthesizer.calls == []
    synthesise_texts(synthesis, plain(["first"]), Settings())
    assert names_in(folder) == ["metadata.jsonl", "text-0001.wav"]


def test_controls_speaker_and_seed_reach_the_model_and_the_record(tmp_path):
    synthesis = make_synthesis(tmp_path, "one", "two")
    message = r"^pitch_control is 20\.0; expected a number from 0\.1 to 10$"
    with pytest.raises(InputError, match=message):
        synthesise_texts(synthesis, plain(["Hi."]), Settings("one", pitch_control=20.0))
    assert synthesis.synthesizer.calls == []
    settings = Settings("two", 1.1, 1.2, 1.3, seed=7)
    synthesise_texts(synthesis, plain(["Hi."]), settings)
    assert synthesis.synthesizer.calls == [("Hi.", "two", settings)]
    line = lines_of(tmp_path / "out" / "single")[0]
    wanted = {"speaker": "two", "pitch_control": 1.1, "energy_control": 1.2}
    assert line.items() >= (wanted | {"duration_control": 1.3, "seed": 7}).items()


def test_the_default_speaker_speaks_texts_that_name_none(tmp_path):
    synthesis = make_synthesis(tmp_path, "one", "two")
    with pytest.raises(InputError, match=r"2 speakers; choose one \(known: one, two\)"):
        synthesise_texts(synthesis, plain(["Hi."]), Settings())
    synthesis.synthesizer._default_id = 1
    synthesise_texts(synthesis, [InputText("Hi."), InputText("Hi.", speaker="one")], Settings())
    assert [line["speaker"] for line in lines_of(tmp_path / "out" / "single")] == ["two", "one"]


def test_a_bad_text_is_listed_by_its_line_and_gets_its_number_when_it_is_corrected(tmp_path):
    numbered = enumerate(["Good.", "unspeakable", "Better."])
    texts = [InputText(text, f"t.txt, line {n}") for n, text in numbered]
    synthesis, folder = make_synthesis(tmp_path), tmp_path / "out" / "single"
    message = r"1 of 3 texts .*\n  text-0002: t.txt, line 1: .* nothing to speak"
    with pytest.raises(InputError, match=message):
        synthesise_texts(synthesis, texts, Settings())
    assert [line["text"] for line in lines_of(folder)] == ["Good.", "Better."]
    synthesise_texts(synthesis, plain(["Good.", "B.", "Better."]), Settings())
    assert [line["text"] for line in lines_of(folder)] == ["Good.", "B.", "Better."]


def test_a_split_becomes_files_named_by_id_which_another_dataset_does_not_overwrite(tmp_path):
    prepare(tmp_path, a="Aa.", b="Bb.")
    prepare(tmp_path, "Bert", a="Other.")
    synthesise_dataset(make_synthesis(tmp_path), "Anna", "golden_test", Settings())
    assert names_in(tmp_path / "out") == ["a.wav", "metadata.jsonl"]
    synthesise_dataset(make_synthesis(tmp_path), "Anna", "test", Settings())
    assert names_in(tmp_path / "out") == ["a.wav", "b.wav", "metadata.jsonl"]
    message = r"wav is of the dataset 'Anna'; the a of 'Bert' .*choose another --infer_output_dir"
    with pytest.raises(InputError, match=message):
        synthesise_dataset(make_synthesis(tmp_path), "Bert", "test", Settings())
    lines = [(x["id"], x["text"], x["dataset"]) for x in lines_of(tmp_path / "out")]
    assert lines == [("a", "Aa.", "Anna"), ("b", "Bb.", "Anna")]


def test_phones_of_a_corpus_are_spoken_by_who_recorded_them_unless_another_is_chosen(tmp_path):
    synthesis = make_synthesis(tmp_path, "one", "two")
    prepare(tmp_path, a="Uh.", b="Oh.")
    manifest = tmp_path / "data" / "Anna" / "manifest.jsonl"
    first, second = read_utterances(manifest.parent).values()
    write_manifest(manifest, [replace(first, phones="{AH0}"), second])
    for settings in (Settings(), Settings(speaker="two")):
        synthesise_dataset(synthesis, "Anna", "test", settings)
    spoken = [(text, speaker) for text, speaker, _ in synthesis.synthesizer.calls]
    assert spoken == [(text, who) for who in ("one", "two") for text in ("{AH0}", "Oh.")]
    lines = lines_of(tmp_path / "out")
    # without a normalised text, stage 4 compares with the text
    assert [(line["text"], line["normalized"]) for line in lines] == [("Uh.", ""), ("Oh.", "uh.")]


def spoken_texts(synthesis):
    return [text for text, *_ in synthesis.synthesizer.calls]


def test_an_interrupted_split_has_its_files_on_record_and_goes_on_where_it_stopped(tmp_path):
    prepare(tmp_path, a="Aa.", b="interrupt", c="Cc.")
    synthesis = make_synthesis(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        synthesise_dataset(synthesis, "Anna", "test", Settings())
    assert [line["text"] for line in lines_of(tmp_path / "out")] == ["Aa."]
    prepare(tmp_path, a="Aa.", b="Bb.", c="Cc.")
    synthesis = make_synthesis(tmp_path)
    synthesise_dataset(synthesis, "Anna", "test", Settings())
    assert spoken_texts(synthesis) == ["Bb.", "Cc."]
    assert [line["id"] for line in lines_of(tmp_path / "out")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "change",
    [
        {"settings": Settings(pitch_control=1.1)},
        {"settings": Settings(duration_control=1.1)},
        {"settings": Settings(seed=1)},
        {"settings": Settings(speaker="two")},
        {"settings": Settings(fade_out=1)},
        {"settings": Settings(pitch_transform=PitchTransform(flatten=True))},
        {"settings": Settings(pitch_transform=PitchContour((0.5, 1.5), "ramp:0.5:1.5"))},
        {"vocoder": "org/hifigan"},
        {"weights": "of step 2000"},
        {"text": "Other words."},
        {"overwrite": True},
    ],
)
def test_a_sentence_is_spoken_again_if_anything_that_it_depends_on_changed(tmp_path, change):
    prepare(tmp_path, a="Aa.")
    synthesis = make_synthesis(tmp_path, "one", "two")
    for _ in range(2):
        synthesise_dataset(synthesis, "Anna", "test", Settings())
    assert spoken_texts(synthesis) == ["Aa."]
    synthesis.synthesizer.weights = change.get("weights", "of step 1000")
    synthesis.synthesizer.vocoder_name = change.get("vocoder", "Griffin-Lim")
    synthesis = synthesis._replace(**{k: change[k] for k in change if k in synthesis._fields})
    prepare(tmp_path, a=change.get("text", "Aa."))
    synthesise_dataset(synthesis, "Anna", "test", change.get("settings", Settings()))
    assert len(synthesis.synthesizer.calls) == 2


def in_one_thread(function, *given) -> None:
    """Calls a function in a fork, which has none of the threads that PyTorch would wait for."""
    torch.set_num_threads(1)
    function(*given)


def assert_killed(function, *given) -> None:
    """Runs a function in a fork, which dies by SIGKILL: no handler runs, no file is closed."""
    child = get_context("fork").Process(target=in_one_thread, args=(function, *given))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def synthesise_up_to_the_third(root: Path, texts: list[str], holder: object, name: str) -> None:
    """Kills its process before a function is called for the third text."""
    finish = getattr(holder, name)

    def kill_at_the_third(*given):
        if "text-0003" in str(given):
            os.kill(os.getpid(), signal.SIGKILL)
        return finish(*given)

    setattr(holder, name, kill_at_the_third)
    synthesise_texts(make_synthesis(root), plain(texts), Settings())


@pytest.mark.parametrize(("holder", "name"), [(ResultFolder, "add"), (text_synthesis, "write_wav")])
def test_texts_keep_their_numbers_if_the_run_is_killed(tmp_path, holder, name):
    """SIGKILL before the third wav, or between it and its line."""
    texts = [f"Text {n}." for n in range(1, 6)]
    assert_killed(synthesise_up_to_the_third, tmp_path, texts, holder, name)
    folder = tmp_path / "out" / "single"
    assert (folder / "text-0003.wav").exists() == (name == "add")
    synthesis = make_synthesis(tmp_path)
    synthesise_texts(synthesis, plain(texts), Settings())
    assert spoken_texts(synthesis) == texts[2:]
    numbered = [(f"text-000{n}", f"Text {n}.") for n in range(1, 6)]
    assert [(line["id"], line["text"]) for line in lines_of(folder)] == numbered


def test_a_named_wav_without_its_line_is_taken_up(tmp_path, monkeypatch):
    named = [InputText("Hi.", output="greeting")]
    synthesis = make_synthesis(tmp_path)
    monkeypatch.setattr(ResultFolder, "add", lambda *_: sys.exit())
    with pytest.raises(SystemExit):
        synthesise_texts(synthesis, named, Settings())
    monkeypatch.undo()
    synthesise_texts(synthesis, named, Settings())
    assert spoken_texts(synthesis) == ["Hi.", "Hi."]


def make_line(id: str, text: str = "Hello.", settings: Settings | None = None) -> TextLine:
    mel = MelConfig(sample_rate=1000, hop_length=100, n_mels=2, f_max=500.0)
    texts = {"text": text, "normalized": "hello.", "words": (Word("hello", 1, 2),)}
    speech = make_speech(("<sil>", "AH", "<.>"), [1, 1, 1], mel=mel, **texts)
    item = InputText(text, speaker="one", output=id)
    return line_of(item, speech, settings or Settings(), vocoder="Griffin-Lim", work_s=0.03)


def test_a_line_holds_what_was_spoken_and_when():
    line = make_line("text-0001")
    assert line.file == "text-0001.wav"
    assert (line.text, line.normalized, line.speaker) == ("Hello.", "hello.", "one")
    assert line.words == (TimedWord("hello", 0.1, 0.2),)
    assert line.phones[1] == TimedPhone("AH", 0.1, 0.2)
    assert row_of(line)["words"] == [{"word": "hello", "start_s": 0.1, "end_s": 0.2}]
    assert row_of(line)["phones"][1] == {"phone": "AH", "start_s": 0.1, "duration_s": 0.1}
    assert (line.seconds, line.real_time_factor) == (0.3, 0.1)


def ids_for(folder: Path, *texts: str, speaker: str = "one", settings: Settings | None = None):
    results = ResultFolder(folder, TextLine)
    wanted = [InputText(text, speaker=speaker) for text in texts]
    return [*assign_ids(results, wanted, settings or Settings())]


def hold(folder: Path, id: str, text: str) -> None:
    (folder / f"{id}.wav").write_bytes(b"RIFF")
    ResultFolder(folder, TextLine).add(make_line(id, text))


def test_the_same_text_with_the_same_settings_keeps_its_file(tmp_path):
    hold(tmp_path, "text-0007", "first")
    assert ids_for(tmp_path, "second", "first") == ["text-0001", "text-0007"]
    assert ids_for(tmp_path, "first", "first") == ["text-0007", "text-0001"]  # given twice
    for settings in (
        Settings(pitch_control=1.1),
        Settings(duration_control=2.0),
        Settings(seed=1),
        Settings(fade_out=3),
        Settings(pitch_transform=PitchTransform(shift_hz=9)),
        Settings(pitch_transform=PitchContour((2.0,), "contour.txt")),
    ):
        assert ids_for(tmp_path, "first", settings=settings) == ["text-0001"]
    assert ids_for(tmp_path, "first", speaker="two") == ["text-0001"]


def test_a_file_that_no_line_knows_is_not_overwritten(tmp_path):
    assert ids_for(tmp_path, "a", "b") == ["text-0001", "text-0002"]
    (tmp_path / "text-0002.wav").write_bytes(b"RIFF")
    assert ids_for(tmp_path, "a", "b") == ["text-0001", "text-0003"]


def test_transform_contour_and_fade_are_on_record(tmp_path):
    synthesis = make_synthesis(tmp_path)
    changed = PitchTransform(invert=True, amplify=1.5, shift_hz=-20)
    synthesise_texts(synthesis, plain(["Hi."]), Settings(pitch_transform=changed, fade_out=10))
    contour = PitchContour((0.5, 1.5), "ramp:0.5:1.5")
    synthesise_texts(synthesis, plain(["Hi."]), Settings(pitch_transform=contour))
    first, second = lines_of(tmp_path / "out" / "single")
    recorded = {"invert": True, "amplify": 1.5, "shift_hz": -20}
    assert (first["pitch_transform"], first["fade_out"]) == (recorded, 10)
    assert (second["pitch_transform"], second["fade_out"]) == ({"custom": "ramp:0.5:1.5"}, 0)
    assert [settings.fade_out for *_, settings in synthesis.synthesizer.calls] == [10, 0]


def test_a_contour_file_that_changed_is_heard_again_in_the_same_wav(tmp_path):
    synthesis = make_synthesis(tmp_path)
    contours = [PitchContour((1.0, end), "contour.txt") for end in (2.0, 2.0, 1.5)]
    transforms = *contours, None, PitchTransform()
    for transform, n_calls in zip(transforms, (1, 1, 2, 3, 3), strict=True):
        synthesise_texts(synthesis, plain(["Hi."]), Settings(pitch_transform=transform))
        assert len(synthesis.synthesizer.calls) == n_calls
    # the last two have no contour, and a transform that changes nothing is none
    wavs = ["metadata.jsonl", "text-0001.wav", "text-0002.wav"]
    assert names_in(tmp_path / "out" / "single") == wavs


def test_a_row_names_output_speaker_and_pitch(tmp_path):
    synthesis = make_synthesis(tmp_path, "one", "two")
    row = InputText("Hi.", "", "two", "greeting", "p.txt", (0.0, 120.0, 0.0))
    synthesise_texts(synthesis, [row, InputText("Ho.")], Settings("one"))
    assert synthesis.synthesizer.pitches == [(0.0, 120.0, 0.0), None]
    lines = {line["file"]: line for line in lines_of(tmp_path / "out" / "single")}
    assert lines["greeting.wav"]["speaker"] == "two"
    assert lines["greeting.wav"]["pitch_file"] == "p.txt"
    assert lines["text-0001.wav"]["speaker"] == "one"
    synthesise_texts(synthesis, [row], Settings("one"))
    assert len(synthesis.synthesizer.calls) == 2
    synthesise_texts(synthesis, [row._replace(pitch=(0.0, 99.0, 0.0))], Settings("one"))
    assert synthesis.synthesizer.pitches[2:] == [(0.0, 99.0, 0.0)]


PITCHED = InputText("Hi.", "t.tsv, line 3", pitch_file="p.txt", pitch=(0.0, 120.0))


@pytest.mark.parametrize(
    ("row", "settings", "message"),
    [
        (PITCHED, {}, "p.txt: the pitch has 2 values, and the text 3 phones and pauses; met"),
        (
            PITCHED._replace(pitch=(0.0, 120.0, 0.0)),
            {"pitch_transform": PitchTransform(flatten=True)},
            "a pitch transform acts on predicted pitch, and the pitch of this te",
        ),
        (PITCHED._replace(speaker="nobody"), {}, "the model has no speaker 'nobody'"),
    ],
)
def test_a_row_that_cannot_be_spoken_is_named_and_nothing_is_made(tmp_path, row, settings, message):
    synthesis, first = make_synthesis(tmp_path), InputText("Good.", "t.tsv, line 2")
    with pytest.raises(InputError, match=f"^t.tsv, line 3: {message}"):
        synthesise_texts(synthesis, [first, row], Settings(**settings))
    assert synthesis.synthesizer.calls == []
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_the_wav_of_another_text_is_kept_unless_overwritten(tmp_path):
    synthesis = make_synthesis(tmp_path)
    named = InputText("Hi.", "t.tsv, line 2", output="greeting")
    synthesise_texts(synthesis, [named], Settings())
    other = named._replace(text="Ho.")
    with pytest.raises(InputError, match=r"^t.tsv, line 2: .*greeting.wav is there, and not of th"):
        synthesise_texts(synthesis, [other], Settings())
    assert spoken_texts(synthesis) == ["Hi."]
    synthesise_texts(synthesis, plain(["Hi."]), Settings())  # without an output
    wavs = ["greeting.wav", "metadata.jsonl", "text-0001.wav"]
    assert names_in(tmp_path / "out" / "single") == wavs
    synthesise_texts(synthesis._replace(overwrite=True), [other], Settings())
    assert spoken_texts(synthesis) == ["Hi.", "Hi.", "Ho."]


def test_a_dataset_of_another_voice_is_named_and_its_texts_are_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path, a="Aa.")
    made = PreprocessConfig(f0_max=500.0)
    listing = Listing([], [], [])
    dependence = feature_dependence(made, tmp_path)
    write_fingerprint(tmp_path / "data/Anna", fingerprint_of(made, listing, {}, dependence))
    synthesis = make_synthesis(tmp_path)
    config = synthesis.synthesizer.config
    config.preprocess = PreprocessConfig(processed_dir="data/tts_hmm_22050_01234567")
    message = r"f0_max was 500.0, is 600.0; .* use it by --set preprocess\.processed_dir=data$"
    with pytest.raises(InputError, match=message):
        synthesise_dataset(synthesis, "Anna", "test", Settings())
    config.preprocess = PreprocessConfig(processed_dir="data")
    synthesise_dataset(synthesis, "Anna", "test", Settings())
    assert [line["id"] for line in lines_of(tmp_path / "out")] == ["a"]
