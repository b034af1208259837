import logging
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models.base.assets import Assets, Speaker
from models.checkpoint import loading as checkpoint
from models.synthesizer.passage_synthesizer import PassageSynthesizer
from models.synthesizer.settings import PitchContour
from models.synthesizer.speech import Speech
from models.synthesizer.synthesizer import Synthesizer
from modules.mel import MelConfig
from modules.variance.pitch_transform import PitchTransform
from processors.dataset.statistics import CorpusStats, SpeakerStats, Stat
from processors.records import TimedWord
from processors.text.voice_phones import Vocabulary, arpabet_vocabulary
from tests.models.synthesizer.test_vocoders import make_vocoder, make_waveglow
from tests.worlds.untrained import save_weights, write_model
from utils.errors import InputError
from utils.files import read_json, write_json

LONG_TEXT = (
    "In 1813 the first of 42 books was printed. Was it beautiful? Dr. Smith said so, and I agree! "
    "It cost $3.50; nobody read it, however, because the letters, which were cut in wood, "
    "were small, and the lines, which ran from edge to edge, were long. The end."
)
SHORT_TEXT = "It was so. Was it? Yes."
MEL = MelConfig()


VOICES = {  # of 20,000 parameters
    "FastSpeech2": {
        "transformer": {
            **{"n_encoder_layers": 1, "n_decoder_layers": 1},
            **{"encoder_hidden": 16, "decoder_hidden": 16},
            **{"conv_filter_size": 32, "conv_kernel_size": [3, 1]},
        },
        "variance_predictor": {"filter_size": 16},
        "use_postnet": False,
    },
    "FlowSpeech": {
        "hidden": 16,
        "encoder": {"n_layers": 1, "filter_size": 32, "kernel_size": 3},
        "prosody": {"channels": 16, "kernel_size": 3, "n_bins": 16},
        "estimator": {"channels": 16, "n_blocks": 3, "kernel_size": 5},
    },
    "Matcha": {
        "encoder": {"hidden": 16, "n_layers": 1, "filter_size": 32, "duration_filter_size": 16},
        "decoder": {"channels": [16, 16], "n_middle_stages": 1, "head_size": 8},
        "steps": 2,
    },
}
ANNA_AND_BERT = Speaker("anna", "en-us"), Speaker("bert", "en-gb")
LEXICON_GONE = {"preprocess": {"text": {"lexicon_path": "/gone/lexicon.txt"}}}


def make_voice(
    folder: Path,
    *speakers: Speaker,
    pause_s: float = 0.25,
    vocabulary: Vocabulary | None = None,
    phone_extractor: str = "lexicon",
    model: str = "FastSpeech2",
    sizes: dict[str, object] | None = None,
    default: str = "",
) -> Path:
    """An untrained voice that takes about five frames per phone."""
    speakers = speakers or (Speaker("one", "en-us"),)
    f0, energy = Stat(200.0, 50.0, 80.0, 400.0), Stat(30.0, 20.0, 0.0, 120.0)
    stats = SpeakerStats(f0, f0, energy, energy, seconds=60.0)
    assets = Assets(
        mel=MEL,
        vocabulary=vocabulary or arpabet_vocabulary(),
        speakers=speakers,
        stats=CorpusStats({speaker.name: stats for speaker in speakers}),
    )
    network = write_model(
        folder,
        *("tts", model, sizes or VOICES[model], assets),
        preprocess={
            "text": {"phone_extractor": phone_extractor},
            "aligner": "learned" if model == "Matcha" else "pocketsphinx",
        },
        inference={
            "acoustic_precision": "fp32",
            "griffin_lim_iterations": 4,
            "vocoder_precision": "fp32",
            "batch_size": 3,
            "sentence_pause_s": pause_s,
            "speaker": default,
        },
    )
    predictor = getattr(network, "duration_predictor", None) or network.encoder.duration_predictor
    torch.nn.init.constant_(predictor.linear.bias, np.log(6.0))
    if model == "FlowSpeech":
        torch.nn.init.normal_(network.estimator.velocity.weight, std=0.1)  # 0 before training
    elif model != "Matcha":
        torch.nn.init.constant_(network.mel_linear.bias, -4.0)
    return save_weights(network, folder)


@pytest.fixture(scope="module")
def vocoder(tmp_path_factory) -> Path:
    return make_vocoder(tmp_path_factory.mktemp("vocoder") / "v")


@pytest.fixture(scope="module")
def voice(vocoder, tmp_path_factory) -> Synthesizer:
    return Synthesizer(make_voice(tmp_path_factory.mktemp("voice")), vocoder)


