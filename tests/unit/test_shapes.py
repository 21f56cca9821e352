"""Each shipped program has a shape, and a shape that is asked for has a program."""

from upheld.programs import PROGRAMS
from upheld.shapes import INSTANCES, SHAPES


def test_each_program_has_a_shape() -> None:
    """A program without one could not be asked for."""
    assert [*SHAPES] == [*PROGRAMS]


def test_the_instance_of_a_shape_is_a_program_of_it() -> None:
    """Another one would judge a promise that nobody asked for."""
    assert {SHAPES[program]: program for program in INSTANCES.values()} == INSTANCES
