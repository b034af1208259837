"""Agreement between the processes of a run, which may be on machines with copies of the files."""

from collections.abc import Mapping, Sequence

from accelerate.utils import gather_object

from utils.errors import InputError


def check_agreement(facts: Mapping[str, object]) -> None:
    """Makes sure that all processes train the same model on the same data in the same way.

    Raises:
        InputError: In every process, if one has other values; names all that differ.
    """
    if different := differences(gather_object([dict(facts)])):
        raise InputError(
            f"the processes of this run differ in {', '.join(different)}: give every machine the "
            "same configuration, flags and output of stage 1"
        )


def differences(everyone: Sequence[Mapping[str, object]]) -> list[str]:
    """Names of the values in which processes differ, sorted.

    Args:
        everyone: Values by name, of each process.
    """
    first = everyone[0]
    return sorted(
        {
            name
            for other in everyone
            for name in first.keys() | other.keys()
            if (name in first, first.get(name)) != (name in other, other.get(name))
        }
    )