@pytest.fixture(scope="module")
def flow_voice(vocoder, tmp_path_factory) -> Synthesizer:
    return Synthesizer(make_voice(tmp_path_factory.mktemp("flow"), model="FlowSpeech"), vocoder)


@pytest.fixture(scope="module")
def matcha_voice(vocoder, tmp_path_factory) -> Synthesizer:
    return Synthesizer(make_voice(tmp_path_factory.mktemp("matcha"), model="Matcha"), vocoder)


@pytest.fixture(scope="module", params=["voice", "flow_voice", "matcha_voice"])
def every_voice(request) -> Synthesizer:
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def long_speech(voice) -> Speech:
    return voice(LONG_TEXT)


@pytest.fixture(scope="module")
def two_voices(vocoder, tmp_path_factory) -> Synthesizer:
    folder = make_voice(tmp_path_factory.mktemp("two"), *ANNA_AND_BERT)
    return Synthesizer(folder, vocoder)


def changed(voice: Synthesizer, *overrides: str) -> Synthesizer:
    """The same voice with other settings."""
    return Synthesizer(voice.model.folder, voice.vocoder_name, overrides=overrides)


def test_words_sentences_and_phones_of_a_long_text_have_rising_times_within_the_wav(long_speech):
    words, sentences, phones = long_speech.words, long_speech.sentences, long_speech.phones
    spoken = " ".join(word.text.lower() for word in words).replace("-", " ")
    for phrase in (
        "in eighteen thirteen the first of forty two books was printed",
        "was it beautiful",
        "said so and i agree",
        "fifty cents nobody read it however because the letters which were cut in wood",
        "ran from edge to edge were long the end",
    ):
        assert phrase in spoken
    starts = [word.start_s for word in words]
    assert starts == sorted(starts)
    assert all(word.start_s < word.end_s for word in words)
    assert words[-1].end_s <= long_speech.seconds
    assert [phone.start_s for phone in phones[1:]] == [phone.end_s for phone in phones[:-1]]
    assert phones[-1].end_s == pytest.approx(long_speech.seconds)
    assert " ".join(sentence.text for sentence in sentences) == LONG_TEXT
    assert [sentence.text.split()[0] for sentence in sentences] == ["In", "Was", "Dr.", "It", "The"]
    begun = {word.start_s: word.text for word in words}
    assert [begun[s.start_s] for s in sentences] == ["In", "Was", "Doctor", "It", "The"]
    assert sentences[-1].end_s == words[-1].end_s


def test_a_voice_says_the_nearest_phones_of_those_it_was_not_trained_on(tmp_path, caplog):
    make_voice(tmp_path)
    trained = sorted(set(arpabet_vocabulary().symbols) - {"OY0", "OY1", "OY2", "OY", "<?>"})
    write_json(tmp_path / "trained_phones.json", trained)
    speech = Synthesizer(tmp_path, "griffin_lim")("A boy 😀?")
    assert " ".join(speech.phone_names) == "<sil> AH0 B AO1 IH0 <.>"
    assert [word.text for word in speech.words] == ["A", "boy"]
    assert "signs that are not spoken: 😀" in caplog.text
    assert "replaces OY1 in 'boy' by AO1 IH0, <?> by <.>" in caplog.text
    strict = Synthesizer(tmp_path, overrides=["inference.unknown_phones=refuse"])
    for say in (strict, strict.generate):
        with pytest.raises(InputError, match="not trained on the phone OY1 in 'boy'"):
            say("A boy?")


def test_a_text_of_which_all_is_skipped_is_a_pause(tmp_path):
    skip = ["inference.unknown_characters=skip"]
    synthesizer = Synthesizer(make_voice(tmp_path), overrides=skip)
    speech = synthesizer("习近平。")
    n_pause = round(0.25 * speech.sample_rate)
    assert (speech.words, len(speech.wav)) == ((), pytest.approx(n_pause, abs=300))
    assert not speech.wav.any()
    assert np.array_equal(np.concatenate(list(synthesizer.generate("习近平。"))), speech.wav)


def test_a_question_ends_higher_in_a_voice_that_was_not_trained_on_any(tmp_path):
    make_voice(tmp_path)
    pitch = {}
    for trained, rise in ((False, None), (False, 12), (True, None)):
        names = set(arpabet_vocabulary().symbols) - ({"<?>"} if not trained else set())
        write_json(tmp_path / "trained_phones.json", sorted(names))
        overrides = [] if rise is None else [f"inference.question_rise={rise}"]
        synthesizer = Synthesizer(tmp_path, "griffin_lim", overrides=overrides)
        for text in ("Are you ready?", "Are you ready.", "Where are you?", "Where are you."):
            speech = synthesizer(text)
            last = int(speech.durations[:-2].sum())  # frames before the last vowel
            pitch[text, trained, rise] = speech.f0[last]
    for trained, rise, semitones in ((False, None, 6), (False, 12, 12), (True, None, 0)):
        asked, said = (pitch[f"Are you ready{mark}", trained, rise] for mark in "?.")
        if not trained:  # otherwise their last phones differ
            assert asked / said == pytest.approx(2 ** (semitones / 12), rel=1e-3)
            assert pitch["Where are you?", trained, rise] == pitch["Where are you.", trained, rise]


