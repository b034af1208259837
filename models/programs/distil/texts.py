"""Texts to speak: read from a file or a corpus, in words, with what their selection needs."""

import hashlib
import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, zip_longest
from pathlib import Path

from config.preprocess import CorpusConfig
from models.programs.distil.selection import LENGTHS, PoolText
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
