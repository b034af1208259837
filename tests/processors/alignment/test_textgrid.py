"""TextGrids as people have them: every oddity of MFA's survives, every broken file is named."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from config.preprocess import PreprocessConfig
from config.text import TextConfig
from preprocessors.manifest import Utterance
from processors.alignment.aligner import AlignmentError, find_aligner, make_aligner
from tests.processors.utterances import spoken_text
from utils.errors import InputError

RATE = 1000  # Hz
CONFIG = PreprocessConfig(aligner="textgrid", sample_rate=RATE, f_max=500.0, f0_max=400.0)
WORDS = [(0, 0.2, ""), (0.2, 0.4, "hi"), (0.4, 0.6, ""), (0.6, 0.8, "you"), (0.8, 1, "")]
PHONES = [(0, 0.2, "sil"), (0.2, 0.3, "HH"), (0.3, 0.4, "AY1"), (0.4, 0.6, "sp")]
PHONES += [(0.6, 0.7, "Y"), (0.7, 0.8, "UW1"), (0.8, 1, "")]
SPOKEN = spoken_text("Hi, you!", "<sil> Hi=HH-AY1 <,> you=Y-UW1 <!>")
BOUNDARIES = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]


def long_form(tiers, duration_s=1.0):
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0"]
    lines += [f"xmax = {duration_s}", "tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for number, (name, intervals) in enumerate(tiers.items(), 1):
        lines += [f"    item [{number}]:", '        class = "IntervalTier"']
        lines += [f'        name = "{name}"', "        xmin = 0", f"        xmax = {duration_s}"]
        lines += [f"        intervals: size = {len(intervals)}"]
        for index, (start, end, label) in enumerate(intervals, 1):
            lines += [f"        intervals [{index}]:", f"            xmin = {start}"]
            lines += [f"            xmax = {end}", f'            text = "{label}"']
    return "\n".join(lines) + "\n"


def short_form(tiers, duration_s=1.0):
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "0", str(duration_s)]
    lines += ["<exists>", str(len(tiers))]
    for name, intervals in tiers.items():
        lines += ['"IntervalTier"', f'"{name}"', "0", str(duration_s), str(len(intervals))]
        lines += [f'{start}\n{end}\n"{label}"' for start, end, label in intervals]
    return "\n".join(lines) + "\n"


def align(tmp_path, content, spoken=SPOKEN, duration_s=1.0, speaker="Ada"):
    folder = tmp_path / "TextGrid"
    folder.mkdir(exist_ok=True)
    if content is not None:
        content = content if isinstance(content, bytes) else content.encode()
        (folder / "u1.TextGrid").write_bytes(content)
    utterance = Utterance("u1", tmp_path / "u1.wav", spoken.text, speaker)
    wav = np.zeros(round(duration_s * RATE), dtype=np.float32)
    return make_aligner(CONFIG, tmp_path)(utterance, wav, spoken)


def durations(alignment):
    return np.diff(alignment.boundaries_s)


def align_tiers(tmp_path, words=WORDS, phones=PHONES, spoken=SPOKEN, **options):
    return align(tmp_path, long_form({"words": words, "phones": phones}), spoken, **options)


def without_silences(tier):
    return [one for one in tier if one[2] not in ("", "sp", "sil")]


@pytest.mark.parametrize("form", [long_form, short_form])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_every_form_and_encoding_is_read(tmp_path, form, encoding, line_end):
    content = form({"words": WORDS, "phones": PHONES}).replace("\n", line_end).encode(encoding)
    alignment = align(tmp_path, content)
    assert alignment.phones == SPOKEN.phones
    assert [word[1:] for word in alignment.words] == [(1, 3), (4, 6)]
    assert alignment.boundaries_s == pytest.approx(np.array(BOUNDARIES))


@pytest.mark.parametrize("names", [("WORDS", "PHONES"), ("Ada - words", "Ada - phones")])
def test_tiers_are_found_in_any_case_and_with_a_speaker(tmp_path, names):
    tiers = dict(zip(names, (WORDS, PHONES), strict=True))
    assert align(tmp_path, long_form({"notes": [], **tiers})).phones == SPOKEN.phones


@pytest.mark.parametrize("label", ["sp", "SP", "sil", "SIL", "", "<eps>"])
def test_silences_of_any_name_and_gaps_are_the_pause_of_the_text(tmp_path, label):
    words, phones = (
        [one if one in without_silences(tier) else (*one[:2], label) for one in tier]
        for tier in (WORDS, PHONES)
    )
    assert align_tiers(tmp_path, words, phones).phones == SPOKEN.phones
    alignment = align_tiers(tmp_path, *map(without_silences, (WORDS, PHONES)))
    assert alignment.boundaries_s == pytest.approx(np.array(BOUNDARIES))


def test_a_missing_words_tier_is_made_up_for_by_the_phones(tmp_path):
    alignment = align(tmp_path, long_form({"phones": PHONES}))
    assert alignment.phones == SPOKEN.phones
    assert alignment.words == SPOKEN.words


def test_unknown_words_become_noise_and_keep_their_punctuation(tmp_path):
    words = [(0.2, 0.4, "<unk>"), (0.6, 0.8, "you")]
    alignment = align_tiers(tmp_path, words, [(0.2, 0.4, "spn"), *PHONES[4:6]])
    assert alignment.phones == ("<sil>", "<spn>", "<,>", "Y", "UW1", "<!>")
    assert durations(alignment)[1:3] == pytest.approx([0.2, 0.2])


def test_phones_of_the_file_are_kept_whatever_the_lexicon_says_also_without_length(tmp_path):
    phones = [(start, end, {"AY1": "ɑɪ", "UW1": "AH0"}.get(p, p)) for start, end, p in PHONES]
    alignment = align_tiers(tmp_path, phones=phones)
    assert alignment.phones == ("<sil>", "HH", "ɑɪ", "<,>", "Y", "AH0", "<!>")
    phones = [*PHONES[:2], (0.3, 0.3, "AY1"), (0.3, 0.6, "sp"), *PHONES[4:]]
    alignment = align_tiers(tmp_path, phones=phones)
    assert alignment.phones == SPOKEN.phones
    assert durations(alignment)[2] == 0


def test_words_in_pieces_do_not_move_the_punctuation(tmp_path):
    spoken = spoken_text("Don't, well-known you.", "<sil> Don't=D-N <,> well-known=W-N you=Y <.>")
    texts = ["do", "n't", "well", "known", "you"]
    words = [(0.1 * i, 0.1 * (i + 1), text) for i, text in enumerate(texts, 1)]
    phones = [(start, end, name) for (start, end, _), name in zip(words, "DNWNY", strict=True)]
    alignment = align_tiers(tmp_path, words, phones, spoken)
    assert alignment.phones == spoken.phones
    assert durations(alignment)[3] == pytest.approx(0)


def test_a_silence_within_a_hyphenated_word_is_a_short_pause(tmp_path):
    spoken = spoken_text("hi-you", "<sil> hi-you=HH-AY1-Y-UW1 <.>")
    alignment = align_tiers(tmp_path, spoken=spoken)
    assert alignment.phones == ("<sil>", "HH", "AY1", "<sp>", "Y", "UW1", "<.>")


@pytest.mark.parametrize(
    ("file_s", "recording_s", "last_s"),
    [
        (1.0, 0.8, [0.7, 0.8, 0.8]),  # silence past the end of the recording is cut
        (1.0, 0.76, [0.7, 0.76, 0.76]),  # and a phone, by 50 ms at most
        (1.0, 1.4, [0.7, 0.8, 0.9]),
        (0.7, 1.0, [0.7, 0.8, 0.9]),  # intervals end after their tier
    ],
)
def test_lengths_of_file_and_recording_may_differ(tmp_path, file_s, recording_s, last_s):
    content = long_form({"words": WORDS, "phones": PHONES}, file_s)
    alignment = align(tmp_path, content, duration_s=recording_s)
    assert alignment.phones == SPOKEN.phones
    assert alignment.boundaries_s[-3:] == pytest.approx(last_s)
    assert alignment.notices == ()


@pytest.mark.parametrize(("start_s", "recording_s"), [(0.7, 0.74), (0.76, 0.755)])
def test_phones_too_long_after_the_recording_are_refused(tmp_path, start_s, recording_s):
    phones = [*PHONES[:-2], (start_s, 0.8, "UW1"), PHONES[-1]]
    fault = rf"u1\.TextGrid: its last phone, UW1, lasts from {start_s:.3f} to 0\.800 s"
    end = rf"the recording ends at {recording_s:.3f} s; align this recording again"
    with pytest.raises(AlignmentError, match=rf"{fault}, and {end}"):
        align_tiers(tmp_path, phones=phones, duration_s=recording_s)


@pytest.mark.parametrize("folder", ["VCTK_p225", "p225"])
def test_files_may_lie_in_a_folder_of_the_speaker(tmp_path, folder):
    (tmp_path / "TextGrid" / folder).mkdir(parents=True)
    path = tmp_path / "TextGrid" / folder / "u1.TextGrid"
    path.write_text(long_form({"words": WORDS, "phones": PHONES}))
    assert align(tmp_path, None, speaker="VCTK_p225").phones == SPOKEN.phones
    utterance = Utterance("u1", tmp_path / "u1.wav", "Hi, you!", "VCTK_p225")
    assert find_aligner(CONFIG).files(CONFIG, tmp_path)(utterance) == path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file or directory; align this recording, or correct"),
        *((data, "not a complete TextGrid") for data in (b"", b"\0" * 100, b"some words", b"{}")),
        (b"\xff\xfe\x00", "no TextGrid in UTF-8 or UTF-16"),
        (long_form({"words": WORDS}), "nothing in a tier `phones`; its tiers are words"),
        (long_form({"words": WORDS, "phones": [(0, 1, "sil")]}), "nothing in a tier `phones`"),
    ],
)
def test_unusable_files_are_named_with_the_reason(tmp_path, content, message):
    with pytest.raises(AlignmentError, match=f"u1.TextGrid: {message}"):
        align(tmp_path, content)


@pytest.mark.parametrize("form", [long_form, short_form])
def test_a_file_cut_anywhere_is_refused_or_whole(tmp_path, form):
    whole = form({"words": WORDS, "phones": PHONES}).encode()
    last_label = len(whole.rstrip().rstrip(b'"')) + 1
    for length in range(last_label):
        with pytest.raises(AlignmentError, match=r"u1.TextGrid"):
            align(tmp_path, whole[:length])


@pytest.mark.parametrize("duration_s", [0.4, 1.6])
def test_a_file_of_another_recording_or_text_is_refused_by_length_or_phones(tmp_path, duration_s):
    with pytest.raises(AlignmentError, match=rf"lasts 1.00 s, the recording {duration_s:.2f} s"):
        align_tiers(tmp_path, duration_s=duration_s)
    with pytest.raises(AlignmentError, match=r"u1.TextGrid: it has 1 phones, the text 4"):
        align_tiers(tmp_path, [(0.2, 0.4, "hm")], [(0.2, 0.4, "M")])


def test_a_missing_folder_and_pauses_of_imported_voices_are_refused(tmp_path):
    remedy = r"no folder .*TextGrid; put <id>.TextGrid files there.* pocketsphinx .* or hmm"
    with pytest.raises(InputError, match=remedy):
        make_aligner(CONFIG, tmp_path)
    config = replace(CONFIG, text=TextConfig(pauses="sp"))
    with pytest.raises(InputError, match=r"pauses is sp: imported voices speak with it"):
        make_aligner(config, Path("anywhere"))


def test_the_folder_can_be_anywhere(tmp_path):
    config = replace(CONFIG, textgrid_dir=str(tmp_path))
    utterance = Utterance("u1", tmp_path / "u1.wav", "Hi", "Ada")
    find = find_aligner(config).files(config, Path("elsewhere"))
    assert find(utterance) == tmp_path / "u1.TextGrid"
