"""Texts to speak: read from a file or a corpus, and divided among voices.

Every beginning of a voice's texts is balanced. It takes its next text from the kind that is
farthest below its share of the voice's speech: of a random sample, the text that raises the sum of
log(1 + occurrences) over all diphones most for its length. New and rare diphones count most. A
greedy choice from samples is nearly as good as from all (Mirzasoleiman et al. 2015,
arXiv:1409.7938).
"""

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from math import ceil, inf, log1p
from pathlib import Path
from typing import NamedTuple

import numpy as np

from config.preprocess import CorpusConfig
from preprocessors.audio_folder import recording_id
from preprocessors.corpora import read_corpus
from preprocessors.manifest import check_id
from processors.text.frontend import TextFrontend
from processors.text.symbols import PAUSES
from utils.errors import InputError, ScriptError, counted
from utils.files import read_text
from utils.logging import get_logger

_LONGEST = 250  # phones, 25 s: programs take no longer texts, and stage 1 takes 30 s
_KINDS = {"<?>": "question", "<!>": "exclamation"}
LENGTHS = (25, 50, 75, 100)  # phones of the longest other texts of all kinds but the last
_SHARES = {"question": 0.12, "exclamation": 0.06, "single word": 0.04, "number": 0.08}
_SHARE_OF_LENGTH = (1 - sum(_SHARES.values())) / (len(LENGTHS) + 1)
_SAMPLE = 100  # texts, or half of them
SHORTEST_S = 0.04  # seconds for the length of a text, by the fastest voices


class PoolText(NamedTuple):
    """A text that a voice may speak."""

    id: str
    raw: str  # as the user's file has it
    spoken: str  # in words
    kind: str  # question, exclamation, single word, number, or a length
    length: int  # phones, and two for each pause: the time that it takes
    diphones: Counter[tuple[str, str]]
    source: str  # file and line, for messages


def divide(
    pool: Iterable[PoolText],
    voices: Sequence[str],
    seed: int,
    spoken_by_all: Sequence[PoolText] = (),
    *,
    length: float = inf,
    n_texts: float = inf,
) -> dict[str, list[PoolText]]:
    """Returns the texts of each voice, in the order in which it takes them from a pool.

    The voice with the shortest texts takes the next one, until it has texts of `length`; with
    `n_texts`, the one with the fewest, until it has so many. Diphones of `spoken_by_all` count.
    """
    generator = np.random.default_rng(seed)
    kinds: dict[str, list[PoolText]] = defaultdict(list)
    for text in pool:
        kinds[text.kind].append(text)
    taken: dict[str, list[PoolText]] = {voice: [] for voice in voices}
    diphones_of_voice = {v: sum((t.diphones for t in spoken_by_all), Counter()) for v in voices}
    of_kind = {voice: Counter[str]() for voice in voices}
    while kinds:
        sizes = {v: of_kind[v].total() if n_texts == inf else len(taken[v]) for v in voices}
        voice = min(sizes, key=sizes.__getitem__)
        if sizes[voice] >= n_texts or (total := of_kind[voice].total()) >= length:
            break
        shares = {kind: _SHARES.get(kind, _SHARE_OF_LENGTH) * total for kind in kinds}
        surplus = {kind: of_kind[voice][kind] - share for kind, share in shares.items()}
        texts = kinds[kind := min(surplus, key=surplus.__getitem__)]
        sample = generator.choice(len(texts), min(_SAMPLE, ceil(len(texts) / 2)), replace=False)
        best = np.argmax([_gain(texts[n], diphones_of_voice[voice]) for n in sample])
        text = texts.pop(sample[best])
        taken[voice].append(text)
        of_kind[voice][kind] += text.length
        diphones_of_voice[voice].update(text.diphones)
        if not texts:
            del kinds[kind]
    return taken


def _gain(text: PoolText, spoken: Counter[tuple[str, str]]) -> float:
    pairs = text.diphones.items()
    return sum(log1p(n / (1 + spoken[pair])) for pair, n in pairs) / text.length


