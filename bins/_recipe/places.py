"""Recipes by name, and the paths that their flags name."""

from dataclasses import dataclass
from pathlib import Path

from bins._flags.table import KINDS, Kind
from utils.cli import UsageError
from utils.errors import nearest
from utils.files import user_path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Recipe:
    """A folder of egs/<kind>."""

    kind: Kind
    name: str  # kind/Model
    caller: str  # folder of the user, where relative paths start
    command: tuple[str, ...]  # as the user types it

    @property
    def folder(self) -> Path:
        """Folder of the configurations."""
        return ROOT / "egs" / self.name


def recipes() -> dict[str, Path]:
    """The run.sh of each recipe by `kind/Model`."""
    scripts = [path for kind in KINDS for path in sorted((ROOT / "egs" / kind).glob("*/run.sh"))]
    return {f"{path.parts[-3]}/{path.parts[-2]}": path for path in scripts}


def find_recipe(name: str, shell_caller: str | None) -> Recipe:
    """Finds a recipe.

    Args:
        name: `kind/Model`, such as tts/FastSpeech2, or the model alone.
        shell_caller: The folder from which run.sh was called; None: not by run.sh.

    Raises:
        UsageError: If there is none; the message lists those there are.
    """
    scripts = recipes()
    name = next((full for full in scripts if full.split("/")[1] == name), name)
    if name not in scripts:
        near, names = nearest(name, scripts), ", ".join(scripts)
        raise UsageError(f"no recipe '{name}'{near} (expected one of {names}, then its flags)")
    typed: tuple[str, ...] = ("python", "-m", "bins.recipe", name)
    if shell_caller is not None:
        typed = ("sh", str(scripts[name]))
    kind = next(kind for kind in KINDS if name.startswith(f"{kind}/"))
    return Recipe(kind, name, shell_caller or str(Path.cwd()), typed)


def located(text: str, caller: str) -> str:
    """Makes the path of an existing file or folder absolute; leaves what may be a name on the Hub.

    Args:
        caller: The user's folder. This process is at the root of the repository.
    """
    first = text.split("/")[0]
    if first in (".", "..") or text.startswith("~"):
        return from_here(text, caller)
    here = Path(caller)
    # missing, but its first folder exists here: a local path, not a name on the Hub
    missing_here = not Path(text).exists() and (here / first).exists()
    return from_here(text, caller) if (here / text).exists() or missing_here else text


def from_here(text: str, caller: str) -> str:
    """Makes a path absolute; empty text stays so.

    Args:
        text: The user's path; not every shell expands a leading `~` in --flag=~/a.
    """
    if text.startswith("~"):
        return str(user_path(text))
    return text if not text or Path(text).is_absolute() else f"{caller}/{text}"
