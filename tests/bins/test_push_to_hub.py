from tests.commands import command, python
from tests.models.synthesizer.test_synthesizer import make_voice
from tests.utils.hub_server import OWNER


def push(hub, folder, *flags):
    """The command in a process of its own, with the client's own variables."""
    variables = {
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "huggingface"),
        "HF_TOKEN": OWNER,
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    return python("-m", "bins.push_to_hub", *flags, **variables)


def test_an_experiment_goes_to_the_hub(hub, tmp_path):
    voice = make_voice(tmp_path / "voice")
    flags = ("--license", "mit", "--revision", "v1", "--message", "One", "--private")
    done = push(hub, tmp_path, voice, "org/voice", *flags)
    assert done.returncode == 0, done.stderr
    assert "model.safetensors" in done.stderr
    repository = hub.repos["org/voice"]
    assert repository.private
    assert repository.messages[-1] == "One"
    name = "model.safetensors"
    assert hub.files("org/voice", "v1")[name] == (voice / name).read_bytes()


def test_a_fault_is_one_sentence(hub, tmp_path):
    code, _, error = command("push_to_hub", tmp_path / "missing", "org/voice")
    assert (code, error.startswith("error: "), error.count("\n")) == (1, True, 1)
    assert "no such file or folder" in error
    assert hub.asked == []
