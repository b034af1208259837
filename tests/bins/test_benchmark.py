import json

from tests.commands import call, command


def test_wrong_flags_are_one_line():
    for flags, message in (
        (["--steps", "0"], "--steps '0': expected a whole number from 1"),
        (["--threads", "-1"], "--threads '-1': expected a whole number from 1"),
        (["--device", "tpu"], "--device 'tpu': expected cpu or cuda"),
        (["--mode", "traning"], "--mode traning: expected all or some of training, inference"),
    ):
        done = command("benchmark", *flags)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr


def test_the_command_prints_tables_and_writes_all_figures(capsys, tmp_path):
    path = tmp_path / "speed.json"
    flags = "--small --model hifigan --mode training,inference --steps 1"
    flags += f" --batch_size 2 --precision bf16 --output {path}"
    call("benchmark", *flags.split())
    printed = capsys.readouterr().out
    assert printed.count("| hifigan | `precision=bf16` |") == 2
    report = json.loads(path.read_text())
    assert report["command"] == f"python -m bins.benchmark {flags}"
    assert report["environment"]["threads"] == "1"
    assert len(report["results"]) == 2
    assert all(result["figures"]["frames/s"] > 0 for result in report["results"])


def test_an_error_loses_nothing_that_was_measured(tmp_path):
    path = tmp_path / "speed.json"
    flags = "--small --model hifigan,tacotron2 --mode inference --steps 1 --warm_up 0"
    flags += f" --longest 20 --compare precision=fp32 precision=bf16 --output {path}"
    printed = command("benchmark", *flags.split())
    assert printed.returncode == 1
    assert "precision=bf16: Tacotron2 in inference has fp32, fp16, int8" in printed.stderr
    assert printed.stdout.endswith("\nINCOMPLETE: the benchmark stopped here\n")
    report = json.loads(path.read_text())
    assert report["incomplete"]
    modes = [(result["mode"], result["model"]) for result in report["results"]]
    comparison = ("comparison", "hifigan, inference")
    assert modes == [("inference", "hifigan"), ("inference", "hifigan"), comparison]
    assert printed.stdout.count("| hifigan | `precision=bf16` |") == 1
