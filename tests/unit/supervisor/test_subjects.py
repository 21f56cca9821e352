"""The digest of a subject: that of a file, a folder, or a design's own folder."""

import errno
import hashlib
import os
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.protocol.manifest import load
from upheld.supervisor import subjects
from upheld.supervisor.subjects import subject_of

TOML = """
name = "mine"
version = "1"
command = ["true"]
programs = ["relay"]
modes = ["exactly_once"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a design with one file beside its manifest."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "design.toml").write_text(TOML)
    (folder / "app.py").write_text("pass")
    return folder


def digest(folder: Path, extra: str = "") -> str:
    """Return the digest of the design, with more in its manifest."""
    (folder / "design.toml").write_text(TOML + extra)
    return subject_of(load(str(folder)))


def test_a_file_has_the_digest_that_other_tools_print(folder: Path) -> None:
    """A reader compares it with what sha256sum says of the jar."""
    (folder / "app.jar").write_bytes(b"x" * 3_000_000)

    expected = hashlib.sha256(b"x" * 3_000_000).hexdigest()
    assert digest(folder, 'subject = "app.jar"') == f"sha256:{expected}"


def test_a_subject_may_lie_elsewhere(folder: Path) -> None:
    """Its path is seen from the manifest's folder; a link that is named is followed."""
    (folder.parent / "app.jar").write_bytes(b"x")
    (folder / "link").symlink_to("../app.jar")

    assert digest(folder, 'subject = "../app.jar"') == digest(folder, 'subject = "link"')


def test_each_change_in_a_folder_is_another_subject(folder: Path) -> None:
    """Names, contents and links count; where the folder lies does not."""
    seen = [digest(folder)]
    for change in (
        lambda: (folder / "app.py").write_text("pass "),
        lambda: (folder / "app.py").rename(folder / "main.py"),
        lambda: (folder / "lib").mkdir() or (folder / "lib" / "app.py").write_text("pass"),
        lambda: (folder / "link").symlink_to("main.py"),
        lambda: (folder / "link").unlink() or (folder / "link").symlink_to("lib"),
        lambda: (folder / "design.toml").write_text(f"{TOML}\nlocal_state = false"),
    ):
        change()
        seen.append(subject_of(load(str(folder))))

    assert len(set(seen)) == len(seen)
    assert all(each.startswith("sha256:") and len(each) == 71 for each in seen)
    moved = folder.rename(folder.with_name("yours"))
    assert subject_of(load(str(moved))) == seen[-1]


def test_what_no_person_wrote_is_no_part_of_the_folder(folder: Path) -> None:
    """Output of runs, hidden files, compiled ones and known failures change no digest."""
    known = '\nknown_failures = "known"\n'
    (folder / "known").write_text("")
    before = digest(folder, known)

    (folder / "known").write_text("G22.x, slow, link\n")
    for name in (".git/HEAD", ".env", "__pycache__/app.pyc", "upheld-out/latest/x", "gate/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    (folder / "gate" / "report.jsonl").write_text("")

    assert digest(folder, known) == before


def test_all_of_a_folder_that_a_design_names_counts(folder: Path) -> None:
    """Its files are what is judged, whatever they are called."""
    (folder / "dist").mkdir()
    (folder / "dist" / ".hidden").write_text("a")
    before = digest(folder, 'subject = "dist"')

    (folder / "dist" / ".hidden").write_text("b")

    assert digest(folder, 'subject = "dist"') != before


def test_a_folder_that_is_too_large_is_unknown(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for gigabytes that no design named."""
    monkeypatch.setattr(subjects, "MOST_FILES", 1)
    assert digest(folder) == ""
    monkeypatch.undo()
    monkeypatch.setattr(subjects, "MOST_BYTES", 10)
    assert digest(folder) == ""


def test_a_pipe_in_a_folder_is_not_waited_for(folder: Path) -> None:
    """It counts by its name."""
    before = digest(folder)
    os.mkfifo(folder / "pipe")

    assert digest(folder) != before


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ('subject = "gone.jar"', "`subject` names gone.jar, which is no file and no folder."),
        (
            'subject = "gone.jar"\nprepare = ["true"]',
            "which is no file and no folder, and `prepare` did not make it.",
        ),
        ('subject = "/dev/null"', "`subject` names /dev/null, which is no file and no folder."),
        (f'subject = "{"x" * 5_000}"', "which is no file and no folder."),
    ],
)
def test_a_subject_that_is_not_there_is_refused(folder: Path, extra: str, says: str) -> None:
    """One sentence names the manifest and the field."""
    with pytest.raises(UsageProblem) as refused:
        digest(folder, extra)

    assert str(refused.value).startswith(f"{folder / 'design.toml'}: ")
    assert says in str(refused.value)


def test_a_subject_that_cannot_be_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its file and the reason are said; a folder that is not named is unknown."""

    def refuse(path: Path) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(subjects, "_of_file", refuse)

    assert digest(folder) == ""
    with pytest.raises(UsageProblem) as refused:
        digest(folder, 'subject = "app.py"')
    assert str(refused.value) == (
        f"{folder / 'design.toml'}: the subject cannot be read: Permission denied "
        f"({folder / 'app.py'})."
    )
