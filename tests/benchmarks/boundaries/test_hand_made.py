import pytest

from tests.benchmarks.boundaries.clips import WordOnsets
from tests.benchmarks.boundaries.hand_made import clips_by_hand, labelled_clips, read_labels

GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 1
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "Text"
        xmin = 0
        xmax = 1
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 0.2
            text = ""
        intervals [2]:
            xmin = 0.2
            xmax = 0.6
            text = "it"
        intervals [3]:
            xmin = 0.6
            xmax = 1
            text = "is"
    item [2]:
        class = "IntervalTier"
        name = "Phoneme"
        xmin = 0
        xmax = 1
        intervals: size = 4
        intervals [1]:
            xmin = 0
            xmax = 0.2
            text = ""
        intervals [2]:
            xmin = 0.2
            xmax = 0.3
            text = "I"
        intervals [3]:
            xmin = 0.3
            xmax = 0.6
            text = "t"
        intervals [4]:
            xmin = 0.6
            xmax = 1
            text = "I"
"""


def context(before, phone, after, place):
    return f"xx~{before}-{phone}+{after}=xx:1_2/A/0/D/0_0/E/{place}/F/det_1/G/0"


def test_labels_by_state_begin_with_the_first_state(tmp_path):
    path = tmp_path / "a.lab"
    dark = context("#", "lw", "@", "content+1:1+7")
    lines = [
        f"0 3000000 {context('xx', '#', 'lw', 'xx')}[2]",
        f"3000000 3500000 {dark}[2] {dark}",
        f"3500000 4000000 {dark}[3]",
        f"4000000 5000000 {context('lw', '@', 'tS', 'content+1:1+7')}[2]",
        f"5000000 6000000 {context('@', 'tS', 'pau', 'content+1:2+6')}[2]",
        f"6000000 7000000 {context('tS', 'pau', 'xx', 'xx')}[2]",
    ]
    path.write_text("\n".join(lines))
    assert list(read_labels(path)) == [WordOnsets("L AH", (0.3, 0.4)), WordOnsets("CH", (0.5,))]


def test_labels_by_phone_of_another_make_are_read(tmp_path):
    path = tmp_path / "a.lab"
    path.write_text(
        "0 1300000 x^x-sil+hh=ax@x_x/A:0_0_0/D:0_0/E:x+x@x+x/F:content_1\n"
        "1300000 2050000 x^sil-hh+ax=t@1_2/A:0_0_0/D:0_0/E:content+1@1+3/F:content_1\n"
        "2050000 2700000 sil^hh-ax+t=er@2_1/A:0_0_0/D:0_0/E:content+1@1+3/F:content_1\n"
    )
    assert list(read_labels(path)) == [WordOnsets("HH AH", (0.13, 0.205))]


def test_a_line_that_is_no_label_is_shown(tmp_path):
    path = tmp_path / "a.lab"
    path.write_text("0 100 sil")
    with pytest.raises(ValueError, match="'0 100 sil': no HTS label"):
        list(read_labels(path))


def test_clips_are_found_in_their_folders(tmp_path):
    emu = tmp_path / "emu_ae"
    emu.mkdir()
    (emu / "a.TextGrid").write_text(GRID)
    (emu / "a.txt").write_text("it is\n")
    cstr = tmp_path / "cstr_hvd_48k"
    cstr.mkdir()
    (cstr / "b.lab").write_text(f"10000000 20000000 {context('#', 'h', 'E', 'cc+1:1+7')}[2]")
    (by_hand,) = clips_by_hand(tmp_path)
    assert by_hand.utterance.text == "it is"
    assert by_hand.utterance.audio == emu / "a.wav"
    assert by_hand.words == (WordOnsets("it", (0.2, 0.3)), WordOnsets("is", (0.6,)))
    (labelled,) = labelled_clips(tmp_path)
    assert labelled.utterance.text == "{HH}"
    assert labelled.utterance.audio == cstr / "b.flac"
    assert labelled.words == (WordOnsets("HH", (1.0,)),)
