import pytest
import torch
from safetensors.torch import save_file

from models.checkpoint.loading import load_model
from modules.layers.normalisation import adapt_weight_norm
from tests.models.checkpoint.importers.hifigan_originals import (
    SIZES,
    SIZES_OF_TYPE_2,
    check_wav,
    folded,
    period_discriminators,
    random_generator,
    renamed,
    scale_discriminators,
    write_authors,
)
from tests.models.checkpoint.importers.reading import read_foreign
from utils.errors import InputError

OLD_NAMES = pytest.mark.filterwarnings("ignore:`torch.nn.utils.weight_norm` is deprecated")


@pytest.mark.parametrize("sizes", [SIZES, SIZES_OF_TYPE_2])
@pytest.mark.parametrize("form", [dict, renamed, folded])
def test_it_gives_the_original_s_numbers(tmp_path, sizes, form):
    state = random_generator(sizes)
    model = check_wav(write_authors(tmp_path / "hifigan", form(state), sizes), state, sizes)
    assert (model.step, model.home) == (100, tmp_path / "hifigan")


def test_half_precision_and_parallel_runs_load_as_well(tmp_path):
    halves = {name: tensor.half() for name, tensor in random_generator().items()}
    parallel = {f"module.{name}": tensor for name, tensor in halves.items()}
    widened = {name: tensor.float() for name, tensor in halves.items()}
    check_wav(write_authors(tmp_path, parallel), widened)


def test_the_newest_generator_is_taken_whatever_else_lies_there(tmp_path):
    for step in (99_995_000, 5000, 100_000_000):
        write_authors(tmp_path, random_generator(seed=step), step=step)
    (tmp_path / "logs").mkdir()
    (tmp_path / "g_999.wav").touch()
    (tmp_path / "g_99999999_copy").touch()
    named = check_wav(tmp_path / "g_00005000", random_generator(seed=5000))
    assert (load_model(tmp_path).step, named.step) == (100_000_000, 5000)


def test_a_published_generator_is_found_by_its_name_also_in_safetensors(tmp_path):
    state = random_generator()
    path = write_authors(tmp_path, state) / "g_00000100"
    path = path.rename(tmp_path / "generator_v1")
    assert check_wav(tmp_path, state).step is None
    path.unlink()
    save_file(state, tmp_path / "generator.safetensors")
    check_wav(tmp_path, state)
    (tmp_path / "generator_v2").touch()
    message = r"several models in it \(generator.safetensors, generator_v2"
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_its_settings_are_imported(tmp_path):
    model = load_model(write_authors(tmp_path, random_generator(), fmin=20, fmax=None))
    assert model.mel.padding == "hifigan"
    assert (model.mel.sample_rate, model.mel.hop_length, model.mel.n_mels) == (8000, 64, 8)
    assert (model.mel.f_min, model.mel.f_max) == (20, 4000)


