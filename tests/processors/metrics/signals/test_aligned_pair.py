import librosa
import numpy as np
import pytest

from processors.metrics.signals import aligned_pair
from processors.metrics.signals.acoustic_features import AcousticFeatures
from processors.metrics.signals.aligned_pair import AlignedPair, dtw_path
from processors.records import TimedPhone
from tests.processors.utterances import AH, EE, ES, OO, PAUSE, RATE, SENTENCE, sing, times


def pair_of(theirs, ours, phones=(), phones_hat=(), *, same_timing=False) -> AlignedPair:
    both = AcousticFeatures(theirs, RATE, phones), AcousticFeatures(ours, RATE, phones_hat)
    return AlignedPair(*both, same_timing)


@pytest.mark.parametrize(
    ("rates", "common"),
    [((2, 2), 16000), ((6, 2), 16000), ((3, 6), 16000), ((1, 3), 8000)],  # rates in 8 kHz
)
def test_both_are_brought_to_the_lower_rate_and_16000_hz_at_most(rates, common):
    both = (AcousticFeatures(sing(rate=8000 * rate), 8000 * rate) for rate in rates)
    pair = AlignedPair(*both)
    assert [voice.sample_rate for voice in pair.features] == [common, common]
    assert np.abs(pair.path[:, 0] - pair.path[:, 1]).mean() < 1


def test_the_path_follows_another_speed():
    stretch = 1.4
    pair = pair_of(sing(), sing(stretch=stretch))
    theirs, ours = (voice.times_s[pair.path[:, i]] for i, voice in enumerate(pair.features))
    edges = [phone.start_s for phone in times()[1:]]
    found = [ours[np.abs(theirs - edge).argmin()] for edge in edges]
    assert found == pytest.approx([stretch * edge for edge in edges], abs=0.025)


def test_silence_at_the_ends_stays_out_of_the_path():
    wav = sing()
    pair = pair_of(wav, np.pad(wav, (50 * 80, 7000)))
    frames, frames_hat = pair.path.T
    assert (frames_hat - frames == 50).all()
    assert slice(frames[0], frames[-1] + 1) == pair.features[0].sound


def test_a_copy_is_compared_at_the_same_times():
    wav = sing()
    later = np.pad(wav, (160, 0))[: len(wav)]
    pair = pair_of(wav, later, same_timing=True)
    assert (pair.path[:, 0] == pair.path[:, 1]).all()
    assert pair.path[0, 0] == pair.features[0].sound.start
    assert pair.path[-1, 0] + 1 == max(voice.sound.stop for voice in pair.features)
    assert (np.diff(pair.dtw_path, axis=1) == 2).mean() > 0.9


def test_a_copy_may_be_a_little_shorter():
    wav = sing()
    pair = pair_of(wav, wav[:-300], same_timing=True)
    assert pair.path.max() < pair.features[1].n_frames
    assert len(pair.f0) == len(pair.path)


@pytest.mark.parametrize("same_timing", [False, True])
def test_silence_has_an_empty_path(same_timing):
    wav = sing()
    silence = np.zeros_like(wav)
    for theirs, ours in ((wav, silence), (silence, wav), (silence, silence)):
        pair = pair_of(theirs, ours, times(), times(), same_timing=same_timing)
        for path in (pair.path, pair.dtw_path, pair.phone_path, pair.f0, pair.energy):
            assert path.shape == (0, 2)


def test_curves_are_read_along_the_path():
    pair = pair_of(sing(), 2 * sing(pitch=1.1), same_timing=True)
    voiced = (pair.f0 > 0).all(axis=1)
    assert pair.voiced_f0.tolist() == pair.f0[voiced].tolist()
    assert np.median(pair.voiced_f0[:, 1] / pair.voiced_f0[:, 0]) == pytest.approx(1.1, rel=1e-3)
    assert np.median(np.diff(pair.energy)) == pytest.approx(6.02, abs=0.2)


