"""Writes tiktoken's files of cl100k_base and o200k_base from bpe-openai's; their hashes are those that tiktoken checks."""

import base64
import hashlib
import sys
from pathlib import Path

import bpe_openai

SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for name, expected in SHA256.items():
    encoding = bpe_openai.get_encoding(name)
    if not encoding._mergeable_ranks:
        encoding._build_rank_tables()
    ranks = sorted(encoding._mergeable_ranks.items(), key=lambda pair: pair[1])
    made = b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks)
    if hashlib.sha256(made).hexdigest() != expected:
        sys.exit(f"{name}: not the vocabulary that tiktoken expects")
    address = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    (folder / hashlib.sha1(address.encode()).hexdigest()).write_bytes(made)
