"""Build the documentation site: strictly, and with all that it loads beside it.

    python tools/website.py FOLDER

The site opens from its files, searches, and draws its diagrams, with the network off. Its sources
are docs/, the pages of the guarantees, which are made here, and a few files of the root. Zensical
refuses a link to a page or a heading that does not exist. Afterwards every link and every loaded
file of the made pages is looked at again.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from os.path import relpath
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import guarantees
import tomlkit
from pages import DOCS
from verdicts import VERDICTS

from upheld import commands
from upheld.brokers.jars import cache_home

ROOT: Final = DOCS.parent
SETTINGS: Final = ROOT / "tools" / "website"
SCRIPTS: Final = {  # a file of an npm package -> its name below assets/
    "iframe-worker/shim/index.js": "iframe-worker.js",
    "@mermaid-js/tiny/dist/mermaid.tiny.js": "mermaid.js",
}
# Pages that no chapter lists: the index of their folder, or another page, links to them.
UNLISTED: Final = re.compile(r"(adr/\d{4}-|notebooks/).*")
GUARANTEES: Final = "Guarantees"  # the chapter that has their pages
LOADED: Final = {  # elements that load something -> the attribute that names it
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "object": "data",
}
LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\]\n]+)\]\((?P<target>[^)\s]+)\)")
ROW: Final = re.compile(r"^\| (?P<id>G\d+|SLA) \|", re.MULTILINE)
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
FENCES: Final = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


class Problem(Exception):
    """The site cannot be made, or is not whole."""


class NotFetched(Problem):
    """This machine cannot have the scripts of the site's pages."""


def settings() -> dict[str, Any]:
    """Return what tools/website/site.toml says."""
    return tomllib.loads((SETTINGS / "site.toml").read_text(encoding="utf-8"))


def sources(said: Mapping[str, Any]) -> dict[Path, str]:
    """Return every file that is a page -> its name on the site."""
    found = {path: path.relative_to(DOCS).as_posix() for path in sorted(DOCS.rglob("*.md"))}
    return found | {ROOT / name: page for name, page in said["pages"].items()}


def relinked(text: str, page: Path, names: Mapping[Path, str]) -> str:
    """Point each link at the page of its file; any other link becomes its text."""
    here = Path(names[page]).parent

    def replaced(match: re.Match[str]) -> str:
        target, _, anchor = match["target"].partition("#")
        if not target or urlsplit(target).scheme:
            return match[0]
        file = (page.parent / target).resolve()
        if match["image"] or file.is_relative_to(DOCS):
            to = file.relative_to(DOCS).as_posix()
        elif file in names:
            to = names[file]
        else:
            return match["text"]
        to = relpath(to, here) + (f"#{anchor}" if anchor else "")
        return f"{match['image']}[{match['text']}]({to})"

    parts = FENCES.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(replaced, part) for part in parts)


def stage(folder: Path, said: Mapping[str, Any]) -> list[str]:
    """Write the sources of the site, and return the names of its pages."""
    names = sources(said)
    for path, name in names.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        text = relinked(path.read_text(encoding="utf-8"), path, names)
        page.write_text(ROW.sub(_row, text) if path == VERDICTS else text, encoding="utf-8")
    shutil.copytree(DOCS / "images", folder / "images")
    guarantees.write(folder)
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]


def _row(match: re.Match[str]) -> str:
    """Link the id at the beginning of a row to the page of the guarantee."""
    return f"| [{match['id']}]({guarantees.FOLDER}/{match['id']}.md) |"


def navigation(said: Mapping[str, Any], there: Iterable[str]) -> list[Any]:
    """Return the navigation: chapters, their pages, and the guarantees by family.

    A page that no chapter lists stands at the end of the last one, where a reader finds it.

    Raises:
        Problem: A chapter names a page that is not there.
    """
    known = set(there)
    chapters = {chapter["name"]: list(chapter["pages"]) for chapter in said["chapters"]}
    listed = [page for pages in chapters.values() for page in pages]
    if lacking := [page for page in listed if page not in known]:
        raise Problem(f"site.toml names {', '.join(lacking)}, and there is no such page.")
    families = guarantees.by_family().items()
    own = {f"{guarantees.FOLDER}/{each.id}.md" for _, members in families for each in members}
    [*_, last] = chapters.values()
    last += sorted(p for p in known - own - {*listed} if not UNLISTED.fullmatch(p))
    chapters[GUARANTEES] += [
        {_capital(name): [_of(each) for each in members]} for name, members in families
    ]
    return [{name: pages} for name, pages in chapters.items()]


def _capital(family: str) -> str:
    return family.replace("_", " ").capitalize()


def _of(guarantee: guarantees.Guarantee) -> dict[str, str]:
    return {guarantees.title(guarantee): f"{guarantees.FOLDER}/{guarantee.id}.md"}


