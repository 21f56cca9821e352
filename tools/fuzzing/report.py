"""A report.jsonl and a junit.xml, as `upheld merge` reads them."""

from typing import Final

from fuzzing import ROOT, contents, file_of, folder, refused
from upheld.report import Writer, joined, read
from upheld.report.card import card

SEEDS: Final = (
    *(report[:20_000] for report in contents(sorted((ROOT / "tests/data/reports").iterdir()))),
    *(
        b"\n".join([*report.split(b"\n")[:2], report.rstrip(b"\n").rpartition(b"\n")[2]]) + b"\n"
        for report in contents(sorted((ROOT / "tests/data/reports").iterdir()))
    ),
    b'<?xml version="1.0"?><testsuites><testsuite name="a"><testcase/></testsuite></testsuites>',
)
WORDS: Final = (
    *(b'"kind":"row"', b'"kind":"summary"', b'"format":', b"null", b"NaN", b"1e999", b"[", b"{"),
    *(
        b'"marks":',
        b'"totals":',
        b'"anomalies":',
        b"\n",
        "\u2028".encode(),
        b"\\ud800",
        b"9" * 5_000,
    ),
    *(b"<a>", b"</a>", b"<!DOCTYPE a [", b'<!ENTITY b "&c;&c;">', b"&b;", b"<![CDATA["),
)


def report(data: bytes) -> None:
    """Read the report, write it again, and join the junit.xml."""
    path = file_of("report.jsonl", data)
    with refused():
        rows, summary = read(path)
        writer = Writer(folder())
        for row in rows:
            card(row, "again")
            writer.write(row)
        writer.write(summary)
        writer.close()
    joined(folder(), [path])
