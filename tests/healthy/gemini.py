"""Requests of the Gemini API (generateContent), one or more for each documented feature.

Where a feature exists on Vertex AI alone, its source is a page of Vertex.
"""

from __future__ import annotations

from typing import Any

from tests.healthy import Feature

__all__ = ["EVERYTHING", "FEATURES"]

DOCS = "https://ai.google.dev/gemini-api/docs"
VERTEX = "https://cloud.google.com/vertex-ai/generative-ai/docs"
PRO = "gemini-3-pro-preview"

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAADElEQVR4nGNgIAkAAAAmAAEzwzTfAAAAAElFTkSuQmCC"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQAAAAA="
PDF = "JVBERi0xLjQKJeLjz9MKdHJhaWxlcgo8PC9Sb290IDEgMCBSPj4KJSVFT0YK"
SIGNATURE = "EgEKxXN0YXRlIG9mIHRoaW5raW5nLCBmaXJzdA=="
MORE = "EgEKxXN0YXRlIG9mIHRoaW5raW5nLCBzZWNvbmQ="


def _feature(name: str, page: str, *contents: dict[str, Any], model: str = PRO, **rest: Any) -> Feature:
    source = page if page.startswith("https") else f"{DOCS}/{page}"
    return Feature(name, source, model, {"contents": list(contents), **rest})


def _user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [_part(part) for part in parts]}


def _model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [_part(part) for part in parts]}


def _part(part: Any) -> dict[str, Any]:
    return {"text": part} if isinstance(part, str) else part


def _call(name: str, id: str = "", signature: str = "", **args: Any) -> dict[str, Any]:
    call: dict[str, Any] = {"functionCall": {**({"id": id} if id else {}), "name": name, "args": args}}
    return {**call, "thoughtSignature": signature} if signature else call


def _response(name: str, response: dict[str, Any], id: str = "", **rest: Any) -> dict[str, Any]:
    return {"functionResponse": {**({"id": id} if id else {}), "name": name, "response": response, **rest}}


def _declared(*names: str) -> list[dict[str, Any]]:
    parameters = {"type": "OBJECT", "properties": {"path": {"type": "STRING"}}}
    return [
        {"functionDeclarations": [{"name": n, "description": f"Runs {n}.", "parameters": parameters} for n in names]}
    ]


