"""Exports a voice for other programs: arion export EXPERIMENT OUT [--vocoder_dir V]."""

from bins._flags.parsers import program_arguments
from utils.cli import run
from utils.errors import InputError
from utils.files import check_new
from utils.logging import get_logger, setup_logging


def main() -> None:
    """Exports one voice."""
    given = program_arguments(
        "export_voice",
        "Writes a voice for other programs: by default a folder that needs onnxruntime and NumPy"
        " only, python OUT/speak.py TEXT",
    )
    setup_logging()
    check_new(given.target)
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
    writers[given.format](open_voice(given.voice, given.vocoder_dir), given.target, given.weights)
    for path in sorted(given.target.iterdir()):
        size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
        get_logger(__name__).info("%-32s %10.1f kB", path.name, size / 1e3)
    get_logger(__name__).info("written: %s", given.target)


if __name__ == "__main__":
    run(main)
