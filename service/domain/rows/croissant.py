"""The snapshot in Croissant 1.0, MLCommons' vocabulary for datasets: its files with digests, its rows as records.

Says nothing that the manifest does not say.
"""

from typing import Any

from service.domain.rows.manifest import FileEntry, Manifest
from service.domain.rows.records import Row

CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {
    "tokens": "sc:Integer",
    "reasoning_score": "sc:Float",
    "difficulty": "sc:Float",
    "query_confirmed": "sc:Boolean",
}
_MEDIA = {"parquet": "application/x-parquet"}
_STRUCTURED = frozenset({"messages"})
"""Columns that are no plain value; readers of Parquet have them, Croissant's fields do not name their parts."""


def croissant(manifest: Manifest) -> dict[str, Any]:
    """The snapshot as a Croissant document."""
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": f"sn15-trajectories-{manifest.snapshot_id[:12]}",
        "description": "Tool-calling trajectories of agents that competed in Bittensor SN15, cut by leak cluster.",
        "identifier": manifest.snapshot_id,
        "version": manifest.snapshot_id[:12],
        "license": manifest.licence,
        "isLiveDataset": False,
        "distribution": [_file(entry) for entry in manifest.files],
        "recordSet": [_record_set(entry) for entry in manifest.files if entry.format == "parquet"],
    }


def _file(entry: FileEntry) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": entry.name,
        "name": entry.name,
        "contentUrl": entry.name,
        "contentSize": f"{entry.bytes} B",
        "encodingFormat": _MEDIA.get(entry.format, "application/zstd"),
        "sha256": entry.sha256,
    }


def _record_set(entry: FileEntry) -> dict[str, Any]:
    name = entry.name.removesuffix(".parquet")
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "field": [_field(name, entry, column) for column in Row.__struct_fields__ if column not in _STRUCTURED],
    }


def _field(record_set: str, entry: FileEntry, column: str) -> dict[str, Any]:
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "dataType": _TYPES.get(column, "sc:Text"),
        "source": {"fileObject": {"@id": entry.name}, "extract": {"column": column}},
    }
    return field | ({"repeated": True} if column == "answer_ids" else {})