def test_a_few_voiced_frames_are_no_melody():
    short = AH._replace(f0=300, seconds=0.03)
    pair = pair_of(sing((ES, short, ES)), sing((ES, short, ES)))
    assert 0 < (pair.f0 > 0).all(axis=1).sum() < 10
    assert pair.voiced_f0.shape == (0, 2)


def phones(names: str) -> tuple[TimedPhone, ...]:
    return tuple(TimedPhone(name, i / 10, (i + 1) / 10) for i, name in enumerate(names.split()))


@pytest.mark.parametrize(
    ("theirs", "ours", "matched"),
    [
        ("<sil> A B C <.>", "<sil> A <sp> B C <.>", "A B C"),
        ("A B C D", "A B X D", "A B D"),
        ("A <spn> B C", "A <spn> B C", "A B C"),
        ("A B C D", "A X Y Z", ""),
        ("A B", "A B C D E", ""),
        ("", "A B", ""),
        ("<sil> <.>", "<sil> <.>", ""),
    ],
)
def test_phones_are_matched_by_name_and_in_order(theirs, ours, matched):
    pair = pair_of(sing(), sing(), phones(theirs), phones(ours))
    assert [both[0].name for both in pair.phones] == matched.split()
    for phone, phone_hat in pair.phones:
        assert phone.name == phone_hat.name
        assert phone in phones(theirs)
        assert phone_hat in phones(ours)


def test_each_phone_is_stretched_to_the_longer():
    slower = (AH, ES, EE._replace(seconds=0.3), PAUSE, OO)
    parts = (AH, ES._replace(seconds=0.2), EE, PAUSE, PAUSE, OO)
    pair = pair_of(sing(slower), sing(parts), times(slower), times(parts))
    frames, frames_hat = pair.phone_path.T
    margin = 10
    assert frames.tolist()[:40] == frames_hat.tolist()[:40] == list(range(margin, margin + 40))
    assert len(frames) == 40 + 40 + 60 + 50
    assert frames_hat[40:80].tolist() == list(range(margin + 40, margin + 80))
    assert frames[40:80].tolist() == [margin + 40 + int(0.6 * (i + 0.5)) for i in range(40)]
    assert frames[80:140].tolist() == list(range(margin + 64, margin + 124))
    assert frames[-1] == margin + 144 + 50 - 1  # the pause is left out
    assert frames_hat[-1] == margin + 150 + 50 - 1


def test_phones_that_run_over_the_end_keep_to_it():
    late = tuple(TimedPhone(name, start + 0.3, end + 0.3) for name, start, end in times())
    pair = pair_of(sing(), sing(), times(), late)
    assert pair.phone_path.max() == pair.features[1].n_frames - 1
    assert len(pair.phones) == len([part for part in SENTENCE if part != PAUSE])


def sequences(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(n, 3)), random.normal(size=(m, 3))


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_the_path_is_that_of_librosa(monkeypatch, rows):
    a, b = sequences(120, 90)
    monkeypatch.setattr(aligned_pair, "_BLOCK_CELLS", rows * len(b))
    _, path = librosa.sequence.dtw(X=a.T, Y=b.T, metric="euclidean")
    assert dtw_path(a, b).tolist() == path[::-1].tolist()


def test_frames_are_matched_to_themselves_and_to_their_repetitions():
    a, _ = sequences(50, 1)
    repeats = np.random.default_rng(0).integers(1, 4, size=50)
    index = np.repeat(np.arange(50), repeats)
    assert dtw_path(a, a).tolist() == [[i, i] for i in range(50)]
    assert dtw_path(a, a[index]).tolist() == [[i, j] for j, i in enumerate(index)]


def test_an_empty_sequence_has_no_path():
    a, b = sequences(0, 3)
    assert dtw_path(a, b).shape == dtw_path(b, a).shape == (0, 2)


def test_of_equal_paths_the_diagonal_is_taken():
    a = np.zeros((4, 2))
    assert dtw_path(a, a).tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
