import socket
from pathlib import Path

import pytest

from bins._flags.launch import Machines, count_gpus
from utils.cli import UsageError
from utils.errors import InputError


def options(words: list[str]) -> list[str]:
    """What follows the options that every launch has."""
    assert words[:3] == ["-m", "accelerate.commands.launch", "--quiet"]
    return words[words.index("--dynamo_backend") + 2 :]


def test_one_process_is_not_launched():
    assert Machines().launcher(0) == Machines().launcher(1) == []
    assert Machines(count=1, rank=0, address="a").launcher(1) == []


def test_machines_have_a_process_per_gpu_or_one_without():
    alone = "--multi_gpu --num_processes 4 --num_machines 1 --main_process_port 0"
    assert options(Machines().launcher(4)) == alone.split()
    machines = Machines(3, rank=2, address="node1", port=1234)
    for n_gpus, n_processes in ((0, 3), (1, 3), (2, 6)):
        assert options(machines.launcher(n_gpus)) == (
            f"--multi_gpu --num_processes {n_processes} --num_machines 3 --machine_rank 2"
            " --same_network --main_process_ip node1 --main_process_port 1234".split()
        )


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_file_of_accelerate_says_all_but_the_rank(tmp_path: Path, quote):
    file = tmp_path / "two.yaml"
    keys = {"distributed_type": f"{quote}MULTI_GPU{quote}", "num_machines": 2, "num_processes": 4}
    file.write_text("".join(f"{key}: {value}\n" for key, value in keys.items()))
    machines = Machines(rank=1, config=file)
    assert options(machines.launcher(2)) == ["--config_file", str(file), "--machine_rank", "1"]
    assert options(Machines(config=file).launcher(2)) == ["--config_file", str(file)]
    with pytest.raises(UsageError, match="2 processes a machine, found 1 "):
        machines.launcher(0)


GPUS = "distributed_type: MULTI_GPU"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("distributed_type: FSDP", "distributed_type is 'FSDP', expected MULTI_GPU"),
        ("- a", "expected keys with values, found list"),
        ("distributed_type: MULTI_GPU", "num_processes is None, expected 1 to 65535"),
        ("{distributed_type: MULTI_GPU, num_processes: 0}", "num_processes is 0, expected 1"),
        ("{distributed_type: MULTI_GPU, num_processes: two}", "num_processes is 'two', exp"),
        (f"{{{GPUS}, num_processes: 4, num_machines: two}}", "num_machines is 'two', expected 1"),
        (f"{{{GPUS}, num_processes: 5, num_machines: 2}}", "5 is no multiple of num_machines 2"),
        *((text, r"a\.yaml: not YAML: .") for text in ("when: 2026-13-45", "{", "[" * 500)),
    ],
)
def test_a_file_that_is_for_something_else_or_no_yaml_is_refused_in_a_line(tmp_path, text, message):
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=message) as refusal:
        Machines(config=tmp_path / "a.yaml").launcher(1)
    assert "\n" not in str(refusal.value)


def test_a_port_must_be_free_on_machine_0_and_an_address_known_on_all():
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--main_process_port {port}: Address already in use"):
            Machines(2, 0, "127.0.0.1", port).check_meeting_point()
        Machines(2, 1, "127.0.0.1", port).check_meeting_point()
    with pytest.raises(UsageError, match=r"--main_process_ip n{64}: "):
        Machines(2, 1, "n" * 64).check_meeting_point()


def test_gpus_are_counted_unless_there_are_none_by_request(tmp_path, monkeypatch):
    assert count_gpus("") == 0
    (tmp_path / "torch.py").write_text("class cuda:\n    device_count = lambda: 1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert count_gpus("0") == 1
    with pytest.raises(UsageError, match="--gpu 0,1: this machine has only 1 of these"):
        count_gpus("0,1")
