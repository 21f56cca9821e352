"""Rows on two releases are promised if a release before the design is named."""

from upheld.protocol.manifest import Manifest, load
from upheld.spec import catalogue
from upheld.spec.selection import RELEASES_TAG, Request, chosen_rows, promised

FOUND = catalogue.load()
PLAIN = load("plain")


def following(**changed: object) -> Manifest:
    """Return plain as the release after a plain with these fields."""
    return PLAIN.model_copy(update={"previous": PLAIN.model_copy(update=changed)})


def test_one_release_has_none_of_them() -> None:
    """A design alone has promised no row on two releases, whatever is asked for."""
    asked = Request(guarantees=["G81"])

    assert not any(RELEASES_TAG in row.tags for row in promised(FOUND, PLAIN))
    assert chosen_rows(asked, FOUND, [PLAIN]) == {"plain": set()}


def test_two_releases_have_nothing_else() -> None:
    """Of two releases every row is one on two releases."""
    rows = promised(FOUND, following())

    assert rows
    assert all(RELEASES_TAG in row.tags for row in rows)


def test_a_release_compared_with_the_one_before_has_all_rows() -> None:
    """The rows of one release are judged, by what the earlier one says."""
    following_it = following().model_copy(update={"compared_with": "previous"})
    rows = promised(FOUND, following_it)

    either = (*promised(FOUND, PLAIN), *promised(FOUND, following()))
    assert {row.id for row in rows} == {row.id for row in either}
    assert following_it.answering == following_it.previous
    assert following().answering == following()


def test_both_have_to_offer_it() -> None:
    """A program or mode that the earlier release lacks is not judged."""
    rows = promised(FOUND, following(programs=("relay",), modes=("exactly_once",)))

    assert {(row.program, row.mode) for row in rows} == {("relay", "exactly_once")}


def test_a_wrong_release_names_the_one_before() -> None:
    """A design is found by its name or beside the file, with a version of its own."""
    assert load("broken/partitions_otherwise").previous == PLAIN
    changelog = load("broken/renames_its_changelog")

    assert changelog.previous
    assert (changelog.previous.called, changelog.called) == (
        "broken/renames_its_changelog 1",
        "broken/renames_its_changelog 2",
    )
    assert changelog.previous.identity != changelog.identity
