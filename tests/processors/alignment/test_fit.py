from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import soundfile

from config.preprocess import PreprocessConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError
from processors.alignment.fit import check_coverage, check_fit, list_misfits
from processors.alignment.textgrid import read_textgrid
from processors.alignment.timed import Grid, file_aligner
from processors.records import Alignment, AlignmentScore, SpokenText
from processors.text.frontend import TextFrontend
from tests.processors.small_corpus import DEMO, texts
from tests.processors.utterances import RATE, Sung, sing
from utils.files import read_jsonl

PAUSE = Sung("<sp>", 0, (), 0.5, level=0.0)
VOWEL = Sung("AA1", 150, (730, 1090, 2440), 0.15)
SENTENCE = (PAUSE, VOWEL, VOWEL, VOWEL, PAUSE, VOWEL, VOWEL, VOWEL, PAUSE)
NAMES = ("<sil>", "A", "A", "A", "<,>", "A", "A", "A", "<.>")
EDGES = np.cumsum([0, *(part.seconds for part in SENTENCE)])
WHOLE = (1, 2, 3, 5, 6, 7)
HEAD = ("sound as loud as speech before the first phone is not aligned",)
TAIL = ("sound as loud as speech after the last phone is not aligned",)


def score(misfit):
    return AlignmentScore(misfit, "in the", 1.2, 1.65)


def utterances(*ids):
    return [Utterance(id, Path("a.wav"), f"Text of {id}.", "ann") for id in ids]


def test_a_recording_beyond_the_bound_is_refused_with_words_and_time():
    check_fit(score(60), max_misfit=0)
    check_fit(score(60), max_misfit=60)
    match = r"misfit 60\.5 at 'in the', 1\.20-1\.65 s \(.*max_misfit is 60\)"
    with pytest.raises(AlignmentError, match=match):
        check_fit(score(60.5), max_misfit=60)


def test_all_scores_are_listed_the_worst_first_with_their_texts(tmp_path):
    scores = {"u1": score(3.0), "u2": score(77.0), "u3": score(3.0)}
    list_misfits(tmp_path, utterances("u1", "u2", "u3"), scores)
    rows = read_jsonl(tmp_path / "alignment_scores.jsonl")
    assert [row["id"] for row in rows] == ["u2", "u1", "u3"]
    assert rows[0]["words"] == "in the"
    assert rows[0]["text"] == "Text of u2."


def test_suspicious_recordings_are_warned_of_and_no_scores_leave_no_file(tmp_path, caplog):
    list_misfits(tmp_path, utterances("u1"), {})
    assert list(tmp_path.iterdir()) == []
    list_misfits(tmp_path, utterances("u1"), {"u1": score(3.0)})
    assert caplog.text == ""
    list_misfits(tmp_path, utterances("u1", "u2"), {"u1": score(3.0), "u2": score(77.0)})
    assert "1 of 2 recordings may differ from their texts" in caplog.text
    assert "u2: misfit 77.0 at 'in the', 1.20-1.65 s" in caplog.text
    assert "u1:" not in caplog.text


def check(kept, extra=0.0):
    """Checks an alignment that has phones in these places; `extra` is added to the recording."""
    names = tuple(name if n in kept else "<sp>" for n, name in enumerate(NAMES))
    return check_coverage(Alignment(names, EDGES, ()), sing(SENTENCE) + extra, RATE)


@pytest.mark.parametrize(
    ("kept", "span"),
    [((1, 2, 3, 5), "1.60 to 1.92"), ((3, 5, 6, 7), "0.48 to 0.80"),
     ((1, 6, 7), "0.65 to 1.60"), ((1, 2, 3), "0.95 to 1.92")],
)  # fmt: skip
def test_a_fifth_of_a_second_is_rejected_with_its_times_and_less_passes_with_a_notice(kept, span):
    assert [check(kept) for kept in (WHOLE, WHOLE[:-1], WHOLE[1:])] == [(), TAIL, HEAD]
    match = rf"leaves out 0\.[345]\d s .* no phones from {span} s"
    with pytest.raises(AlignmentError, match=match):
        check(kept)


