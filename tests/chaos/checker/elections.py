# SPDX-License-Identifier: BSL-1.0
"""Terms of one election rise from grant to grant, and each observer is given the leaders that there are."""
from bisect import bisect_left
from itertools import accumulate

from .history import MS, Intervals
from .liveness import disturbed
from .quiet import Answers

SLACK = 200 * MS  # beyond the poll cap


class Known:
    """The highest term that somebody knew before an instant."""

    def __init__(self, history):
        each = sorted([(lead.elected_at, lead.term) for lead in history.campaigns if lead.term]
                      + [(sight.end, sight.term) for sight in history.sights if sight.end is not None])
        self.times = [t for t, _ in each]
        self.highest = [0, *accumulate((term for _, term in each), max)]

    def before(self, t):
        return self.highest[bisect_left(self.times, t)]


def rising(history):
    known, leads = Known(history), {}
    for lead in history.campaigns:
        if lead.term is None:
            continue
        if lead.term == 0 or lead.term in leads:
            yield "R14", f"{lead} has the term {lead.term}, as {leads.get(lead.term, 'no leader')} has"
        leads[lead.term] = lead
        if lead.term <= known.before(lead.begin):
            yield "R14", f"{lead} has the term {lead.term}, and {known.before(lead.begin)} was known before"
    for sight in history.sights:
        if sight.term and sight.term < known.before(sight.begin):
            yield "R14", f"{sight} saw the term {sight.term}, and {known.before(sight.begin)} was known before"


def given_back(sight, lead):
    """The term of an earlier grant of the same call. It came too late, and the call asked again."""
    return lead.term is not None and sight.term < lead.term and sight.begin < lead.elected_at


def truthful(history):
    """A value is seen with its leader's term alone, from its call on, and not once something newer is confirmed."""
    leads = {value: lead for lead in history.campaigns for value in (lead.value, lead.proclaimed) if value is not None}
    terms = {lead.term: lead for lead in history.campaigns if lead.term}
    for sight in sorted((sight for sight in history.sights if sight.term), key=lambda sight: sight.end):
        lead = leads.get(sight.value)
        if lead is None or sight.end < (lead.begin if sight.value == lead.value else lead.proclaim_begun):
            yield "R14", f"{sight} saw the value {sight.value!r}, which nobody had given"
            continue
        of_lead = lead.term in (None, sight.term) or given_back(sight, lead)
        if terms.setdefault(sight.term, lead) is not lead or not of_lead:
            yield "R14", f"{sight} saw the value of {lead} with the term {sight.term} of another"
        if sight.value == lead.value and lead.proclaim_confirmed is not None and lead.proclaim_confirmed < sight.begin:
            yield "R14", f"{sight} saw the value of {lead} that was replaced before"
        if lead.resign_confirmed is not None and lead.resign_confirmed < sight.begin:
            yield "R14", f"{sight} saw {lead}, which had resigned before"


def judged_observers(history):
    """(lead, process, the first sight of its term or a later one, until when one is due), where nothing kept it away."""
    patience = history.campaign["poll_cap"] * MS + SLACK
    trouble, answers = Intervals(disturbed(history)), Answers(history)
    sights = {}
    for sight in history.sights:
        sights.setdefault(sight.process, []).append(sight)
    for lead in history.campaigns:
        if not lead.term or lead.resign_begun is None:
            continue
        for process, seen in sights.items():
            due = process.grace(lead.elected_at, patience)
            if due >= lead.resign_begun or seen[0].begin > lead.elected_at or seen[-1].begin <= due:
                continue
            if trouble.overlap(lead.elected_at, due) or not answers.due_of_each(process, lead.elected_at, due):
                continue
            first = min((sight.end for sight in seen if sight.end is not None and sight.term >= lead.term), default=None)
            yield lead, process, first, due


def elections(history, breaks):
    """R14: terms rise, no observer is given an older leader than somebody knew, and all learn of a leader that stays."""
    yield from rising(history)
    yield from truthful(history)
    for lead, process, first, due in judged_observers(history):
        if first is None or first > due:
            yield "R14", f"{lead} led from {lead.elected_at} on, and the observer of {process.name} knew of no such term by {due}"
