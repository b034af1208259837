import pytest

from utils.errors import InputError
from utils.hub_push import Target, check_target


@pytest.mark.parametrize("name", ["org/name", "org/name.v2_a-b", "0rg/n"])
def test_a_name_that_the_hub_allows(name):
    check_target(Target(name))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("name", "expected the name of a repository"),
        ("a/b/c", "the request to the Hub failed"),
        ("org/a b", "the request to the Hub failed"),
        ("org/a--b", "^org/a--b: the request to the Hub failed"),
        ("org/a.git", "the request to the Hub failed"),
        ("org/..", "the request to the Hub failed"),
        (f"org/{'a' * 100}", "the request to the Hub failed"),
    ],
)
def test_a_name_that_it_does_not_allow_is_refused_before_anybody_is_asked(hub, name, said):
    with pytest.raises(InputError, match=said):
        check_target(Target(name))
    assert hub.asked == []
