"""Damages files as disks, editors and people do, each time another way: a function of a seed."""

import random
import re
import struct
from collections.abc import Callable

Mutator = Callable[[random.Random, bytes], bytes]

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_NUMBERS = (
    *(b"0", b"-1", b"1", b"2", b"0.5", b"1e-30", b"1e6", b"1e30", b"1e999", b"-1e999", b"nan"),
    *(b"2147483648", b"9223372036854775808", b"99999999999999999999", b"7" * 5000, b"null"),
    *(b"true", b'""', b'"1"', b"[]", b"{}"),
)
_INSERTED = (
    *(b"\0", b"\n", b"\r\n", b"\t", b" ", b"|", b",", b";", b'"', b"'", b"\\", b"/", b"..", b"{"),
    *(b"}", b"[", b"]", b"[" * 3000, b"{" * 300, b"<", b">", b"NaN", b"Infinity", b"null"),
    *(b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", "\u2028".encode(), b"\xc2\x85"),
    *("\u202e".encode(), "e\u0301".encode(), "日本語".encode(), "٣".encode(), "²".encode()),
    *("\U0001f600".encode(), b"$1,000,000", b"1/0", b"12:99", b"5-10", b"A" * 3000),
    *(b"%s", b"$HOME"),
)


def mutate(content: bytes, generator: random.Random) -> bytes:
    """Applies one to three mutators, chosen at random; the result may be equal to `content`."""
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        content = generator.choice(_MUTATORS)(generator, content)
    return content


def _flip_bit(generator: random.Random, content: bytes) -> bytes:
    if not content:
        return b"\1"
    place = generator.randrange(len(content))
    flipped = content[place] ^ (1 << generator.randrange(8))
    return content[:place] + bytes([flipped]) + content[place + 1 :]


def _truncate(generator: random.Random, content: bytes) -> bytes:
    return content[: generator.randrange(len(content) + 1)]


def _delete(generator: random.Random, content: bytes) -> bytes:
    start, end = _span(generator, content)
    return content[:start] + content[end:]


def _repeat(generator: random.Random, content: bytes) -> bytes:
    start, end = _span(generator, content)
    return content[:end] + content[start:]


def _move(generator: random.Random, content: bytes) -> bytes:
    start, end = _span(generator, content)
    rest = content[:start] + content[end:]
    place = generator.randrange(len(rest) + 1)
    return rest[:place] + content[start:end] + rest[place:]


def _zero(generator: random.Random, content: bytes) -> bytes:
    """A block that never reached the disk."""
    start, end = _span(generator, content)
    return content[:start] + bytes(end - start) + content[end:]


def _insert(generator: random.Random, content: bytes) -> bytes:
    place = generator.randrange(len(content) + 1)
    return content[:place] + generator.choice(_INSERTED) + content[place:]


def _replace_number(generator: random.Random, content: bytes) -> bytes:
    numbers = list(_NUMBER.finditer(content))
    if not numbers:
        return _insert(generator, content)
    start, end = generator.choice(numbers).span()
    return content[:start] + generator.choice(_NUMBERS) + content[end:]


def mutate_length(content: bytes, generator: random.Random) -> bytes:
    """Cuts a file, appends to it, or changes the length of its audio that a header declares."""
    change = generator.choice((_truncate, _append, _declare, _declare))
    return change(generator, content)


def _append(generator: random.Random, content: bytes) -> bytes:
    n_bytes = generator.randrange(len(content))
    added = (generator.randbytes(n_bytes), content[-n_bytes:], bytes(n_bytes))
    return content + generator.choice(added)


def _declare(generator: random.Random, content: bytes) -> bytes:
    """Replaces an integer of the header that is about the length of the rest of the file."""
    places = [
        (start, code)
        for code in ("<I", ">I", "<Q", ">Q")
        for start in range(min(200, len(content) - 8))
        if 0.9 < struct.unpack_from(code, content, start)[0] / (len(content) - start) <= 1
    ]
    if not places:  # of compressed formats
        return _truncate(generator, content)
    start, code = generator.choice(places)
    longest = 256 ** struct.calcsize(code) - 1
    length = generator.choice((0, generator.randrange(2 * len(content)), longest, longest // 2))
    changed = bytearray(content)
    struct.pack_into(code, changed, start, length)
    return bytes(changed)


def _swap_lines(generator: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    first, second = (generator.randrange(len(lines)) for _ in range(2))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _drop_line(generator: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    del lines[generator.randrange(len(lines))]
    return b"\n".join(lines)


def _span(generator: random.Random, content: bytes) -> tuple[int, int]:
    """A short stretch, in one case of four up to a quarter of the content."""
    longest = generator.choice((4, 4, 40, max(1, len(content) // 4)))
    start = generator.randrange(len(content) + 1)
    return start, min(len(content), start + generator.randint(1, longest))


_MUTATORS: tuple[Mutator, ...] = (
    *(_flip_bit, _truncate, _delete, _repeat, _move, _zero, _insert, _swap_lines, _drop_line),
    *(_replace_number, _replace_number),  # the fault that parsers let through most
)
