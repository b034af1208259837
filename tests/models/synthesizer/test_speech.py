import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from models.synthesizer.speech import (
    PEAK,
    Clause,
    Speech,
    SpeechStream,
    arrange,
    faded_out,
    faded_pieces,
    join,
    warn_if_untrained,
)
from modules.mel import MelConfig
from processors.records import SpokenText, TimedPhone, TimedWord, Word
from processors.text.passages import Passage, ProsodyFactors
from tests.models.synthesizer.speeches import make_speech
from utils.errors import InputError


def saved() -> Speech:
    return make_speech(("<sil>", "HH", "AY", "<.>"), (1, 2, 3, 1))


@pytest.mark.parametrize("suffix", [".wav", ".flac", ".ogg", ".mp3"])
def test_speech_is_saved_with_its_tag_in_the_format_of_its_name(tmp_path, suffix):
    path = tmp_path / "new" / f"speech{suffix}"
    for tag in ("Synthetic speech; model: choir", ""):
        speech = replace(saved(), sample_rate=16000, tag=tag)
        speech.save(path)
        with soundfile.SoundFile(path) as file:
            assert file.samplerate == 16000
            assert f".{file.format.lower()}" == suffix
            if suffix in (".wav", ".flac"):
                assert file.comment == tag
                assert np.abs(file.read(dtype="float32") - speech.wav).max() < 1 / 32000


def test_an_unknown_audio_format_names_those_there_are(tmp_path):
    with pytest.raises(InputError, match=r"a\.aac: unknown audio format; .* one of \.wav, \.flac"):
        saved().save(tmp_path / "a.aac")
    with pytest.raises(InputError, match="None: unknown audio format; expected the path of a file"):
        saved().save(None)
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_a_player_of_the_wav():
    speech, player = saved(), r'<audio controls src="data:audio/wav;base64,(.+)"></audio>'
    encoded = re.fullmatch(player, speech._repr_html_())
    wav, rate = soundfile.read(io.BytesIO(base64.b64decode(encoded[1])), dtype="float32")
    assert rate == speech.sample_rate
    assert np.abs(wav - speech.wav).max() < 1 / 32000


PHONES = ("<sil>", "HH", "AY", "<.>")
FRAMES = (2, 3, 4, 5)
HOP, RATE = 10, 1000
MEL = MelConfig(sample_rate=RATE, hop_length=HOP, n_mels=2, f_max=500.0)
HI = Passage(SpokenText("Hi.", "hi", PHONES, (Word("hi", 1, 3),)), starts_sentence=True)
MORE = HI._replace(starts_sentence=False)
BREAK = SpokenText("", "", (), ())


def silence(n_frames: int) -> Clause:
    names = ("<sil>",) * (n_frames > 0)
    clause = make_speech(names, [n_frames] * len(names), mel=MEL, level=0.0)
    return clause, [clause.wav]


def hello(level: float = 0.5) -> Clause:
    clause = make_speech(PHONES, FRAMES, normalized="hi", mel=MEL, level=level)
    return clause, np.split(clause.wav, [15, 100])


def placed(*passages: Passage, n_pause: int = 0) -> list[Clause]:
    clauses = (hello() for passage in passages if passage.spoken.phones)
    return [*arrange(passages, clauses, silence, n_pause)]


def frames_of(clauses: list[Clause]) -> list[int]:
    return [int(clause.durations.sum()) for clause, _ in clauses]


def words_of(clauses: list[Clause]) -> list[TimedWord]:
    return [word for clause, _ in clauses for word in clause.words]


def test_a_pause_lies_between_sentences_and_not_between_their_parts():
    clauses = placed(HI, MORE, HI, n_pause=7)
    assert frames_of(clauses) == [14, 14, 7, 14]
    assert [word.start_s for word in words_of(clauses)] == pytest.approx([0.02, 0.16, 0.37])
    sentences = [[sentence.text for sentence in clause.sentences] for clause, _ in clauses]
    assert sentences == [[], ["Hi. Hi."], [], ["Hi."]]


