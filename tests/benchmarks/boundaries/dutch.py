"""Dutch by Nathalie (CC0), in LJ Speech layout, with the times of an aligner of Kaldi's.

`align.jsonl` has a line for each recording: words, and their phones in IPA with start and duration.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tests.benchmarks.boundaries.clips import Clip, WordOnsets
from tests.benchmarks.boundaries.textgrids import read_utterances
from utils.files import read_jsonl

_SILENCE = "<eps>"  # a word


def dutch_clips(root: Path, *, as_aligned: bool) -> tuple[Clip, ...]:
    """The recordings that have times.

    Args:
        root: The corpus.
        as_aligned: Whether the phones of `align.jsonl` are aligned, and not those of the text.
    """
    rows = cast(list[dict[str, Any]], read_jsonl(root / "align.jsonl"))
    words_of = {row["id"]: row["words"] for row in rows}
    clips = []
    for utterance in read_utterances(root):
        spoken = [word for word in words_of.get(utterance.id, ()) if word["word"] != _SILENCE]
        phones = [" ".join(phone["phone"] for phone in word["phones"]) for word in spoken]
        names = phones if as_aligned else [word["word"] for word in spoken]
        heard = tuple(
            WordOnsets(name, tuple(phone["start"] for phone in word["phones"]))
            for name, word in zip(names, spoken, strict=True)
        )
        text = " ".join("{" + word + "}" for word in phones) if as_aligned else utterance.text
        if heard:
            clips.append(Clip(replace(utterance, text=text, language="nl"), heard))
    return tuple(clips)
