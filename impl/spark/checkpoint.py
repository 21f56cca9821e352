"""The checkpoint of a query, as Spark writes it.

It says which batches the query began, which it finished, and where each of them ends. Spark logs a
batch's end offsets (`offsets/N`) before it runs and its end (`commits/N`) after it. Both are read
here as the files that they are, on whatever file system holds them.
"""

import json
from typing import Any

from pyarrow import fs

from upheld.adapter import Failed

Positions = dict[tuple[str, int], int]  # topic and partition -> the next offset to read


class Checkpoint:
    """The checkpoint of one query; it may not exist yet."""

    def __init__(self, location: str) -> None:
        self.files, self.root = fs.FileSystem.from_uri(location)

    def query_id(self) -> str | None:
        """Return the id that Spark gave the query when the checkpoint was made."""
        metadata = self._read("metadata", 0)
        return metadata["id"] if metadata else None

    def finished(self) -> Positions:
        """Return where the last batch that Spark is done with ends."""
        return self.ends(self.last("commits"))

    def ends(self, batch: int | None) -> Positions:
        """Return where a batch ends in Kafka; no batch, no ends.

        The ends are the third line of its log, after the version and the settings.
        """
        if batch is None:
            return {}
        topics = self._read(f"offsets/{batch}", 2) or {}
        return {
            (topic, int(partition)): offset
            for topic, ends in topics.items()
            for partition, offset in ends.items()
        }

    def compare(self, topic_ids: dict[str, bytes]) -> None:
        """Begin anew in each topic that has another id than at the last start.

        Such a topic was deleted and made anew, and so were its offsets.

        Raises:
            Failed: A batch was under way in such a topic.
        """
        ids = {topic: each.hex() for topic, each in topic_ids.items()}
        known = self._read("topics", 0) or {}
        anew = {topic for topic in ids if known.get(topic, ids[topic]) != ids[topic]}
        batch = self.last("offsets")
        if anew and batch is not None:
            if batch != self.last("commits"):
                raise Failed(
                    "conflict",
                    f"{anew} was deleted while batch {batch} was under way; begin a new checkpoint",
                )
            lines = self._lines(f"offsets/{batch}") or []
            ends = {
                topic: dict.fromkeys(each, 0) if topic in anew else each
                for topic, each in json.loads(lines[2]).items()
            }
            self._write(
                f"offsets/{batch}", b"\n".join([*lines[:2], json.dumps(ends).encode(), *lines[3:]])
            )
            if (
                self.files.get_file_info(checksum := f"{self.root}/offsets/.{batch}.crc").type
                != fs.FileType.NotFound
            ):
                self.files.delete_file(checksum)
        self._write("topics", json.dumps(ids).encode())

    def last(self, log: str) -> int | None:
        """Return the last batch in `offsets` or `commits`."""
        return max(self._numbers(log), default=None)

    def operators(self) -> list[int]:
        """Return the operators that keep a state."""
        return self._numbers("state")

    def _numbers(self, folder: str) -> list[int]:
        files = self.files.get_file_info(
            fs.FileSelector(f"{self.root}/{folder}", allow_not_found=True)
        )
        return [int(file.base_name) for file in files if file.base_name.isdigit()]

    def _read(self, name: str, line: int) -> Any:
        """Return a line of a file, which is JSON; None if there is no such file.

        Raises:
            Failed: The file is torn.
        """
        lines = self._lines(name)
        try:
            return None if lines is None else json.loads(lines[line])
        except (IndexError, ValueError):
            said = f"{self.root}/{name} is torn; put a whole copy of the checkpoint in its place"
            raise Failed("storage", said) from None

    def _lines(self, name: str) -> list[bytes] | None:
        path = f"{self.root}/{name}"
        if self.files.get_file_info(path).type == fs.FileType.NotFound:
            return None
        with self.files.open_input_stream(path) as file:
            return bytes(file.read()).splitlines()

    def _write(self, name: str, content: bytes) -> None:
        self.files.create_dir(self.root)
        with self.files.open_output_stream(f"{self.root}/.{name.replace('/', '-')}") as file:
            file.write(content)
        self.files.move(f"{self.root}/.{name.replace('/', '-')}", f"{self.root}/{name}")
