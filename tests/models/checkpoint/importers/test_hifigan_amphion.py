import pytest
import torch
from safetensors.torch import save_file

from models.checkpoint.foreign import find
from models.checkpoint.importers import hifigan_amphion
from models.checkpoint.loading import load_model
from models.synthesizer.runs.results import default_output
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    SIZES_OF_TYPE_2,
    amphion_args,
    check_wav,
    folded,
    period_discriminators,
    random_generator,
    renamed,
    scale_discriminators,
    write_amphion,
)
from tests.models.checkpoint.importers.reading import read_foreign, write_as_json5
from utils.errors import InputError

NEWEST = "epoch-0002_step-0000300_loss-41.123456"


def write(folder, files):
    """Files of one checkpoint; what ends in `.safetensors` is written as that."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        if name.endswith(".safetensors"):
            save_file(value, folder / name)
        else:
            torch.save(value, folder / name)
    return folder


def accelerate_experiment(root, state, weights="pytorch_model.bin", sizes=SIZES):
    """An experiment whose older checkpoints hold other weights, and other files between them."""
    other = random_generator(sizes, seed=9)
    names = ("epoch-0000_step-0000100_loss-55.000000", "epoch-0001_step-0000200_loss-9.500000")
    for name in names:
        write(root / "checkpoint" / name, {weights: other})
    write(root / "checkpoint" / NEWEST, {weights: state})
    (root / "checkpoint" / "epoch-0009_eval_audio_ljspeech.wav").touch()
    (root / "checkpoint" / "epoch-0009_step-0000900_loss-1.000000").mkdir()  # nothing in it
    (root / "log" / "hifigan").mkdir(parents=True)
    (root / "args.json").write_text(amphion_args(sizes))
    return root


def published(root, state, prefix=""):
    named = {prefix + name: tensor for name, tensor in state.items()}
    return write_amphion(root, named, random_generator(seed=9), amphion_args())


@pytest.mark.parametrize("weights", ["pytorch_model.bin", "model.safetensors"])
@pytest.mark.parametrize("sizes", [SIZES, SIZES_OF_TYPE_2])
def test_an_experiment_gives_the_original_s_numbers(tmp_path, weights, sizes):
    state = random_generator(sizes)
    root = accelerate_experiment(tmp_path / "hifigan", state, weights, sizes)
    inner = (root, root / "checkpoint", root / "checkpoint" / NEWEST)
    for path in (*inner, inner[2] / weights):
        model = check_wav(path, state, sizes)
        assert (model.step, model.home) == (300, root)
        assert default_output(path, model.home) == root / "result"


@pytest.mark.parametrize("form", [renamed, folded])
def test_other_forms_of_the_weights_give_the_same(tmp_path, form):
    state = random_generator()
    check_wav(accelerate_experiment(tmp_path, form(state)), state)


def test_the_last_epoch_of_the_same_step_is_newest(tmp_path):
    root = accelerate_experiment(tmp_path, random_generator(seed=9))
    final = "final_epoch-0003_step-0000300_loss-38.000000"
    state = random_generator()
    write(root / "checkpoint" / final, {"pytorch_model.bin": state})
    assert check_wav(root, state).folder.name == final


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_published_layout_gives_the_original_s_numbers(tmp_path, prefix):
    state = random_generator()
    root = published(tmp_path / "hifigan_ljspeech", state, prefix)
    newest = root / "checkpoints" / "step-0560000_loss-51.2373.pt"
    for path in (root, root / "checkpoints", newest):
        model = check_wav(path, state)
        assert (model.step, model.home) == (560000, root)
    # settings in the folder of the weights are found, too
    (root / "args.json").rename(root / "checkpoints" / "args.json")
    assert load_model(root / "checkpoints").home == root / "checkpoints"


def test_other_parts_of_a_file_with_a_generator_are_listed(tmp_path):
    imported = read_foreign(published(tmp_path, random_generator()))
    assert imported.unused == (
        "step-0560000_loss-51.2373.pt: discriminators",
        "step-0560000_loss-51.2373.pt: optimizer_state_dict",
    )
    assert imported.training_networks() == type(imported.training_networks())()


@pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")
@pytest.mark.parametrize("form", ["pytorch_model_{}.bin", "model_{}.safetensors"])
def test_scale_discriminators_are_imported_and_others_listed(tmp_path, small_discriminator, form):
    root = accelerate_experiment(tmp_path, random_generator())
    scales, periods = scale_discriminators().state_dict(), period_discriminators().state_dict()
    discriminators = enumerate([scales, periods, {"x": torch.ones(1)}], start=1)
    files = {form.format(number): tensors for number, tensors in discriminators}
    folder = write(root / "checkpoint" / NEWEST, files | {"optimizer_1.bin": {}})
    others = read_foreign(folder).training_networks()
    found = others.tensors["discriminator"]

    own = small_discriminator.state_dict()
    assert found.keys() == {name for name in own if name.startswith("msd.")}
    name = "discriminators.0.convs.2"
    parts = (".original", ".0._u", ".0._v")
    for ours, theirs in zip(parts, ("orig", "u", "v"), strict=True):
        tensor = found[f"msd.{name}.parametrizations.weight{ours}"]
        assert torch.equal(tensor, scales[f"{name}.weight_{theirs}"])
    stride = "its last layer has stride 3, Arion's 1: another network of the same shapes"
    assert set(others.unused) == {
        f"{form.format(2)}: mpd: {stride}",
        f"{form.format(3)}: msstftd: Arion has no such discriminator",
        "optimizer_1.bin: training: its state is not used",
    }
    assert len(others.unused) == 3


def test_its_settings_are_imported_and_missing_ones_named(tmp_path):
    root = accelerate_experiment(tmp_path / "a" / "b" / "hifigan", random_generator())
    args = root / "args.json"
    write_as_json5(args)
    model = load_model(root)
    assert (model.mel.sample_rate, model.mel.padding, model.mel.f_max) == (8000, "hifigan", 4000)
    assert model.config.dataset == ("ljspeech",)
    assert model.config.dataset_path == {}  # those of another machine
    args.write_text(amphion_args(mel_extract_mode="taco"))
    assert load_model(root).mel.padding == "centre"
    args.write_text(amphion_args(use_min_max_norm_mel=True))
    with pytest.raises(InputError, match=r"use_min_max_norm_mel: mels scaled"):
        load_model(root)
    args.write_text(amphion_args().replace('"hop_size"', '"hop"'))
    with pytest.raises(InputError, match=r"args\.json: preprocess\.hop_size is missing; expected"):
        load_model(root)
    args.unlink()
    with pytest.raises(InputError, match=r"pytorch_model\.bin: no args\.json in its folder"):
        load_model(root / "checkpoint" / NEWEST)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"hifigan": {', '"generator_config": {}, "hifigan": {'),
        ('"hifigan",', '{"ngf": 32},'),
        ('"hifigan",', '"bigvgan",'),
    ],
)
def test_another_generator_and_one_that_is_a_part_are_left_to_others(tmp_path, before, after):
    root = accelerate_experiment(tmp_path, random_generator())
    assert find(root)[1].KIND == hifigan_amphion.KIND
    (root / "args.json").write_text(amphion_args().replace(before, after))
    assert find(root) is None


def test_weights_of_other_shapes_are_refused_and_never_left_random(tmp_path):
    more = {"resblock_kernel_sizes": [3, 5, 7], "resblock_dilation_sizes": 3 * [[1, 2, 4]]}
    root = accelerate_experiment(tmp_path, random_generator(SIZES | more))
    with pytest.raises(InputError, match=r"json: left over: .* more; of another shape: .* more$"):
        load_model(root)


def test_a_folder_with_an_experiment_below_it_is_none(tmp_path):
    accelerate_experiment(tmp_path / "hifigan_speech", random_generator())
    message = r"^\S*: neither an experiment .*; of one in a folder below it"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)
