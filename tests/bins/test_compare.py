"""The command makes a test of folders, and reads the results that come back."""

import json

import pytest

from tests.commands import call
from tests.models.programs.compare.test_listening_test import systems
from utils.cli import UsageError


@pytest.mark.parametrize(
    ("kind", "flags", "n_trials"), [("preference", [], 2), ("opinion", ["--opinion"], 4)]
)
def test_from_folders_to_results(tmp_path, capsys, kind, flags, n_trials):
    folders, out = systems(tmp_path, 0.1, 0.2), tmp_path / "out"
    call("compare", *folders, "--blind", out, "--clips", 2, "--seed", 3, *flags)
    printed = capsys.readouterr().out
    assert printed.startswith(f"{n_trials} trials: give listeners {out / 'page'}, keep")
    key = json.loads((out / "key.json").read_text())
    assert key["kind"] == kind
    rows = [f"{key['id']},ann,{n},1,2.5" for n in range(1, n_trials + 1)]
    results = tmp_path / "ann.csv"
    results.write_text("\n".join(["test,listener,trial,answer,seconds", *rows, ""]))
    call("compare", "--results", results, "--key", out / "key.json")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"{n_trials} answers of 1 listener; intervals of 95 %"
    results.rename(out / "ann.csv")
    call("compare", "--results", out / "ann.csv")  # the key is next to it
    assert capsys.readouterr().out.splitlines() == shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give folders and --blind OUT to make a test, or --results CSV of one"),
        (["--blind", "out", "--results", __file__], "or --results CSV of one"),
        ([".", "--results", __file__], "folders, --opinion and --clips go with --blind"),
        ([".", "--blind", "out"], "at least two, or one with --opinion"),
        (["--opinion", "--blind", "out"], "at least two, or one with --opinion"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        call("compare", *words)
