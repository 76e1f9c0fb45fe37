"""Makes changes: form, review, and the change itself, with a line in the log and a record in the audit topic.

A change is applied only if the form contains the session's token and the token that its review has made. A review's
token is accepted once, within ten minutes.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from kafkapy.client import Producer
from kafkapy.client.admin import NewTopic
from kafkapy.console.changes import CHANGES
from kafkapy.console.changes.change import Change, Plan
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.problem import Problem, problem_of
from kafkapy.console.visit import Page, Visit
from kafkapy.errors import ApiError, Error

log = logging.getLogger("kafkapy.console.changes")

REVIEW_S = 600.0
MOST_REVIEWS = 500
AUDIT_TIMEOUT_MS = 10_000


class Reviews:
    """The tokens of changes that were reviewed and not yet applied. Each token belongs to one session. Thread-safe.

    The number of tokens is limited.
    """

    def __init__(self) -> None:
        self._reviews: OrderedDict[str, tuple[str, str, float]] = OrderedDict()
        self._lock = Lock()

    def begin(self, session: str, change: str) -> str:
        """Returns a new token, with which the session `session` may apply the change named `change` once."""
        token = secrets.token_urlsafe(18)
        with self._lock:
            self._reviews[token] = (session, change, time.monotonic())
            while len(self._reviews) > MOST_REVIEWS:
                self._reviews.popitem(last=False)
        return token

    def take(self, token: str, session: str, change: str) -> bool:
        """Removes the token, and returns whether it permits the session to apply the change of this name now.

        The token permits it if `begin` made the token for this session and this change, less than REVIEW_S seconds ago.
        """
        with self._lock:
            found = self._reviews.pop(token, None)
        return found is not None and found[:2] == (session, change) and time.monotonic() - found[2] < REVIEW_S


_reviews = Reviews()


def handle(visit: Visit) -> Page:
    """Handles a request for the change that the URL's path names, and returns the page to show.

    A GET returns the form; a form that was sent returns the review of the change; a confirmed review applies the change
    and returns the outcome. Raises Problem if the change is not permitted or fails.
    """
    if not visit.settings.allow_changes:
        raise Problem(403, "This console only reads: it was started without --allow-changes.")
    change = CHANGES.get(visit.path["change"])
    if change is None:
        raise Problem(404, f"There is no change {visit.path['change'][:40]!r}.")
    if visit.form is None:
        return _form(visit, change, visit.query)
    form = visit.form
    if not visit.session.accepts_form(form.get("form_token", "")):
        raise Problem(403, "This form does not belong to your session. Nothing was changed.")
    fields = {each.name: form.get(each.name, "") for each in change.fields}
    if form.get("step") == "apply":
        return _apply(visit, change, fields, form)
    try:
        plan = change.plan(visit.cluster, fields)
    except Exception as error:
        problem = problem_of(error, visit.cluster.name)
        if problem is None:
            raise
        return _form(visit, change, fields, problem)
    return _review(visit, change, fields, plan)


def _form(visit: Visit, change: Change, fields: Mapping[str, str], problem: Problem | None = None) -> Page:
    values = {"tab": "", "change": change, "fields": fields, "problem": problem}
    return Page("change_form", values, 200 if problem is None else problem.status)


def _review(visit: Visit, change: Change, fields: Mapping[str, str], plan: Plan, problem: str = "") -> Page:
    values = {
        "change": change,
        "fields": fields,
        "plan": plan,
        "lines": plan.command_lines(visit.cluster.servers),
        "once": _reviews.begin(visit.session.key, change.name),
        "refusal": problem,
    }
    return Page("change_review", values, 400 if problem else 200)


def _apply(visit: Visit, change: Change, fields: Mapping[str, str], form: Mapping[str, str]) -> Page:
    if not _reviews.take(form.get("once", ""), visit.session.key, change.name):
        raise Problem(
            409, "This form was sent already, or it is older than ten minutes. It has changed nothing this time."
        )
    visit.cluster.forget()
    plan = change.plan(visit.cluster, fields)
    if plan.confirm and form.get("confirm", "") != plan.confirm:
        return _review(visit, change, fields, plan, f"Type {plan.confirm} to confirm. Nothing was changed.")
    lines = plan.command_lines(visit.cluster.servers)
    entry = audit_entry(visit, change, fields, plan)
    audit = Audit(visit.cluster, visit.settings.audit_topic)
    audit.write({**entry, "state": "requested"})
    try:
        outcome = plan.apply()
    except Exception as error:
        problem = problem_of(error, visit.cluster.name)
        text = problem.text if problem is not None else f"{type(error).__name__}: {error}"
        log.warning("%s tried on %s: %s; %s", visit.session.user, visit.cluster.name, lines[-1], text)
        audit.write({**entry, "state": "failed", "outcome": text})
        if problem is None:
            raise
        raise Problem(problem.status, f"The change failed: {text}") from None
    finally:
        visit.cluster.forget()
    log.info("%s changed %s: %s", visit.session.user, visit.cluster.name, lines[-1])
    audit.write({**entry, "state": "applied", "outcome": outcome})
    return Page("change_done", {"change": change, "outcome": outcome, "target": plan.target, "lines": lines})


def audit_entry(visit: Visit, change: Change, fields: Mapping[str, str], plan: Plan) -> dict[str, Any]:
    """Returns the members that both records of a change have in the audit topic, without the values of passwords."""
    return {
        "id": secrets.token_hex(8),
        "user": visit.session.user,
        "cluster": visit.cluster.name,
        "change": change.name,
        "fields": {**fields, **plan.audited},
        "commands": plan.command_lines(visit.cluster.servers),
    }


class Audit:
    """The writer of the audit topic of a cluster; if `topic` is "", it writes nothing."""

    def __init__(self, view: ClusterView, topic: str) -> None:
        self._view = view
        self._topic = topic

    def write(self, entry: Mapping[str, Any]) -> None:
        """Writes `entry` as one record in JSON, with the time in ms since 1970 added. Blocks.

        The key of the record is `entry["id"]`, which no other change has. This key identifies the two records of one
        change, even if the same user makes the same change twice at the same time, or if the topic is compacted. Raises
        Problem if the record cannot be written.
        """
        if not self._topic:
            return
        content = json.dumps({"time": int(time.time() * 1000), **entry}, ensure_ascii=False).encode()
        try:
            self._create_topic()
            settings = {**self._view.properties, "acks": "all", "delivery.timeout.ms": AUDIT_TIMEOUT_MS}
            settings |= {"request.timeout.ms": AUDIT_TIMEOUT_MS // 2}
            settings.pop("default.api.timeout.ms", None)
            with Producer(settings) as producer:
                future = producer.send(self._topic, content, key=str(entry["id"]).encode())
                producer.flush()
                future.result(AUDIT_TIMEOUT_MS / 1000)
        except (ApiError, TimeoutError) as error:
            raise Problem(
                502,
                f"The audit topic {self._topic} cannot be written, so that no change is possible: {error}. "
                "--audit-topic names another topic, or none.",
            ) from None

    def _create_topic(self) -> None:
        configs = {"cleanup.policy": "delete", "retention.ms": "-1"}
        topic = NewTopic(self._topic, 1, configs=configs)
        error = self._view.admin.create_topics([topic]).errors.get(self._topic)
        if error is not None and error.error is not Error.TOPIC_ALREADY_EXISTS:
            raise error
