"""The expression of tags in `--only`, and a share such as 3/8."""

from typing import Final

from fuzzing import refused
from upheld.spec.catalogue import load
from upheld.spec.depths import share_of
from upheld.spec.selection import chooser, rows

_CATALOGUE: Final = load()
SEEDS: Final = (
    b"@G22.dies-after-a-commit",
    b"G22 and not (G1 or @flush)",
    b"not not not G22",
    b"3/8",
    b"((((G22))))",
    b" or ".join([b"G22"] * 300),
    b"(" * 2_000 + b"G22" + b")" * 2_000,
    b"not " * 2_000 + b"G22",
)
WORDS: Final = (b" and ", b" or ", b" not ", b"(", b")", b"\\", b"@", b"G22", b"@flush", b"/", b" ")


def tags(data: bytes) -> None:
    """Choose the rows that the expression names."""
    text = data.decode(errors="surrogateescape")
    with refused():
        chosen = chooser(_CATALOGUE, only=text)
        for _ in rows(_CATALOGUE, chosen):
            break
    with refused():
        share_of(text, "--slice")