def test_a_break_takes_in_the_pauses_at_both_edges_which_a_short_one_cuts_with_their_sound():
    clauses = placed(HI, HI._replace(break_s=0.1), n_pause=50)
    # ten frames: five of the full stop, two of the silence at the start, three added
    assert frames_of(clauses) == [14, 3, 14]
    first, second = words_of(clauses)
    assert second.start_s - first.end_s == pytest.approx(0.1)
    clauses = placed(HI, HI._replace(break_s=0.01))
    assert [clause.durations.tolist() for clause, _ in clauses] == [[2, 3, 4, 1], [0, 3, 4, 5]]
    assert [clause.mel.shape[1] for clause, _ in clauses] == [10, 12]
    assert [sum(map(len, pieces)) for _, pieces in clauses] == [100, 120]
    first, second = words_of(clauses)
    assert second.start_s - first.end_s == pytest.approx(0.01)


def test_a_passage_without_phones_is_only_its_break_and_marks():
    clauses = placed(HI, Passage(BREAK, False, break_s=0.2, marks=(("end", 0),)))
    assert frames_of(clauses) == [14, 15, 0]
    (mark,) = clauses[-1][0].marks
    assert (mark.name, mark.time_s) == ("end", pytest.approx(0.29))


def test_gains_of_phones_are_those_of_the_wav():
    factors = [ProsodyFactors(gain=gain) for gain in (1, 1, 0.5, 0.5)]
    ((_, pieces),) = placed(HI._replace(prosody=tuple(factors)))
    wav = np.concatenate([*pieces])
    assert wav[[30, 49, 100]] == pytest.approx([0.5, 0.4, 0.25])


def test_times_of_a_clause_are_known_before_the_next_one_is_made():
    stream = SpeechStream(arrange([HI, HI], iter([hello()]), silence, 0), 0)
    assert stream.words == []
    assert len(next(stream)) == 15
    assert [word.text for word in stream.words] == ["hi"]
    assert [sentence.text for sentence in stream.sentences] == ["Hi."]


def test_pieces_are_those_of_the_whole_cut_at_full_scale():
    clauses = [*arrange([HI, HI], iter([hello(2.0), hello(0.5)]), silence, 3)]
    wav = np.concatenate([*SpeechStream(clauses, 0)])
    clauses = [*arrange([HI, HI], iter([hello(2.0), hello(0.5)]), silence, 3)]
    speech = join([clause for clause, _ in clauses], [p for _, row in clauses for p in row])
    assert speech.gain == pytest.approx(PEAK / 2)
    assert wav == pytest.approx((speech.wav / speech.gain).clip(-1, 1), abs=1e-6)


def joined(*clauses: Speech) -> Speech:
    wavs = [
        next(faded_pieces([clause.wav], len(clause.wav), clause.sample_rate)) for clause in clauses
    ]
    return join(clauses, wavs)


def part(phones: str, durations: list[int], level: float = 0.5) -> Speech:
    return make_speech(phones.split(), durations, mel=MEL, level=level)


def test_words_and_phones_have_times_in_the_whole():
    speech = join([clause for clause, _ in placed(HI, HI, n_pause=2)], [np.zeros(300)])
    assert speech.words == (
        TimedWord("hi", pytest.approx(0.02), pytest.approx(0.09)),
        TimedWord("hi", pytest.approx(0.18), pytest.approx(0.25)),
    )
    assert speech.phones[4] == TimedPhone("<sil>", pytest.approx(0.14), pytest.approx(0.16))
    assert (speech.text, speech.normalized) == ("Hi. Hi.", "hi hi")


def test_phones_cover_the_wav_and_mel_f0_and_energy_have_a_value_per_frame():
    speech = joined(hello()[0], hello()[0])
    ends = [phone.end_s for phone in speech.phones]
    assert [phone.start_s for phone in speech.phones] == pytest.approx([0.0, *ends[:-1]])
    assert ends[-1] == pytest.approx(speech.seconds) == pytest.approx(0.28)
    assert abs(speech.wav[140]) < 1e-6  # the second part starts here, without a step
    assert np.abs(np.diff(speech.wav)).max() < 0.2  # of a level of 0.5
    speech = joined(hello()[0], silence(3)[0])
    assert speech.mel.shape == (2, 17)
    assert len(speech.f0) == len(speech.energy) == 17
    assert len(speech.wav) == 17 * HOP
    assert joined(replace(hello()[0], f0=None), silence(3)[0]).f0 is None


