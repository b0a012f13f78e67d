"""Streamed responses: server-sent events, and the message that the events of each provider add up to.

Bytes become events in `sse`, events become a response body in one accumulator per provider:

    bytes ── sse.Decoder ──> Event (raw bytes, name, data) ── Event.json() ──> accumulator.add() ... accumulator.body()

An event keeps its raw bytes, so a relay can forward what it does not change byte for byte. A body has the shape that
the provider sends where nothing is streamed, so code that reads whole responses reads streamed ones as well. Everything
here is lenient: unknown parts of a stream are skipped or passed on, never an error.
"""
