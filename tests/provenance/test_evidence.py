"""The evidence archive: what goes in comes out, damage is seen, secrets stay outside."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from provenance.evidence import Archive, Exchange, without_secrets
from records.errors import EvidenceError

URL = "https://dblp.org/search/publ/api?q=fast%20weights&format=json"
EXCHANGE = Exchange(
    source="DBLP",
    url=URL,
    final_url=URL,
    status=200,
    request_headers=(("User-Agent", "fwp-repro/1 (+someone@example.org)"),),
    response_headers=(("Content-Type", "application/json; charset=utf-8"),),
    body=b'{"result": 1}',
    reason="OK",
)
DAY = timedelta(days=1)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "evidence")


def everything_written(archive: Archive) -> bytes:
    """Return the unpacked bytes of all files, and their names."""
    paths = list(archive.folder.iterdir())
    return b"".join(path.name.encode() + gzip.decompress(path.read_bytes()) for path in paths)


def only_file(archive: Archive) -> Path:
    (path,) = archive.folder.iterdir()
    return path


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=st.binary(max_size=2000),
    path=st.text(max_size=30),
    status=st.sampled_from([200, 404]),
    header=st.text(st.characters(max_codepoint=255, exclude_categories=["Cc"]), max_size=30),
)
def test_what_is_stored_is_read_back(
    tmp_path: Path, body: bytes, path: str, status: int, header: str
) -> None:
    archive = Archive(tmp_path / hashlib.sha256(body + path.encode("utf-8", "replace")).hexdigest())
    url = f"https://dblp.org/{path}"
    headers = (("Content-Type", "text/plain"), ("X-Odd", header))
    stored = archive.store(
        replace(
            EXCHANGE, url=url, final_url=url, body=body, status=status, response_headers=headers
        )
    )
    again = Archive(archive.folder)
    assert again.latest(url) == stored
    assert again.read(stored) == body
    assert again.check() == []


def test_a_capture_describes_the_answer(archive: Archive) -> None:
    capture = archive.store(EXCHANGE)
    assert (capture.source, capture.url, capture.status) == ("DBLP", URL, 200)
    assert capture.media_type == "application/json"
    assert capture.sha256 == hashlib.sha256(EXCHANGE.body).hexdigest()
    url_hash = hashlib.sha256(URL.encode()).hexdigest()[:16]
    assert capture.evidence_id == f"warc:{url_hash}-{capture.sha256[:16]}"


def test_a_file_is_a_request_and_its_response_in_warc(archive: Archive) -> None:
    archive.store(EXCHANGE)
    with only_file(archive).open("rb") as file:
        kinds = {
            r.rec_type: r.rec_headers.get_header("WARC-Target-URI") for r in ArchiveIterator(file)
        }
    assert kinds == {"response": URL, "request": URL}


def test_a_decoded_body_is_stored_without_the_fields_of_its_encoding(archive: Archive) -> None:
    headers = (("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"))
    archive.store(replace(EXCHANGE, response_headers=headers))
    written = everything_written(archive).lower()
    assert b"content-encoding" not in written
    assert b"transfer-encoding" not in written


@pytest.mark.parametrize(
    "given",
    [
        "https://api.openalex.org/works?api_key=SECRET&search=x",
        "https://api.openalex.org/works?search=x&mailto=SECRET%40example.org",
        "https://api.openalex.org/works?search=x&KEY=SECRET",
        "https://api.openalex.org/works?token=SECRET&search=x#SECRET",
        "https://user:SECRET@API.openalex.org/works?search=x",
    ],
)
def test_a_url_is_known_without_its_secrets(given: str) -> None:
    assert without_secrets(given) == "https://api.openalex.org/works?search=x"


@pytest.mark.parametrize("url", [URL, "https://dblp.org/a?b&c=&d=%2B+x&d=1", "https://dblp.org/é?"])
def test_what_is_no_secret_stays(url: str) -> None:
    assert without_secrets(url) == url.replace("é", "%C3%A9").rstrip("?")


def test_no_secret_is_written(archive: Archive) -> None:
    key, contact = "k3y+of/many=signs", "someone@example.org"
    capture = archive.store(
        Exchange(
            source="OpenAlex",
            url=f"https://api.openalex.org/works?search=x&api_key={key}",
            final_url=f"https://api.openalex.org/works?search=x&mailto={contact}",
            status=403,
            request_headers=(
                ("Authorization", "Bearer hidden-1"),
                ("Cookie", "id=hidden-2"),
                ("X-API-Key", key),
                ("User-Agent", f"fwp-repro/1 (+{contact})"),
            ),
            response_headers=(
                ("Set-Cookie", "id=hidden-3"),
                ("Link", "</works?mailto=someone%40example.org&api_key=k3y%2Bof/many%3Dsigns>"),
                ("Location", "/works?api_key=unknown-hidden-4"),
            ),
            body=f"the key {key} is not valid".encode(),
            contact=contact,
            keys=(key,),
        )
    )
    written = everything_written(archive)
    for secret in (key, contact, "someone%40", "k3y", "hidden-"):
        assert secret.encode() not in written
    assert archive.read(capture) == b"the key [removed] is not valid"


def test_a_replay_needs_no_key(archive: Archive) -> None:
    stored = archive.store(replace(EXCHANGE, url=URL + "&api_key=1234567890", keys=("1234567890",)))
    assert archive.latest(URL + "&api_key=another") == stored
    assert archive.latest(URL) == stored


def test_the_newest_answer_counts(archive: Archive) -> None:
    now = datetime.now(UTC)
    archive.store(EXCHANGE, now - 2 * DAY)
    newest = archive.store(replace(EXCHANGE, body=b"new"), now - DAY)
    archive.store(replace(EXCHANGE, body=b"oldest"), now - 3 * DAY)
    assert archive.latest(URL) == newest


def test_an_answer_older_than_asked_for_does_not_count(archive: Archive) -> None:
    archive.store(EXCHANGE, datetime.now(UTC) - 2 * DAY)
    assert archive.latest(URL, max_age=DAY) is None
    assert archive.latest(URL, max_age=3 * DAY) is not None


def test_a_refusal_is_kept_but_is_no_answer(archive: Archive) -> None:
    refused = archive.store(replace(EXCHANGE, status=403))
    assert archive.latest(URL) is None
    assert list(archive.captures()) == [refused]


def test_404_is_an_answer(archive: Archive) -> None:
    stored = archive.store(replace(EXCHANGE, status=404))
    assert archive.latest(URL) == stored


def test_two_urls_are_two_requests(archive: Archive) -> None:
    archive.store(EXCHANGE)
    assert archive.latest(URL + "&f=100") is None


def test_the_same_body_again_is_a_capture_of_the_same_id(archive: Archive) -> None:
    first, second = archive.store(EXCHANGE), archive.store(EXCHANGE)
    assert first.file != second.file
    assert first.evidence_id == second.evidence_id
    assert archive.get(first.evidence_id) == second


def test_an_unknown_id_is_named(archive: Archive) -> None:
    archive.store(EXCHANGE)
    with pytest.raises(EvidenceError, match="warc:0123"):
        archive.get("warc:0123")


def test_captures_come_oldest_first(archive: Archive) -> None:
    now = datetime.now(UTC)
    times = [now - n * DAY for n in (1, 3, 2)]
    for n, moment in enumerate(times):
        archive.store(replace(EXCHANGE, url=f"https://dblp.org/{n}"), moment)
    assert [c.fetched for c in archive.captures()] == sorted(times)


def test_a_copied_archive_replays(archive: Archive, tmp_path: Path) -> None:
    stored = archive.store(EXCHANGE)
    copy = Archive(Path(shutil.copytree(archive.folder, tmp_path / "elsewhere")))
    shutil.rmtree(archive.folder)
    assert copy.latest(URL) == stored
    assert copy.read(copy.get(stored.evidence_id)) == EXCHANGE.body


def test_an_archive_without_a_folder_is_empty(archive: Archive) -> None:
    assert archive.latest(URL) is None
    assert list(archive.captures()) == []
    assert archive.check() == []


def test_what_another_process_stored_is_found(archive: Archive) -> None:
    assert archive.latest(URL) is None
    stored = Archive(archive.folder).store(EXCHANGE)
    assert archive.latest(URL) == stored


# Damage


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def first_record_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:3])


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 1  # in the packed response: gzip does not check its own header
    path.write_bytes(bytes(data))


def change_the_body(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b'"result": 1', b'"result": 2')))


def change_the_url(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b"fast%20weights", b"slow%20weights")))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def no_gzip(path: Path) -> None:
    path.write_bytes(b"<html>not found</html>")


def no_warc(path: Path) -> None:
    path.write_bytes(gzip.compress(b"hello"))


DAMAGES = [
    cut_short,
    first_record_only,
    flip_a_bit,
    change_the_body,
    change_the_url,
    empty,
    no_gzip,
    no_warc,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_never_read(archive: Archive, damage: Callable[[Path], None]) -> None:
    stored = archive.store(EXCHANGE)
    damage(only_file(archive))
    with pytest.raises(EvidenceError, match=stored.file):
        archive.read(stored)
    assert archive.latest(URL) is None


def test_check_names_every_bad_file(archive: Archive) -> None:
    good = archive.store(replace(EXCHANGE, url="https://dblp.org/good"))
    bad = []
    for n, damage in enumerate(DAMAGES):
        bad.append(archive.store(replace(EXCHANGE, url=f"{URL}&f={n}")).file)
        damage(archive.folder / bad[-1])
    (archive.folder / "notes.txt").write_text("hello")
    problems = archive.check()
    assert len(problems) == len(DAMAGES) + 1
    for name in [*bad, "notes.txt"]:
        assert sum(name in problem for problem in problems) == 1
    assert not any(good.file in problem for problem in problems)


def test_a_capture_of_another_body_is_refused(archive: Archive) -> None:
    capture = archive.store(EXCHANGE)
    with pytest.raises(EvidenceError, match="another body"):
        archive.read(capture.model_copy(update={"sha256": "0" * 64}))


def test_no_file_outside_the_archive_is_read(archive: Archive, tmp_path: Path) -> None:
    capture = archive.store(EXCHANGE)
    (tmp_path / "outside").write_text("secret")
    with pytest.raises(EvidenceError, match="not the name"):
        archive.read(capture.model_copy(update={"file": "../outside"}))


def test_an_older_intact_answer_stands_in_for_a_damaged_one(archive: Archive) -> None:
    older = archive.store(EXCHANGE, datetime.now(UTC) - DAY)
    newer = archive.store(EXCHANGE)
    cut_short(archive.folder / newer.file)
    assert archive.latest(URL) == older


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), packed=st.booleans())
def test_no_bytes_in_a_file_break_the_archive(tmp_path: Path, data: bytes, packed: bool) -> None:
    archive = Archive(tmp_path / "any")
    archive.folder.mkdir(exist_ok=True)
    name = f"{'0' * 16}-{1:020d}-{'0' * 16}.warc.gz"
    head = b"WARC/1.1\r\nWARC-Type: response\r\n"
    (archive.folder / name).write_bytes(gzip.compress(head + data) if packed else data)
    assert len(archive.check()) == 1
    assert list(archive.captures()) == []


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EvidenceError, match="file"):
        Archive(tmp_path / "file").store(EXCHANGE)


def test_an_unfinished_file_is_neither_listed_nor_a_fault(archive: Archive) -> None:
    archive.store(EXCHANGE)
    (archive.folder / ".part-1-abc").write_bytes(b"half")
    assert archive.check() == []
    assert len(list(archive.captures())) == 1


# Size and company


def test_finding_opens_only_the_files_of_its_url(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = archive.store(EXCHANGE)
    for n in range(2000):
        (archive.folder / f"{n:016x}-{n:020d}-{n:016x}.warc.gz").touch()
    fresh = Archive(archive.folder)
    opened = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda p: (opened.append(p.name), read_bytes(p))[1])
    assert fresh.latest(URL) == capture
    assert opened == [capture.file]


def test_misses_on_a_folder_at_rest_list_it_once(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    archive.store(EXCHANGE)
    os.utime(archive.folder, (1e9, 1e9))
    listings = []
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: (listings.append(path), listdir(path))[1])
    fresh = Archive(archive.folder)
    for n in range(50):
        assert fresh.latest(f"https://dblp.org/{n}") is None
    assert len(listings) == 1


WRITER = """
import sys
from pathlib import Path
from provenance.evidence import Archive, Exchange
archive = Archive(Path(sys.argv[1]))
for n in range(40):
    url = f"https://dblp.org/{n}"
    archive.store(Exchange("DBLP", url, url, 200, body=sys.argv[2].encode()))
    assert archive.latest(url) is not None
"""


def test_two_processes_may_write_one_archive(archive: Archive) -> None:
    command = [sys.executable, "-c", WRITER, str(archive.folder)]
    running = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    assert [process.wait(timeout=60) for process in running] == [0, 0]
    assert archive.check() == []
    assert len(list(archive.captures())) == 80
