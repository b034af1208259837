"""Exports a voice for other programs: arion export EXPERIMENT OUT [--vocoder_dir V]."""

from pathlib import Path

from bins._flags.values import MODEL, choice
from utils.cli import Parser, run
from utils.errors import InputError
from utils.files import check_new, user_path
from utils.logging import get_logger, setup_logging


def main() -> None:
    """Exports one voice."""
    parser = Parser(
        "Writes a voice for other programs: by default a folder that needs onnxruntime and NumPy"
        " only, python OUT/speak.py TEXT"
    )
    add = parser.add_argument
    add("voice", metavar="EXPERIMENT", help="a voice, given as for arion say --voice")
    add("target", type=Path, metavar="OUT", help="folder to make")
    add("--vocoder_dir", type=MODEL.argument, metavar=MODEL.metavar).help = """vocoder, or
        griffin_lim (default: the bundled one)"""
    weights = choice("fp32", "fp16", "int8")
    add("--weights", type=weights.argument, default="fp32", metavar=weights.metavar).help = """how
        weights are stored: fp32, fp16 or int8 (default: %(default)s)"""
    formats = choice("arion", "piper", "sherpa-onnx", "web")
    add("--format", type=formats.argument, default="arion", metavar=formats.metavar).help = """who
        speaks: arion (speak.py), piper, sherpa-onnx or web (a page for browsers; default:
        %(default)s)"""
    given = parser.parse_args()
    setup_logging()
    target = user_path(given.target)
    check_new(target)
    try:
        from models.export.folder import export_voice, open_voice
        from models.export.piper_sherpa import export_piper, export_sherpa
        from models.export.web.folder import export_web
    except ModuleNotFoundError as error:
        if error.name not in ("onnx", "onnxscript"):
            raise
        raise InputError(f"{error.name} is missing: pip install -e '.[onnx]'") from error

    writers = {
        "arion": export_voice,
        "piper": export_piper,
        "sherpa-onnx": export_sherpa,
        "web": export_web,
    }
    writers[given.format](open_voice(given.voice, given.vocoder_dir), target, given.weights)
    for path in sorted(target.iterdir()):
        size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
        get_logger(__name__).info("%-32s %10.1f kB", path.name, size / 1e3)
    get_logger(__name__).info("written: %s", target)


if __name__ == "__main__":
    run(main)
