"""Recorded histories are judged as they were, and a change of a verdict is seen."""

from corpora import FOLDER, differences, read_index


def test_histories_give_what_they_gave() -> None:
    """Each of the small corpus has its verdict, its claims and its anomalies."""
    assert not list(differences(FOLDER, read_index(FOLDER)))


def test_a_changed_verdict_is_seen() -> None:
    """An entry of the index that says something else is a difference."""
    index = read_index(FOLDER)
    name = min(index, key=lambda each: (FOLDER / each).stat().st_size)

    found = list(differences(FOLDER, {name: index[name]._replace(verdict="other")}))

    assert len(found) == 1
    assert found[0].startswith(f"{name} gave ")
