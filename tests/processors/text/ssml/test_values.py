import pytest

from processors.text.ssml import values


@pytest.mark.parametrize(
    ("text", "duration"),
    [("50%", 2), ("+25%", 0.8), ("-20%", 1.25), ("slow", 4 / 3), ("x-fast", 2 / 3), ("default", 1)],
)
def test_rates_become_factors_on_durations(text, duration):
    assert values.rate(text).duration == pytest.approx(duration)


@pytest.mark.parametrize(
    ("text", "factor"),
    [("+12st", 2), ("-12st", 0.5), ("+10%", 1.1), ("-.5%", 0.995), ("x-low", 0.75)],
)
def test_pitches_become_factors_on_hertz(text, factor):
    assert values.pitch(text).pitch == pytest.approx(factor)


@pytest.mark.parametrize(
    ("text", "gain"), [("+6.0206dB", 2), ("-20dB", 0.1), ("silent", 0), ("soft", 0.501), ("0dB", 1)]
)
def test_volumes_become_gains(text, gain):
    assert values.volume(text).gain == pytest.approx(gain, abs=1e-3)


def test_breaks_are_in_seconds():
    assert [values.seconds(text) for text in ("1.5s", "300ms", "0s", ".5s")] == [1.5, 0.3, 0, 0.5]
    assert [values.strength(text) for text in ("none", "medium", "x-strong")] == [0, 0.5, 1]


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (values.rate, "0%", "'0%'; expected x-slow, slow, .*80%"),
        (values.rate, "-100%", "-100%"),
        (values.rate, "-150%", "'-150%'; expected x-slow, .*80%"),
        (values.pitch, "-150%", "'-150%'; expected x-low"),
        (values.rate, "quick", "quick"),
        (values.pitch, "200Hz", r"'200Hz'; expected x-low, .*\+10% or -2st"),
        (values.pitch, "110%", "a change"),
        (values.volume, "+21dB", "-60dB to .20dB"),
        (values.volume, "nan", "expected silent"),
        (values.emphasis, "huge", "expected strong, moderate"),
        (values.strength, "long", "expected none, x-weak"),
        (values.seconds, "11s", "up to 10s"),
        (values.seconds, "-1s", "a time"),
        (values.seconds, "1", "a time"),
    ],
)
def test_other_values_are_refused_with_what_is_expected(read, text, expected):
    with pytest.raises(ValueError, match=expected):
        read(text)
