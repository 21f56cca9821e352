"""Weigh upheld alone and with each extra, by the files that are installed here.

    python tools/weight.py           print the table
    python tools/weight.py --write   write it into docs/extras.md

The requirements of upheld are read from pyproject.toml, those of a package from its metadata. An
extra that is not installed is left out, and so are compiled files. The exit code is 1 if something
weighs more than its limit.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from pages import Part

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "extras.md"
PART: Final = Part("<!-- weights -->\n", "<!-- /weights -->")
MB: Final = 1_000_000
LIMITS_MB: Final = {"": 55.0, "java": 160.0}  # extra -> upheld with it; "" is upheld alone
# The other extras are for those who work on upheld.
USERS: Final = ("java", "redis", "cassandra", "container", "clock", "schemas", "tls", "spark")


class Weight(NamedTuple):
    """The packages that are installed for an extra, with those of every install."""

    packages: int
    size_mb: float


class Wanted(NamedTuple):
    """A package that is required, and its extras."""

    name: str
    extras: frozenset[str] = frozenset()


def required(requirements: Iterable[str], extras: Iterable[str] = ()) -> Iterator[Wanted]:
    """Yield what requirements ask for on this machine, if these extras are asked for."""
    for requirement in map(Requirement, requirements):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in {"", *extras}):
            yield Wanted(canonicalize_name(requirement.name), frozenset(requirement.extras))


def needed(extra: str = "") -> list[Distribution]:
    """Return the distributions that upheld with an extra needs beside itself.

    Raises:
        PackageNotFoundError: One of them is not installed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = project["optional-dependencies"][extra] if extra else []
    waiting = [*required(project["dependencies"]), *required(own)]
    seen: dict[Wanted, Distribution] = {}
    while waiting:
        wanted = waiting.pop()
        if wanted not in seen:
            seen[wanted] = distribution(wanted.name)
            waiting += required(seen[wanted].requires or (), wanted.extras)
    return list({wanted.name: found for wanted, found in seen.items()}.values())


def size(paths: Iterable[Path]) -> int:
    """Return the bytes of files, without those that are compiled."""
    return sum(path.stat().st_size for path in paths if path.suffix != ".pyc" and path.is_file())


def files_of(package: Distribution) -> Iterator[Path]:
    """Yield the files that pip has installed for a package."""
    return (Path(str(package.locate_file(file))) for file in package.files or ())


def tree(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, through its links to other folders."""
    for path in folder.iterdir():
        if path.is_dir():
            yield from tree(path)
        else:
            yield path


def weight(extra: str = "") -> Weight | None:
    """Return what is installed for an extra; None if something of it is not."""
    try:
        found = needed(extra)
    except PackageNotFoundError:
        return None
    whole = size(tree(ROOT / "upheld")) + sum(size(files_of(each)) for each in found)
    return Weight(1 + len(found), whole / MB)


def weights() -> dict[str, Weight]:
    """Return the weights of upheld alone and with each extra that is installed."""
    found = {extra: weight(extra) for extra in ("", *USERS)}
    return {extra: each for extra, each in found.items() if each}


def too_heavy(found: dict[str, Weight]) -> list[str]:
    """Return a sentence on each weight above its limit."""
    return [
        f"{title(extra)} weighs {found[extra].size_mb:.1f} MB, and may weigh {limit_mb:.0f} MB"
        for extra, limit_mb in LIMITS_MB.items()
        if extra in found and found[extra].size_mb > limit_mb
    ]


def title(extra: str) -> str:
    """Return what is installed, as pip is told it."""
    return f"upheld[{extra}]" if extra else "upheld"


def table(found: dict[str, Weight]) -> str:
    """Return the weights as a table."""
    lines = ["| installed | packages | MB |", "|---|---|---|"]
    lines += [
        f"| `{title(extra)}` | {each.packages} | {each.size_mb:.1f} |"
        for extra, each in found.items()
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Print the table or write it, and return 1 if something is too heavy."""
    parser = argparse.ArgumentParser(description="Weigh upheld alone and with each extra.")
    parser.add_argument("--write", action="store_true", help="write the table into docs/extras.md")
    found = weights()
    if parser.parse_args(arguments).write:
        PART.put(PAGE, table(found))
    else:
        print(table(found), end="")
    wrong = too_heavy(found)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
