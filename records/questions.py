"""Ready questions in SQL, shared by the command line and the dashboard."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Question:
    """A question in words and the statement that answers it."""

    title: str
    sql: str


def ready_questions() -> list[Question]:
    """Return the questions of ``questions.toml``, in order."""
    text = Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
    return [Question(q["title"], q["sql"]) for q in tomllib.loads(text)["question"]]
