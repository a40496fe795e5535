"""Stands in for a build backend while pip downloads a source archive.

`pip download` asks the archive's backend for its metadata, for which it would first fetch that
backend, unpinned, and run it. We only want the archive, so with `--no-build-isolation` and this
folder on PYTHONPATH it asks us: nothing is fetched but what the hash names, and nothing of it runs.
"""

import pathlib


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    # pip unpacks the archive and calls this from inside it.
    fields = {}
    for line in pathlib.Path("PKG-INFO").read_text(encoding="utf-8").splitlines():
        if not line:
            break
        key, _, value = line.partition(": ")
        fields.setdefault(key, value)
    folder = pathlib.Path(metadata_directory, f"{fields['Name']}-{fields['Version']}.dist-info")
    folder.mkdir()
    folder.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {fields['Name']}\nVersion: {fields['Version']}\n",
        encoding="utf-8")
    return folder.name
