"""The public face of Arion: `from arion import Synthesizer, load_model`.

The toolkit's packages have common names. If the program's own folder has a package of one of these
names, Python would import that one, so this module compares their places first.
"""

from importlib.util import find_spec
from pathlib import Path

__all__ = ["Speech", "SpeechStream", "Ssml", "Synthesizer", "__version__", "load_model"]

_HOME = Path(__file__).resolve().parent
_PACKAGES = ("config", "models", "modules", "preprocessors", "processors", "utils")


def _refuse_foreign_packages() -> None:
    for name in _PACKAGES:
        spec = find_spec(name)
        places = None if spec is None else spec.submodule_search_locations or [str(spec.origin)]
        if not places:
            raise ImportError(f"{_HOME} has no package {name}: it is no whole copy of Arion")
        found = Path(places[0]).resolve()
        if found not in (_HOME / name, _HOME / name / "__init__.py"):
            raise ImportError(
                f"Arion needs its own package {name!r}, and Python finds {found} first: rename"
                " that, start the program from another folder, or begin it with"
                f" sys.path.insert(0, {str(_HOME)!r}), before anything imports {name!r}"
            )


_refuse_foreign_packages()

from models.checkpoint import load_model  # noqa: E402  (only after the check)
from models.synthesizer import Speech, SpeechStream, Synthesizer  # noqa: E402
from processors.text.ssml.document import Ssml  # noqa: E402
from utils import __version__  # noqa: E402
