import pytest

from bins._flags import values
from bins._flags.values import choice, whole


@pytest.mark.parametrize(
    ("value", "text", "read"),
    [
        (values.SEED, "9223372036854775807", 2**63 - 1),
        (values.COUNT, "007", 7),
        (values.FACTOR, "0.1", 0.1),
        (values.FACTOR, ".5", 0.5),
        (values.FACTOR, "10", 10.0),
        (values.SHIFT, "-500", -500.0),
        (values.NUMBER, "-1.", -1.0),
        (values.STAGES, "all", range(5)),
        (values.STAGES, "0-2", range(3)),
        (values.STAGES, "4", range(4, 5)),
        (values.GPUS, "", ""),
        (values.GPUS, "-1", "-1"),
        (values.GPUS, "0,MIG-a-1,GPU-2", "0,MIG-a-1,GPU-2"),
        (values.EXPERIMENT, "a-1.b_", "a-1.b_"),
        (values.SETTING, "a=\nb=", "a=\nb="),
        (values.TEXT, "--", "--"),
        (choice("a", "b"), "b", "b"),
    ],
)
def test_a_value_is_read(value, text, read):
    assert value.read(text) == read


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (values.SEED, ["9223372036854775808", "99999999999999999999", "-1", "1e3", "--", "", "٣"]),
        (values.COUNT, ["0", "2.5", " 1"]),
        (whole(1, 65535), ["65536", "9" * 5000]),
        (values.FACTOR, ["0.09", "10.1", "nan", "inf", "0", "high", "1e0", "-1", ".", "1.0.0"]),
        (values.NUMBER, ["9" * 400, "inf", "nan", "high", "-"]),
        (values.STAGES, ["5", "3-1", "0-9", "-1", "1-", "1-2-3", "1 ", "1 2", "", "--"]),
        (values.GPUS, ["0,", ",0", "0 1", "-", "GPU", "all", "abc", "0,,1"]),
        (values.EXPERIMENT, ["", ".", "../a", "a/b", "-a", "ü", "a\n", ".a", "a b", "a" * 101]),
        (values.SETTING, ["=1", "a", "--"]),
        (values.NAMES, ["", ",", "a,", "A", "../a", "a b", "--"]),
        (values.FUNCTION, ["a", "a.py", ":a", "a:", "a:b:c", "a/b:c", "a: b", "a:b c"]),
        (choice("a", "b"), ["c", "", "a|b", "--"]),
        (values.FILE, [".", "none", ""]),
        (values.FOLDER, [__file__, "none"]),
        (values.REPORT, [__file__]),
        (values.CONTOUR, ["ramp:1", "ramp:1:", "ramp:a:2", "ramp:1:2:3", "none"]),
    ],
)
def test_wrong_text_is_refused_with_a_reason(value, texts):
    assert [text for text in texts if not reason_against(value, text)] == []


def reason_against(value, text):
    try:
        value.read(text)
    except ValueError as error:
        return str(error) or value.expected
    return ""
