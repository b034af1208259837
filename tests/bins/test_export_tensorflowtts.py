from tests.bins.test_import_tensorflowtts import CONFIG
from tests.commands import command


def test_flags_that_make_no_sense_are_one_line():
    places = ("--config", CONFIG, "--rootdir", "corpus", "--outdir", "dump")
    for flags, message in (
        (("--n_cpus", "0"), "--n_cpus '0': expected a whole number from 1"),
        (("--test_size", "1"), "--test_size 1: expected a share"),
        (("--seed", "-1"), "--seed '-1': expected a whole number from 0 to 4294967295"),
    ):
        done = command("export_tensorflowtts", *places, *flags)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
