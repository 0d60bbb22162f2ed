-- The index over the ledger: made from it alone, and made anew when it is missing or stale.
-- People's queries name these columns: keep the names, and add new columns at the end.

CREATE TABLE meta (key VARCHAR PRIMARY KEY, value VARCHAR);

CREATE TABLE papers (
    paper_id VARCHAR PRIMARY KEY, title VARCHAR, year INTEGER, arxiv_id VARCHAR, url VARCHAR,
    evidence_id VARCHAR
);

-- grade: captured where the bytes are kept, transcribed where a person copied what they read
CREATE TABLE evidence (
    evidence_id VARCHAR PRIMARY KEY, source VARCHAR, authority VARCHAR, grade VARCHAR,
    kind VARCHAR, url VARCHAR, read_on DATE, media_type VARCHAR, sha256 VARCHAR, excerpt VARCHAR,
    facts JSON, note VARCHAR
);

-- complete lists that were read, such as the papers of a conference
CREATE TABLE listings (
    evidence_id VARCHAR, position INTEGER, title VARCHAR, authors VARCHAR[], pages VARCHAR,
    url VARCHAR
);

CREATE TABLE assertions (
    assertion_id VARCHAR PRIMARY KEY, paper_id VARCHAR, field VARCHAR, value VARCHAR,
    evidence_id VARCHAR, asserted_on DATE, basis VARCHAR, excerpt VARCHAR
);

CREATE TABLE checks (
    check_id VARCHAR, rule VARCHAR, rule_version INTEGER, paper_id VARCHAR, field VARCHAR,
    value VARCHAR, outcome VARCHAR, severity VARCHAR, found VARCHAR, reason VARCHAR,
    evidence_ids VARCHAR[], grade VARCHAR
);

-- bibliographies that fwp verify was given: a row for each finding, one without a field for each entry
CREATE TABLE reference_checks (
    file VARCHAR, entry VARCHAR, title VARCHAR, existence VARCHAR, verdict VARCHAR, field VARCHAR,
    outcome VARCHAR, severity VARCHAR, cited VARCHAR, found VARCHAR, source VARCHAR,
    reason VARCHAR, evidence_ids VARCHAR[]
);

CREATE TABLE citations (
    citing_id VARCHAR, cited_id VARCHAR, evidence_id VARCHAR, position INTEGER
);

CREATE TABLE claims (
    claim_id VARCHAR PRIMARY KEY, paper_id VARCHAR, kind VARCHAR, locator VARCHAR,
    statement VARCHAR, metric VARCHAR, claimed DOUBLE, comparison VARCHAR, tolerance JSON,
    replay_tolerance JSON, direction VARCHAR, compared_to VARCHAR, conditions JSON,
    reference JSON, experiment VARCHAR, evidence_id VARCHAR, ordinal INTEGER, derivation JSON
);

-- the course of a metric as a source gives it, such as the authors' training logs
CREATE TABLE logged_curves (
    claim_id VARCHAR, metric VARCHAR, step BIGINT, value DOUBLE, evidence_id VARCHAR
);

CREATE TABLE runs (
    run_id VARCHAR, experiment VARCHAR, config JSON, seed BIGINT, code_version VARCHAR,
    environment JSON, started TIMESTAMPTZ, finished TIMESTAMPTZ, signature VARCHAR,
    shipped BOOLEAN
);

CREATE TABLE metrics (
    run_id VARCHAR, name VARCHAR, value DOUBLE, claim_id VARCHAR, scale VARCHAR,
    replay BOOLEAN, step BIGINT
);

CREATE TABLE verdicts (
    claim_id VARCHAR PRIMARY KEY, verdict VARCHAR, reason VARCHAR, rule VARCHAR, measured DOUBLE,
    spread DOUBLE, seeds BIGINT[], run_ids VARCHAR[], margin DOUBLE
);

