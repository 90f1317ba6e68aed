"""The parts of a decode step: what each is, and the one colour that it has in every picture."""

from collections.abc import Mapping

PLAIN_STEP = "plain step"
VERIFYING, DRAFTING = "verification overhead", "drafting"
DRAFTS = "drafting and verification"
FIXED = "fixed cost of speculation"
NOT_TOLD_APART = "speculation, not told apart"

PARTS: Mapping[str, str] = {
    PLAIN_STEP: "the baseline's whole step",
    "plain decode": "forward and logits of the target at one position, without attention",
    "plain decode, sampling, scheduler": "the baseline's step less attention",
    "attention": "attention of the target at one position, the writing of keys and values included",
    VERIFYING: "what the target's step at K + 1 positions takes more than at one",
    DRAFTS: "what grows with K: proposing and verifying",
    NOT_TOLD_APART: "all that the step takes more than a plain one",
    DRAFTING: "the drafter",
    FIXED: "what speculation costs at any K",
    "sampling": "sampling, or the verification of drafts",
    "scheduler and launches": "what happens between the calls to the worker, launches and bookkeeping",
    "rest": "what no rule attributes",
}
"""Name -> definition, in the order in which they are drawn; all in milliseconds of a mean step."""

COLOURS: Mapping[str, str] = {
    PLAIN_STEP: "#0072B2",
    "plain decode": "#0072B2",
    "plain decode, sampling, scheduler": "#0072B2",
    "attention": "#56B4E9",
    VERIFYING: "#D55E00",
    DRAFTS: "#D55E00",
    NOT_TOLD_APART: "#D55E00",
    DRAFTING: "#E69F00",
    FIXED: "#E69F00",
    "sampling": "#009E73",
    "scheduler and launches": "#CC79A7",
    "rest": "#8A94A0",
}
"""Okabe and Ito's colours, told apart with any colour vision; two of one colour are never in one step."""
