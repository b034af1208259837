"""Speaks books: a file of sound for each chapter, a playlist, and a manifest with times.

Each sentence is written to a file as soon as it is spoken, and a chapter is made of those files. A
run that is interrupted goes on after the last of them.
"""

import math
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.programs.books.reading import Book, Chapter
from models.synthesizer.fingerprint import fingerprint
from models.synthesizer.runs.text_synthesis import naming
from models.synthesizer.settings import Settings
from models.synthesizer.synthesizer import Synthesizer
from processors.audio.loudness import LOUDNESS_LUFS, PEAK_DB, loudness, mastering_gain_db
from processors.audio.streams import write_audio
from processors.text.reading import merge_wordless, split_long, split_sentences
from utils.arrays import read_array, write_array
from utils.errors import InputError, listed, printable
from utils.files import read_json, size_and_time, write_json, write_text
from utils.locks import LOCK_FILE, locked
from utils.logging import get_logger, progress

_log = get_logger(__name__)

MANIFEST = "manifest.json"
PLAYLIST = "playlist.m3u8"
_UNFINISHED = ".unfinished"
_PARAGRAPH_PAUSES = 2  # pauses between sentences
_CHAPTER_PAUSES = 4
_LONGEST_SENTENCE = 2000  # phones, two minutes: the sound of a sentence is held in memory
_LONGEST_NAME = 50  # characters of a title; some file systems allow 255 bytes


class _Sentence(NamedTuple):
    text: str
    paragraph: int
    n_pause: int  # samples of silence behind it


def speak_book(
    book: Book, folder: Path, voice: Synthesizer, settings: Settings, format: str = "flac"
) -> None:
    """Speaks a book into a folder; goes on where an interrupted run of the same book ended.

    The result is the same, byte for byte, however often the run was interrupted. Memory does not
    grow with the length of chapters. Each chapter has a loudness of -23 LUFS (EBU R128).

    Args:
        folder: New or empty, or that of the same book, voice, settings and format.
        format: One of `processors.audio.streams.FORMATS` except pcm.

    Raises:
        InputError: If the folder holds something else, or a text cannot be spoken; this is found
            before the first sentence.
    """
    speaker = voice.speakers[voice.speaker_id(settings.speaker)].name
    made_of = {
        "text": fingerprint(book.title, book.chapters),
        "voice": voice.fingerprint(),
        "settings": fingerprint(speaker, voice.checked(settings).record(), bool(voice.tag)),
        "format": format,
    }
    names = file_names(book, format)
    with locked(folder, "wait until it ends"):
        done = _chapters_done(folder, made_of)
        for chapter in book.chapters:
            for n, paragraph in enumerate(chapter.paragraphs, 1):
                with naming(f"chapter {chapter.title!r}, paragraph {n}"):
                    voice.phone_names(paragraph, speaker=settings.speaker)
        if not (folder / MANIFEST).exists():  # not of a text to correct first
            write_json(folder / MANIFEST, {"made_of": made_of, "chapters": []})
        texts = [_sentences(chapter, voice, settings) for chapter in book.chapters]
        unfinished = [folder / _UNFINISHED / name for name in names]
        for path in unfinished:
            _remove_damaged(path)
        rows = [*zip(book.chapters, names, texts, unfinished, strict=True)]
        n_spoken = sum(len(t if name in done else _parts(path)) for _, name, t, path in rows)
        with progress(sum(map(len, texts)), "sentences", initial=n_spoken) as bar:
            for chapter, name, sentences, path in rows:
                if name in done:
                    continue
                for n, sentence in enumerate(sentences):
                    if not (part := path / f"{n:06}.npy").exists():
                        pieces = list(voice.generate(sentence.text, settings))
                        silence = np.zeros(sentence.n_pause, dtype=np.float32)
                        write_array(part, np.concatenate([*pieces, silence]))
                        bar.advance()
                lufs = _master(path, folder / name, voice)
                entry = {"title": chapter.title, "file": name, "loudness_lufs": lufs}
                entry["bytes"] = (folder / name).stat().st_size
                done[name] = entry | _times(sentences, path, voice.model.mel.sample_rate)
                _write_lists(folder, book, made_of, [done[n] for n in names if n in done])
                shutil.rmtree(path)
        shutil.rmtree(folder / _UNFINISHED, ignore_errors=True)


def _sentences(chapter: Chapter, voice: Synthesizer, settings: Settings) -> list[_Sentence]:
    """Splits a chapter into sentences, of at most 2000 phones, with the pauses behind."""
    pause_s = voice.config.inference.sentence_pause_s * settings.duration_control
    sample_rate = voice.model.mel.sample_rate
    n_pauses = [round(pause_s * n * sample_rate) for n in (1, _PARAGRAPH_PAUSES, _CHAPTER_PAUSES)]
    sentences: list[_Sentence] = []
    for n, paragraph in enumerate(chapter.paragraphs):
        for sentence in merge_wordless(split_sentences(paragraph)):
            chunks = merge_wordless(split_long(sentence, _LONGEST_SENTENCE))
            sentences += (_Sentence(chunk, n, n_pauses[0]) for chunk in chunks)
        sentences[-1] = sentences[-1]._replace(n_pause=n_pauses[1])
    sentences[-1] = sentences[-1]._replace(n_pause=n_pauses[2])
    return sentences