@OLD_NAMES
def test_imported_discriminators_score_as_the_originals_do(tmp_path, small_discriminator):
    periods, scales = period_discriminators().eval(), scale_discriminators().eval()
    write_authors(tmp_path, random_generator())
    optimizer = {"state": {0: {"exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}}}
    networks = {"mpd": periods.state_dict(), "msd": scales.state_dict()}
    torch.save({**networks, "optim_d": optimizer, "steps": 9}, tmp_path / "do_00000100")
    others = read_foreign(tmp_path).training_networks()
    wanted = small_discriminator.state_dict().keys()
    small_discriminator.load_state_dict(adapt_weight_norm(others.tensors["discriminator"], wanted))
    wav = torch.rand(2, 700) * 2 - 1
    ours = small_discriminator.eval()(wav)
    theirs = [discriminate(wav).score for discriminate in periods.discriminators]
    pooled = wav
    for number, discriminate in enumerate(scales.discriminators):
        if number:
            pooled = torch.nn.functional.avg_pool1d(pooled[:, None], 4, 2, padding=2)[:, 0]
        theirs.append(discriminate(pooled).score)
    for own, original in zip(ours, theirs, strict=True):
        scores = (score.sort(dim=1).values for score in (own.score, original))
        assert torch.allclose(*scores, atol=1e-5)  # in whatever order of phase and time
    assert others.unused == ("do_00000100: optim_d", "do_00000100: steps")


@pytest.mark.usefixtures("small_discriminator")
@OLD_NAMES
def test_discriminators_of_other_shapes_are_listed_and_random_numbers_are_those_before(tmp_path):
    write_authors(tmp_path, random_generator())
    periods, scales = period_discriminators((2, 4, 4, 6, 8)), scale_discriminators()
    torch.save({"mpd": periods.state_dict(), "msd": scales.state_dict()}, tmp_path / "do_00000100")
    state = torch.get_rng_state()
    others = read_foreign(tmp_path).training_networks()
    assert torch.equal(torch.get_rng_state(), state)
    assert {name.split(".")[0] for name in others.tensors["discriminator"]} == {"msd"}
    assert others.unused == ("do_00000100: mpd: its layers or shapes differ from Arion's",)


def test_speaking_does_not_read_the_discriminators(tmp_path):
    write_authors(tmp_path, random_generator())
    (tmp_path / "do_00000100").write_bytes(b"broken")
    model = load_model(tmp_path)
    with pytest.raises(InputError, match=r"do_00000100: not a file of tensors"):
        model.stored("discriminator")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ups.1.weight_g": None}, r"missing: ups\.1\.weight; left over: ups\.1\.weight_v$"),
        ({"ups.1.weight_v": None}, r"missing: ups\.1\.weight; left over: ups\.1\.weight_g$"),
        ({"conv_post.bias": None}, r"missing: conv_post\.bias$"),
        ({"surprise": torch.ones(1)}, r"left over: surprise$"),
        (
            {"conv_pre.bias": torch.ones(3)},
            r"of another shape: conv_pre\.bias \(3,\) instead of \(32,\)$",
        ),
        (
            {"conv_pre.bias": torch.ones(32, dtype=torch.int8)},
            r"of another type: conv_pre\.bias torch.int8 instead of torch.float32$",
        ),
        (
            {"ups.0.weight_g": torch.full((32, 1, 1), torch.nan)},
            r"with infinity or NaN: ups\.0\.weight$",
        ),
    ],
)
def test_every_tensor_is_used_and_none_is_missing(tmp_path, change, message):
    state = {n: t for n, t in (random_generator() | change).items() if t is not None}
    with pytest.raises(InputError, match=rf"g_00000100: does not fit .*config\.json: {message}"):
        load_model(write_authors(tmp_path, state))


def test_a_pair_whose_shapes_do_not_fit_one_another_is_named(tmp_path):
    state = random_generator()
    state["ups.1.weight_g"] = torch.ones(3)
    with pytest.raises(InputError, match=r"g_00000100: ups\.1: magnitudes \(3,\) of directions"):
        load_model(write_authors(tmp_path, state))


def test_settings_that_cannot_be_are_named_with_their_file(tmp_path):
    for message, change in {
        r"model\.generator\.up": {"upsample_rates": "8"},
        r"preprocess\.sample_ra": {"sampling_rate": "8 kHz"},
        r".*multiply to 64.*hop_length is 32": {"hop_size": 32},
    }.items():
        with pytest.raises(InputError, match=rf"config\.json: {message}"):
            load_model(write_authors(tmp_path, random_generator(), **change))


@pytest.mark.parametrize("kind", ["2", 1, None])
def test_blocks_of_another_type_than_in_the_settings_are_refused(tmp_path, kind):
    """The original code takes every other value than "1" for type 2."""
    with pytest.raises(InputError, match=r"does not fit .*config\.json: .*left over: resblocks"):
        load_model(write_authors(tmp_path, random_generator(), resblock=kind))


def test_a_file_without_a_generator_is_refused(tmp_path):
    write_authors(tmp_path, random_generator())
    torch.save({"model": torch.ones(2), "epoch": 3}, tmp_path / "g_00000100")
    with pytest.raises(InputError, match=r"generator: 'epoch' is of type int, expected a"):
        load_model(tmp_path)
    torch.save({"generator": {"conv_pre.bias": 1.0}}, tmp_path / "g_00000100")
    with pytest.raises(InputError, match=r"'conv_pre\.bias' is of type float, expected a tensor"):
        load_model(tmp_path)


def test_a_setting_or_config_that_is_missing_is_named(tmp_path):
    path = write_authors(tmp_path, random_generator()) / "config.json"
    text = path.read_text()
    for key in ("upsample_rates", "upsample_kernel_sizes", "resblock", "sampling_rate"):
        path.write_text(text.replace(f'"{key}"', '"other"'))
        with pytest.raises(InputError, match=rf"config\.json.*{key}"):
            load_model(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"g_00000100: no config\.json in its folder; copy"):
        load_model(tmp_path)
