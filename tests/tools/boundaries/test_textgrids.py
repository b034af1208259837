from tools.benchmarks.alignment import DEMO
from tools.benchmarks.boundaries.clips import WordOnsets
from tools.benchmarks.boundaries.textgrids import BAD, mfa_clips


def test_words_have_the_phones_whose_middle_lies_in_them():
    clips = {clip.utterance.id: clip for clip in mfa_clips(DEMO)}
    assert len(clips) == 55
    assert all((not clip.words) == (name in BAD) for name, clip in clips.items())
    assert clips["LJ001-0002"].words[:2] == (
        WordOnsets("in", (0.0, 0.08)),
        WordOnsets("being", (0.14, 0.19, 0.32, 0.35)),
    )
