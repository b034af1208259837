"""Shows how words are said: arion pronounce WORD ... [-o FILE] [flags]."""

from bins._flags.parsers import program_arguments
from bins.say import sound_path
from models.checkpoint.voices import find_voice
from utils.cli import UsageError, print_text, run


def main() -> None:
    """Prints a line for each word, as a dictionary has them, and speaks them into a file."""
    flags = program_arguments(
        "pronounce",
        "Shows the phones of words, and where they come from: your dictionary (--lexicon), a"
        " lexicon, letter-to-sound. The lines can be corrected and used as a dictionary.",
    )
    if not flags.words:
        raise UsageError("give a word")
    path = sound_path(flags.output)
    from models.synthesizer.settings import Settings
    from models.synthesizer.synthesizer import Synthesizer
    from processors.audio.streams import write_audio
    from processors.text.pronunciations import dictionary_of
    from utils.logging import setup_logging

    setup_logging(quiet=True)
    settings = Settings(flags.speaker, lexicon=dictionary_of(flags.lexicon))
    voice, text = Synthesizer(find_voice(flags.voice)), " ".join(flags.words)
    for word, phones, source in voice.pronounce(text, settings):
        print_text(f"{word}  {' '.join(phones)}  # {source}\n")
    if path is not None:
        pieces = voice.generate(text, settings)
        write_audio(path, pieces, voice.model.mel.sample_rate)


if __name__ == "__main__":
    run(main)
