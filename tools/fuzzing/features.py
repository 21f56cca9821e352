"""A .feature file."""

from typing import Final

from fuzzing import ROOT, contents, file_of, refused
from upheld.spec.gherkin import read_feature

SEEDS: Final = contents(sorted((ROOT / "features").glob("*/*.feature"))[::6])
WORDS: Final = (
    *(b"Feature:", b"Rule:", b"Background:", b"Scenario:", b"Scenario Outline:", b"Examples:"),
    *(
        b"Given ",
        b"When ",
        b"Then ",
        b"And ",
        b"* ",
        b'"""',
        b"```",
        b"|",
        b"| a |",
        b"<a>",
        b"@G22.x",
    ),
    *(b"# language: no-such\n", b"# language: de\n", b"\\|", b"\n", b"\r\n", b"\xef\xbb\xbf"),
    *(b"Documented in", b"Broken by", b"Costs:", b"relay in mode exactly_once"),
)


def features(data: bytes) -> None:
    """Read the feature, and ask its rows what the choice of rows asks."""
    path = file_of("a.feature", data)
    with refused():
        for scenario in read_feature(path, "family/a.feature").scenarios:
            for row in scenario.rows:
                row.offered(("relay",), ("exactly_once",))
                assert row.depth in {"quick", "core", "full"}
