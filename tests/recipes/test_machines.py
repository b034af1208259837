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


@pytest.fixture
def accelerate_config(tmp_path):
    """Writes a file as `accelerate config` does, but for its other keys."""

    def write(**keys):
        path = tmp_path / "two machines.yaml"
        path.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
        return str(path)

    return partial(write, distributed_type="MULTI_GPU", num_machines=2, num_processes=4)


def launch_of(result):
    (call,) = result.calls
    return " ".join(call.command[: call.command.index("bins.train")])


@pytest.mark.parametrize(("gpu", "found", "n_processes"), [("", "0", 3), ("0,1", "2", 6)])
def test_each_machine_starts_a_process_per_gpu_or_one_without(recipe, gpu, found, n_processes):
    result = recipe(*TRAIN, "--gpu", gpu, "--num_machines", "3", *LAST, FAKE_GPUS=found)

    assert "waiting for machine 0 at 127.0.0.1 port 29500" in result.output
    assert (
        f" --multi_gpu --num_processes {n_processes} --num_machines 3 --machine_rank 2 "
        "--same_network --main_process_ip 127.0.0.1 --main_process_port 29500 -m"
    ) in launch_of(result)


def test_one_machine_of_a_cluster_is_trained_as_without_one(recipe):
    flags = ("--num_machines", "1", "--machine_rank", "0", "--main_process_ip", "node1")
    (call,) = recipe(*TRAIN, *flags, FAKE_GPUS="1").calls

    assert call.command[2] == "bins.recipe"


def test_a_file_of_accelerate_replaces_the_flags(recipe, accelerate_config):
    file = accelerate_config()
    flags = ("--accelerate_config", file, "--machine_rank", "1", "--gpu", "0,1")
    launch = launch_of(recipe(*TRAIN, *flags, FAKE_GPUS="2"))

    assert launch.endswith(f" --config_file {file} --machine_rank 1 -m")
    assert "--num_machines" not in launch


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"distributed_type": "FSDP"}, "distributed_type is 'FSDP', expected MULTI_GPU"),
        ({"num_processes": 8}, "4 processes a machine, found 2 (the GPUs in --gpu"),
        ({"num_machines": "two"}, "num_machines is 'two', expected 1 to 65535"),
        ({"num_processes": ""}, "num_processes is None, expected 1 to 65535"),
    ],
)
def test_a_file_of_accelerate_that_cannot_be_used_is_refused(
    recipe, accelerate_config, keys, message
):
    file = accelerate_config(**keys)
    result = recipe(*TRAIN, "--accelerate_config", file, "--gpu", "0,1", FAKE_GPUS="2")

    assert (result.code, result.calls) == (2, [])
    assert f"error: --accelerate_config {file}: {message}" in result.output


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
        both = [
            load_file(
                tmp_path / "ckpts" / name / "checkpoints/step-00000002" / f"{network}.safetensors"
            )
            for name in ("one", "two")
        ]
        for name, tensor in both[0].items():
            assert both[1][name].allclose(tensor, rtol=0, atol=1e-5), name


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("127.0.0.1", "error: --main_process_port {port}: Address already in use; give another"),
        (
            "n" * 64,
            f"error: --main_process_ip {'n' * 64}: ",
        ),  # refused without asking a name server
    ],
)
def test_an_address_at_which_machines_cannot_meet_is_one_line(tmp_path, host, message):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        place = ("--main_process_ip", host, "--main_process_port", str(port))
        process = start(tmp_path, "a", "--num_machines", "2", "--machine_rank", "0", *place)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == 2
    assert errors.count("\n") == 1
    assert errors.startswith(message.format(port=port))


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
    result = subprocess.run(
        ["sh", REPOSITORY / "egs/_shared/slurm.sh", run.relative_to(tmp_path), "--name", "a"],
        cwd=tmp_path,
        env=os.environ
        | job
        | {"CUDA_VISIBLE_DEVICES": "0,1", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    machines = "--num_machines 2 --machine_rank 1 --main_process_ip node1 --main_process_port 20007"
    resume = "--resume " if resumes else ""
    assert " ".join(result.stdout.split()) == f"--stage 2 --gpu 0,1 {machines} {resume}--name a"
