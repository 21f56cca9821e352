"""Refuse docstrings that are hard to read: `python tools/docstrings.py PATH...`.

A first line has at most 80 characters and ends its sentence. A sentence has at most 25 words and a
noun as its subject. Ruff checks the mood of the first line and the empty line after it.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FIRST_LINE_CHARACTERS = 80
SENTENCE_WORDS = 25
BARE_SUBJECT = re.compile(
    r"(who|whoever|what|whatever|somebody|someone|those who"
    r"|one,? (that|who|which|whose|is|was|has|had|may|can|must|with|of (them|these|those)))\b",
    re.IGNORECASE,
)
END_OF_SENTENCE = re.compile(r"(?<=[.!?;:])[)\"»`]*\s+(?=[\"(«`*A-Z0-9])")
CODE = re.compile(r"``?[^`]+``?")
# What is set as an example or a table is not read as a sentence.
VERBATIM = re.compile(r"^(>>>|\.\.\. |\||    )")
ARGUMENT = re.compile(r"^(Args|Returns|Raises|Yields|Example|Examples|Attributes):$")
ITEM = re.compile(r"^([-*] |\d+\. |\*{0,2}\w+: )")

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Complaint(NamedTuple):
    """One docstring that breaks a rule."""

    path: Path
    line: int
    said: str


def documented(node: Documented, *, in_function: bool = False) -> Iterator[Documented]:
    """Yield a module, and what is public in it, that has a docstring."""
    is_public = isinstance(node, ast.Module) or not node.name.startswith("_")
    if is_public and not in_function and ast.get_docstring(node):
        yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from documented(child, in_function=in_function or is_function)


def _blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs and items of a docstring, each as one line."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        is_heading = bool(ARGUMENT.match(stripped))
        if not stripped or is_heading or ITEM.match(stripped) or line.startswith((">>>", "|")):
            if block:
                yield " ".join(block)
            block = []
        if stripped and not is_heading and not VERBATIM.match(line):
            block.append(stripped)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a docstring, each on one line."""
    for block in _blocks(text):
        yield from (part for part in END_OF_SENTENCE.split(block) if part)


def words(sentence: str) -> int:
    """Count the words of a sentence; a piece of code is one word."""
    return len([word for word in CODE.sub("code", sentence).split() if re.search(r"\w", word)])


def complaints_of(path: Path) -> Iterator[Complaint]:
    """Yield what is wrong with the docstrings of a module."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    for node in documented(module):
        text = ast.get_docstring(node) or ""
        line = node.body[0].lineno
        first = text.splitlines()[0]
        if len(first) > FIRST_LINE_CHARACTERS:
            said = f"the first line has {len(first)} characters: {first}"
            yield Complaint(path, line, said)
        if not first.endswith((".", ":", "?", "!")):
            yield Complaint(path, line, f"the first line does not end its sentence: {first}")
        for sentence in sentences(text):
            if words(sentence) > SENTENCE_WORDS:
                yield Complaint(path, line, f"a sentence of {words(sentence)} words: {sentence}")
            if BARE_SUBJECT.match(sentence):
                yield Complaint(path, line, f"a sentence without a noun as subject: {sentence}")


def modules(paths: list[Path]) -> Iterator[Path]:
    """Yield the modules at or below each path, but for those that are generated."""
    for path in paths:
        found = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        yield from (each for each in found if not each.name.endswith("_pb2.py"))


def main(arguments: list[str]) -> int:
    """Print each complaint; return 1 if there are any."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    complaints = [
        complaint
        for path in modules(parser.parse_args(arguments).paths)
        for complaint in complaints_of(path)
    ]
    for complaint in complaints:
        print(f"{complaint.path}:{complaint.line}: {complaint.said}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