def test_words_of_generated_speech_come_before_their_sound_with_the_same_times(voice, long_speech):
    stream, n_samples = voice.generate(LONG_TEXT), 0
    for piece in stream:
        n_samples += len(piece)
        assert stream.words[-1].end_s * MEL.sample_rate >= n_samples - 0.5 * MEL.sample_rate
        if not piece.any():  # a pause, whose next words are not known yet
            assert stream.words[-1].end_s * MEL.sample_rate < n_samples
    assert tuple(stream.words) == long_speech.words
    assert tuple(stream.sentences) == long_speech.sentences


def test_alignments_of_speech_are_files_of_other_programs(long_speech, tmp_path):
    for name in ("a.json", "a.srt", "a.TextGrid", "a.vtt"):
        long_speech.save_alignment(tmp_path / "new" / name)
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == ["a.TextGrid", "a.json", "a.srt", "a.vtt"]
    sentences = read_json(tmp_path / "new" / "a.json")["sentences"]
    assert [tuple(one.values()) for one in sentences] == [*long_speech.sentences]
    words = read_json(tmp_path / "new" / "a.json")["words"]
    written = [long_speech.text[slice(*word["span"])] for word in words]
    assert written.count("$3.50") == len(("three", "dollars", "and", "fifty", "cents"))
    assert {"Dr", "Was"} < set(written)
    assert "\nIt cost $3.50; " in (tmp_path / "new" / "a.srt").read_text()
    with pytest.raises(InputError, match=r"a\.txt: unknown format of alignments; expected one of"):
        long_speech.save_alignment(tmp_path / "a.txt")


def test_mel_curves_and_wav_have_the_length_of_the_durations(long_speech):
    T = int(long_speech.durations.sum())
    assert long_speech.mel.shape == (80, T)
    assert long_speech.f0.shape == long_speech.energy.shape == (T,)
    assert long_speech.wav.shape == (T * MEL.hop_length,)
    assert (long_speech.wav.dtype, long_speech.sample_rate) == (np.float32, 22050)


def test_what_is_heard_does_not_depend_on_the_batches(every_voice):
    text = "It was 42. Was it? So she, who saw it, said! The end."
    together = every_voice(text)
    for batch_size in (1, 8):
        alone = changed(every_voice, f"inference.batch_size={batch_size}")(text)
        assert alone.durations.tolist() == together.durations.tolist()
        assert alone.mel == pytest.approx(together.mel, abs=1e-4)
        assert rms(alone.wav - together.wav) < 0.01 * rms(together.wav)


def rms(wav):
    return np.sqrt(np.mean(np.square(wav)))


def test_a_sentence_sounds_alone_and_again_as_it_does_in_a_text(every_voice):
    first = every_voice("The first one. And another, longer one.")
    alone = every_voice("The first one.")
    assert rms(first.wav[: len(alone.wav)] - alone.wav) < 0.01 * rms(alone.wav)
    assert (every_voice("Again.", seed=3).wav == every_voice("Again.", seed=3).wav).all()


def test_seed_temperature_and_steps_choose_what_a_flow_says(flow_voice):
    def mel(**settings):
        return flow_voice("Hello there.", **settings).mel

    plain, silent = mel(), mel(temperature=0)
    assert np.array_equal(plain, mel(steps=4, temperature=0.3, seed=0))  # its own
    assert np.array_equal(silent, mel(temperature=0.0, seed=1))
    others = plain, silent, mel(seed=1), mel(steps=9)
    for one, other in combinations(others, 2):
        assert not np.array_equal(one, other)


def test_a_voice_without_a_flow_refuses_steps_and_temperature_before_it_speaks(voice, monkeypatch):
    monkeypatch.setattr(voice, "_passages", SimpleNamespace(controls=voice._passages.controls))
    for name, value in (("steps", 4), ("temperature", 0.3)):
        message = rf"^FastSpeech2 has no control of {name} \(it has: .*\); leave it out, or choose"
        with pytest.raises(InputError, match=message):
            voice.checked(**{name: value})
        for say in (voice, voice.generate):
            with pytest.raises(InputError, match=message):
                say("Hello.", **{name: value})