def scripts(folder: Path) -> None:
    """Copy the scripts that pages load, as npm has them, by the hashes of a lock file.

    Raises:
        NotFetched: npm is missing, or cannot fetch them.
    """
    lock = SETTINGS / "package-lock.json"
    kept = cache_home() / "website"
    stamp = kept / "package-lock.json"
    modules = kept / "node_modules"
    if not stamp.exists() or stamp.read_bytes() != lock.read_bytes() or not modules.exists():
        npm = commands.program("npm")
        if npm is None:
            raise NotFetched(
                "npm is not on PATH; it fetches the scripts that the site's pages load."
            )
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        shutil.copy(SETTINGS / "package.json", kept)
        shutil.copy(lock, kept)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        if subprocess.run(command, cwd=kept, check=False).returncode:
            stamp.unlink(missing_ok=True)
            raise NotFetched("npm cannot fetch the scripts that the site's pages load.")
    folder.mkdir(parents=True)
    for name, to in SCRIPTS.items():
        shutil.copy(modules / name, folder / to)


def configuration(said: Mapping[str, Any], there: Iterable[str]) -> str:
    """Return the text of Zensical's configuration file."""
    assets = [f"assets/{name}" for name in SCRIPTS.values()]
    project = said["zensical"] | {
        "docs_dir": "docs",
        "site_dir": "site",
        "nav": navigation(said, there),
        "extra": {"polyfills": assets[:1]},
        "extra_javascript": assets[1:],
    }
    return tomlkit.dumps({"project": project})


def build(site: Path) -> None:
    """Build the site.

    Raises:
        Problem: A page, a link, a script or Zensical is missing.
    """
    said = settings()
    work = site.with_name(f"{site.name}-sources")
    for folder in (site, work):
        shutil.rmtree(folder, ignore_errors=True)
    docs = work / "docs"
    there = stage(docs, said)
    scripts(docs / "assets")
    (work / "zensical.toml").write_text(configuration(said, there), encoding="utf-8")
    _run_zensical(work)
    (work / "site").rename(site)
    if wrong := list(faults(site)):
        raise Problem("\n".join(wrong))


def _run_zensical(work: Path) -> None:
    """Build the sources of a folder.

    Raises:
        Problem: Zensical is not installed, or finds something wrong in the sources.
    """
    if find_spec("zensical") is None:
        raise Problem('Zensical is not installed: pip install "upheld[docs]".')
    made = subprocess.run(
        [commands.PYTHON, "-P", "-m", "zensical", "build", "--strict", "--clean"],
        cwd=work,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if made.returncode:
        said = COLOURS.sub("", made.stdout.partition("Traceback")[0])
        raise Problem(f"{said}Zensical refuses the sources in {work / 'docs'}.")


class Page(HTMLParser):
    """The files that one page loads, its links and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take what an element names."""
        said = dict(attrs)
        self.anchors |= {value for key in ("id", "name") if (value := said.get(key))}
        if target := said.get(LOADED.get(tag, "")):
            self.loads.append(target)
        if tag == "a" and (target := said.get("href")):
            self.links.append(target)


class Target(NamedTuple):
    """Where a link leads within the site."""

    file: Path
    anchor: str


def faults(site: Path) -> Iterator[str]:
    """Yield what pages of a site load from elsewhere, and links that lead nowhere."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        wrong = [*_loaded(page)]
        if path.name != "404.html":  # its links begin at the root of a server
            wrong += _missing(path, page, pages)
        yield from (f"{path.relative_to(site)} {said}" for said in wrong)
    for path in sorted(site.rglob("*.css")):
        for target in re.findall(r"url\(['\"]?(https?:[^)'\"]+)", path.read_text("utf-8")):
            yield f"{path.relative_to(site)} loads {target}"


def _loaded(page: Page) -> Iterator[str]:
    """Yield what a page loads from a host."""
    for target in page.loads:
        if urlsplit(target).netloc:
            yield f"loads {target}"


def _missing(path: Path, page: Page, pages: Mapping[Path, Page]) -> Iterator[str]:
    """Yield what a page loads or links to, and is not there."""
    for verb, targets in (("loads", page.loads), ("links to", page.links)):
        for target in targets:
            if urlsplit(target).scheme or urlsplit(target).netloc:
                continue
            to = _within(path, target)
            known = pages.get(to.file)
            if not to.file.exists() or (known and to.anchor not in known.anchors):
                yield f"{verb} {target}, which does not exist"


def _within(path: Path, target: str) -> Target:
    parts = urlsplit(target)
    file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    return Target(file / "index.html" if file.is_dir() else file, unquote(parts.fragment))


def main(arguments: list[str] | None = None) -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the site is written; it is emptied first")
    site = parser.parse_args(arguments).folder.resolve()
    try:
        build(site)
    except Problem as problem:
        print(problem)
        return 1
    pages = len(list(site.rglob("*.html")))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    print(f"{pages} pages, {size / 1e6:.0f} MB: {site / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
