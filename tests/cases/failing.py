"""The cases that fail, by number and policy, with the reason; a row that passes fails the test and is to be removed."""

ESTIMATED = "its row demands an estimate of the words, and reads no usage report (L11, N09)"
REPORTED = "its row demands the provider's own report (O02, V01), and that report is far too low here"
DENSE = "its row counts a token for 1.5 characters (W02), three times what these words cost"
WHOLE = "its row replaces everything by the summary (L04, V05), and this stub's summary names nothing"
CALLED = "its row leaves no call of that tool in the list (L04, O03, V05), so that nothing needs its reference"
NO_MODEL = "it makes no summary here, so that none can be shown again; what the first compaction showed is shown"

# What the row of a followed system demands, against what the case expects.
ARGUED = {
    ("053", "wolffish"): DENSE,
    ("065", "claude-code"): WHOLE,
    ("065", "vibe"): WHOLE,
    ("083", "claude-code"): ESTIMATED,
    ("083", "neurolink"): ESTIMATED,
    ("086", "opal"): REPORTED,
    ("086", "vibe"): REPORTED,
    ("131", "wolffish"): DENSE,
    ("137", "neurolink"): NO_MODEL,
    ("137", "refold"): NO_MODEL,
    ("137", "wolffish"): NO_MODEL,
    ("149", "refold"): "it asks no model: a digest says what left, and the originals stay readable",
    ("211", "neurolink"): "its row keeps the first pair (N06), with a picture that fits here, and so with its name",
    ("219", "claude-code"): CALLED,
    ("219", "opal"): CALLED,
    ("219", "vibe"): CALLED,
    ("161", "claude-code"): ESTIMATED,
    ("161", "vibe"): "its row measures by the last report alone (V01)",
}

FAILING = ARGUED
