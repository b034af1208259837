"""Speaks a text or a book: arion say "Any text." [-o FILE], arion say BOOK -o DIR [flags]."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bins._flags.parsers import program_arguments
from models.voices import find_voice
from processors.text.markup import SUFFIXES
from utils.cli import UsageError, bound_operation_caches, print_bytes, run
from utils.errors import InputError, printable
from utils.files import decoded, read_text, user_path, write_text

if TYPE_CHECKING:
    from models.synthesizer.settings import Settings
    from models.synthesizer.synthesizer import Synthesizer
    from processors.text.markup.formats import Markup

_TO_STDOUT = "-"
_BOOKS = (".txt", ".md", ".epub")


def main() -> None:
    """Speaks piece by piece: a long text is heard at once, and memory does not grow with it."""
    flags = _arguments()
    bound_operation_caches()
    if (book := _book(flags)) is not None:
        _speak_book(book, flags)
        return
    if flags.book_format is not None:
        raise UsageError("--book_format goes with a book; otherwise the suffix of --output decides")
    from processors.audio.streams import FORMATS, can_play, encoded, play, write_audio

    path = None if flags.output in (None, _TO_STDOUT) else user_path(flags.output)
    formats = [f".{name}" for name in FORMATS if name != "pcm"]
    if path is not None and path.suffix.lower() not in formats:
        fault = f"--output {path}: expected {_TO_STDOUT}, or one of {', '.join(formats)}"
        remedy = f"a folder goes with the file of a book ({', '.join(_BOOKS)}) as TEXT"
        raise UsageError(f"{fault}; {remedy}")
    subtitles_path = _subtitles_path(flags)
    voice, text = find_voice(flags.voice), _text(flags)
    if flags.output is None and not can_play():
        names = ("speech.wav", *(f"speech-{n}.wav" for n in range(2, 1000)))
        path = next((Path(name) for name in names if not Path(name).exists()), Path(names[0]))

    from models.synthesizer.runs.text_synthesis import naming

    synthesizer, settings = _open(voice, flags)
    sample_rate = synthesizer.model.mel.sample_rate
    with naming(flags.file):
        source = _marked_up(flags, text) if isinstance(text, str) else text
        pieces = synthesizer.generate(source, settings)
    if path is not None:
        write_audio(path, pieces, sample_rate, synthesizer.tag)
        sys.stderr.write(printable(f"{path}") + "\n")
    elif flags.output is None:
        play(pieces, sample_rate)
    else:
        with suppress(BrokenPipeError):  # its reader leaves
            for data in encoded(pieces, "wav", sample_rate, synthesizer.tag):
                print_bytes(data)
    for mark in pieces.marks:
        sys.stderr.write(printable(f"mark {mark.name}: {mark.time_s:.3f} s") + "\n")
    if subtitles_path is not None:
        from processors.durations.subtitles import subtitles

        content = subtitles(pieces.sentences, pieces.words, subtitles_path.suffix[1:])
        write_text(subtitles_path, content)


def _arguments() -> argparse.Namespace:
    flags = program_arguments("say")
    if flags.text and flags.file is not None:
        raise UsageError("TEXT and --file exclude each other")
    if not flags.text and flags.file is None and sys.stdin.isatty():
        raise UsageError("give a text, --file, or a text on standard input")
    return flags


def _subtitles_path(flags: argparse.Namespace) -> Path | None:
    path = None if flags.subtitles is None else user_path(flags.subtitles)
    if path is not None and path.suffix not in (".srt", ".vtt"):
        raise UsageError(f"--subtitles {path}: expected a file that ends with .srt or .vtt")
    return path


def _text(flags: argparse.Namespace) -> str | Iterator[str]:
    """Returns the text; `-` is plain unless a format is given, and read while it is written."""
    if flags.text and flags.text != ["-"]:
        return " ".join(flags.text)
    if flags.file is not None:
        return read_text(flags.file)
    if flags.text and not flags.ssml and flags.format in ("auto", "text"):
        return map(_decoded, sys.stdin.buffer)
    return _decoded(sys.stdin.buffer.read())


def _decoded(data: bytes) -> str:
    try:
        return decoded(data)
    except InputError as error:
        raise InputError(f"standard input: {error}; send UTF-8") from error


def _marked_up(flags: argparse.Namespace, text: str) -> "Markup":
    from processors.text.markup.formats import Markup

    suffix = "" if flags.file is None else flags.file.suffix.lower()
    by_suffix = SUFFIXES.get(suffix, "auto") if flags.format == "auto" else flags.format
    return Markup(text, "ssml" if flags.ssml else by_suffix, flags.strict)


def _open(
    voice: str | Path, flags: argparse.Namespace, *, quiet: bool = True
) -> tuple["Synthesizer", "Settings"]:
    """Opens the voice, and checks how it speaks: later errors are those of the text."""
    from models.synthesizer.settings import Settings
    from models.synthesizer.synthesizer import Synthesizer
    from utils.logging import setup_logging

    setup_logging(quiet=quiet)
    settings = Settings(
        speaker=flags.speaker,
        pitch_control=flags.pitch,
        energy_control=flags.energy,
        duration_control=1 / (flags.pace or 1),
        steps=flags.steps,
        temperature=flags.temperature,
        seed=flags.seed or 0,
    )
    synthesizer = Synthesizer(
        voice, flags.vocoder_dir, lexicon=flags.lexicon, tagged=not flags.no_tags
    )
    synthesizer.speaker_id(settings.speaker)
    return synthesizer, synthesizer.checked(settings)


def _book(flags: argparse.Namespace) -> Path | None:
    """Returns the file of a book, if that is the text."""
    if flags.file is not None and flags.file.suffix.lower() == ".epub":
        raise UsageError(f"{flags.file} is a book: give it as TEXT, and a folder as -o")
    path = user_path(text := " ".join(flags.text))
    suffix = path.suffix.lower()
    # os.path.isfile takes any text; that of Path raises for long ones
    is_file = os.path.isfile(path)  # noqa: PTH113
    if not is_file:
        if suffix in (*_BOOKS, *SUFFIXES) and not re.search(r"\s", text):
            raise UsageError(f"{path}: no such file; of a text that ends so, use standard input")
        return None
    if suffix in SUFFIXES and suffix not in _BOOKS:
        raise UsageError(f"{path} is a file of {SUFFIXES[suffix].upper()}: read it with --file")
    if suffix and suffix not in _BOOKS:
        remedy = "convert it, or read a text with --file"
        raise UsageError(f"{path}: {suffix} is no format of a book ({', '.join(_BOOKS)}); {remedy}")
    return path if suffix else None


def _speak_book(path: Path, flags: argparse.Namespace) -> None:
    """Speaks a book into a folder; the same command goes on after an interruption."""
    from models.programs.books.reading import read_book
    from models.programs.books.speaking import speak_book

    if flags.output is None or Path(flags.output).suffix:
        as_text = "" if path.suffix.lower() == ".epub" else "; or read it as a text with --file"
        raise UsageError(f"{path} is a book: -o needs a folder{as_text}")
    if flags.subtitles is not None or flags.ssml or flags.format != "auto":
        raise UsageError("--subtitles, --format and --ssml go with a text, not with a book")
    book, folder = read_book(path), user_path(flags.output)
    synthesizer, settings = _open(find_voice(flags.voice), flags, quiet=False)
    speak_book(book, folder, synthesizer, settings, flags.book_format or "flac")
    sys.stderr.write(printable(f"{folder}") + "\n")


if __name__ == "__main__":
    run(main)
