"""Copies the text front end into the folder of an exported voice, as the package `frontend`."""

import re
import shutil
from dataclasses import asdict, replace
from modulefinder import ModuleFinder
from pathlib import Path

from config.schema import Config
from models.base.assets import Assets
from models.export import reader
from processors.text.lexicon import CMUDICT_PATH
from utils.files import write_json

_ROOT = Path(__file__).parents[2]
_PACKAGE = "frontend"
_OWN_IMPORT = re.compile(r"^(\s*from )(?=(?:config|processors|utils)\b)", re.MULTILINE)


def write_frontend(config: Config, assets: Assets, folder: Path) -> None:
    """Writes the package, frontend.json with its settings, and the user's lexicon if there is one.

    The package holds each file of Arion that `reader` imports, directly or not. It needs NumPy,
    and phonemizer with espeakng-loader for phones of espeak-ng.
    """
    finder = ModuleFinder(path=[str(_ROOT)])
    finder.run_script(reader.__file__)
    for name, module in finder.modules.items():
        file = vars(module)["__file__"]
        if file is None:
            continue  # built into Python
        source = Path(file)
        place = "__init__.py" if name == "__main__" else source.relative_to(_ROOT)
        target = folder / _PACKAGE / place
        target.parent.mkdir(parents=True, exist_ok=True)
        code = source.read_text(encoding="utf-8")
        target.write_text(_OWN_IMPORT.sub(rf"\g<1>{_PACKAGE}.", code), encoding="utf-8")
    data = CMUDICT_PATH.parent
    shutil.copytree(data, folder / _PACKAGE / data.relative_to(_ROOT))
    write_json(folder / reader.SETTINGS, _settings_of(config, assets))
    if assets.lexicon is not None:
        (folder / reader.LEXICON).write_text(assets.lexicon, encoding="utf-8")


def _settings_of(config: Config, assets: Assets) -> dict[str, object]:
    lexicon_path = "" if assets.lexicon is None else reader.LEXICON
    inference = config.inference
    return {
        "text": asdict(replace(config.preprocess.text, lexicon_path=lexicon_path)),
        "max_phones": inference.max_phones,
        "p_arpabet": config.spoken_p_arpabet,
        "languages": [speaker.language for speaker in assets.speakers],
        "trained_phones": sorted(assets.known_phones),
        "unknown_phones": inference.unknown_phones,
        "symbols": assets.required_vocabulary().to_plain(),
    }