def file_names(book: Book, format: str) -> list[str]:
    """Names the files of chapters: number and title, of which letters and digits are kept."""
    width = max(2, len(str(len(book.chapters))))
    names = []
    for n, chapter in enumerate(book.chapters, 1):
        title = re.sub(r"[\W_]+", "_", chapter.title)[:_LONGEST_NAME].strip("_")
        names.append("_".join(part for part in (f"{n:0{width}}", title) if part) + f".{format}")
    return names


def _chapters_done(folder: Path, made_of: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Reads the entries of the manifest by file, of chapters whose files are there and whole."""
    path = folder / MANIFEST
    if not path.exists():
        if found := sorted({path.name for path in folder.iterdir()} - {LOCK_FILE}):
            raise InputError(f"{folder} holds {found[0]!r} and no book; choose a new folder")
        return {}
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not {"made_of", "chapters"} <= manifest.keys():
        raise InputError(f"{path} is no manifest of a book; choose another folder")
    changed = [name for name in made_of if manifest["made_of"].get(name) != made_of[name]]
    if changed:
        names = " and ".join(changed).replace("voice", "voice (or lexicon, or version of Arion)")
        raise InputError(
            f"{folder} holds a book with different {names}; choose another folder, or remove this"
            " one"
        )
    entries = {entry["file"]: entry for entry in manifest["chapters"]}
    sizes = {name: size_and_time(folder / name)[0] for name in entries}
    damaged = [name for name, size in sizes.items() if size not in (-1, entries[name].get("bytes"))]
    if damaged:
        _log.warning("damaged or changed, spoken again: %s", listed(damaged))
    return {n: entry for n, entry in entries.items() if sizes[n] == entry.get("bytes")}


def _remove_damaged(folder: Path) -> None:
    """Removes files of sentences that cannot be read, such as after a power failure."""
    for part in _parts(folder):
        try:
            read_array(part)
        except InputError:
            _log.warning("%s is damaged: its sentence is spoken again", part)
            part.unlink()


def _parts(folder: Path) -> list[Path]:
    """Returns the files of the sentences of a chapter that were spoken."""
    return sorted(folder.glob("[0-9]*.npy"))


def _spoken(folder: Path) -> Iterator[np.ndarray]:
    """Reads the sound of each sentence of a chapter, (n,)."""
    return map(np.load, _parts(folder))


def _master(source: Path, target: Path, voice: Synthesizer) -> float | None:
    """Writes a chapter at the loudness of all, which it returns (LUFS).

    One of less than 0.4 s, or silence, cannot be measured: it stays as it is, None is returned.
    """
    sample_rate = voice.model.mel.sample_rate
    lufs, peak = loudness(_spoken(source), sample_rate)
    gain_db, is_measured = mastering_gain_db(lufs, peak), math.isfinite(lufs)
    if is_measured and gain_db < LOUDNESS_LUFS - lufs:
        _log.warning(
            "%s stays at %.1f LUFS, softer than other chapters: at %g LUFS, its sample peak would"
            " exceed %g dB of full scale",
            *(target.name, lufs + gain_db, LOUDNESS_LUFS, PEAK_DB),
        )
    gain = np.float32(10 ** (gain_db / 20))
    write_audio(target, (wav * gain for wav in _spoken(source)), sample_rate, voice.tag)
    return round(lufs + gain_db, 2) if is_measured else None


def _times(sentences: Sequence[_Sentence], path: Path, rate: int) -> dict[str, Any]:
    """Lists the times of a chapter, its paragraphs and sentences, in seconds from its start."""
    start = 0  # sample
    paragraphs: list[dict[str, Any]] = []
    for sentence, wav in zip(sentences, _spoken(path), strict=True):
        if sentence.paragraph == len(paragraphs):
            paragraphs.append({"start": round(start / rate, 3), "end": 0.0, "sentences": []})
        end = round((start + len(wav) - sentence.n_pause) / rate, 3)
        times = {"start": round(start / rate, 3), "end": end}
        paragraphs[-1]["sentences"].append({"text": sentence.text, **times})
        paragraphs[-1]["end"] = end
        start += len(wav)
    return {"seconds": round(start / rate, 3), "paragraphs": paragraphs}


def _write_lists(
    folder: Path, book: Book, made_of: dict[str, str], chapters: list[dict[str, Any]]
) -> None:
    start, lines = 0.0, ["#EXTM3U", f"#PLAYLIST:{_one_line(book.title)}"]
    for n, chapter in enumerate(chapters):
        chapters[n] = {**chapter, "start": round(start, 3)}
        start += chapter["seconds"]
        title = _one_line(chapter["title"])
        lines += [f"#EXTINF:{round(chapter['seconds'])},{title}", chapter["file"]]
    write_json(folder / MANIFEST, {"title": book.title, "made_of": made_of, "chapters": chapters})
    write_text(folder / PLAYLIST, "\n".join([*lines, ""]))


def _one_line(title: str) -> str:
    return printable(" ".join(title.split()))
