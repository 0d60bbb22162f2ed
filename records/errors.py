"""Every error that a user can meet, below ``FwpError``.

Messages name the input and the way out. The packages raise; only the command line exits.
"""

from __future__ import annotations


class FwpError(Exception):
    """Base of every error that a user can cause or meet; the command line exits with 2."""


class DataError(FwpError):
    """A data file or a record in it is unusable: names the file, the line and the field."""


class WorkspaceError(FwpError):
    """The workspace folder cannot be created, read or written."""


class StoreIndexError(FwpError):
    """The index cannot be built or opened."""


class QueryError(FwpError):
    """An SQL statement is wrong, not permitted, or ran out of time."""


class UnknownPaper(FwpError):
    """A paper id that the store does not hold."""


class UnknownExperiment(FwpError):
    """An experiment name or scale that does not exist."""


class ConfigError(FwpError):
    """A configuration value is out of range or does not fit the others."""


class RunError(FwpError):
    """A run could not be carried out or resumed."""


class SourceUnavailable(FwpError):
    """A source cannot be reached, refuses, is too slow, or (offline) was never archived.

    Says nothing about what the source holds.
    """


class UnreadableAnswer(FwpError):
    """A source answered in a form that cannot be read; says which source and what was expected."""


class BibliographyError(FwpError):
    """A bibliography cannot be read at all; names the file and the place."""


class EvidenceError(FwpError):
    """The evidence archive is damaged or cannot be written."""
