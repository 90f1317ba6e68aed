"""A folder at an fsspec URL: object storage, a mounted share, or anything else that fsspec speaks to."""

from pathlib import Path, PurePosixPath
from typing import Any, Self

import fsspec
from fsspec.core import url_to_fs

from orchestrator.errors import ConfigError
from orchestrator.secrecy import redacted

_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}


class RemoteFolder:
    """Files below one URL, by relative path. Back ends raise what they like: callers catch `Exception`."""

    def __init__(self, filesystem: Any, root: str, url: str) -> None:
        # Object stores have no folders: asking for one costs a request, and may be taken for a new bucket.
        self._has_folders = url.partition("://")[0].lower() not in _PACKAGES
        self.url = url
        """As given, for people; it holds no secret."""
        self._fs = filesystem
        self._root = root.rstrip("/")

    @classmethod
    def at(cls, url: str) -> Self:
        """Return the folder at `url`, which need not exist yet.

        Raises:
            ConfigError: fsspec does not know the protocol, or the package for it is missing.
        """
        scheme = url.partition("://")[0].lower()
        try:
            # a listing that is kept would hide what another driver wrote since
            filesystem, root = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            package = _PACKAGES.get(scheme)
            remedy = (
                f"install the package {package} here and on the cluster's nodes"
                if package
                else f"fsspec here knows {', '.join(sorted(_known()))}"
            )
            message = f"results at {redacted(url)} cannot be reached ({redacted(str(error))}); {remedy}"
            raise ConfigError(message) from error
        return cls(filesystem, str(root), url.rstrip("/"))

    def child(self, name: str) -> "RemoteFolder":
        """Return a folder inside."""
        return RemoteFolder(self._fs, f"{self._root}/{name}", f"{self.url}/{name}")

    def files(self, below: str = "") -> dict[str, int]:
        """Return every file below, relative path to size in bytes; empty where the folder does not exist."""
        start = f"{self._root}/{below}".rstrip("/")
        if not self._fs.exists(start):
            return {}
        prefix = PurePosixPath("/" + self._root.lstrip("/"))
        found = {}
        for path, entry in self._fs.find(start, detail=True).items():
            relative = PurePosixPath("/" + str(path).lstrip("/")).relative_to(prefix)
            found[str(relative)] = int(entry["size"] or 0)
        return found

    def put(self, local: Path, name: str) -> None:
        """Copy a local file here; object stores show it whole or not at all."""
        self._make_parent(name)
        self._fs.put_file(str(local), self._path(name))

    def get(self, name: str, local: Path) -> None:
        """Copy a file from here."""
        local.parent.mkdir(parents=True, exist_ok=True)
        self._fs.get_file(self._path(name), str(local))

    def read(self, name: str) -> bytes | None:
        """Return a file's content; None where there is none."""
        try:
            return bytes(self._fs.cat_file(self._path(name)))
        except FileNotFoundError:
            return None

    def wanted(self, name: str) -> bytes:
        """Return the content of a file that a user asked for.

        Raises:
            ConfigError: it cannot be read, or there is none.
        """
        try:
            content = self.read(name)
        except Exception as error:
            message = (
                f"{self.url}/{name} cannot be read ({redacted(str(error))}); check the address and your "
                "credentials for it"
            )
            raise ConfigError(message) from error
        if content is None:
            message = f"there is no {self.url}/{name}; give the URL of a sweep's folder"
            raise ConfigError(message)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        self._make_parent(name)
        self._fs.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._fs.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _make_parent(self, name: str) -> None:
        if self._has_folders:
            self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)


def _known() -> set[str]:
    return {name for name in fsspec.available_protocols() if name in {*_PACKAGES, "file", "memory", "sftp"}}
