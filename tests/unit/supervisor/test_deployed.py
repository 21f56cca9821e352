"""The last words of an application are its error, without the frames below it."""

import pytest

from upheld.supervisor.deployed import last_words

SPRING = """\
ERROR --- [main] o.s.boot.SpringApplication : Application run failed

org.springframework.beans.factory.BeanCreationException: no bean 'costs'
\tat org.springframework.beans.factory.Creation.create(Creation.java:61) ~[spring-beans-7.0.8.jar]
Caused by: java.lang.IllegalArgumentException: Could not resolve 'shop.costs'
\tat org.springframework.util.Parser.resolve(Parser.java:278) ~[spring-core-7.0.8.jar]
\t... 22 common frames omitted

"""
NODE = """\
Error: no topic is named
    at Object.<anonymous> (/srv/app.js:1:7)
    at node:internal/main/run_main_module:28:49
"""


@pytest.mark.parametrize(
    ("log", "last"),
    [
        (SPRING, "Caused by: java.lang.IllegalArgumentException: Could not resolve 'shop.costs'"),
        (NODE, "Error: no topic is named"),
        ("ready\n\nat 12:00 it gave up\n", "at 12:00 it gave up"),
    ],
)
def test_the_error_is_told_and_not_its_frames(log: str, last: str) -> None:
    """A sentence at the beginning of a line is none of them."""
    assert last_words(log.splitlines(), 5)[-1] == last


def test_frames_alone_are_better_than_nothing() -> None:
    """A log of which only the last lines are kept may hold no other line."""
    frames = ["\tat a.B.c(B.java:1)", "\tat a.B.d(B.java:2)"]

    assert last_words(frames, 1) == frames[1:]
    assert last_words([], 5) == []
