"""Names of the files in a replay job's folder (see `jobs/replay/job.py`)."""

JOB_FILE = "job.json"
WORKLOAD_FILE = "workload.json"
REQUESTS_FILE = "requests.jsonl"
CHUNKS_FILE = "chunks.bin"
SUMMARY_FILE = "summary.json"