-- the same judged by the runs of one mode alone: those that draw from the authors' random streams,
-- or from ours; a claim that a mode has not measured has no row
CREATE TABLE mode_verdicts (
    claim_id VARCHAR, mode VARCHAR, verdict VARCHAR, reason VARCHAR, rule VARCHAR,
    measured DOUBLE, spread DOUBLE, seeds BIGINT[], run_ids VARCHAR[], margin DOUBLE
);

CREATE TABLE derived_statuses (
    paper_id VARCHAR, field VARCHAR, value VARCHAR, status VARCHAR, reason VARCHAR,
    evidence_ids VARCHAR[], grade VARCHAR, ordinal INTEGER
);

-- what the last session of work (fwp all, rerun or verify, without a pause of half an hour) made of
-- a claim's verdict or of an asserted value's status; since is when the session began
CREATE TABLE changes (
    kind VARCHAR, paper_id VARCHAR, claim_id VARCHAR, field VARCHAR, value VARCHAR,
    before VARCHAR, after VARCHAR, since TIMESTAMPTZ
);

-- every asserted value with its derived status
CREATE VIEW statuses AS
SELECT paper_id, field, value, status, reason, evidence_ids, grade
FROM derived_statuses ORDER BY ordinal;

-- every claim beside what was measured; claimed is NULL where the paper reports a divergence
CREATE VIEW side_by_side AS
SELECT c.claim_id, c.paper_id, c.locator, c.kind, c.statement, c.metric, c.claimed, v.measured,
       v.spread, v.seeds, v.verdict, v.reason, v.run_ids, c.comparison, c.experiment, v.rule,
       v.margin
FROM claims c JOIN verdicts v USING (claim_id)
ORDER BY c.ordinal;

-- fields on which sources disagree: every value, who says it, where it stands, and what the record
-- itself declares the field's status to be (field "venue status" speaks of field "venue")
CREATE VIEW contested AS
WITH disputed AS (
    SELECT paper_id, field FROM assertions GROUP BY ALL HAVING count(DISTINCT value) > 1
)
SELECT a.paper_id, a.field, a.value, s.status,
       list(DISTINCT e.source ORDER BY e.source) AS said_by,
       list(DISTINCT a.evidence_id ORDER BY a.evidence_id) AS evidence_ids,
       any_value(d.value) AS declared_status
FROM disputed
JOIN assertions a USING (paper_id, field)
JOIN evidence e ON e.evidence_id = a.evidence_id
JOIN statuses s ON s.paper_id = a.paper_id AND s.field = a.field AND s.value = a.value
LEFT JOIN assertions d ON d.paper_id = a.paper_id AND d.field = a.field || ' status'
GROUP BY a.paper_id, a.field, a.value, s.status
ORDER BY a.paper_id, a.field, s.status DESC, a.value;

CREATE VIEW claim_coverage AS
SELECT kind,
       count(*) AS claims,
       count(*) FILTER (verdict = 'reproduced') AS reproduced,
       count(*) FILTER (verdict = 'direction reproduced') AS direction_reproduced,
       count(*) FILTER (verdict = 'not reproduced') AS not_reproduced,
       count(*) FILTER (verdict = 'not run') AS not_run
FROM side_by_side GROUP BY kind
ORDER BY list_position(
    ['exact', 'synthetic', 'language_model', 'translation', 'cost'], kind
);

-- how many claims of each experiment hold by the runs of one mode alone
CREATE VIEW mode_coverage AS
SELECT c.experiment, modes.mode, count(*) AS claims,
       count(*) FILTER (v.verdict = 'reproduced') AS reproduced,
       count(*) FILTER (v.verdict = 'not reproduced') AS not_reproduced,
       count(*) FILTER (v.verdict IS NULL) AS not_run
FROM claims c
JOIN (SELECT DISTINCT mode, c.experiment FROM mode_verdicts JOIN claims c USING (claim_id)) modes
     USING (experiment)
LEFT JOIN mode_verdicts v ON v.claim_id = c.claim_id AND v.mode = modes.mode
GROUP BY ALL ORDER BY c.experiment, modes.mode;
