"""A report.jsonl, as `upheld merge` and `upheld report` read it."""

from typing import Final

from fuzzing import ROOT, contents, file_of, folder, refused
from upheld.report import Writer, junit, matrix, read
from upheld.report.annotations import annotations
from upheld.report.markdown import markdown
from upheld.report.messages import ndjson
from upheld.spec import catalogue

FEATURES: Final = catalogue.load().features
SEEDS: Final = (
    *(report[:20_000] for report in contents(sorted((ROOT / "tests/data/reports").iterdir()))),
    *(
        b"\n".join([*report.split(b"\n")[:2], report.rstrip(b"\n").rpartition(b"\n")[2]]) + b"\n"
        for report in contents(sorted((ROOT / "tests/data/reports").iterdir()))
    ),
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
    *(b"</a>", b"]]>", b"&b;", b"<![CDATA[", b"```", b"::error::"),
)


def report(data: bytes) -> None:
    """Read the report, and write it again in every format."""
    path = file_of("report.jsonl", data)
    with refused():
        rows, summary = read(path)
        writer = Writer(folder())
        for row in rows:
            writer.write(row)
        writer.write(summary)
        writer.close()
        junit.text([(rows, summary)], [])
        markdown(matrix([(rows, summary)], {}))
        list(annotations(rows))
        ndjson(rows, summary, FEATURES, lambda _: b"")