FEATURES = (
    _feature(
        "system-instruction",
        "text-generation",
        _user("Say hello."),
        _model("Hello."),
        _user("And goodbye."),
        systemInstruction={"parts": [{"text": "You are brief."}, {"text": "You are polite."}]},
        generationConfig={"temperature": 0.2, "maxOutputTokens": 2048, "stopSequences": ["END"]},
    ),
    _feature("content-without-role", "text-generation", {"parts": [{"text": "Explain how tides work."}]}),
    _feature(
        "two-contents-of-the-user",
        "text-generation",
        _user("First the facts."),
        _user("Now the question: why?"),
        _model("Because."),
        _user("Thanks. Go on."),
    ),
    _feature(
        "parts-of-a-stream-with-line-breaks-alone",
        "text-generation",
        _user("Write two paragraphs."),
        _model("The first.", "\n\n", "The second.", " "),
        _user("A third."),
    ),
    _feature(
        "thought-summaries",
        "thinking",
        _user("Why is the build slow?"),
        _model(
            {"text": "**Looking at the cache**\nThe cache may be cold.", "thought": True},
            {"text": "The cache is cold.", "thoughtSignature": SIGNATURE},
        ),
        _user("Warm it."),
        generationConfig={"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"}},
    ),
    _feature(
        "empty-text-with-signature",
        "thought-signatures",
        _user("Why?"),
        _model("Because of ", "the cache.", {"text": "", "thoughtSignature": SIGNATURE}),
        _user("Go on."),
    ),
    _feature(
        "signature-alone-in-a-content",
        "thought-signatures",
        _user("Why?"),
        _model("Because of the cache."),
        _model({"text": "", "thoughtSignature": SIGNATURE}),
        _user("Go on."),
    ),
    _feature(
        "empty-thought-with-signature",
        "thought-signatures",
        _user("Why?"),
        _model({"text": "", "thought": True, "thoughtSignature": SIGNATURE}, "Because."),
        _user("Go on."),
    ),
    _feature(
        "function-call",
        "function-calling",
        _user("What is in a.py?"),
        _model(_call("read_file", "fc_a1", SIGNATURE, path="a.py")),
        _user(_response("read_file", {"output": "print(1)"}, "fc_a1")),
        _model("It prints 1."),
        _user("And b.py?"),
        tools=_declared("read_file"),
        toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
    ),
    _feature(
        "function-call-without-id",
        "function-calling",
        _user("What is in a.py?"),
        _model(_call("read_file", path="a.py")),
        _user(_response("read_file", {"result": "print(1)"})),
        tools=_declared("read_file"),
        model="gemini-2.5-flash",
    ),
    _feature(
        "parallel-calls-signature-on-the-first",
        "thought-signatures",
        _user("Compare a.py and b.py."),
        _model(_call("read_file", "fc_b1", SIGNATURE, path="a.py"), _call("read_file", "fc_b2", path="b.py")),
        _user(
            _response("read_file", {"output": "print(1)"}, "fc_b1"),
            _response("read_file", {"output": "print(2)"}, "fc_b2"),
        ),
        tools=_declared("read_file"),
    ),
    _feature(
        "parallel-calls-answered-in-another-order",
        "function-calling",
        _user("Compare a.py and b.py."),
        _model("I read both.", _call("read_file", "fc_c1", SIGNATURE, path="a.py"), _call("grep", "fc_c2", path="b")),
        _user(_response("grep", {"output": "b.py:1"}, "fc_c2"), _response("read_file", {"output": "x"}, "fc_c1")),
        tools=_declared("read_file", "grep"),
    ),
    _feature(
        "parallel-calls-of-one-name-without-ids",
        "function-calling",
        _user("Compare a.py and b.py."),
        _model(_call("read_file", path="a.py"), _call("read_file", path="b.py")),
        _user(_response("read_file", {"output": "1"}), _response("read_file", {"output": "2"})),
        tools=_declared("read_file"),
        model="gemini-2.5-pro",
    ),
    _feature(
        "steps-of-one-turn-each-signed",
        "thought-signatures",
        _user("Book a taxi if my flight is late."),
        _model(_call("check_flight", "fc_d1", SIGNATURE, path="AA100")),
        _user(_response("check_flight", {"status": "delayed", "departure": "12 PM"}, "fc_d1")),
        _model(_call("book_taxi", "fc_d2", MORE, path="10 AM")),
        _user(_response("book_taxi", {"booking_status": "success"}, "fc_d2")),
        tools=_declared("check_flight", "book_taxi"),
    ),
    _feature(
        "calls-of-another-model-with-the-validator-skipped",
        "thought-signatures",
        _user("What is in a.py?"),
        _model(_call("read_file", "fc_e1", "skip_thought_signature_validator", path="a.py")),
        _user(_response("read_file", {"output": "print(1)"}, "fc_e1")),
        tools=_declared("read_file"),
    ),
    _feature(
        "failed-and-empty-responses",
        "function-calling",
        _user("Delete a.py and touch b.py."),
        _model(_call("delete", "fc_f1", SIGNATURE, path="a.py"), _call("touch", "fc_f2", path="b.py")),
        _user(_response("delete", {"error": "a.py is read-only"}, "fc_f1"), _response("touch", {}, "fc_f2")),
        tools=_declared("delete", "touch"),
    ),
    _feature(
        "streamed-arguments-joined",
        f"{VERTEX}/multimodal/function-calling",
        _user("What is the weather in New Delhi?"),
        _model(
            {
                "functionCall": {
                    "id": "fc_g1",
                    "name": "weather",
                    "args": {"path": "New Delhi"},
                    "willContinue": False,
                },
                "thoughtSignature": SIGNATURE,
            }
        ),
        _user(_response("weather", {"output": "31 C"}, "fc_g1")),
        tools=_declared("weather"),
        toolConfig={"functionCallingConfig": {"mode": "AUTO", "streamFunctionCallArguments": True}},
    ),
    _feature(
        "response-with-a-picture-it-refers-to",
        "function-calling#multimodal",
        _user("Show me the green shirt I ordered last month."),
        _model(_call("get_image", "fc_h1", SIGNATURE, path="green shirt")),
        _user(
            _response(
                "get_image",
                {"image_ref": {"$ref": "shirt.png"}, "found": True},
                "fc_h1",
                parts=[{"inlineData": {"displayName": "shirt.png", "mimeType": "image/png", "data": PNG}}],
            )
        ),
        _model("Here it is."),
        _user("And the red one?"),
        tools=_declared("get_image"),
    ),
    _feature(
        "response-with-several-references",
        "function-calling#multimodal",
        _user("Compare the screenshots."),
        _model(_call("shots", "fc_i1", SIGNATURE, path="home")),
        _user(
            _response(
                "shots",
                {"pages": [{"name": "home", "shot": {"$ref": "1.png"}}, {"name": "log-in", "shot": {"$ref": "2.png"}}]},
                "fc_i1",
                parts=[
                    {"inlineData": {"displayName": "1.png", "mimeType": "image/png", "data": PNG}},
                    {"inlineData": {"displayName": "2.png", "mimeType": "image/png", "data": PNG}},
                ],
            )
        ),
        _model("They differ in the menu."),
        _user("Which is newer?"),
        tools=_declared("shots"),
    ),
    _feature(
        "response-with-files-it-does-not-name",
        f"{VERTEX}/multimodal/function-calling#mm-fr",
        _user("Fetch the report."),
        _model(_call("fetch", "fc_j1", SIGNATURE, path="report")),
        _user(
            _response(
                "fetch",
                {"output": "Two files."},
                "fc_j1",
                parts=[
                    {"fileData": {"fileUri": "gs://bucket/report.pdf", "mimeType": "application/pdf"}},
                    {"inlineData": {"mimeType": "image/png", "data": PNG}},
                ],
            )
        ),
        _model("The report has two parts."),
        _user("Sum it up."),
        tools=_declared("fetch"),
    ),
    _feature(
        "computer-use",
        "computer-use",
        _user("Open the settings."),
        _model(
            "I click on the menu.",
            _call("click_at", "fc_k1", SIGNATURE, x=371, y=470, safety_decision={"decision": "require_confirmation"}),
        ),
        _user(
            _response(
                "click_at",
                {"url": "https://example.org/settings", "safety_acknowledgement": True},
                "fc_k1",
                parts=[{"inlineData": {"mimeType": "image/png", "data": PNG}}],
            )
        ),
        model="gemini-2.5-computer-use-preview-10-2025",
        tools=[{"computerUse": {"environment": "ENVIRONMENT_BROWSER"}}],
    ),
    _feature(
        "code-execution",
        "code-execution",
        _user("Sum the first fifty primes."),
        _model(
            "I compute it.",
            {"executableCode": {"language": "PYTHON", "code": "print(5117)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "5117\n"}},
            "The sum is 5117.",
        ),
        _user("Of the first hundred?"),
        model="gemini-2.5-flash",
        tools=[{"codeExecution": {}}],
    ),
    _feature(
        "code-execution-with-ids-and-a-picture",
        "code-execution",
        _user("Plot the prices.", {"inlineData": {"mimeType": "text/csv", "data": "YSxiCjEsMgo="}}),
        _model(
            {
                "executableCode": {"id": "code_1", "language": "PYTHON", "code": "plot()"},
                "thoughtSignature": SIGNATURE,
            },
            {"codeExecutionResult": {"id": "code_1", "outcome": "OUTCOME_OK", "output": ""}},
            {"inlineData": {"mimeType": "image/png", "data": PNG}},
            {"executableCode": {"id": "code_2", "language": "PYTHON", "code": "1/0"}},
            {"codeExecutionResult": {"id": "code_2", "outcome": "OUTCOME_FAILED", "output": "ZeroDivisionError"}},
            "The plot is there; the second step failed.",
        ),
        _user("Again."),
        tools=[{"codeExecution": {}}],
    ),
    _feature(
        "context-circulation-of-server-tools",
        "tool-combination",
        _user("What is the weather in the northernmost city of the United States?"),
        _model(
            {
                "toolCall": {"id": "st_1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["northernmost city"]}},
                "thoughtSignature": SIGNATURE,
            },
            {
                "toolResponse": {
                    "id": "st_1",
                    "toolType": "GOOGLE_SEARCH_WEB",
                    "response": {"search_suggestions": "<div>Utqiagvik</div>"},
                },
                "thoughtSignature": MORE,
            },
            _call("weather", "fc_l1", SIGNATURE, path="Utqiagvik"),
        ),
        _user(_response("weather", {"output": "-12 C"}, "fc_l1")),
        _model("It is -12 C in Utqiagvik."),
        _user("And tomorrow?"),
        tools=[{"googleSearch": {}}, *_declared("weather")],
        toolConfig={"includeServerSideToolInvocations": True},
    ),
    _feature(
        "url-context-tool-circulated",
        "tool-combination",
        _user("Read https://example.org/a and note its title."),
        _model(
            {
                "toolCall": {"id": "st_2", "toolType": "URL_CONTEXT", "args": {"urls": ["https://example.org/a"]}},
                "thoughtSignature": SIGNATURE,
            },
            {"toolResponse": {"id": "st_2", "toolType": "URL_CONTEXT", "response": {}}, "thoughtSignature": MORE},
            _call("note", "fc_m1", SIGNATURE, path="A title"),
        ),
        _user(_response("note", {"output": "noted"}, "fc_m1")),
        tools=[{"urlContext": {}}, *_declared("note")],
        toolConfig={"includeServerSideToolInvocations": True},
    ),
    _feature(
        "google-search-grounding",
        "google-search",
        _user("Who won the Euro 2024?"),
        _model("Spain won."),
        _user("Against whom?"),
        model="gemini-2.5-flash",
        tools=[{"googleSearch": {}}],
    ),
    _feature(
        "url-context",
        "url-context",
        _user("Compare https://example.org/a with https://example.org/b."),
        _model({"text": "They agree.", "thoughtSignature": SIGNATURE}),
        _user("In what?"),
        tools=[{"urlContext": {}}, {"googleSearch": {}}],
    ),
    _feature(
        "google-maps-grounding",
        "maps-grounding",
        _user("Where can I eat nearby?"),
        _model("At the harbor."),
        _user("And later?"),
        model="gemini-2.5-flash",
        tools=[{"googleMaps": {"enableWidget": True}}],
        toolConfig={"retrievalConfig": {"latLng": {"latitude": 53.5, "longitude": 10.0}}},
    ),
    _feature(
        "file-search",
        "file-search",
        _user("What does the contract say on notice?"),
        _model("Three months."),
        _user("Where?"),
        model="gemini-2.5-flash",
        tools=[{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/contracts"]}}],
    ),
    _feature(
        "cached-content",
        "caching",
        _user("Sum up the film."),
        _model("A man looks for his dog."),
        _user("How does it end?"),
        model="gemini-2.5-flash",
        cachedContent="cachedContents/film-1",
    ),
    _feature(
        "picture-inline",
        "image-understanding",
        _user({"inlineData": {"mimeType": "image/png", "data": PNG}}, "What is this?"),
        _model("A gradient."),
        _user("Which colors?"),
    ),
    _feature(
        "picture-with-media-resolution",
        "media-resolution",
        _user(
            {
                "inlineData": {"mimeType": "image/png", "data": PNG},
                "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"},
            },
            "Read the small print.",
        ),
        _model("It says 1."),
        _user("Sure?"),
        generationConfig={"mediaResolution": "MEDIA_RESOLUTION_LOW"},
    ),
    _feature(
        "document-inline",
        "document-processing",
        _user({"inlineData": {"mimeType": "application/pdf", "data": PDF}}, "Sum this up."),
        _model("It is empty."),
        _user("All pages?"),
    ),
    _feature(
        "audio-inline",
        "audio",
        _user("Write down what is said.", {"inlineData": {"mimeType": "audio/wav", "data": WAV}}),
        _model("Nothing is said."),
        _user("Listen again."),
    ),
    _feature(
        "file-uploaded",
        "files",
        _user({"fileData": {"mimeType": "application/pdf", "fileUri": f"{DOCS.partition('/gemini')[0]}/files/a1"}}),
        _model("A manual."),
        _user("Chapter 2?"),
    ),
    _feature(
        "video-by-address-with-metadata",
        "video-understanding",
        _user(
            {
                "fileData": {"fileUri": "https://www.youtube.com/watch?v=9hE5-98ZeCg"},
                "videoMetadata": {"startOffset": "40s", "endOffset": "80s", "fps": 2},
            },
            "Sum this up in three sentences.",
        ),
        _model("A talk."),
        _user("Who speaks?"),
    ),
    _feature(
        "picture-generated-with-signatures",
        "image-generation",
        _user("Draw a cat."),
        _model(
            {"text": "Here is a cat.", "thoughtSignature": SIGNATURE},
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": MORE},
        ),
        _user("Give it a hat."),
        model="gemini-3-pro-image-preview",
        generationConfig={"responseModalities": ["TEXT", "IMAGE"], "imageConfig": {"aspectRatio": "1:1"}},
    ),
    _feature(
        "structured-output",
        "structured-output",
        _user("List two cookies."),
        _model('[{"name": "plain"}, {"name": "oat"}]'),
        _user("A third."),
        generationConfig={"responseMimeType": "application/json", "responseSchema": {"type": "ARRAY"}},
    ),
    _feature(
        "metadata-of-parts",
        "https://github.com/googleapis/python-genai/blob/main/google/genai/types.py",
        _user({"text": "See the notes.", "partMetadata": {"source": "notes.md"}}),
        _model("Seen."),
        _user("Well?"),
    ),
    _feature(
        "snake-case",
        "https://protobuf.dev/programming-guides/json/",
        _user({"inline_data": {"mime_type": "image/png", "data": PNG}}, "Describe it."),
        _model({"function_call": {"id": "fc_n1", "name": "note", "args": {"path": "x"}}, "thought_signature": MORE}),
        _user({"function_response": {"id": "fc_n1", "name": "note", "response": {"output": "noted"}}}),
        system_instruction={"parts": [{"text": "You are brief."}]},
        tools=[{"function_declarations": [{"name": "note", "description": "Notes."}]}],
    ),
)

_NAMES = sorted(
    {
        part["functionCall"]["name"]
        for feature in FEATURES
        for content in feature.body["contents"]
        for part in content["parts"]
        if "functionCall" in part
    }
)
EVERYTHING: dict[str, Any] = {
    "contents": [
        *(content for feature in FEATURES for content in (*feature.body["contents"], _model("Done."))),
        _user("What is left to do?"),
    ],
    "systemInstruction": {"parts": [{"text": "You are brief."}]},
    "tools": [{"googleSearch": {}}, {"urlContext": {}}, {"codeExecution": {}}, *_declared(*_NAMES)],
    "toolConfig": {"includeServerSideToolInvocations": True},
}