def test_the_seed_is_that_of_the_vocoder_too_in_texts_and_in_pieces(tmp_path):
    voice = Synthesizer(
        make_voice(tmp_path / "a"),
        vocoder=make_waveglow(tmp_path / "v"),
        overrides=["inference.vocoder_options.sigma=0.1"],
    )
    text = "One. And another."
    first, other = (voice(text, seed=seed).wav for seed in (3, 4))
    assert rms(first - other) > 0.1 * rms(first)
    assert np.concatenate(list(voice.generate(text, seed=3))) == pytest.approx(first, abs=1e-4)


def test_sentences_are_parted_by_the_configured_pause_which_is_silent_and_no_edge_clicks(voice):
    voices = (changed(voice, f"inference.sentence_pause_s={pause_s}") for pause_s in (0, 0.5))
    short, long = (paused("One. Two.") for paused in voices)
    assert long.seconds - short.seconds == pytest.approx(0.5, abs=0.006)  # half a frame
    pause = [phone for phone in long.phones if phone.name == "<sil>"][1]
    assert pause.end_s - pause.start_s == pytest.approx(0.5, abs=0.006)
    first, last = (round(time * long.sample_rate) for time in pause[1:])
    assert (long.wav[first:last] == 0).all()
    assert long.wav[[0, first - 1, last, -1]] == pytest.approx([0, 0, 0, 0], abs=1e-6)


def test_a_sentence_beyond_max_phones_is_cut_at_its_clauses(voice, long_speech):
    cut = changed(voice, "inference.max_phones=40")(LONG_TEXT)
    assert [word.text for word in cut.words] == [word.text for word in long_speech.words]
    assert cut.phone_names.count("<sil>") > long_speech.phone_names.count("<sil>")
    assert cut.phone_names.count("<.>") == long_speech.phone_names.count("<.>")


def test_duration_control_makes_speech_and_pauses_longer_and_pitch_control_acts_in_hertz(voice):
    text = "One. And two."
    normal, slow = voice(text), voice(text, duration_control=2.0)
    high = voice(text, pitch_control=1.2)
    assert slow.seconds / normal.seconds == pytest.approx(2.0, rel=0.05)
    assert high.f0 == pytest.approx(1.2 * normal.f0, rel=1e-3)


def per_phone(speech):
    """The f0 of each phone that is spoken."""
    ends = np.cumsum(speech.durations)
    pairs = zip(speech.phone_names, ends, speech.durations, strict=True)
    return [(name, float(speech.f0[end - 1])) for name, end, n in pairs if n > 0]


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (PitchTransform(flatten=True), lambda hz: 200),
        ("flatten", lambda hz: 200),
        ("invert", lambda hz: 400 - hz),
        (lambda hz, _: hz + 7, lambda hz: hz + 7),
        (PitchTransform(invert=True), lambda hz: 400 - hz),
        (PitchTransform(amplify=1.5, shift_hz=20), lambda hz: 220 + 1.5 * (hz - 200)),
        (PitchTransform(custom=lambda hz, _: hz + 7), lambda hz: hz + 7),
    ],
)
def test_pitch_is_transformed_around_the_mean_before_the_factor(voice, transform, expected):
    plain, other = voice(SHORT_TEXT), voice(SHORT_TEXT, pitch_transform=transform)
    assert plain.durations.tolist() == other.durations.tolist()
    wanted = [expected(hz) if hz > 0 else hz for _, hz in per_phone(plain)]
    assert [hz for _, hz in per_phone(other)] == pytest.approx(wanted, abs=0.01)
    high = voice(SHORT_TEXT, pitch_transform=transform, pitch_control=1.1)
    assert [hz for _, hz in per_phone(high)] == pytest.approx([1.1 * hz for hz in wanted], abs=0.01)


def test_a_contour_stretches_over_all_sentences(voice):
    ramp = PitchContour((0.5, 1.5), "ramp:0.5:1.5")
    single = changed(voice, "inference.batch_size=1")
    plain, ramped = voice(SHORT_TEXT), single(SHORT_TEXT, pitch_transform=ramp)
    sentences = voice._reader(SHORT_TEXT, "en-us")
    names = [name for (clause,) in sentences for name in clause.phones]
    places = iter(enumerate(names))
    pairs = zip(per_phone(plain), per_phone(ramped), strict=True)
    for (name, before), (_, after) in pairs:
        if before > 0:  # no pause between sentences
            i = next(i for i, other in places if other == name)
            assert after == pytest.approx(before * (0.5 + i / len(names)), rel=1e-4)


