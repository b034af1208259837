"""Shows how words are said: arion pronounce WORD ... [-o FILE] [flags]."""

from bins._flags.parsers import program_arguments
from models.voices import find_voice
from utils.cli import UsageError, print_text, run
from utils.files import user_path


def main() -> None:
    """Prints a line of a dictionary for each word, and speaks them into a file."""
    flags = program_arguments("pronounce")
    if not flags.words:
        raise UsageError("give a word")
    from models.synthesizer.synthesizer import Synthesizer
    from processors.audio.streams import write_audio
    from utils.logging import setup_logging

    setup_logging(quiet=True)
    voice = Synthesizer(find_voice(flags.voice), lexicon=flags.lexicon)
    text = " ".join(flags.words)
    for word, phones, source in voice.pronounce(text, speaker=flags.speaker):
        print_text(f"{word}  {' '.join(phones)}  # {source}\n")
    if flags.output is not None:
        pieces = voice.generate(text, speaker=flags.speaker)
        write_audio(user_path(flags.output), pieces, voice.model.mel.sample_rate)


if __name__ == "__main__":
    run(main)
