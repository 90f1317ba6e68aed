"""Names of the files in a replay job's folder (see `jobs/replay/job.py`)."""

from pathlib import Path

JOB_FILE = "job.json"
WORKLOAD_FILE = "workload.tokens"
QUEUE_FILE = "queue.bin"
# In the folder of each load process:
REQUESTS_FILE = "requests.jsonl"
CHUNKS_FILE = "chunks.bin"
SUMMARY_FILE = "summary.json"
STDERR_FILE = "stderr.txt"


def shard_folder(directory: Path, shard: int) -> Path:
    """Return the folder of one load process of a job."""
    return directory / f"shard-{shard}"
