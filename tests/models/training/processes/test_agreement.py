import pytest

from models.training.processes import agreement
from models.training.processes.agreement import check_agreement, differences
from utils.errors import InputError


def test_one_process_agrees_with_itself():
    check_agreement({"train.max_steps": 5, "data of stage 1": "ab"})


def test_all_values_that_differ_anywhere_are_named():
    first = {"lr": 0.1, "steps": 5, "seed": None}

    assert differences([first, dict(first)]) == []
    assert differences([first, {"lr": 0.1, "steps": 6, "seed": None}, {"lr": 0.1, "steps": 5}]) == [
        "seed",
        "steps",
    ]


def test_processes_that_differ_are_refused(monkeypatch):
    other = {"train.adam.lr": 0.1, "data of stage 1": "cd"}
    monkeypatch.setattr(agreement, "gather_object", lambda own: [other, *own])

    with pytest.raises(InputError, match=r"differ in data of stage 1: give every machine the same"):
        check_agreement({"train.adam.lr": 0.1, "data of stage 1": "ab"})
