"""Text of others is data: it reaches a terminal as text alone."""

import pytest
from hostile import HOSTILE, READABLE, is_plain
from hypothesis import given
from hypothesis import strategies as st

from upheld.text import MOST_CHARS, encodable, printable, visible, visible_data


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_one_plain_line(text: str) -> None:
    """It cannot steer, hide, end a line or fill a screen, and can be written anywhere."""
    said = visible(text)

    assert is_plain(said)
    assert "\n" not in said
    assert len(said) <= MOST_CHARS
    assert said.encode()


@pytest.mark.parametrize("text", READABLE.values(), ids=READABLE)
def test_letters_of_any_language_stay(text: str) -> None:
    """A key that a person can read is shown as it is."""
    assert visible(text) == text
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202eabc", r"\u202eabc"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\x9b", r"\x9b"),
    ],
)
def test_a_control_character_is_written_as_in_python(text: str, said: str) -> None:
    """A reader sees which one it was."""
    assert visible(text) == said


@given(st.text(st.characters(codec=None), max_size=3000))
def test_a_second_look_changes_nothing(text: str) -> None:
    """A text may pass on its way as often as it likes."""
    said = visible(text)

    assert visible(said) == said
    assert printable(said) == said
    assert is_plain(said)


def test_a_long_text_keeps_its_ends() -> None:
    """The note between them says how much is missing."""
    said = visible("begin" + "x" * 900_000 + "end")

    assert said.startswith("begin")
    assert said.endswith("end")
    kept = len(said.replace(" … ", "", 2)) - len("(898038 characters are left out)")
    left_out = int(said.partition("… (")[2].partition(" ")[0])
    assert left_out + kept == 900_008


def test_lines_of_our_own_stay() -> None:
    """A card has several lines; all else in it is visible."""
    assert printable("VIOLATED\n  mark\x1b\r\n") == "VIOLATED\n  mark\\x1b\\r\n"


def test_data_keeps_its_form() -> None:
    """Texts in it are visible at any depth, and names, numbers and nothing stay."""
    data = {"id": "G1", "n": 1, "none": None, "deep": [{"text": "a\nb"}, "\x1b"]}

    assert visible_data(data) == {
        "id": "G1",
        "n": 1,
        "none": None,
        "deep": [{"text": r"a\nb"}, r"\x1b"],
    }


def test_a_file_name_that_is_no_utf_8_can_be_recorded() -> None:
    """A design may name its files with any bytes."""
    assert encodable("a\udcffb") == r"a\udcffb"
    assert encodable(3) == 3


def test_a_number_by_the_name_of_an_identity_stays_a_number() -> None:
    """The design's share of the CPU-seconds is no name of a design."""
    assert visible_data({"design": 0.27, "id": None}) == {"design": 0.27, "id": None}
