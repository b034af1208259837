import pytest

from models.checkpoint.importers import fastpitch_nvidia, tacotron2_nvidia, waveglow_nvidia
from models.checkpoint.importers._tables import TensorNames

NAMES = TensorNames(
    (
        ("a.{n}.b.{m}.", "{m}.of.{n}."),
        ("{word}_layer.{n}.", "{word}.{n+1}."),
        ("all.", "everything."),
    )
)
PAIRS = [
    ("a.10.b.2.weight", "2.of.10.weight"),
    ("conv_layer.0.bias", "conv.1.bias"),
    ("conv_layer.9.bias", "conv.10.bias"),
    ("all.weight", "everything.weight"),
]


@pytest.mark.parametrize(("theirs", "own"), PAIRS)
def test_names_go_to_arions(theirs, own):
    assert NAMES.translated(theirs) == own


@pytest.mark.parametrize("name", ["small.all.weight", "a.x.b.2.weight", "Conv_layer.0.b"])
def test_a_name_that_no_row_fits_has_none_in_arion(name):
    assert NAMES.translated(name) is None


@pytest.mark.parametrize(
    ("importer", "theirs", "own"),
    [
        (
            fastpitch_nvidia,
            "energy_predictor.layers.1.norm.bias",
            "energy.predictor.norm_2.bias",
        ),
        (
            fastpitch_nvidia,
            "encoder.layers.5.dec_attn.o_net.weight",
            "encoder.layers.5.attention.fc.weight",
        ),
        (tacotron2_nvidia, "postnet.convolutions.4.1.weight", "postnet.norms.4.weight"),
        (
            tacotron2_nvidia,
            "decoder.attention_layer.v.linear_layer.weight",
            "decoder.attention.energy.weight",
        ),
        (waveglow_nvidia, "WN.11.start.bias", "flows.11.coupling.start.bias"),
        (waveglow_nvidia, "convinv.3.conv.weight", "flows.3.mixing.weight"),
    ],
)
def test_nvidias_names_go_to_arions(importer, theirs, own):
    assert importer._NAMES.translated(theirs) == own