@pytest.mark.parametrize("transform", [None, "flatten"])
def test_the_network_learns_which_phones_are_voiced(voice, monkeypatch, transform):
    seen = []
    infer = voice._passages._network.infer
    spy = lambda *given, **named: seen.append(named["voiced"]) or infer(*given, **named)  # noqa: E731
    monkeypatch.setattr(voice._passages._network, "infer", spy)
    speech = voice("{S AA1 Z T} {AH0}.", pitch_transform=transform)
    assert " ".join(speech.phone_names) == "<sil> S AA1 Z T AH0 <.>"
    assert seen[0].tolist() == [[False, False, True, True, False, True, False]]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_pitch_that_is_not_the_speakers_is_warned_of_once(voice, caplog, streamed):
    fresh, n_phones = changed(voice), len(voice.phone_names("Yes."))
    say = (lambda *words, **named: [*fresh.generate(*words, **named)]) if streamed else fresh
    say("Yes.", pitch_control=1.01)
    say("Yes.", pitch=[200.0] * n_phones)
    assert "beyond" not in caplog.text
    for _ in range(2):
        say("Yes.", pitch_transform=PitchTransform(flatten=True, shift_hz=150))
    assert caplog.text.count("beyond the 100 to 300 Hz of most recordings of one") == 1
    changed(voice)("Yes.", pitch=[1e9] * n_phones)
    assert "100 % of the requested pitch is beyond the 100 to 300 Hz" in caplog.text


def test_given_pitch_is_spoken_phone_by_phone_in_all_sentences(voice):
    text = "Aha. Oh, a bee."
    names = voice.phone_names(text)
    assert names == voice(text).phone_names
    hz = [150.0 + 10 * i for i in range(len(names))]
    speech = voice(text, pitch=hz)
    spoken = dict(enumerate(zip(names, hz, speech.durations, strict=True)))
    wanted = [row[1] for row in spoken.values() if row[2] > 0]
    heard = [value for _, value in per_phone(speech)]
    pause = names.index("<sil>", 1)
    del wanted[pause], heard[pause]
    assert heard == pytest.approx(wanted, rel=1e-5)
    assert np.abs(np.concatenate([*voice.generate(text, pitch=hz)]) - speech.wav).max() < 1e-4


def test_the_end_fades_in_speech_and_in_pieces(voice):
    plain, faded = voice("One. Two."), voice("One. Two.", fade_out=4)
    n = 4 * MEL.hop_length
    assert np.array_equal(faded.wav[:-n], plain.wav[:-n])
    assert faded.wav[-n:] == pytest.approx(plain.wav[-n:] * np.linspace(1, 0, n), abs=1e-6)
    pieces = voice.generate("One. Two.", fade_out=4)
    assert np.abs(np.concatenate([*pieces]) - faded.wav).max() < 1e-4


def test_a_model_without_controls_speaks_and_refuses_each_of_them(voice, monkeypatch):
    infer = voice._passages._network.infer
    expected = voice("Hello.").wav

    class Plain:
        controls = frozenset()

        def infer(self, phone_ids, phone_lengths, *, speaker_ids=None, seed=0, max_frames=None):
            out = infer(phone_ids, phone_lengths, speaker_ids=speaker_ids)
            rows = torch.eye(phone_ids.shape[1]).repeat_interleave(out.durations[0], dim=0)
            return out._replace(alignment=rows[None], stopped=torch.tensor([True]))

    monkeypatch.setattr(voice._passages, "_network", Plain())
    assert np.array_equal(voice("Hello.").wav, expected)
    with pytest.raises(InputError, match=r"2 has no control of duration \(it has: none\)"):
        voice("Hello.", duration_control=1.2)
    with pytest.raises(InputError, match=r"no control of pitch_transform"):
        voice.generate("Hello.", pitch_transform=PitchTransform(flatten=True))