def read_pool(path: Path, frontend: TextFrontend, excluded: Path | None = None) -> list[PoolText]:
    """Reads the texts of a corpus' folder, of a table (id|text|normalized), or of lines.

    Texts that cannot be spoken are left out; the log has the first reasons. So are those of which
    a line, or a cell of a table, of the file `excluded` is the id or the text.
    """
    unwanted = {*map(_bare, re.split(r"[\n|\t]", read_text(excluded)))} if excluded else set()
    texts, faults = [], []
    for source, id, raw, text in _lines(path):
        try:
            if unwanted.isdisjoint(map(_bare, (id, raw, text))):
                texts.append(_pool_text(source, check_id(id), raw, text, frontend))
        except ScriptError as error:
            faults.append(f"{id}: {error.fault}; give the language of the texts: --language CODE")
        except InputError as error:
            faults.append(f"{id}: {error}")
    if not texts:
        fault = (*faults, "expected one in each line, below names of columns if there are any")[0]
        raise InputError(f"{path}: there is no text to speak; {fault}")
    if faults:
        left_out = counted(len(faults), "texts")
        get_logger(__name__).warning("%s: left out %s: %s", path, left_out, "; ".join(faults[:3]))
    return texts


def _bare(text: str) -> str:
    """Returns a text without spaces, punctuation and case, which two spellings of it share."""
    return "".join(re.findall(r"\w", text.lower())) or text


def digest(texts: Sequence[PoolText]) -> str:
    """Returns a digest of texts and their ids."""
    listed = json.dumps([text[:3] for text in texts]).encode()
    return f"{counted(len(texts), 'texts')} of SHA-256 {hashlib.sha256(listed).hexdigest()[:16]}"


def _lines(path: Path) -> Iterator[tuple[str, str, str, str]]:
    """Yields place and id of each text, and the text twice: as written, and as normalised."""
    if path.is_dir():
        for item in read_corpus("texts", path, CorpusConfig(format="folder")).utterances:
            yield f"{path}/{item.source}", item.id, item.text, item.text
        return
    lines = {n: line for n, line in enumerate(read_text(path).split("\n"), 1) if line.strip()}
    rows = {mark: [n for n in lines if mark in lines[n]] for mark in "|\t"}
    mark = max(rows, key=lambda mark: len(rows[mark]))
    if 0 < len(rows[mark]) < len(lines):
        others = counted(len(rows[mark]), "other lines")
        fault = f"{path}:{min({*lines}.difference(rows[mark]))}: no {mark!r}, unlike {others}"
        raise InputError(f"{fault}; a table has it in every line, a file of texts in none")
    stem, first = recording_id(path.name), min(lines, default=0)
    columns = ["id", "text", "normalized"]
    for n, line in lines.items():
        cells = [cell.strip() for cell in line.split(mark)]
        if not rows[mark]:
            cells = [f"{stem}-{n:04}", line.strip()]
        elif n == first and {"id", "text"} <= {cell.lower() for cell in cells}:
            columns = [cell.lower() for cell in cells]
            continue
        if len(cells) > len(columns):
            expected = f"expected {mark.join(columns)} or fewer; remove {mark!r} from texts"
            raise InputError(f"{path}:{n}: {len(cells)} cells, {expected}")
        row = dict(zip_longest(columns, cells, fillvalue=""))
        yield f"{path}:{n}", row["id"], row["text"], row.get("normalized") or row["text"]


def _pool_text(source: str, id: str, raw: str, text: str, frontend: TextFrontend) -> PoolText:
    if "{" in text:
        raise InputError("it has phones in braces, which other programs do not read")
    spoken = frontend(text)
    n_pauses = sum(phone in PAUSES for phone in spoken.phones)
    n_phones = len(spoken.phones) - n_pauses
    if n_phones > _LONGEST:
        raise InputError(f"it has {n_phones} phones, more than {_LONGEST}; cut it into sentences")
    kind = "number" if re.search(r"\d", raw) else f"length {bisect_left(LENGTHS, n_phones)}"
    kind = "single word" if len(raw.split()) == 1 else kind
    words = spoken.normalized.strip()
    words += "" if words[-1] in ".?!,;:" else "."
    # of words that are in no lexicon, the teacher may say other phones
    unsure = (range(w.start, w.end) for w in spoken.words if w.text in spoken.out_of_vocabulary)
    known_phones = {*range(len(spoken.phones))}.difference(*unsure)
    pairs = enumerate(pairwise(spoken.phones), 1)
    diphones = Counter(pair for n, pair in pairs if {n - 1, n} <= known_phones)
    kind = _KINDS.get(spoken.phones[-1], kind)
    return PoolText(id, raw, words, kind, n_phones + 2 * n_pauses, diphones, source)
