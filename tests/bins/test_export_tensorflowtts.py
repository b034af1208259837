import pytest

from tests.bins.test_import_tensorflowtts import CONFIG
from tests.commands import command


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--n_cpus", "0"), "--n_cpus '0': expected a whole number from 1"),
        (("--test_size", "1"), "--test_size 1: expected a share"),
        (("--seed", "-1"), "--seed '-1': expected a whole number from 0 to 4294967295"),
    ],
)
def test_flags_that_make_no_sense_are_one_line(flags, message):
    places = ("--rootdir", "corpus", "--outdir", "dump")
    done = command("export_tensorflowtts", "--config", CONFIG, *places, *flags)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
