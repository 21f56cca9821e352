"""The scripts for CI systems judge a design, show its report and end as it does."""

from pathlib import Path

import pipelines
import pytest

from upheld.brokers import Broker

JUDGED = "--program relay --only '@G40.aborted-upstream'"  # two rows, a mode each


@pytest.fixture
def options(broker: Broker) -> str:
    """Return options that judge two rows on the broker of the tests."""
    return f"{JUDGED} --bootstrap {broker.bootstrap}"


def test_the_action_judges_and_shows(options: str, tmp_path: Path) -> None:
    """Outputs, summary and exit code are there, and quotation marks in options count."""
    output = tmp_path / "output"
    given = {
        "DESIGN": "plain",
        "MERGE": "",
        "DEPTH": "core",
        "SHARD": "",
        "SEED": "7",
        "OPTIONS": options,
        "OUT": str(tmp_path / "out"),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }

    judged = pipelines.run(pipelines.step("Judge")["run"], tmp_path, **given)
    shown = pipelines.run(pipelines.step("Show")["run"], tmp_path, **given)

    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "2 upheld" in judged.stdout
    assert output.read_text() == f"report={tmp_path}/out\nexit-code=0\n"
    assert shown.returncode == 0, shown.stderr
    assert "G40" in (tmp_path / "summary").read_text()


def test_the_action_ends_as_the_command_does(tmp_path: Path) -> None:
    """A refused command has no report to show, and the step fails with its code."""
    output = tmp_path / "output"
    given = {
        "DESIGN": "nowhere",
        "MERGE": "",
        "DEPTH": "core",
        "SHARD": "",
        "SEED": "",
        "OPTIONS": "",
        "OUT": str(tmp_path / "out"),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }

    judged = pipelines.run(pipelines.step("Judge")["run"], tmp_path, **given)
    shown = pipelines.run(pipelines.step("Show")["run"], tmp_path, **given)

    assert judged.returncode == 4
    assert "There is no design at " in judged.stderr
    assert output.read_text().endswith("exit-code=4\n")
    assert (shown.returncode, shown.stderr) == (0, "")


def test_shards_on_gitlab_become_one_report(options: str, tmp_path: Path) -> None:
    """Two jobs judge a row each; both systems make one report of the two."""
    jobs = pipelines.read("ci/gitlab.yml")
    judge = "\n".join(jobs[".judge"]["script"])
    given = {"DESIGN": "plain", "DEPTH": "core", "SEED": "7", "OPTIONS": options}
    for number in ("1", "2"):
        ended = pipelines.run(judge, tmp_path, CI_NODE_INDEX=number, CI_NODE_TOTAL="2", **given)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "1 upheld" in ended.stdout

    merged = pipelines.run("\n".join(jobs[".verdict"]["script"]), tmp_path)
    by_action = pipelines.run(
        pipelines.step("Judge")["run"],
        tmp_path,
        MERGE=str(tmp_path / "shards"),
        OUT=str(tmp_path / "out"),
        GITHUB_OUTPUT=str(tmp_path / "output"),
    )

    assert merged.returncode == 0, merged.stdout + merged.stderr
    assert "2 upheld" in merged.stdout
    assert by_action.returncode == 0, by_action.stdout + by_action.stderr
    assert (tmp_path / "shards" / "1" / "junit.xml").is_file()
    assert "2 upheld" in by_action.stdout
