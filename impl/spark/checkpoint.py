"""What Spark wrote down of a query: which batches it began, which it finished, and where each of them ends.

Spark logs a batch's end offsets (`offsets/N`) before it runs and its end (`commits/N`) after it. Both are read here as the
files that they are, on whatever file system holds them.
"""

import json

from pyarrow import fs

Positions = dict[tuple[str, int], int]  # topic and partition -> the next offset to read


class Checkpoint:
    """The checkpoint of one query; it may not exist yet."""

    def __init__(self, location: str) -> None:
        self.files, self.root = fs.FileSystem.from_uri(location)

    def query_id(self) -> str | None:
        """The id that Spark gave the query when the checkpoint was made."""
        metadata = self._read("metadata")
        return json.loads(metadata)["id"] if metadata else None

    def finished(self) -> Positions:
        """Where the last batch that Spark is done with ends."""
        return self.ends(self.last("commits"))

    def ends(self, batch: int | None) -> Positions:
        """Where a batch ends in Kafka: the third line of its log, after the version and the settings; no batch, no ends."""
        if batch is None:
            return {}
        topics = json.loads(self._read(f"offsets/{batch}").splitlines()[2])
        return {(topic, int(partition)): offset for topic, ends in topics.items() for partition, offset in ends.items()}

    def last(self, log: str) -> int | None:
        """The last batch in `offsets` or `commits`."""
        return max(self._numbers(log), default=None)

    def operators(self) -> list[int]:
        """The operators that keep a state."""
        return self._numbers("state")

    def _numbers(self, folder: str) -> list[int]:
        files = self.files.get_file_info(fs.FileSelector(f"{self.root}/{folder}", allow_not_found=True))
        return [int(file.base_name) for file in files if file.base_name.isdigit()]

    def _read(self, name: str) -> str:
        path = f"{self.root}/{name}"
        if self.files.get_file_info(path).type == fs.FileType.NotFound:
            return ""
        with self.files.open_input_stream(path) as file:
            return bytes(file.read()).decode()