def test_the_precision_is_an_option_and_changes_no_times(voice):
    exact = voice("Hello there.")
    half = changed(voice, "inference.acoustic_precision=bf16")
    rounded = half("Hello there.")
    assert rounded.phones == exact.phones
    assert 0 < np.abs(rounded.mel - exact.mel).mean() < 0.01
    assert half.fingerprint() != voice.fingerprint()


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        *((text, {}, "no word") for text in ("", "   \n", "...", "— ?!")),
        ("abc\udcff", {}, "not UTF-8 at character 3"),
        (None, {}, "the text is None; expected a string"),
        (5, {}, "the text is 5; expected a string"),
        *(
            (text, {}, r"the text holds control characters: .*\\x.*; remove")
            for text in ("Don\x92t.", "One\x1b[1m two.", "One.\0", "One\x85", "One\x1ftwo.")
        ),
        *(
            ("Hello.", {"seed": seed}, "^seed is .*; expected a whole")
            for seed in (None, "1", 1.0, -1, 2**63)
        ),
        ("Hello.", {"speaker": 5}, r"no speaker 5 \(known: one\)"),
        ("Hello.", {"pitch_control": 99}, "^pitch_control is 99"),
        ("Hello.", {"pitch_control": "a"}, "pitch_control is 'a'; expected a number from 0.1 to 1"),
        ("Hello.", {"pitch": 5}, "^pitch is 5; expected a list of Hz"),
        ("Hello.", {"pitch": "abc"}, "^pitch is 'abc'; expected a list of Hz"),
        ("Hello.", {"pitch": [100.0, 200.0]}, "pitch has 2 values, and the text 6 phones and paus"),
        ("Hello.", {"pitch_transform": "amplify"}, "^pitch_transform is 'amplify'; expected 'flat"),
    ],
)
def test_what_cannot_be_spoken_is_refused_at_once(voice, text, settings, message):
    for say in (voice, voice.generate):
        with pytest.raises(InputError, match=message):
            say(text, **settings)


def test_stray_punctuation_single_words_inline_phones_and_white_space_are_spoken(voice):
    assert [word.text.lower() for word in voice("Yes. ... No.").words] == ["yes", "no"]
    speech = voice("Oh")
    assert [word.text.lower() for word in speech.words] == ["oh"]
    assert speech.seconds > 0.1
    assert voice("{HH AH0 L OW1}").phone_names[1:5] == ("HH", "AH0", "L", "OW1")
    assert np.array_equal(voice("One\r\ntwo\fthree\u2028.").wav, voice("One two three.").wav)


def test_of_several_speakers_one_must_be_chosen(two_voices):
    with pytest.raises(InputError, match=r"has 2 speakers; choose one \(known: anna, bert\)"):
        two_voices("Hello.")
    with pytest.raises(InputError, match=r"no speaker 'berta'.*known: anna, bert"):
        two_voices("Hello.", speaker="berta")
    anna, bert = (two_voices("Hello.", speaker=name) for name in ("anna", "bert"))
    assert (anna.speaker, bert.speaker) == ("anna", "bert")
    T = min(anna.mel.shape[1], bert.mel.shape[1])
    assert not np.allclose(anna.mel[:, :T], bert.mel[:, :T])


def test_the_default_speaker_speaks_where_none_is_asked_for(vocoder, tmp_path):
    voice = Synthesizer(make_voice(tmp_path, *ANNA_AND_BERT, default="bert"), vocoder)
    speech = voice("Hello.")
    assert (speech.speaker, voice.default_speaker) == ("bert", "bert")
    assert np.array_equal(speech.wav, voice("Hello.", speaker="bert").wav)
    assert voice.phone_names("path") == voice.phone_names("path", speaker="bert")
    assert voice("Hello.", speaker="anna").speaker == "anna"
    other = changed(voice, "inference.speaker=anna")
    assert other("Hello.").speaker == "anna"
    assert other.fingerprint() == voice.fingerprint()  # which speaks is no fact of the model


def test_a_default_speaker_whom_the_voice_lacks_is_refused_when_it_is_opened(tmp_path):
    folder = make_voice(tmp_path / "two", *ANNA_AND_BERT, default="berta")
    message = r"two/config\.json: the model has no speaker 'berta'; did you mean bert\? \(known:"
    message += r" anna, bert\); correct or remove its inference\.speaker"
    with pytest.raises(InputError, match=message):
        Synthesizer(folder)
    assert Synthesizer(folder, overrides=["inference.speaker=bert"])("Yes.").speaker == "bert"


def test_loud_speech_is_scaled_down_and_said_and_its_pieces_are_cut(voice, caplog, monkeypatch):
    vocoder = voice._passages.vocoder
    infer, generate = vocoder.infer, vocoder.generate
    monkeypatch.setattr(vocoder, "infer", lambda *x, seed: 4 * infer(*x) / infer(*x).abs().max())
    with caplog.at_level(logging.INFO):
        speech = voice("Loud.")
    assert np.abs(speech.wav).max() == pytest.approx(0.99)
    assert "scaled down by" in caplog.text
    monkeypatch.setattr(vocoder, "generate", lambda *x, seed: (1000 * wav for wav in generate(*x)))
    assert np.abs(np.concatenate([*voice.generate("Loud.")])).max() == 1


