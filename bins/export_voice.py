"""Exports a voice for other programs: arion export EXPERIMENT OUT [--vocoder_dir V]."""

from bins._flags.parsers import program_arguments
from utils.cli import run
from utils.errors import InputError
from utils.files import check_new
from utils.logging import get_logger


def main() -> None:
    """Exports one voice."""
    flags = program_arguments("export_voice")
    check_new(flags.target)
    try:
        from models.programs.export.folder import export_voice, export_web, open_voice
        from models.programs.export.piper_sherpa import export_piper, export_sherpa
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
    writers[flags.format](open_voice(flags.voice, flags.vocoder_dir), flags.target, flags.weights)
    for path in sorted(flags.target.iterdir()):
        size = sum(file.stat().st_size for file in (path, *path.rglob("*")) if file.is_file())
        get_logger(__name__).info("%-32s %10.1f kB", path.name, size / 1e3)
    get_logger(__name__).info("written: %s", flags.target)


if __name__ == "__main__":
    run(main)
