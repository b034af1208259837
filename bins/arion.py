"""The command `arion`: each of its sub-commands is one file of `bins`."""

import importlib
import sys

from utils import __version__
from utils.cli import UsageError, print_text, run
from utils.errors import nearest

# modules of `bins`, whose `main` reads the command line, and their help
COMMANDS = {
    "say": ("say", "speak a text, or write it to a file"),
    "export": ("export_voice", "write a voice that speaks without PyTorch"),
    "serve": ("serve", "serve voices over HTTP, as OpenAI's clients ask for them"),
    "align": ("align", "align recordings with their texts, in any language"),
    "distil": ("distil", "have another program speak texts, as a corpus to train on"),
    "corpus": ("corpus", "cut long recordings into clips with their texts"),
    "check": ("check_corpus", "check a corpus, and whether recordings fit their texts"),
    "pronounce": ("pronounce", "show how words are said, and why; speak them"),
    "compare": ("compare", "compare speech in blind listening tests"),
    "voices": ("voices", "list the voices of this machine"),
    "doctor": ("doctor", "show what is installed and whether it works"),
    "train": ("recipe", "run the stages of a recipe, as run.sh does"),
}
_HELP = "arion COMMAND --help lists the flags of a command; arion --version prints the version."


def main() -> None:
    """Runs a sub-command; without one, lists them."""
    name, *argv = sys.argv[1:] or ("--help",)
    if name in ("-h", "--help"):
        lines = [f"  {command:9} {text}" for command, (_, text) in COMMANDS.items()]
        print_text("\n".join(["usage: arion COMMAND [flags]", "", *lines, "", _HELP, ""]))
        return
    if name == "--version":
        print_text(f"arion {__version__}\n")
        return
    if name not in COMMANDS:
        names = ", ".join(COMMANDS)
        raise UsageError(f"no command '{name}'{nearest(name, COMMANDS)} (expected one of {names})")
    sys.argv = [f"arion {name}", *argv]
    module, _ = COMMANDS[name]
    importlib.import_module(f"bins.{module}").main()


def entry_point() -> None:
    """Runs the command as a program."""
    run(main)


if __name__ == "__main__":
    entry_point()
