"""Stage 2 on several machines: the launch on each, and what is refused before it."""

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.models.vocoder.small_hifigan import make_recordings, write_vocoder_config

REPOSITORY = Path(__file__).parents[2]
RECIPE = Path("egs/vocoder/HiFiGAN")
TRAIN = ("--stage", "2", "-n", "a")
LAST = ("--machine_rank", "2", "--main_process_ip", "127.0.0.1")


@pytest.fixture
def recipe(run_sh):
    return partial(run_sh, RECIPE)


def launch_of(result):
    (call,) = result.calls
    return " ".join(call.command[: call.command.index("bins.train")])


def test_each_machine_starts_a_process_per_gpu(recipe):
    result = recipe(*TRAIN, "--gpu", "0,1", "--num_machines", "3", *LAST, FAKE_GPUS="2")

    assert "waiting for machine 0 at 127.0.0.1 port 29500" in result.output
    assert (
        " --multi_gpu --num_processes 6 --num_machines 3 --machine_rank 2 "
        "--same_network --main_process_ip 127.0.0.1 --main_process_port 29500 -m"
    ) in launch_of(result)


def test_a_file_of_accelerate_replaces_the_flags(recipe, tmp_path):
    file = tmp_path / "two machines.yaml"
    file.write_text("distributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: 4\n")
    flags = ("--accelerate_config", str(file), "--machine_rank", "1", "--gpu", "0,1")
    launch = launch_of(recipe(*TRAIN, *flags, FAKE_GPUS="2"))

    assert launch.endswith(f" --config_file {file} --machine_rank 1 -m")
    assert "--num_machines" not in launch


def start(root, name, *flags):
    """Starts stage 2 with the Python of the tests."""
    config = write_vocoder_config(root, max_steps=2)
    # an epsilon so large that rounding errors of small gradients make small steps
    adam = ["--set", "train.adam.eps=1", "--set", "train.adam.lr=0.1"]
    run = ["sh", REPOSITORY / RECIPE / "run.sh", "--stage", "2", "--gpu", "", "--config", config]
    return subprocess.Popen(
        [*map(str, run), "--name", name, *adam, *flags],
        cwd=root,
        env=os.environ | {"PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.slow
def test_two_machines_make_the_updates_of_one_with_twice_the_batch(tmp_path):
    make_recordings(tmp_path / "data" / "mini")  # eight to train on: a batch of eight or two of 4
    place = ("--main_process_ip", "127.0.0.1", "--main_process_port", str(free_port()))
    machines = [
        start(
            tmp_path, "two", "--set", "train.batch_size=4",
            "--num_machines", "2", "--machine_rank", str(rank), *place,
        )
        for rank in (1, 0)
    ]  # fmt: skip
    one = start(tmp_path, "one", "--set", "train.batch_size=8")
    for process in (*machines, one):
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        if process is machines[1]:  # rank 0 logs for both
            assert " x 2 processes, together " in errors
    for network in ("model", "discriminator"):
        inside = f"checkpoints/step-00000002/{network}.safetensors"
        one, two = (load_file(tmp_path / "ckpts" / name / inside) for name in ("one", "two"))
        for name, tensor in one.items():
            assert two[name].allclose(tensor, rtol=0, atol=1e-5), name


@pytest.mark.parametrize(("kind", "resumes"), [("tts", True), ("vocoder", False)])
def test_slurm_starts_each_machine_and_resumes_the_experiment_of_this_kind(tmp_path, kind, resumes):
    run = tmp_path / "egs" / kind / "Model" / "run.sh"
    programs = {
        tmp_path / "bin" / "scontrol": "#!/bin/sh\necho node1\necho node2\n",
        tmp_path / "bin" / "srun": '#!/bin/sh\nshift\nSLURM_NODEID=1 exec "$@"\n',
        run: "printf '%s\\n' \"$@\"\n",
    }
    for path, text in programs.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "ckpts" / "tts" / "a" / "checkpoints" / "step-00000002").mkdir(parents=True)
    job = {"SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ID": "10007", "SLURM_NNODES": "2"}
    job |= {"CUDA_VISIBLE_DEVICES": "0,1", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    words = ["sh", REPOSITORY / "egs/_shared/slurm.sh", run.relative_to(tmp_path), "--name", "a"]
    options = {"cwd": tmp_path, "env": os.environ | job, "check": True}
    result = subprocess.run(words, capture_output=True, text=True, **options)
    machines = "--num_machines 2 --machine_rank 1 --main_process_ip node1 --main_process_port 20007"
    resume = "--resume " if resumes else ""
    assert " ".join(result.stdout.split()) == f"--stage 2 --gpu 0,1 {machines} {resume}--name a"