def test_edges_fade_over_five_milliseconds_and_the_middle_stays():
    wav = np.ones(1000, dtype=np.float32)
    edge = next(faded_pieces([wav], 1000, sample_rate=1000))
    assert edge[[0, -1]].tolist() == [0.0, 0.0]
    assert edge[1:5] == pytest.approx([0.0955, 0.3455, 0.6545, 0.9045], abs=1e-4)
    assert (edge[5:-5] == 1).all()
    assert (wav == 1).all()
    assert next(faded_pieces([np.ones(1)], 1, 22050)).tolist() == [1.0]


@pytest.mark.parametrize("edges", [[], [1, 4, 54], [99], [4]])
def test_pieces_fade_as_the_whole_does(edges):
    wav = np.random.default_rng(0).standard_normal(100).astype(np.float32)
    together = np.concatenate([*faded_pieces(np.split(wav, edges), 100, sample_rate=1000)])
    assert np.array_equal(together, next(faded_pieces([wav], 100, sample_rate=1000)))


def test_loud_speech_is_scaled_down_as_a_whole():
    speech = joined(part("A", [2], level=2.0), part("A", [2], level=1.0))
    assert np.abs(speech.wav).max() == pytest.approx(PEAK)
    assert speech.gain == pytest.approx(PEAK / 2)
    assert speech.wav[30] == pytest.approx(PEAK / 2)  # the quiet part keeps its distance
    within = joined(part("A", [2], level=1.0))
    assert (within.gain, np.abs(within.wav).max()) == (1.0, 1.0)


@pytest.mark.parametrize("edges", [[], [3], [5], [1, 2, 6, 7], [4, 8]])
def test_the_end_of_a_wav_fades_linearly_whole_or_in_pieces(edges):
    wav = np.full(8, 2.0, dtype=np.float32)
    ended = np.concatenate([*faded_out(np.split(wav, edges), 5)])
    assert ended.dtype == np.float32
    assert ended.tolist() == [2, 2, 2, 2, 1.5, 1, 0.5, 0]


def test_a_wav_that_is_shorter_than_the_fade_fades_as_a_whole_with_a_warning(caplog):
    assert np.concatenate([*faded_out([np.ones(3)], 3)]).tolist() == [1, 0.5, 0]
    assert caplog.text == ""
    assert np.concatenate([*faded_out([np.ones(3)], 99)]).tolist() == [1, 0.5, 0]
    assert "the fade at the end is 33.0 times as long as the speech" in caplog.text
    pieces = iter([np.ones(4), np.ones(4)])  # none is held back longer than the fade
    assert len(next(faded_out(pieces, 1))) == 3
    assert len(list(pieces)) == 1
    pieces = [np.ones(2), np.ones(3)]
    assert [*faded_out(pieces, 0)] == pieces


@pytest.mark.parametrize(("peak", "warned"), [(0.0, True), (0.009, True), (0.011, False)])
def test_speech_that_is_hardly_audible_is_warned_of(caplog, peak, warned):
    warn_if_untrained(joined(part("<sil> AH", [2, 30], level=-peak)), 1.0)
    assert ("almost no sound" in caplog.text) == warned


def test_phones_that_are_too_short_for_speech_are_warned_of(caplog):
    names = " ".join(["<sil>", *["AH"] * 9, "<.>"])
    rushed, fast = (joined(part(names, [50, n, *[0] * 8, 50])) for n in (20, 30))
    warn_if_untrained(fast, 1.0)
    warn_if_untrained(rushed, 0.5)  # as asked for: half of 0.4 s
    assert caplog.text == ""
    warn_if_untrained(rushed, 1.0)
    assert "9 phones in 0.20 s: the model is hardly trained; train it longer" in caplog.text