def test_values_that_are_not_finite_are_an_error(voice, monkeypatch):
    vocoder = voice._passages.vocoder
    monkeypatch.setattr(vocoder, "infer", lambda mel, lengths, seed: mel[:, 0] * torch.nan)
    monkeypatch.setattr(vocoder, "generate", lambda mel, _, seed: iter([mel[:, 0] * torch.nan]))
    for say in (voice, lambda text: next(voice.generate(text))):
        with pytest.raises(InputError, match="not finite"):
            say("Hello.")


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("voice", {}),
        ("voice", {"duration_control": 2.0}),
        ("flow_voice", {"steps": 2, "temperature": 0.8, "seed": 5}),
    ],
)
def test_pieces_of_a_text_join_up_to_its_speech(request, name, settings):
    voice = request.getfixturevalue(name)
    pieces = list(voice.generate(LONG_TEXT, **settings))
    speech = voice(LONG_TEXT, **settings)
    assert len(pieces) > 10
    assert all(piece.dtype == np.float32 for piece in pieces)
    assert np.abs(np.concatenate(pieces) - speech.wav).max() < 1e-6


def test_griffin_lim_gives_a_text_by_its_sentences_and_vocoders_are_named(voice, caplog):
    with caplog.at_level(logging.INFO):
        bundled = Synthesizer(voice.model.folder)
        plain = Synthesizer(voice.model.folder, "griffin_lim")
    assert (bundled.vocoder_name, plain.vocoder_name) == ("freevgl", "Griffin-Lim")
    assert "no vocoder given: the bundled freevgl" in caplog.text
    assert "Griffin-Lim, 4 iterations" in caplog.text
    pieces = list(plain.generate("One. And two."))
    assert len(pieces) == 3  # with the pause
    # the search for phases magnifies what a batch rounds otherwise
    assert np.abs(np.concatenate(pieces) - plain("One. And two.").wav).max() < 1e-3


def test_the_first_piece_comes_before_the_second_sentence_is_computed(voice, monkeypatch):
    spoken, run = [], PassageSynthesizer._infer
    spy = lambda *given: spoken.append(1) or run(*given)  # noqa: E731
    monkeypatch.setattr(PassageSynthesizer, "_infer", spy)
    pieces = voice.generate("One. And two. And three.")
    assert next(pieces).size > 0
    assert len(spoken) == 1
    assert len(list(pieces)) > 0
    assert len(spoken) == 3


def test_each_sentence_of_an_iterator_is_spoken_when_it_is_complete_as_in_the_whole_text(voice):
    read = []
    parts = (read.append(part) or part for part in LONG_TEXT.split(" "))
    stream = voice.generate((f"{part} " for part in parts), duration_control=1.2)
    pieces = [next(stream)]
    assert read[-1] == "Was"
    assert [sentence.text for sentence in stream.sentences] == [" ".join(read[:-1])]
    whole = voice.generate(LONG_TEXT, duration_control=1.2)
    assert np.array_equal(np.concatenate([*pieces, *stream]), np.concatenate([*whole]))
    assert (stream.words, stream.sentences) == (whole.words, whole.sentences)
    assert stream.spans == []
    for settings, message in (
        ({"pitch": (100.0,)}, "the pitch of each phone needs a whole text"),
        ({"speaker": "Bob"}, "no speaker 'Bob'"),
    ):
        with pytest.raises(InputError, match=message):
            voice.generate(iter(["One."]), **settings)
    for parts, message in (
        ([], "no word in the text"),
        (["..."], "no word"),
        (["a", 5], "text is 5"),
    ):
        with pytest.raises(InputError, match=message):
            list(voice.generate(iter(parts)))


def test_random_numbers_of_others_are_left_alone(voice):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    voice("One. Two.", seed=5)
    pieces = voice.generate("One. Two.")
    drawn = []
    for _ in zip(range(3), pieces, strict=False):
        drawn.append(torch.rand(1))
        assert torch.is_grad_enabled()
        assert not torch.is_inference_mode_enabled()
    assert torch.equal(torch.cat(drawn), expected)


def test_a_vocoder_that_does_not_fit_is_refused_before_it_is_read(voice, tmp_path, monkeypatch):
    folder = make_vocoder(tmp_path / "v", MelConfig(f_max=7600.0))
    for name in ("read_tensors", "model_of"):
        monkeypatch.setattr(checkpoint, name, None)
    with pytest.raises(InputError, match=r"f_max 8000.0 and 7600.0"):
        Synthesizer(voice.model.folder, folder)