def noise(kind: str) -> np.ndarray:
    """Noise of the level of the vowels, (S,): hiss or rumble."""
    S = len(sing(SENTENCE))
    frequency = np.fft.rfftfreq(S, 1 / RATE)
    colour = np.where(frequency > 500, 1, 0.01) if kind == "hiss" else 1 / np.maximum(frequency, 30)
    wav = np.fft.irfft(np.fft.rfft(np.random.default_rng(0).normal(size=S)) * colour, S)
    return 0.1 * wav / np.sqrt(np.mean(np.square(wav)))


@pytest.mark.parametrize("kind", ["hiss", "rumble"])
def test_noise_of_20_db_less_is_no_speech_and_hides_none(kind):
    check(range(1, 8), 0.1 * noise(kind))
    with pytest.raises(AlignmentError, match=r"leaves out .* no phones from 1\.[56]"):
        check((1, 2, 3, 5), 0.1 * noise(kind))


def test_a_breath_at_the_end_is_reported_and_no_speech():
    wav = 0.25 * noise("hiss")  # -12 dB
    breath = np.zeros(len(wav))
    start, length = round(1.95 * RATE), round(0.42 * RATE)
    breath[start : start + length] = np.hanning(length) * wav[:length]
    assert check(range(1, 8), breath) == TAIL


@pytest.mark.parametrize("wav", [np.zeros(RATE), np.zeros(10), np.zeros(0)])
def test_silence_is_covered_by_anything(wav):
    alignment = Alignment(("<sil>", "A", "<.>"), np.array([0.0, 0.1, 0.2, 0.3]), ())
    assert check_coverage(alignment, wav, RATE) == ()


class Real(NamedTuple):
    """A recording of the demo, with its text and the TextGrid of the Montreal Forced Aligner."""

    wav: np.ndarray
    spoken: SpokenText
    grid: Grid

    def check(self, grid: Grid) -> str:
        """The reason for a rejection, or the notices."""
        utterance = Utterance("u", DEMO, self.spoken.text, "ann", "en-us")
        aligner = file_aligner(lambda *_: DEMO, lambda *_: DEMO, lambda *_: grid, "")
        align = aligner.make(PreprocessConfig(edge_silence_s=0.1), DEMO, DEMO)
        try:
            return " ".join(align(utterance, self.wav, self.spoken).notices)
        except AlignmentError as error:
            return f"rejected: {error}"


@cache
def real() -> list[Real]:
    frontend = TextFrontend(PreprocessConfig().text, "en-us")
    ids = sorted(path.stem for path in (DEMO / "TextGrid").iterdir())
    wavs = (soundfile.read(DEMO / f"wavs/{id}.flac", dtype="float32")[0] for id in ids)
    grids = (read_textgrid(DEMO / f"TextGrid/{id}.TextGrid") for id in ids)
    return [*map(Real, wavs, (frontend(texts()[id]) for id in ids), grids)]


def cut(grid: Grid, share: float) -> Grid:
    """A grid that ends after this share of the speech, in a phone."""
    end_s = grid.phones[0].start_s + share * (grid.phones[-1].end_s - grid.phones[0].start_s)
    words, phones = (
        [one._replace(end_s=min(one.end_s, end_s)) for one in tier if one.start_s < end_s]
        for tier in (grid.words, grid.phones)
    )
    return grid._replace(words=words, phones=phones)


@pytest.mark.parametrize("share", [0.5, 0.8])
@pytest.mark.parametrize("has_words", [True, False])
def test_textgrids_that_end_early_are_rejected(share, has_words):
    for one in real():
        grid = one.grid if has_words else one.grid._replace(words=[])
        assert one.check(cut(grid, share)).startswith("rejected: "), one.spoken.text


def test_textgrids_that_end_a_little_early_are_rejected_or_reported_and_others_are_not():
    assert [one.check(one.grid) for one in real()] == [""] * 55
    for one in real():
        grid = cut(one.grid, 0.95)
        lost_s = one.grid.phones[-1].end_s - grid.phones[-1].end_s
        found = one.check(grid)
        if lost_s > 0.4:
            assert found.startswith("rejected: "), one.spoken.text
        elif lost_s > 0.15:
            assert found, one.spoken.text
