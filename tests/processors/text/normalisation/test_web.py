import pytest

from processors.text.normalisation.rules import apply
from processors.text.normalisation.web import ADDRESSES


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("info@bbc.com", " info at B B C dot com "),
        ("@jane", "at jane"),
        ("#tts", "hashtag T T S"),
        ("555-1234", "five five five, one two three four"),
    ],
)
def test_addresses_and_telephone_numbers(text, spoken):
    assert apply(ADDRESSES, text) == spoken