def test_a_vocoder_of_another_rate_is_resampled_to_that_of_the_voice(voice, tmp_path):
    mel = MelConfig(sample_rate=16000, hop_length=200, win_length=800)
    folder = make_vocoder(tmp_path / "v", mel, rates=(5, 5, 8))
    resampled = Synthesizer(voice.model.folder, folder, resample=True)
    speech = resampled(LONG_TEXT)
    assert speech.sample_rate == 22050
    assert len(speech.wav) == speech.mel.shape[1] * 256
    assert np.abs(np.concatenate([*resampled.generate(LONG_TEXT)]) - speech.wav).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"overrides": ["model.use_postnet=true"]}, "--set changes the model section"),
        ({"overrides": ["preprocess.f_max=7000"]}, "--set changes the mel .*f_max 8000"),
        ({"overrides": ["inference.acoustic_precision=int8"]}, "int8; FastSpeech2 has fp32, bf16"),
        ({"overrides": ["inference.attention_attempts=5"]}, "is 5, and FastSpeech2 does not"),
        ({"vocoder": "egs/_voices/choir"}, "is an acoustic model; expected a vocoder"),
        *(
            ({"device": device}, rf"^device {device!r}: .*; expected 'auto', .*'cuda'")
            for device in ("gpu", 3, None)
        ),
        ({"device": "cuda:99"}, r"^device 'cuda:99': "),
    ],
)
def test_a_voice_is_not_opened_with_what_does_not_fit_it(voice, options, message):
    with pytest.raises(InputError, match=message):
        Synthesizer(voice.model.folder, **options)


def test_a_checkpoint_of_an_experiment_takes_overrides_from_its_experiment(voice, tmp_path):
    experiment = make_voice(tmp_path / "experiment")
    checkpoint = experiment / "checkpoints" / "step-00000001"
    checkpoint.mkdir(parents=True)
    (experiment / "model.safetensors").rename(checkpoint / "model.safetensors")
    loaded = Synthesizer(checkpoint, overrides=["inference.batch_size=1"])
    assert loaded.config.inference.batch_size == 1
    assert isinstance(loaded("Hello.").words[0], TimedWord)


def test_an_override_chooses_the_raw_weights_of_an_averaged_voice(tmp_path):
    make_voice(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    raw = {name: tensor * 1.01 for name, tensor in weights.items()}
    save_file(raw, tmp_path / "raw_model.safetensors")
    config = read_json(tmp_path / "config.json")
    write_json(tmp_path / "config.json", config | {"train": {"max_steps": 1, "ema_decay": 0.9}})
    spoken = Synthesizer(tmp_path).model.network.state_dict()
    chosen = Synthesizer(tmp_path, overrides=["inference.ema=false"]).model.network.state_dict()
    assert all(torch.equal(spoken[name], tensor) for name, tensor in weights.items())
    assert all(torch.equal(chosen[name], tensor) for name, tensor in raw.items())


def test_a_moved_experiment_keeps_its_lexicon_and_an_override_replaces_it(tmp_path):
    folder = make_voice(tmp_path / "voice")
    write_json(folder / "config.json", read_json(folder / "config.json") | LEXICON_GONE)
    (folder / "lexicon.txt").write_text("hello  B UW1\n")
    (tmp_path / "other.txt").write_text("hello  M OW1\n")
    other = f"preprocess.text.lexicon_path={tmp_path / 'other.txt'}"
    for overrides, phones in (([], ("B", "UW1")), ([other], ("M", "OW1"))):
        moved = Synthesizer(folder, "griffin_lim", overrides=overrides)
        assert moved("Hello.").phone_names[1:3] == phones


def test_what_is_no_text_no_settings_or_no_model_is_refused(voice):
    with pytest.raises(InputError, match=r"the text is \['One.', 'Two.'\]; expected a string"):
        voice.generate(["One.", "Two."])
    with pytest.raises(InputError, match=r"settings are \{'seed': 1\}; expected Settings, or"):
        voice("Hello.", {"seed": 1})
    with pytest.raises(InputError, match="the model is of the type NoneType; expected a path, or"):
        Synthesizer(None)


def test_the_largest_seed_and_one_of_numpy_and_a_list_of_texts_are_taken(voice):
    assert voice("Hello.", seed=2**63 - 1).seconds == voice("Hello.", seed=np.int64(3)).seconds
    texts = ["One.", "Two."]
    assert [speech.text for speech in voice(texts)] == texts
    assert np.array_equal(voice(texts)[1].wav, voice("Two.").wav)


def test_a_long_text_shows_its_progress(voice, caplog):
    caplog.set_level(logging.INFO)
    voice("One. Two.")
    assert "sentences" not in caplog.text
    voice("One. " * 7)
    assert "sentences: 7/7" in caplog.text


def test_a_device_that_is_not_there_is_refused_before_anything_is_loaded(tmp_path):
    with pytest.raises(InputError, match=r"^device 'gpu': "):
        Synthesizer(tmp_path / "nothing", device="gpu")
