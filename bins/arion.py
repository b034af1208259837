"""The command `arion`: each of its sub-commands is one file of `bins`."""

import importlib
import sys
from typing import NamedTuple

from utils.cli import UsageError, print_text, run
from utils.errors import nearest


class SubCommand(NamedTuple):
    """A module of `bins` whose `main` reads the command line."""

    module: str
    help: str


COMMANDS = {
    "say": SubCommand("say", "speak a text, or write it to a file"),
    "export": SubCommand("export_voice", "write a voice that speaks without PyTorch"),
    "serve": SubCommand("serve", "serve voices over HTTP, as OpenAI's clients ask for them"),
    "align": SubCommand("align", "align recordings with their texts, in any language"),
    "distil": SubCommand("distil", "have another program speak texts, as a corpus to train on"),
    "check": SubCommand("check_corpus", "check a corpus, and whether recordings fit their texts"),
    "voices": SubCommand("voices", "list the voices of this machine"),
    "doctor": SubCommand("doctor", "show what is installed and whether it works"),
    "train": SubCommand("recipe", "run the stages of a recipe, as run.sh does"),
}


def main() -> None:
    """Runs a sub-command; without one, lists them."""
    name, *argv = sys.argv[1:] or ("--help",)
    if name in ("-h", "--help"):
        lines = [f"  {command_name:8} {command.help}" for command_name, command in COMMANDS.items()]
        print_text("\n".join(["usage: arion COMMAND [flags]", "", *lines, "", _HELP, ""]))
        return
    if name == "--version":
        from utils import __version__

        print_text(f"arion {__version__}\n")
        return
    if name not in COMMANDS:
        names = ", ".join(COMMANDS)
        raise UsageError(f"no command '{name}'{nearest(name, COMMANDS)} (expected one of {names})")
    sys.argv = [f"arion {name}", *argv]
    importlib.import_module(f"bins.{COMMANDS[name].module}").main()


def entry_point() -> None:
    """Runs the command as a program."""
    run(main)


_HELP = "arion COMMAND --help lists the flags of a command; arion --version prints the version."

if __name__ == "__main__":
    entry_point()
