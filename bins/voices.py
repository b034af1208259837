"""Lists the voices of this machine: arion voices."""

from bins._flags.parsers import program_arguments
from models.voices import installed_voices
from utils.cli import print_text, run


def main() -> None:
    """Prints a line for each voice, and one with its speakers."""
    program_arguments("voices")
    for voice in installed_voices():
        n = len(voice.speakers)
        print_text(
            f"{voice.name}  {','.join(voice.languages)}  {n} speaker{'s' * (n > 1)}"
            f"  {voice.megabytes:.0f} MB  licence {voice.licence}  {voice.folder}\n"
        )
        names = (name + " (default)" * (name == voice.speaker) for name in voice.speakers)
        print_text(f"    {', '.join(names)}\n")


if __name__ == "__main__":
    run(main)
