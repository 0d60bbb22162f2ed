"""Curated data files into records: one folder a paper (or a list), validated line by line.

A folder holds any of

- ``*.toml``: arrays of tables named after the record types, ``[[paper]]``, ``[[evidence]]``,
  ``[[assertion]]``, ``[[citation]]``, ``[[listing]]``, ``[[claim]]``, ``[[curve]]``, ``[[run]]``;
- ``TYPE.csv`` or ``TYPE-anything.csv``: one record a row, an empty cell is an absent field, and a
  column ``conditions.dim`` fills the key ``dim`` of the field ``conditions``; a cell of such a
  column is a number or ``true``/``false`` where it reads as one. Several names in a list field are
  separated by `` ; ``;
- ``*.jsonl``: one JSON object a line, its record type under ``type``.

The data that ship with the project lie in ``records/data``; a user's own paper is a folder of the
same form.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_origin

from records.errors import DataError
from records.ledger import RECORD_TYPES, first_error, from_line
from records.models import (
    Assertion,
    Check,
    Citation,
    Claim,
    Curve,
    Evidence,
    ListEntry,
    Paper,
    Record,
    ReferenceCheck,
)

_TYPES = {n: model for n, model in RECORD_TYPES.items() if model not in (Check, ReferenceCheck)}
SHIPPED = Path(__file__).parent / "data"


def shipped_folders() -> list[Path]:
    """Return the folders of curated data that come with the project."""
    return sorted(path for path in SHIPPED.iterdir() if path.is_dir())


def load_folder(folder: Path) -> list[Record]:
    """Read every data file of a folder, or one file.

    Raises:
        DataError: the folder is missing or holds no data file, a file cannot be parsed, or a
            record is invalid; the message names the file, the line and the field.
    """
    if not folder.exists():
        raise DataError(f"{folder} is not there: give a folder of data files, or one of them")
    files = [folder] if folder.is_file() else folder.rglob("*")
    paths = sorted(p for p in files if p.suffix in _LOADERS)
    if not paths:
        raise DataError(f"{folder} holds no .toml, .csv or .jsonl file")
    records = [record for path in paths for record in _LOADERS[path.suffix](path)]
    _require_unique_ids(folder, records)
    return records


def require_known_references(records: Sequence[Record]) -> None:
    """Raise DataError where a record names evidence, a paper or a claim that is not among them."""
    evidence = {r.evidence_id for r in records if isinstance(r, Evidence)}
    claims = {r.claim_id for r in records if isinstance(r, Claim)}
    papers = {r.paper_id for r in records if isinstance(r, Paper)}
    for record in records:
        for field, target in _references(record):
            pool = {"evidence": evidence, "claim": claims, "paper": papers}[field]
            if target not in pool:
                raise DataError(
                    f"{type(record).__name__} {_identity(record)} names the {field} {target!r}, "
                    f"which is neither in these files nor in the store; add it or correct the id"
                )


def require_no_conflict(records: Sequence[Record], others: Sequence[Record]) -> None:
    """Raise DataError where a record has the id of one that says something else."""
    known = {(type(r), _identity(r)): r for r in others if _identity(r)}
    for record in records:
        other = known.get((type(record), _identity(record)))
        if other is not None and not _say_the_same(other, record):
            raise DataError(
                f"{type(record).__name__} {_identity(record)} is in the store already and says "
                "something else there; give yours an id of its own"
            )
    own = {r.evidence_id for r in records if isinstance(r, Evidence)}
    for record in records:
        if isinstance(record, ListEntry) and record.evidence_id not in own and record not in others:
            raise DataError(
                f"ListEntry {_identity(record)} would add to a list that the store holds already"
            )


def _say_the_same(a: Record, b: Record) -> bool:
    return a == b or a.model_dump_json() == b.model_dump_json()  # NaN is not equal to itself


def _references(record: Record) -> Iterator[tuple[str, str]]:
    if isinstance(record, Paper | Assertion | Citation | Claim | Curve | ListEntry):
        yield "evidence", record.evidence_id
    if isinstance(record, Assertion | Claim):
        yield "paper", record.paper_id
    if isinstance(record, Citation):
        yield from (("paper", record.citing_id), ("paper", record.cited_id))
    if isinstance(record, Claim) and record.compared_to is not None:
        yield "claim", record.compared_to
    if isinstance(record, Curve):
        yield "claim", record.claim_id


_ID_FIELDS = {
    Paper: ("paper_id",),
    Evidence: ("evidence_id",),
    Assertion: ("assertion_id",),
    Claim: ("claim_id",),
    Citation: ("citing_id", "cited_id", "evidence_id"),
    ListEntry: ("evidence_id", "position"),
    Curve: ("claim_id", "metric", "evidence_id"),
}


def _identity(record: Record) -> str:
    fields = _ID_FIELDS.get(type(record), ())
    return " ".join(str(getattr(record, field)) for field in fields)


def _require_unique_ids(folder: Path, records: Sequence[Record]) -> None:
    seen = set()
    for record in records:
        key = (type(record), _identity(record))
        if key[1] and key in seen:
            raise DataError(f"{folder}: {key[0].__name__} {key[1]} is there twice; keep one")
        seen.add(key)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def _load_toml(path: Path) -> Iterator[Record]:
    text = _read(path)
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid TOML: {error}") from error
    for name, bodies in tables.items():
        if name not in _TYPES or not isinstance(bodies, list):
            raise DataError(
                f"{path}, line {_toml_line(text, name, 0)}: [[{name}]] is no record type; "
                f"known: {', '.join(_TYPES)}"
            )
        for number, body in enumerate(bodies):
            try:
                yield _TYPES[name].model_validate(body)
            except ValueError as error:
                line = _toml_line(text, name, number)
                raise DataError(
                    f"{path}, line {line}, [[{name}]] number {number + 1}: {first_error(error)}"
                ) from error


def _toml_line(text: str, name: str, number: int) -> int:
    """Return the line on which the ``number``-th (from 0) table of this name opens."""
    headers = list(re.finditer(rf"^\s*\[\[?\s*{re.escape(name)}\s*\]\]?", text, re.MULTILINE))
    if number >= len(headers):
        return 1
    return text.count("\n", 0, headers[number].end()) + 1


def _load_csv(path: Path) -> Iterator[Record]:
    name = path.stem.split("-")[0]
    if name not in _TYPES:
        raise DataError(
            f"{path}: a CSV file is named after its record type (such as claim-tables.csv); "
            f"{name!r} is none of {', '.join(_TYPES)}"
        )
    model = _TYPES[name]
    reader = csv.DictReader(io.StringIO(_read(path), newline=""), strict=True)
    try:
        twice = [c for c in reader.fieldnames or [] if (reader.fieldnames or []).count(c) > 1]
        if twice:
            raise ValueError(f"the column {twice[0]!r} is there twice")
        for row in reader:
            yield model.model_validate(_from_row(model, row))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}, line {reader.line_num}: {first_error(error)}") from error


def _from_row(model: type[Record], row: dict[str, str | None]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for column, cell in row.items():
        if column is None or cell is None:
            raise ValueError("the row has not as many cells as the header")
        field, _, key = column.partition(".")
        if cell == "":
            continue
        if key:
            mapping = body.setdefault(field, {})
            if not isinstance(mapping, dict):
                raise ValueError(f"the columns {field!r} and {column!r} exclude each other")
            mapping[key] = _literal(cell)
        elif (
            field in model.model_fields
            and get_origin(model.model_fields[field].annotation) is tuple
        ):
            body[field] = cell.split(" ; ")
        else:
            body[field] = cell
    return body


def _literal(cell: str) -> str | float | int | bool:
    try:
        value = json.loads(cell)
    except json.JSONDecodeError:
        return cell
    return value if isinstance(value, bool | int | float) else cell


def load_jsonl(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_read(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = from_line(line)
            if type(record) not in _TYPES.values():
                raise ValueError("findings are made by fwp verify and cannot be brought in")
            yield record
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: {first_error(error)}") from error


_LOADERS = {".toml": _load_toml, ".csv": _load_csv, ".jsonl": load_jsonl}
